//! Illinois in the simulator: the law of its growth and decrease along a sawtooth, its response function, a long path that
//! it fills where Reno does not, and Reno below 15 packets.

use astraea_cc::{AnyController, Controller, MILLISECOND, MSS, Nanos, SECOND, build};
use astraea_sim::{Config, FlowStats, HEADER, Simulation};
use serde_json::{Value, json};

const WIRE: f64 = (MSS + HEADER) as f64;
const PACKET: f64 = MSS as f64;

/// One flow over one link.
fn over(scheme: &str, rate: f64, rtt: Nanos, limit: &Value, loss: &Value, seconds: u64) -> Simulation<AnyController> {
    let config: Config = serde_json::from_value(json!({
        "duration_ns": seconds * SECOND,
        "links": [{"name": "link", "rate": {"constant": rate}, "delay": {"constant": rtt / 2}, "limit": limit, "loss": loss}],
        "flows": [{"start_ns": 0, "path": [0]}]
    }))
    .expect("a configuration");
    let controller = |_| build(scheme, &[], MSS).expect("a scheme");
    Simulation::new(&config, 1, controller).expect("a valid configuration")
}

fn run(mut simulation: Simulation<AnyController>) -> FlowStats {
    simulation.run_until(simulation.duration());
    simulation.flow_stats(0)
}

/// 100 Mbit/s and 100 ms, 834 packets, with a buffer of 400. Every 10 ms: once there has been no queue for eight round trips,
/// but for ten packets that leave on top of a window, α is 10, β is 1/8 and a round trip has brought ten packets; and
/// while nine tenths of the buffer and more have been in use for three, α is between 0.3 (of a full buffer) and 0.34 (of
/// nine tenths), and β is 1/2. That is then left of 1235 packets, whatever slow start had lost before.
#[test]
fn growth_and_decrease_along_the_sawtooth() {
    let limit = json!({"packets": 400});
    let mut simulation = over("illinois", 1e8, 100 * MILLISECOND, &limit, &json!("none"), 240);
    let (mut empty, mut full) = (0, 0);
    let (mut fastest, mut slowest) = (0, 0);
    let (mut windows, mut troughs) = (Vec::<f64>::new(), Vec::<f64>::new());
    for tick in 1..24_000 {
        simulation.run_until(tick * 10 * MILLISECOND);
        let queue = simulation.queue_length(0);
        let AnyController::Illinois(controller) = simulation.flows()[0].controller() else { panic!("another scheme") };
        let (alpha, beta) = (controller.alpha(), controller.beta());
        let window = controller.cwnd() as f64 / PACKET;
        (empty, full) = (if queue <= 10 { empty + 1 } else { 0 }, if queue >= 360 { full + 1 } else { 0 });
        if empty > 80 && window < 790.0 {
            assert_eq!((alpha, beta), (10.0, 0.125), "at {tick}0 ms");
            let grown = window - windows[windows.len() - 10];
            assert!((grown - 10.0).abs() <= 1.0, "{grown} packets at {tick}0 ms");
            fastest += 1;
        }
        if full > 45 {
            assert!((0.3..0.34).contains(&alpha) && beta == 0.5, "{alpha} and {beta} at {tick}0 ms");
            slowest += 1;
        }
        if tick > 2000 && window < windows[windows.len() - 1] {
            troughs.push(window);
        }
        windows.push(window);
    }
    assert!(fastest > 100 && slowest > 1000, "{fastest} and {slowest}");
    assert!(troughs.len() == 2 && troughs.iter().all(|trough| (trough - 617.5).abs() < 2.0), "{troughs:?}");
}

/// Mean window under evenly spaced loss, where nothing queues once slow start is over: a round trip that repairs the loss
/// at 7/8 W, and then ten packets per round trip from there to W take `1 / p` packets; within 3 %. About
/// `sqrt(75 / p)`: seven times the window of Reno, whose α and β would be 1 and 1/2.
#[test]
fn it_follows_its_response_function() {
    let rtt = 100 * MILLISECOND;
    for every in [10_000_u64, 30_000, 100_000] {
        let packets = |peak: f64| 15.0 / 16.0 * peak * peak / 80.0 + 7.0 / 8.0 * peak;
        let peak = (1..10_000).map(f64::from).find(|peak| packets(*peak) >= every as f64).expect("a window");
        let expected = every as f64 / (peak / 80.0 + 1.0);
        let mut simulation = over("illinois", 1e11, rtt, &json!("infinite"), &json!({"periodic": every}), 300);
        simulation.run_until(100 * SECOND);
        let before = simulation.flow_stats(0).arrived;
        let window = (run(simulation).arrived - before) as f64 * rtt as f64 / 200e9;
        assert!((window / expected - 1.0).abs() < 0.03, "p = 1/{every}: {window} packets, expected {expected}");
    }
}

/// 200 Mbit/s and 100 ms with a buffer of 0.3 products: from 30 to 300 s the link is idle at most a third as much as under
/// Reno, which grows by one packet per round trip where Illinois grows by ten.
#[test]
fn it_fills_a_long_path_that_reno_does_not() {
    let (rate, rtt) = (2e8, 100 * MILLISECOND);
    let holds = rate * rtt as f64 / 8e9 / WIRE;
    let idle = |scheme: &str| {
        let limit = json!({"packets": (0.3 * holds) as u64});
        let mut simulation = over(scheme, rate, rtt, &limit, &json!("none"), 300);
        simulation.run_until(30 * SECOND);
        let before = simulation.flow_stats(0).arrived;
        1.0 - (run(simulation).arrived - before) as f64 * WIRE * 8.0 / rate / 270.0
    };
    let [reno, illinois] = ["newreno", "illinois"].map(idle);
    assert!(illinois < reno / 3.0 && reno > 0.05, "Reno leaves {reno} of the link, Illinois {illinois}");
}

/// With 0.3 % of the packets lost at random: where six packets are in the path and seven in the queue, and the window
/// never has 15, `NewReno` and Illinois deliver the same within 1 %; with 60 in the path Illinois delivers 30 % more.
#[test]
fn below_15_packets_it_is_reno() {
    let gain = |rate: f64| {
        let limit = json!({"packets": 7});
        let run = |scheme| run(over(scheme, rate, 20 * MILLISECOND, &limit, &json!({"bernoulli": 3e-3}), 120));
        let [reno, illinois] = ["newreno", "illinois"].map(|scheme| run(scheme).delivered_bytes as f64);
        illinois / reno
    };
    let (small, large) = (gain(3.6e6), gain(3.6e7));
    assert!((small - 1.0).abs() < 0.01 && large > 1.3, "{small} and {large}");
}
