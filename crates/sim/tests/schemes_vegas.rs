//! Vegas in the simulator: how many packets it keeps in the queue, alone and among its like.

use astraea_cc::{AnyController, MILLISECOND, MSS, Nanos, SECOND, build};
use astraea_sim::{Config, HEADER, Simulation};
use serde_json::{Value, json};

const WIRE: f64 = (MSS + HEADER) as f64;

/// Packets that a path holds without a queue: those on their way, and the one being sent.
fn path(rate: f64, rtt: Nanos) -> f64 {
    rate * rtt as f64 / 8e9 / WIRE + 1.0
}

/// Flows that start at these times and share a link with a buffer of so many packets.
fn flows(rate: f64, rtt: Nanos, buffer: f64, starts: &[Nanos], seconds: u64) -> Simulation<AnyController> {
    let flows: Vec<Value> = starts.iter().map(|start| json!({"start_ns": start, "path": [0]})).collect();
    let limit = json!({"packets": buffer as u64});
    let config = json!({
        "duration_ns": seconds * SECOND,
        "slot_ns": 100 * MILLISECOND,
        "links": [{"name": "link", "rate": {"constant": rate}, "delay": {"constant": rtt / 2}, "limit": limit}],
        "flows": flows
    });
    let config: Config = serde_json::from_value(config).expect("a configuration");
    Simulation::new(&config, 1, |_| build("vegas", &[], MSS).expect("a scheme")).expect("a valid configuration")
}

/// Smallest and largest mean of a slot of 100 ms, from `from` to the end: packets that wait when another arrives. And
/// the share of the link that is used in that time.
fn queue(simulation: &mut Simulation<AnyController>, rate: f64, from: Nanos) -> ((f64, f64), f64) {
    simulation.run_until(simulation.duration());
    let recorder = simulation.recorder().expect("recording is on");
    let service = WIRE * 8e9 / rate;
    let first = (from / recorder.slot_ns()) as usize;
    let slots = &recorder.link(0)[first..recorder.slots() - 1];
    let waits = slots.iter().map(|slot| slot.wait_sum as f64 / f64::from(slot.served) / service);
    let served: f64 = slots.iter().map(|slot| f64::from(slot.served)).sum();
    let used = served * service / (slots.len() as f64 * recorder.slot_ns() as f64);
    (waits.fold((f64::INFINITY, 0.0), |(low, high), wait| (low.min(wait), wait.max(high))), used)
}

/// With `q` packets in the queue of a path that holds `P`, Linux's diff is `q (1 + q / P)`: that is between 2 and 4 at
/// all times once slow start has been forgotten, `q` itself between 1.5 and 4, and the link never rests. From 5 to 834
/// packets in the path; the buffer holds as many.
#[test]
fn a_flow_keeps_two_to_four_packets_in_the_queue() {
    for rate in [5e6, 2e7, 1e8] {
        for rtt in [10, 30, 100].map(|ms| ms * MILLISECOND) {
            let holds = path(rate, rtt);
            let ((low, high), used) = queue(&mut flows(rate, rtt, holds, &[0], 80), rate, 60 * SECOND);
            let what = format!("{low:.2} to {high:.2} packets at {rate} bit/s, {rtt} ns");
            let diff = |queue: f64| queue * (1.0 + queue / holds);
            assert!(diff(low) > 2.0 - 0.01 && diff(high) < 4.0 + 0.01, "{what}: diff {} to {}", diff(low), diff(high));
            assert!(low > 1.5 && high < 4.0 + 0.01, "{what}");
            assert!(used > 0.999, "{what}: {used}");
        }
    }
}

/// So do `n` flows, where each of them has seen the queue empty, or nearly so: here because slow start overflows a
/// buffer of 15 % of the path, after which the queue drains for a moment.
#[test]
fn flows_keep_two_to_four_packets_each() {
    for (rate, rtt) in [(5e7, 40 * MILLISECOND), (1e8, 30 * MILLISECOND), (1e8, 100 * MILLISECOND)] {
        for n in [2, 4, 8] {
            let starts: Vec<Nanos> = (0..n).map(|flow| flow * 1_234_567).collect();
            let mut simulation = flows(rate, rtt, 0.15 * path(rate, rtt), &starts, 100);
            let ((low, high), used) = queue(&mut simulation, rate, 80 * SECOND);
            let service = WIRE * 8e9 / rate;
            for flow in 0..n as usize {
                let base = simulation.flow_stats(flow).rtt_min.expect("samples") as f64;
                assert!(base < rtt as f64 + 6.0 * service, "flow {flow} has seen {base} ns");
            }
            let what = format!("{low:.2} to {high:.2} packets of {n} flows at {rate} bit/s, {rtt} ns");
            assert!(low > 2.0 * n as f64 && high < 4.0 * n as f64 && used > 0.999, "{what}, {used}");
        }
    }
}

/// A late joiner takes the packets that the first flow keeps in the queue for a part of the path, and more than its
/// share.
#[test]
fn a_late_joiner_measures_the_standing_queue() {
    let (rate, rtt) = (5e7, 40 * MILLISECOND);
    let mut simulation = flows(rate, rtt, path(rate, rtt), &[0, 20 * SECOND], 80);
    simulation.run_until(40 * SECOND);
    let delivered = |simulation: &Simulation<AnyController>| [0, 1].map(|f| simulation.flow_stats(f).delivered_bytes);
    let before = delivered(&simulation);
    simulation.run_until(80 * SECOND);
    let after = delivered(&simulation);
    let [first, joiner] = [0, 1].map(|flow| (after[flow] - before[flow]) as f64 * 8e-6 / 40.0);
    assert!(joiner > 1.1 * first, "{first} and {joiner} Mbit/s");
    let [first, joiner] = [0, 1].map(|flow| simulation.flow_stats(flow).rtt_min.expect("samples") as f64);
    let queued = (joiner - first) / (WIRE * 8e9 / rate);
    assert!((2.0..=4.0).contains(&queued), "{queued} packets");
}
