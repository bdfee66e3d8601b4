//! C2TCP in the simulator: the delay in a deep buffer, what it is without its condition, and what the condition adds.

use astraea_cc::{AnyController, MILLISECOND, MSS, Nanos, SECOND, build};
use astraea_sim::{Config, FlowStats, HEADER, Simulation};
use serde_json::{Value, json};

const WIRE: f64 = (MSS + HEADER) as f64;

/// One flow over one link.
fn over(scheme: &str, params: &[(&str, f64)], link: &Value, seconds: u64) -> Simulation<AnyController> {
    let config: Config = serde_json::from_value(json!({
        "duration_ns": seconds * SECOND,
        "links": [link],
        "flows": [{"start_ns": 0, "path": [0]}]
    }))
    .expect("a configuration");
    let params: Vec<_> = params.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    let controller = |_| build(scheme, &params, MSS).expect("a scheme");
    Simulation::new(&config, 1, controller).expect("a valid configuration")
}

fn link(rate: f64, rtt: Nanos, limit: &Value, loss: &Value) -> Value {
    json!({"name": "link", "rate": {"constant": rate}, "delay": {"constant": rtt / 2}, "limit": limit, "loss": loss})
}

/// Mean round-trip time in ms and share of the link used, from 10 s to the end; packets dropped in all.
fn delay(mut simulation: Simulation<AnyController>, rate: f64) -> (f64, f64, u64) {
    simulation.run_until(10 * SECOND);
    let before = simulation.flow_stats(0);
    simulation.run_until(simulation.duration());
    let after = simulation.flow_stats(0);
    let mean = (after.rtt_sum - before.rtt_sum) as f64 / (after.rtt_count - before.rtt_count) as f64 / 1e6;
    let bits = (after.arrived - before.arrived) as f64 * WIRE * 8.0;
    (mean, bits / rate / (simulation.duration() as f64 / 1e9 - 10.0), after.dropped)
}

/// In a buffer of eight products, in which CUBIC's mean round-trip time is longer by 40 % or more, nothing is lost and the mean
/// is 0.8 to 0.95 of the target. With 150 ms the window takes longer than the interval to come back to 0.7 of itself, one
/// reduction follows another, and it is 0.5 to 0.75 of the target, with up to a tenth of the link idle.
#[test]
fn a_deep_buffer_stays_near_the_target() {
    let targets = [(0.08, 0.8, 0.95, 0.98), (0.1, 0.8, 0.95, 0.98), (0.12, 0.8, 0.95, 0.98), (0.15, 0.5, 0.75, 0.9)];
    for (rate, rtt) in [(2.4e7, 40 * MILLISECOND), (1e8, 20 * MILLISECOND), (5e6, 60 * MILLISECOND)] {
        let bytes = (8.0 * rate * rtt as f64 / 8e9) as u64;
        let link = link(rate, rtt, &json!({"bytes": bytes}), &json!("none"));
        let (cubic, ..) = delay(over("cubic", &[], &link, 120), rate);
        for (target, low, high, least) in targets {
            let (mean, used, dropped) = delay(over("c2tcp", &[("target", target)], &link, 120), rate);
            let what = format!("{mean} ms for {target} s at {rate} bit/s, {used} of the link, {dropped} dropped");
            assert!((low..high).contains(&(mean / target / 1e3)) && used > least && dropped == 0, "{what}");
            assert!(1.4 * mean < cubic, "{what}; CUBIC {cubic} ms");
        }
    }
}

fn facts(mut simulation: Simulation<AnyController>) -> (u64, u64, u64, u64, u64) {
    simulation.run_until(simulation.duration());
    let stats: FlowStats = simulation.flow_stats(0);
    (stats.sent, stats.dropped, stats.delivered_bytes, stats.rtt_sum, stats.timeouts)
}

/// A condition that is bad, and may be so for longer than the run lasts: packet for packet what CUBIC does. If it may not,
/// or is good, it is not.
#[test]
fn without_its_condition_it_is_cubic() {
    let link = link(2e7, 40 * MILLISECOND, &json!({"packets": 60}), &json!({"bernoulli": 1e-3}));
    let run = |params: &[(&str, f64)]| facts(over("c2tcp", params, &link, 60));
    let cubic = facts(over("cubic", &[], &link, 60));
    assert!(cubic.0 > 50_000 && cubic.1 > 50, "{cubic:?}");
    assert_eq!(run(&[("target", 0.001), ("interval", 100.0)]), cubic);
    assert_ne!(run(&[("target", 0.001)]), cubic);
    assert_ne!(run(&[("target", 1.0)]), cubic);
}

/// 100 Mbit/s and 20 ms, where each acknowledgement counts for five packets more, and one packet in 3000 is lost at random:
/// a quarter more than CUBIC at least.
#[test]
fn a_good_condition_grows_faster() {
    let link = link(1e8, 20 * MILLISECOND, &json!("infinite"), &json!({"bernoulli": 1.0 / 3000.0}));
    let [cubic, c2tcp] = ["cubic", "c2tcp"].map(|scheme| delay(over(scheme, &[], &link, 120), 1e8).1);
    assert!(c2tcp > 1.25 * cubic && cubic > 0.3, "{cubic} and {c2tcp}");
}
