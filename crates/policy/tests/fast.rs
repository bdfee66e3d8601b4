//! FAST in the simulator: what it keeps in the queue, and how flows share with and without the true base RTT.

use astraea_cc::{AnyController, MILLISECOND, MSS, Nanos, SECOND};
use astraea_policy::schemes;
use astraea_sim::{Config, HEADER, Simulation};
use serde_json::{Value, json};

const RATE: f64 = 5e7;
const WIRE: f64 = (MSS + HEADER) as f64;

/// Flows on one link of 50 Mbit/s: the start and the one-way propagation delay of each, both in ns. With `oracle` each
/// knows its base round-trip time.
fn flows(oracle: bool, flows: &[(Nanos, Nanos)], seconds: u64) -> Simulation<AnyController> {
    let config = json!({
        "duration_ns": seconds * SECOND,
        "slot_ns": 100 * MILLISECOND,
        "links": [{"name": "link", "rate": {"constant": RATE}, "delay": {"constant": 0}, "limit": {"packets": 1000}}],
        "flows": flows.iter()
            .map(|(start, delay)| json!({"start_ns": start, "path": [0], "extra_delay_ns": delay}))
            .collect::<Vec<Value>>(),
    });
    let config: Config = serde_json::from_value(config).expect("a configuration");
    let scheme = |flow: usize| {
        let base = 2.0 * flows[flow].1 as f64 / SECOND as f64 + WIRE * 8.0 / RATE;
        let (name, params) =
            if oracle { ("fast-oracle", vec![("base_rtt".to_owned(), base)]) } else { ("fast", vec![]) };
        schemes::build(name, &params, MSS).expect("a scheme")
    };
    Simulation::new(&config, 1, scheme).expect("a valid configuration")
}

/// Payload that each flow delivers from a time on, as a share of what the link carries, and the mean wait in packets.
fn measure(mut simulation: Simulation<AnyController>, from: Nanos) -> (Vec<f64>, f64) {
    let delivered = |simulation: &Simulation<AnyController>| -> Vec<u64> {
        (0..simulation.flows().len()).map(|flow| simulation.flow_stats(flow).delivered_bytes).collect()
    };
    simulation.run_until(from);
    let before = delivered(&simulation);
    simulation.run_until(simulation.duration());
    let carried = RATE / 8.0 * (simulation.duration() - from) as f64 / SECOND as f64 * f64::from(MSS) / WIRE;
    let shares = delivered(&simulation).into_iter().zip(before).map(|(all, before)| (all - before) as f64 / carried);
    let shares = shares.collect();
    let recorder = simulation.recorder().expect("recording is on");
    let slots = &recorder.link(0)[(from / recorder.slot_ns()) as usize..recorder.slots() - 1];
    let waits = slots.iter().map(|slot| slot.wait_sum as f64 / f64::from(slot.served));
    (shares, waits.sum::<f64>() / slots.len() as f64 / (WIRE * 8e9 / RATE))
}

#[test]
fn a_flow_keeps_its_backlog_in_the_queue() {
    for oracle in [false, true] {
        for delay in [5, 20, 80].map(|ms| ms * MILLISECOND) {
            let (shares, wait) = measure(flows(oracle, &[(0, delay)], 40), 20 * SECOND);
            assert!(shares[0] > 0.99, "{} of the link with {delay} ns", shares[0]);
            // The smallest queue of a period is held at ten packets; the mean is longer, more so on a long path.
            assert!((9.5..16.0).contains(&wait), "{wait} packets wait with {delay} ns");
        }
    }
}

/// A flow that joins measures the queue of the others as a part of its base round-trip time and takes more; one that
/// knows the true one does not, whatever its round-trip time.
#[test]
fn only_the_true_base_rtt_makes_late_flows_equal() {
    let late = |delays: [u64; 3]| -> Vec<(Nanos, Nanos)> {
        delays.iter().zip(0..).map(|(delay, index)| (index * 10 * SECOND, delay * MILLISECOND)).collect()
    };
    for delays in [[15, 15, 15], [10, 20, 40]] {
        let (shares, wait) = measure(flows(true, &late(delays), 80), 50 * SECOND);
        assert!(shares.iter().all(|share| (3.0 * share - 1.0).abs() < 0.1), "{shares:?} with {delays:?}");
        assert!((28.0..42.0).contains(&wait), "{wait} packets wait with {delays:?}");
    }
    let (shares, _) = measure(flows(false, &late([15, 15, 15]), 80), 50 * SECOND);
    assert!(shares[2] > 1.3 * shares[0], "{shares:?}");
}
