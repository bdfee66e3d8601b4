//! The guided form with a policy that always answers 0: the law and the rules alone, on the simulator.

use astraea_cc::{AnyController, MILLISECOND, MSS, Nanos, SECOND, build};
use astraea_policy::{Agent, AgentConfig, Decide, Form, Pilot};
use astraea_sim::{Config, Flow, HEADER, Simulation};
use serde_json::{Value, json};

/// Answers nothing, so that only the law and the rules act.
struct Silent;

impl Decide for Silent {
    fn decide(&mut self, _agent: &Agent) -> Option<f64> {
        Some(0.0)
    }
}

fn guided() -> AnyController {
    AnyController::Custom(Box::new(Pilot::of(AgentConfig::new(Form::Guided), MSS, Silent)))
}

/// Wire bit/s of the link.
const RATE: f64 = 40e6;

/// A link of 40 Mbit/s with 30 ms of round trip and 120 ms of buffer, but for what `changes` says.
fn simulation(flows: &[Value], changes: Value, scheme: impl Fn(usize) -> AnyController) -> Simulation<AnyController> {
    let mut link = json!({
        "name": "link", "rate": {"constant": RATE}, "delay": {"constant": 15 * MILLISECOND}, "limit": {"bytes": 600_000}
    });
    let Value::Object(changes) = changes else { panic!("an object of changes") };
    link.as_object_mut().expect("an object").extend(changes);
    let config: Config = serde_json::from_value(json!({"duration_ns": 1000 * SECOND, "links": [link], "flows": flows}))
        .expect("a configuration");
    Simulation::new(&config, 3, scheme).expect("a valid configuration")
}

/// What happened between two times.
#[derive(Debug)]
struct Span {
    /// Shares of the link by flow.
    shares: Vec<f64>,
    /// Mean wait in the queue in ms.
    wait: f64,
}

impl Span {
    /// Runs from the present to `until` (s). `rate` is the link's in bit/s.
    fn run(simulation: &mut Simulation<AnyController>, until: u64, rate: f64) -> Self {
        let books = |simulation: &mut Simulation<AnyController>| {
            let link = simulation.link_stats(0);
            let queue = (link.wait_sum, link.served);
            (queue, simulation.flows().iter().map(|flow| flow.delivered_bytes() as f64).collect::<Vec<_>>())
        };
        let ((waited, served), before) = books(simulation);
        let begin = simulation.now();
        simulation.run_until(until * SECOND);
        let ((waited_now, served_now), after) = books(simulation);
        let payload = f64::from(MSS) / f64::from(MSS + HEADER);
        let capacity = rate / 8.0 * payload * (until * SECOND - begin) as f64 / 1e9;
        Self {
            shares: before.iter().zip(after).map(|(before, after)| (after - before) / capacity).collect(),
            wait: (waited_now - waited) as f64 / 1e6 / (served_now - served).max(1) as f64,
        }
    }

    fn utilization(&self) -> f64 {
        self.shares.iter().sum()
    }

    /// Jain's index of fairness.
    fn jain(&self) -> f64 {
        let squares: f64 = self.shares.iter().map(|share| share * share).sum();
        self.utilization().powi(2) / (self.shares.len() as f64 * squares)
    }
}

fn from(start: Nanos) -> Value {
    json!({"start_ns": start, "path": [0]})
}

#[test]
fn flows_share_fairly_with_a_short_queue() {
    let flows = [from(0), from(5 * SECOND), from(10 * SECOND)];
    let mut three = simulation(&flows, json!({"rate": {"constant": 100e6}, "limit": {"bytes": 750_000}}), |_| guided());
    three.run_until(20 * SECOND);
    let span = Span::run(&mut three, 40, 100e6);
    assert!(span.jain() > 0.98 && span.utilization() > 0.97, "{span:?}");
    // Three times ten packets of 0.12 ms, more or less.
    assert!(span.wait < 8.0, "{span:?}");
}

/// What so many flows have from `since` (s) to a minute, several times: what happens in small buffers hangs on little, so in
/// each trial they begin so many ns, and more, after each other.
fn trials(count: u64, changes: &Value, flows: u64, apart: impl Fn(u64) -> Nanos, since: u64) -> Vec<Span> {
    let rate = changes["rate"]["constant"].as_f64().expect("a rate");
    let trial = |trial| {
        let flows: Vec<Value> = (0..flows).map(|flow| from(flow * apart(trial))).collect();
        let mut simulation = simulation(&flows, changes.clone(), |_| guided());
        simulation.run_until(since * SECOND);
        Span::run(&mut simulation, 60, rate)
    };
    (0..count).map(trial).collect()
}

#[test]
fn who_takes_a_small_full_buffer_for_path_finds_out() {
    // 88 Mbit/s, 14 ms and 2 ms of buffer: no room for a rise of 3 ms. With the base of the last to come as it
    // was, one of them took most of the link.
    let changes =
        json!({"rate": {"constant": 88e6}, "delay": {"constant": 7 * MILLISECOND}, "limit": {"bytes": 23_000}});
    let spans = trials(10, &changes, 5, |trial| 4 * SECOND + trial * 7 * MILLISECOND, 30);
    assert!(spans.iter().all(|span| span.utilization() > 0.95 && span.jain() > 0.9), "{spans:?}");
}

