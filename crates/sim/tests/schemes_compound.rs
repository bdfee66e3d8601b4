//! Compound TCP in the simulator: the law of its window on an empty path, what a queue leaves of it, and Reno below.

use astraea_cc::{AnyController, Congestion, Controller, MILLISECOND, MSS, Nanos, SECOND, Signal, build};
use astraea_sim::{Config, FlowStats, HEADER, Simulation};
use serde_json::{Value, json};

const WIRE: f64 = (MSS + HEADER) as f64;
const PACKET: f64 = MSS as f64;

/// One flow over one link.
fn config(rate: f64, rtt: Nanos, limit: &Value, loss: &Value, seconds: u64) -> Config {
    let config = json!({
        "duration_ns": seconds * SECOND,
        "links": [{"name": "link", "rate": {"constant": rate}, "delay": {"constant": rtt / 2}, "limit": limit, "loss": loss}],
        "flows": [{"start_ns": 0, "path": [0]}]
    });
    serde_json::from_value(config).expect("a configuration")
}

/// A flow that has left slow start with a window of 5 packets before it begins, on a link without limit.
fn avoiding(rate: f64, rtt: Nanos, seconds: u64) -> Simulation<AnyController> {
    let config = config(rate, rtt, &json!("infinite"), &json!("none"), seconds);
    let controller = |_| {
        let mut controller = build("compound", &[], MSS).expect("a scheme");
        let flight_size = 10 * u64::from(MSS);
        controller.on_congestion(&Congestion { now: 0, signal: Signal::Loss, flight_size, sent_at: 0 });
        controller
    };
    Simulation::new(&config, 1, controller).expect("a valid configuration")
}

/// Window and delay-based part in packets.
fn windows(simulation: &Simulation<AnyController>) -> (f64, f64) {
    let AnyController::Compound(controller) = simulation.flows()[0].controller() else { panic!("another scheme") };
    let packets = |bytes: u64| bytes as f64 / PACKET;
    (packets(controller.cwnd()), packets(controller.dwnd()))
}

/// Increase of the whole window per round trip: `win^(3/4) / 8`.
fn increase(win: f64) -> f64 {
    win.powf(0.75) / 8.0
}

/// On an empty path of 1 Gbit/s and 100 ms: a packet per round trip below 38, then `dwnd` grows by `win^(3/4) / 8 - 1`
/// (21.2 at 1000 packets) and Reno's part by nearly one packet: one for each window acknowledged, in whole packets.
/// Within 2 % of `win += win^(3/4) / 8` for 160 round trips, up to 3300 packets.
#[test]
fn the_window_follows_the_law_on_an_empty_path() {
    let rtt = 100 * MILLISECOND;
    let mut simulation = avoiding(1e9, rtt, 21);
    let round_trip = rtt + (WIRE * 8.0) as Nanos;
    let mut law: Option<f64> = None;
    let mut before = (5.0, 0.0);
    for round in 1..=200 {
        simulation.run_until(round * round_trip + round_trip / 2);
        let (win, dwnd) = windows(&simulation);
        if before.0 < 38.0 {
            assert_eq!(win, before.0 + 1.0, "round {round}");
        } else {
            let expected = law.map_or(win, |law| law + increase(law));
            assert!((win / expected - 1.0).abs() < 0.02, "round {round}: {win} packets, by the law {expected}");
            law = Some(expected);
        }
        if (1000.0..1020.0).contains(&before.0) {
            let grown = dwnd - before.1;
            assert!((21.0..22.0).contains(&grown), "{grown} packets from {}", before.0);
        }
        before = (win, dwnd);
    }
    assert!(before.0 > 3300.0 && simulation.queue_length(0) == 0, "{before:?}");
}

