//! Westwood+ in the simulator: the window that a loss leaves, full and random losses, and what that is worth.

use astraea_cc::{AnyController, Controller, MILLISECOND, MSS, Nanos, SECOND, build};
use astraea_sim::{Config, HEADER, Simulation};
use serde_json::{Value, json};

const WIRE: f64 = (MSS + HEADER) as f64;
const PACKET: f64 = MSS as f64;

/// Packets that a path holds without a queue: those on their way, and the one being sent.
fn path(rate: f64, rtt: Nanos) -> f64 {
    rate * rtt as f64 / 8e9 / WIRE + 1.0
}

/// One flow over one link.
fn over(scheme: &str, rate: f64, rtt: Nanos, buffer: f64, loss: &Value, seconds: u64) -> Simulation<AnyController> {
    let config: Config = serde_json::from_value(json!({
        "duration_ns": seconds * SECOND,
        "links": [{
            "name": "link", "rate": {"constant": rate}, "delay": {"constant": rtt / 2},
            "limit": {"packets": buffer as u64}, "loss": loss
        }],
        "flows": [{"start_ns": 0, "path": [0]}]
    }))
    .expect("a configuration");
    let controller = |_| build(scheme, &[], MSS).expect("a scheme");
    Simulation::new(&config, 1, controller).expect("a valid configuration")
}

/// Share of the link that is used from this time to the end.
fn used(mut simulation: Simulation<AnyController>, rate: f64, from: Nanos) -> f64 {
    simulation.run_until(from);
    let before = simulation.flow_stats(0).arrived;
    simulation.run_until(simulation.duration());
    let bits = (simulation.flow_stats(0).arrived - before) as f64 * WIRE * 8.0;
    bits / rate / ((simulation.duration() - from) as f64 / 1e9)
}

/// Thresholds in packets that a flow goes through from 20 s on, each with the window before it was set.
fn thresholds(simulation: &mut Simulation<AnyController>) -> Vec<(f64, f64)> {
    let (mut last, mut window) = (0, 0);
    let mut changes = Vec::new();
    for tick in 1..simulation.duration() / (10 * MILLISECOND) {
        simulation.run_until(tick * 10 * MILLISECOND);
        let AnyController::Westwood(controller) = simulation.flows()[0].controller() else { panic!("another scheme") };
        if tick > 2000 && controller.ssthresh() != last {
            changes.push((window as f64 / PACKET, controller.ssthresh() as f64 / PACKET));
        }
        (last, window) = (controller.ssthresh(), controller.cwnd());
    }
    changes
}

/// 50 Mbit/s and 60 ms, 251 packets, and buffers of half of that, of as much, and of twice. The window is halved when the
/// buffer overflows, and with the end of the repair it is what the path holds, whatever it was: within 1 %, where half
/// would be 0.75 to 1.5 times that.
#[test]
fn an_overflow_leaves_what_the_path_holds() {
    let (rate, rtt) = (5e7, 60 * MILLISECOND);
    let holds = path(rate, rtt);
    for products in [0.5, 1.0, 2.0] {
        let changes = thresholds(&mut over("westwood", rate, rtt, products * holds, &json!("none"), 300));
        assert!(changes.len() >= 6, "{changes:?}");
        // The first of them may be what remains of slow start.
        for pair in changes[changes.len() % 2 + 2..].chunks(2) {
            let [(peak, half), (_, left)] = pair else { unreachable!("pairs") };
            assert!((peak / holds - 1.0 - products).abs() < 0.02 && (half - peak / 2.0).abs() < 1.0, "{changes:?}");
            assert!((left / holds - 1.0).abs() < 0.01, "{left} of {holds} packets");
        }
    }
}

/// A path that carries everything, and every 50 000th packet lost: the flow is seen at its own rate. Two filters of seven
/// measurements each are behind a window that grows, and a repair slows them down a little, but 97 % of it are left
/// each time, where `NewReno` would be left with half.
#[test]
fn a_random_loss_leaves_what_the_flow_has_carried() {
    let mut simulation = over("westwood", 1e11, 60 * MILLISECOND, 1e6, &json!({"periodic": 50_000}), 200);
    let changes = thresholds(&mut simulation);
    assert!(changes.len() >= 100, "{changes:?}");
    for pair in changes[changes.len() % 2..].chunks(2) {
        let [(peak, half), (_, left)] = pair else { unreachable!("pairs") };
        assert!((half - peak / 2.0).abs() < 1.0 && (0.97..=1.0).contains(&(left / peak)), "{left} of {peak} packets");
    }
}

/// A buffer of half of the path's content, where Reno's window is 3/4 of it after a loss: from 30 s on Westwood leaves
/// a third as much of the link at most. Of a quarter it is not: the window comes back at once, from 5/8, in a burst that
/// overflows the buffer again.
#[test]
fn the_link_is_used_where_a_burst_fits_into_the_buffer() {
    let (rate, rtt) = (5e7, 60 * MILLISECOND);
    let idle = |products: f64| {
        ["newreno", "westwood"].map(|scheme| {
            let buffer = products * path(rate, rtt);
            1.0 - used(over(scheme, rate, rtt, buffer, &json!("none"), 300), rate, 30 * SECOND)
        })
    };
    let [reno, westwood] = idle(0.5);
    assert!(westwood < reno / 3.0, "{reno} and {westwood}");
    let [reno, westwood] = idle(0.25);
    assert!(westwood > reno, "{reno} and {westwood}");
}

/// 20 Mbit/s and 100 ms, 168 packets: at least twice what Reno gets of the link, with one packet in 1000 lost, 3 and 10.
#[test]
fn random_loss_costs_less_than_under_reno() {
    let (rate, rtt) = (2e7, 100 * MILLISECOND);
    for loss in [1e-3, 3e-3, 1e-2] {
        let [reno, westwood] = ["newreno", "westwood"].map(|scheme| {
            used(over(scheme, rate, rtt, path(rate, rtt), &json!({"bernoulli": loss}), 400), rate, 20 * SECOND)
        });
        assert!(westwood > 2.0 * reno, "{loss}: {reno} and {westwood}");
    }
}
