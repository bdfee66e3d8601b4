//! The single-flow environment's event-free link against the event-driven simulator, which knows nothing of it.

use astraea_cc::{MSS, Manual, Nanos};
use astraea_env::single_flow::Path;
use astraea_sim::{Config, Interval, Simulation, Stop};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

const MILLISECOND: Nanos = 1_000_000;

/// Packets/s and length in ms of successive intervals.
type Schedule = [(f64, Nanos)];

/// What the simulator measures in each interval when a flow with an unlimited window is paced by that schedule, and how
/// many packets it drops.
fn simulate(bandwidth: f64, rtt_ms: Nanos, queue: u32, schedule: &Schedule) -> (Vec<Interval>, u64) {
    let config = serde_json::json!({
        "duration_ns": 100_000 * MILLISECOND,
        "links": [{
            "name": "link",
            "rate": { "constant": bandwidth * 1500.0 * 8.0 },
            "delay": { "constant": rtt_ms * MILLISECOND / 2 },
            "limit": { "packets": queue },
        }],
        "flows": [{ "start_ns": 0, "path": [0] }],
    });
    let config: Config = serde_json::from_value(config).unwrap();
    let controller = |rate: f64| Manual::new(1 << 40, Some(rate * f64::from(MSS) * 8.0));
    let mut simulation = Simulation::new(&config, 1, |_| controller(schedule[0].0)).unwrap();
    let mut end = 0;
    let mut intervals = Vec::new();
    for (rate, length) in schedule {
        *simulation.flow_mut(0).controller_mut() = controller(*rate);
        simulation.take_interval(0, Some(end));
        end += length * MILLISECOND;
        assert_eq!(simulation.run_until(end), Stop::Time);
        intervals.push(*simulation.flows()[0].interval());
    }
    (intervals, simulation.flow_stats(0).dropped)
}

/// Packets sent, acknowledgements and sum of the round trips must agree in every interval, to the nanosecond, and the
/// packets dropped in the end. Returns their number.
fn compare(bandwidth: f64, rtt_ms: Nanos, queue: u32, schedule: &Schedule) -> u64 {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut path = Path::default();
    path.reset(bandwidth, rtt_ms as f64 / 1e3, queue, 0.0, &mut rng);
    let mss = u64::from(MSS);
    let (intervals, dropped) = simulate(bandwidth, rtt_ms, queue, schedule);
    let mut lost = 0;
    for (interval, (rate, length)) in intervals.iter().zip(schedule) {
        let report = path.run(*rate, length * MILLISECOND, &mut rng);
        assert_eq!(report.interval.sent, interval.sent / mss, "sent in {report:?}");
        assert_eq!(report.interval.acked, interval.acked / mss, "acknowledged in {report:?}");
        assert_eq!(report.interval.rtts(), interval.rtt_sum, "round trips in {report:?}");
        lost += report.lost;
    }
    assert_eq!(lost, dropped);
    lost
}

#[test]
fn below_capacity() {
    assert_eq!(compare(400.0, 200, 50, &[(37.3, 500), (123.7, 500), (301.9, 777), (90.1, 500)]), 0);
}

#[test]
fn a_queue_builds_and_drains() {
    let schedule = [(301.3, 600), (601.3, 1000), (801.7, 500), (201.3, 1500), (90.1, 500)];
    assert_eq!(compare(400.0, 200, 500, &schedule), 0);
}

#[test]
fn a_full_queue_drops_the_same_packets() {
    let schedule = [(201.3, 600), (333.3, 1000), (407.9, 2000), (77.7, 500), (501.7, 1000), (77.7, 1000)];
    assert!(compare(250.0, 200, 20, &schedule) > 500);
}

#[test]
fn a_tiny_queue() {
    assert!(compare(100.0, 100, 2, &[(93.7, 600), (131.1, 3000), (93.7, 500)]) > 80);
}