/// 30 Mbit/s and 100 ms, 251 packets, without limit. Once more than 30 of them wait, `dwnd` gives way: the window rests
/// near 251 + 30, where what is seen of the queue is up to three increases old, while Reno's part grows. At the end
/// that is all there is: `dwnd` is 0 and stays there, and the window grows by one packet per round trip, which with a
/// round trip of `win` transmission times is `win² = win₀² + 2 t / s`.
#[test]
fn a_queue_turns_it_into_reno() {
    let (rate, rtt, gamma) = (3e7, 100 * MILLISECOND, 30.0);
    let service = WIRE * 8.0 / rate;
    let path = rtt as f64 / 1e9 / service + 1.0;
    let mut simulation = avoiding(rate, rtt, 60);
    let bound = path + gamma + 3.0 * increase(path + gamma);
    let mut largest: f64 = 0.0;
    let mut reno = None;
    for tenth in 1..=600 {
        simulation.run_until(tenth * SECOND / 10);
        let (win, dwnd) = windows(&simulation);
        largest = largest.max(dwnd);
        if dwnd > 0.0 {
            assert!(win < bound, "{win} packets, {dwnd} of them delay-based, at {tenth}/10 s");
        }
        // More than γ wait for Reno's part alone.
        if win - dwnd > path + gamma + 5.0 {
            assert_eq!(dwnd, 0.0, "at {tenth}/10 s");
            let (from, start) = *reno.get_or_insert((tenth, win));
            let expected = (start * start + 2.0 * (tenth - from) as f64 / 10.0 / service).sqrt();
            assert!((win - expected).abs() < 2.0, "{win} packets, Reno {expected}, at {tenth}/10 s");
        }
    }
    let (from, _) = reno.expect("Reno's part alone");
    assert!(largest > 190.0 && from < 350, "{largest} packets, {from}");
    assert_eq!(simulation.flow_stats(0).declared_lost, 0);
}

fn over(scheme: &str, config: &Config) -> FlowStats {
    let controller = |_| build(scheme, &[], MSS).expect("a scheme");
    let mut simulation = Simulation::new(config, 1, controller).expect("a valid configuration");
    simulation.run_until(config.duration_ns);
    simulation.flow_stats(0)
}

/// 20 packets in the path and 14 in the queue: packet for packet what `NewReno` does. With 30 packets more it is not.
#[test]
fn below_38_packets_it_is_reno() {
    let same = |buffer: u64| {
        let config = config(1.2e7, 20 * MILLISECOND, &json!({"packets": buffer}), &json!({"bernoulli": 1e-3}), 60);
        let facts =
            |stats: FlowStats| (stats.sent, stats.dropped, stats.delivered_bytes, stats.rtt_sum, stats.timeouts);
        let [reno, compound] = ["newreno", "compound"].map(|scheme| facts(over(scheme, &config)));
        assert!(reno.0 > 50_000 && reno.1 > 50, "{reno:?}");
        reno == compound
    };
    assert!(same(14));
    assert!(!same(44));
}

/// Mean window under evenly spaced loss, where nothing queues: two round trips at W/2, one that repairs the loss and
/// the first whose delay is measured, and then the law from W/2 to W take `1 / p` packets; within 5 %.
#[test]
fn it_follows_its_response_function() {
    for every in [1000_u64, 3000, 10_000] {
        let packets = every as f64;
        // The integrals of w dt and of dt = dw / (w^(3/4) / 8), from W/2 to W.
        let growing = |peak: f64| 8.0 / 1.25 * (1.0 - 0.5_f64.powf(1.25)) * peak.powf(1.25);
        let rounds = |peak: f64| 32.0 * (1.0 - 0.5_f64.powf(0.25)) * peak.powf(0.25);
        let peak = (1..1000).map(f64::from).find(|peak| growing(*peak) + peak >= packets).expect("a window");
        let expected = packets / (rounds(peak) + 2.0);
        let rtt = 100 * MILLISECOND;
        let stats = over("compound", &config(1e11, rtt, &json!("infinite"), &json!({"periodic": every}), 1000));
        let window = stats.arrived as f64 * rtt as f64 / 1000e9;
        assert!((window / expected - 1.0).abs() < 0.05, "p = 1/{every}: {window} packets, expected {expected}");
    }
}