#[test]
fn a_buffer_of_a_few_packets_is_shared() {
    // 100 Mbit/s, 16 ms and ten packets of buffer: there is hardly ever a queue, and who fills it loses the smallest share.
    // While nobody knew what the path loses by itself, Jain's index was .74 after one of these starts and .93 after another.
    let changes =
        json!({"rate": {"constant": 100e6}, "delay": {"constant": 8 * MILLISECOND}, "limit": {"bytes": 15_000}});
    let spans = trials(6, &changes, 3, |trial| 2 * SECOND + trial * 37 * MILLISECOND, 20);
    assert!(spans.iter().all(|span| span.utilization() > 0.9 && span.jain() > 0.98), "{spans:?}");
    // While no pace wavered, one flow had half of the link in three of these trials.
    let spans = trials(40, &changes, 3, |trial| 2 * SECOND + trial * 13 * MILLISECOND, 20);
    assert!(spans.iter().filter(|span| span.jain() < 0.98).count() <= 1, "{spans:?}");
}

#[test]
fn a_buffer_that_is_no_brake_is_filled_gently() {
    // Random losses leave no room for the queue that is wanted, and a buffer of a quarter of the path is filled within a round
    // trip by who hurries: it was empty and overflowed in turn, .89 of the link were used, and Jain's index was .94.
    let changes = json!({
        "rate": {"constant": 700e6}, "delay": {"constant": 15 * MILLISECOND}, "limit": {"bytes": 600_000},
        "loss": {"bernoulli": 0.0155},
    });
    let spans = trials(2, &changes, 2, |trial| 5 * SECOND + trial * 37 * MILLISECOND, 20);
    assert!(spans.iter().all(|span| span.utilization() > 0.95 && span.jain() > 0.98), "{spans:?}");
}

/// The first flow is guided, the second one of another scheme, which leaves after `seconds`.
fn beside(scheme: &str, seconds: Nanos, buffer: u64) -> Simulation<AnyController> {
    let leaves = json!({"start_ns": 0, "stop_ns": seconds * SECOND, "path": [0]});
    simulation(&[from(0), leaves], json!({"limit": {"bytes": buffer}}), |flow| match flow {
        0 => guided(),
        _ => build(scheme, &[], MSS).expect("a scheme"),
    })
}

#[test]
fn a_cubic_neighbour_is_met_and_its_leaving_noticed() {
    let mut pair = beside("cubic", 60, 600_000);
    let together = Span::run(&mut pair, 60, RATE);
    assert!(together.shares[0] > 0.15 && together.shares[1] > 0.15, "{together:?}");
    pair.run_until(65 * SECOND);
    let alone = Span::run(&mut pair, 70, RATE);
    assert!(alone.shares[0] > 0.9, "{alone:?}");
    // Two tests have to find nobody before it lets the queue go, each at the next full five seconds at the latest.
    let noticed = Span::run(&mut pair, 75, RATE);
    assert!(noticed.shares[0] > 0.95 && noticed.wait < 5.0, "{noticed:?}");
}

#[test]
fn a_bbr_neighbour_does_not_starve_it() {
    // BBR does not yield to loss.
    let mut pair = beside("bbr", 40, 150_000);
    let together = Span::run(&mut pair, 40, RATE);
    assert!(together.shares[0] > 0.05, "{together:?}");
    let alone = Span::run(&mut pair, 50, RATE);
    assert!(alone.shares[0] > 0.9, "{alone:?}");
}

#[test]
fn a_longer_path_is_found() {
    let steps = [[0, 10 * MILLISECOND], [15 * SECOND, 40 * MILLISECOND]];
    let mut one = simulation(&[from(0)], json!({"delay": {"schedule": steps}}), |_| guided());
    one.run_until(15 * SECOND);
    let found = Span::run(&mut one, 25, RATE);
    assert!(found.utilization() > 0.7, "{found:?}");
    let after = Span::run(&mut one, 30, RATE);
    assert!(after.utilization() > 0.95 && after.wait < 8.0, "{after:?}");
}

#[test]
fn an_outage_is_survived() {
    let steps = json!([[0, RATE], [10 * SECOND, 0.0], [13 * SECOND, RATE]]);
    let mut one = simulation(&[from(0)], json!({"rate": {"schedule": steps}}), |_| guided());
    one.run_until(25 * SECOND);
    let after = Span::run(&mut one, 30, RATE);
    assert!(after.utilization() > 0.9 && after.wait < 8.0, "{after:?}");
}

#[test]
fn random_loss_is_no_congestion() {
    let mut one = simulation(&[from(0)], json!({"loss": {"bernoulli": 0.01}}), |_| guided());
    let span = Span::run(&mut one, 30, RATE);
    assert!(span.utilization() > 0.95, "{span:?}");
}

#[test]
fn a_lossy_path_is_no_crowd() {
    // 5 % of a fast flow's packets are lost at random. While nobody asked what is lost when all hold back, that passed for a
    // crowd, which wants hardly a queue, and .29 of the link was filled.
    let changes =
        json!({"rate": {"constant": 3e8}, "delay": {"constant": 20 * MILLISECOND}, "loss": {"bernoulli": 0.05}});
    let mut one = simulation(&[from(0)], changes, |_| guided());
    one.run_until(20 * SECOND);
    let span = Span::run(&mut one, 60, 3e8);
    assert!(span.utilization() > 0.9, "{span:?}");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let run = || {
        let mut pair = beside("cubic", 20, 600_000);
        pair.run_until(25 * SECOND);
        let delivered: Vec<_> = pair.flows().iter().map(Flow::delivered_bytes).collect();
        (delivered, pair.link_stats(0).wait_sum, pair.events())
    };
    assert_eq!(run(), run());
}
