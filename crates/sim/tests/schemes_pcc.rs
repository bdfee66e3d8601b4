//! PCC in the simulator: random loss below and above Allegro's knee, how Vivace finds its rate and gives it up.

use astraea_cc::{AnyController, MILLISECOND, MSS, Nanos, PccPhase, SECOND, build};
use astraea_sim::{Config, Simulation};
use serde_json::{Value, json};

/// Payload bit/s of a full link of 100 Mbit/s.
const GOODPUT: f64 = 1e8 * 1448.0 / 1500.0;

/// Flows of these schemes, ten seconds apart, on 100 Mbit/s with a buffer of one bandwidth-delay product.
fn link(rtt: Nanos, loss: f64, schemes: &[&str]) -> Simulation<AnyController> {
    let flows: Vec<Value> =
        (0..schemes.len()).map(|i| json!({"start_ns": i as u64 * 10 * SECOND, "path": [0]})).collect();
    let config: Config = serde_json::from_value(json!({
        "duration_ns": 100 * SECOND,
        "links": [{"name": "link", "rate": {"constant": 1e8}, "delay": {"constant": rtt / 2},
                   "limit": {"bytes": (1e8 * rtt as f64 / 8e9) as u64},
                   "loss": if loss > 0.0 { json!({"bernoulli": loss}) } else { json!("none") }}],
        "flows": flows
    }))
    .expect("a configuration");
    Simulation::new(&config, 3, |flow| build(schemes[flow], &[], MSS).expect("a scheme"))
        .expect("a valid configuration")
}

/// Share of the link that each flow gets between these times in s.
fn shares(simulation: &mut Simulation<AnyController>, from: u64, to: u64) -> Vec<f64> {
    let delivered = |simulation: &mut Simulation<AnyController>, at: u64| -> Vec<u64> {
        simulation.run_until(at * SECOND);
        simulation.flows().iter().map(astraea_sim::Flow::delivered_bytes).collect()
    };
    let (before, after) = (delivered(simulation, from), delivered(simulation, to));
    let share = |(b, a): (&u64, &u64)| (a - b) as f64 * 8.0 / ((to - from) as f64 * GOODPUT);
    before.iter().zip(&after).map(share).collect()
}

/// The utility collapses above 5 % of loss. Below, what is left to lose is the noise of counting: an interval holds 250
/// packets, of which at 4 % one in five loses more than 5 %, and whatever rate it tried looks bad.
#[test]
fn allegro_withstands_random_loss_below_five_percent() {
    let used = |loss: f64| shares(&mut link(30 * MILLISECOND, loss, &["allegro"]), 20, 50)[0] / (1.0 - loss);
    for (loss, least) in [(0.01, 0.97), (0.02, 0.97), (0.04, 0.7)] {
        let used = used(loss);
        assert!(used > least, "{used} at {loss}");
    }
    let above = used(0.08);
    assert!(above < 0.1, "{above} at 8 %");
}

/// Vivace doubles its rate, falls back by half and finds the rate of the link with next to no queue; random
/// loss below 5 % leaves its optimum above the rate of the link, and at 6 % it is 16 Mbit/s, which the noise blurs.
#[test]
fn vivace_fills_the_link_without_a_queue() {
    let mut simulation = link(30 * MILLISECOND, 0.0, &["vivace"]);
    let phases: Vec<_> = (1..=500)
        .map(|tick| {
            simulation.run_until(tick * 20 * MILLISECOND);
            match simulation.flows()[0].controller() {
                AnyController::Vivace(vivace) => vivace.phase(),
                other => panic!("{other:?}"),
            }
        })
        .collect();
    let started = phases.iter().take_while(|phase| **phase == PccPhase::Starting).count();
    // Seven doublings of two round trips each.
    assert!((15..40).contains(&started), "{started} times 20 ms");
    assert!(phases.contains(&PccPhase::Probing) && phases.contains(&PccPhase::Moving));
    let used = shares(&mut simulation, 10, 40)[0];
    let stats = simulation.link_stats(0);
    let wait = stats.wait_sum as f64 / stats.served as f64 / 1e6;
    assert!(used > 0.93 && wait < 2.0, "{used}, {wait} ms");
    let lossy = |loss: f64| shares(&mut link(30 * MILLISECOND, loss, &["vivace"]), 20, 80)[0] * GOODPUT / 1e6;
    let (at_1, at_6) = (lossy(0.01), lossy(0.06));
    assert!(at_1 > 85.0 && at_6 < 70.0, "{at_1} and {at_6} Mbit/s");
}

/// Two flows of Vivace share evenly where round trips are short; beside CUBIC, which fills the buffer, Vivace gives
/// way.
#[test]
fn vivace_shares_with_itself_and_gives_way_to_cubic() {
    let pair = shares(&mut link(12 * MILLISECOND, 0.0, &["vivace", "vivace"]), 40, 100);
    assert!(pair.iter().all(|share| (0.38..0.58).contains(share)), "{pair:?}");
    let mixed = shares(&mut link(30 * MILLISECOND, 0.0, &["vivace", "cubic"]), 40, 100);
    assert!(mixed[0] < 0.5 * mixed[1], "{mixed:?}");
}
