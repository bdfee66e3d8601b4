//! The simulator against results that are known on paper. Tolerances are stated where they are used.

use astraea_cc::{AnyController, MILLISECOND, MSS, Nanos, SECOND, build};
use astraea_sim::{Config, HEADER, Simulation};
use serde_json::{Value, json};

const WIRE: f64 = (MSS + HEADER) as f64;

fn run(config: Value, scheme: &str, params: &[(&str, f64)]) -> Simulation<AnyController> {
    let config: Config = serde_json::from_value(config).expect("a configuration");
    let params: Vec<_> = params.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect();
    let mut simulation =
        Simulation::new(&config, 7, |_| build(scheme, &params, MSS).expect("a scheme")).expect("a valid configuration");
    simulation.run_until(config.duration_ns);
    simulation
}

/// One flow over one link.
fn path(rate: f64, delay: Nanos, loss: &Value, seconds: u64) -> Value {
    json!({
        "duration_ns": seconds * SECOND,
        "links": [{"name": "link", "rate": {"constant": rate}, "delay": {"constant": delay}, "limit": "infinite", "loss": loss}],
        "flows": [{"start_ns": 0, "path": [0]}]
    })
}

fn close(what: &str, got: f64, expected: f64, tolerance: f64) {
    let error = got / expected - 1.0;
    assert!(
        error.abs() <= tolerance,
        "{what}: {got:.4}, expected {expected:.4} within {tolerance}: off by {error:+.4}"
    );
}

/// Poisson arrivals of equal packets at a constant rate: mean wait = load * service / (2 (1 - load)), within 3 %.
#[test]
fn waiting_time_of_m_d_1() {
    for load in [0.3, 0.6, 0.9] {
        let rate = 1.2e8;
        let service = WIRE * 8.0 / rate * 1e9;
        let mut config = path(rate, 0, &json!("none"), 400);
        let gap = (service / load).round() as u64;
        config["flows"][0]["source"] = json!({"poisson": {"every_ns": gap, "bytes": MSS}});
        let mut simulation = run(config, "constant-window", &[("window", 1e6)]);
        let stats = simulation.link_stats(0);
        let wait = stats.wait_sum as f64 / stats.served as f64;
        close(&format!("mean wait at load {load}"), wait, load * service / (2.0 * (1.0 - load)), 0.03);
        assert_eq!(stats.dropped, 0);
    }
}

/// A window below the bandwidth-delay product: one window a round trip, exactly, and no queue.
#[test]
fn small_constant_window_is_exact() {
    let (rate, delay, window) = (1e8, 15 * MILLISECOND, 100.0);
    let mut simulation = run(path(rate, delay, &json!("none"), 30), "constant-window", &[("window", window)]);
    let service = (WIRE * 8.0 / rate * 1e9) as Nanos;
    let stats = simulation.flow_stats(0);
    // The first window leaves as a burst, so its packets wait for each other once; they stay spaced ever after.
    assert_eq!(stats.rtt_min, Some(2 * delay + service));
    let rounds = 30 * SECOND / (2 * delay + service);
    let sent = window as u64 * (rounds + 1);
    assert!(stats.sent.abs_diff(sent) <= window as u64, "{} sent, expected about {sent}", stats.sent);
    assert_eq!(simulation.link_stats(0).dropped, 0);
    let wait = simulation.link_stats(0).wait_sum;
    let burst: Nanos = (0..100).map(|waiting| waiting * service).sum();
    assert_eq!(wait, burst);
}

/// A window above it: the link never rests, and the round trip is the window's transmission time, exactly.
#[test]
fn large_constant_window_is_exact() {
    let (rate, delay, window) = (1e8, 15 * MILLISECOND, 400_u64);
    let mut config = path(rate, delay, &json!("none"), 30);
    config["slot_ns"] = json!(10 * MILLISECOND);
    let mut simulation = run(config, "constant-window", &[("window", window as f64)]);
    let service = (WIRE * 8.0 / rate * 1e9) as Nanos;
    let served = simulation.link_stats(0).served;
    assert_eq!(served, 30 * SECOND / service + 1, "one transmission begins at the very end");
    let recorder = simulation.recorder().expect("recording is on");
    for slot in &recorder.flow(0)[100..recorder.slots() - 1] {
        assert_eq!(slot.rtt_sum / u64::from(slot.rtt_count), window * service);
    }
}

/// A window over a link with the delayed acknowledgements of RFC 5681: same throughput while the window is a multiple
/// of the acknowledgement's packets.
#[test]
fn delayed_acknowledgements_keep_the_throughput() {
    let mut config = path(1e8, 15 * MILLISECOND, &json!("none"), 30);
    config["flows"][0]["ack"] = json!({"every": 2});
    let mut simulation = run(config, "constant-window", &[("window", 400.0)]);
    let stats = simulation.link_stats(0);
    close("served", stats.served as f64, 30.0 * 1e8 / (8.0 * WIRE), 0.001);
}

/// Mean window of a long flow whose loss comes from the link alone, in packets: throughput times round-trip time.
fn mean_window(scheme: &str, params: &[(&str, f64)], delay: Nanos, loss: &Value, seconds: u64) -> f64 {
    // So fast that transmission and queueing do not matter.
    let mut simulation = run(path(1e11, delay, loss, seconds), scheme, params);
    let stats = simulation.flow_stats(0);
    let rtt = stats.rtt_sum as f64 / stats.rtt_count as f64;
    assert!(rtt < 1.01 * 2.0 * delay as f64, "the queue should be empty: RTT {rtt}");
    let _ = simulation.link_stats(0);
    stats.arrived as f64 * rtt / (seconds as f64 * 1e9)
}

/// `NewReno` under evenly spaced loss: the sawtooth from W/2 to W, one packet a round trip, with one more round trip at
/// W/2 in which the loss is repaired; within 5 % from 1e-4 to 1e-2.
#[test]
fn newreno_draws_its_sawtooth() {
    for every in [100_u64, 300, 1000, 3000, 10_000] {
        // Packets of a cycle: W/2 + (W/2 + 1) (W/2 + W) / 2 = 1/p.
        let packets = every as f64;
        let peak = (-1.25 + (1.25_f64.powi(2) + 1.5 * packets).sqrt()) / 0.75;
        let window = mean_window("newreno", &[], 50 * MILLISECOND, &json!({"periodic": every}), 3000);
        close(&format!("window at p = 1/{every}"), window, packets / (peak / 2.0 + 2.0), 0.05);
    }
}

/// `NewReno` under random loss: the square-root law, mean window sqrt(3/2 / p) (Mathis et al. 1997), within 10 % from
/// 1e-4 to 1e-2.
#[test]
fn newreno_follows_the_square_root_law() {
    for p in [1e-2_f64, 3e-3, 1e-3, 3e-4, 1e-4] {
        let window = mean_window("newreno", &[], 50 * MILLISECOND, &json!({"bernoulli": p}), 10_000);
        close(&format!("window at p = {p:.1e}"), window, (1.5 / p).sqrt(), 0.10);
    }
}

/// CUBIC under evenly spaced loss: RFC 9438 §5.1, `1.054 RTT^(3/4) / p^(3/4)` where the cubic curve decides, and the
/// Reno-friendly window `sqrt(3/2 / p)` where that is larger; within 10 %.
#[test]
fn cubic_follows_its_response_function() {
    for (rtt_ms, every) in [(100_u64, 3000_u64), (100, 10_000), (100, 100_000), (30, 1000), (10, 1000), (200, 30_000)] {
        let p = 1.0 / every as f64;
        let rtt = rtt_ms as f64 / 1e3;
        let cubic = 1.054 * (rtt / p).powf(0.75);
        let expected = cubic.max((1.5 / p).sqrt());
        let window = mean_window("cubic", &[], rtt_ms * MILLISECOND / 2, &json!({"periodic": every}), 4000);
        close(&format!("window at {rtt_ms} ms, p = {p:.1e}"), window, expected, 0.10);
    }
}
