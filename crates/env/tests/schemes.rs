//! What every scheme is held to, whatever its idea: it keeps sending, within bounds, fills a link that it has to
//! itself, comes back after an outage, lets newcomers in, and shares with its like where it promises to. One table for
//! all of them; a new scheme needs a row.

use astraea_cc::{AnyController, Controller, MILLISECOND, MSS, SECOND};
use astraea_policy::schemes;
use astraea_sim::{Config, Simulation};
use serde_json::{Value, json};

/// 20 Mbit/s and 40 ms: 67 packets.
const RATE: f64 = 20e6;
const RTT: u64 = 40 * MILLISECOND;
/// Wire bytes of one bandwidth-delay product.
const BDP: u64 = 100_000;
/// Payload bit/s of the full link.
const GOODPUT: f64 = RATE * 1448.0 / 1500.0;

struct Row {
    name: &'static str,
    /// Least share of the link that one flow uses, in a buffer of one product.
    alone: f64,
    /// Least Jain index of four flows that begin together; 0 where nothing is promised.
    jain: f64,
    /// Least share of the link of a flow that joins one which has filled it; its fair share is a half.
    newcomer: f64,
    /// Largest window in bandwidth-delay products, in an outage and at other times.
    window: f64,
}

const fn row(name: &'static str, alone: f64, jain: f64, newcomer: f64, window: f64) -> Row {
    Row { name, alone, jain, newcomer, window }
}

/// Schemes of the kind "constant" control nothing. Vegas and a `RemyCC` promise no equal shares, Allegro only in the
/// long run.
const ROWS: [Row; 23] = [
    row("newreno", 0.99, 0.9, 0.2, 5.0),
    row("cubic", 0.99, 0.9, 0.2, 5.0),
    row("copa", 0.95, 0.9, 0.2, 5.0),
    row("vegas", 0.99, 0.0, 0.2, 5.0),
    row("compound", 0.99, 0.9, 0.2, 5.0),
    row("illinois", 0.99, 0.9, 0.2, 5.0),
    row("westwood", 0.99, 0.9, 0.2, 5.0),
    row("c2tcp", 0.99, 0.9, 0.2, 5.0),
    row("bbr", 0.95, 0.9, 0.2, 5.0),
    row("bbr3", 0.95, 0.9, 0.2, 5.0),
    // Its window is four products of rate and round-trip time, which holds a full buffer.
    row("allegro", 0.95, 0.0, 0.1, 25.0),
    row("vivace", 0.9, 0.9, 0.2, 25.0),
    row("remy", 0.5, 0.0, 0.1, 10.0),
    // They were trained alone and leave others what they happen to leave.
    row("aurora", 0.9, 0.0, 0.0, 25.0),
    row("mocc", 0.9, 0.0, 0.0, 25.0),
    // So was this one, on top of CUBIC; its start-up fills any buffer, and goes on for a round trip after that.
    row("orca", 0.95, 0.0, 0.0, 50.0),
    // They are what they choose: CUBIC first.
    row("antelope", 0.95, 0.0, 0.0, 50.0),
    row("hacc", 0.95, 0.0, 0.0, 50.0),
    row("fast", 0.95, 0.9, 0.2, 5.0),
    row("fast-oracle", 0.95, 0.9, 0.2, 5.0),
    row("astraea", 0.95, 0.9, 0.2, 5.0),
    row("astraea-pure", 0.95, 0.9, 0.2, 5.0),
    row("astraea-paper", 0.9, 0.9, 0.2, 5.0),
];

/// Flows of one scheme that start at these times in s, on a link of this rate.
fn run(name: &str, rate: &Value, loss: f64, starts: &[u64], seconds: u64) -> Simulation<AnyController> {
    let flows: Vec<Value> = starts.iter().map(|start| json!({"start_ns": start * SECOND, "path": [0]})).collect();
    let loss = if loss > 0.0 { json!({"bernoulli": loss}) } else { json!("none") };
    let config: Config = serde_json::from_value(json!({
        "duration_ns": seconds * SECOND,
        "links": [{"name": "link", "rate": rate, "delay": {"constant": RTT / 2}, "limit": {"bytes": BDP}, "loss": loss}],
        "flows": flows
    }))
    .expect("a configuration");
    let params = |_| if name == "fast-oracle" { vec![("base_rtt".to_owned(), RTT as f64 / 1e9)] } else { vec![] };
    Simulation::new(&config, 5, |flow| schemes::build(name, &params(flow), MSS).expect("a scheme"))
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

fn jain(shares: &[f64]) -> f64 {
    let sum: f64 = shares.iter().sum();
    sum * sum / (shares.len() as f64 * shares.iter().map(|share| share * share).sum::<f64>())
}

fn constant() -> Value {
    json!({"constant": RATE})
}

/// Nothing passes from 10 to 15 s.
fn outage() -> Value {
    json!({"schedule": [[0, RATE], [10 * SECOND, 0.0], [15 * SECOND, RATE]]})
}

#[test]
fn every_scheme_has_a_row() {
    let known: Vec<_> = schemes::all().filter(|scheme| scheme.kind != "constant").map(|scheme| scheme.name).collect();
    for name in &known {
        assert!(ROWS.iter().any(|row| row.name == *name), "{name} has no row");
    }
    assert_eq!(known.len(), ROWS.len());
}

#[test]
fn one_flow_uses_the_link() {
    for Row { name, alone, .. } in &ROWS {
        let used = shares(&mut run(name, &constant(), 0.0, &[0], 60), 10, 60)[0];
        assert!(used >= *alone, "{name}: {used}");
    }
}

#[test]
fn equal_shares_for_those_that_promise_them() {
    for Row { name, jain: least, .. } in &ROWS {
        let shares = shares(&mut run(name, &constant(), 0.0, &[0, 0, 0, 0], 120), 40, 120);
        assert!(jain(&shares) >= *least, "{name}: {shares:?}");
    }
}

#[test]
fn a_newcomer_gets_its_part() {
    for Row { name, newcomer, .. } in &ROWS {
        let shares = shares(&mut run(name, &constant(), 0.0, &[0, 20], 120), 40, 120);
        assert!(shares[1] >= *newcomer, "{name}: {shares:?}");
    }
}

/// Ten seconds after an outage of five it is as before: by then the retransmission timer, which has been doubled four
/// times, has expired once more. Its window stays within bounds throughout, and so does its pacing rate: at most 20
/// times the link, which is what BBR's guess of a round trip of 1 ms comes to before it has a sample.
#[test]
fn it_recovers_from_an_outage_within_bounds() {
    for Row { name, alone, window, .. } in &ROWS {
        let mut simulation = run(name, &outage(), 0.0, &[0], 60);
        for tick in 1..2500 {
            simulation.run_until(tick * 10 * MILLISECOND);
            let controller = simulation.flows()[0].controller();
            let products = controller.cwnd() as f64 / BDP as f64;
            let pacing = controller.pacing_rate().unwrap_or(RATE) / RATE;
            assert!(products > 0.0 && products <= *window, "{name}: {products} products at {tick}0 ms");
            assert!(pacing > 0.0 && pacing <= window.max(20.0), "{name}: {pacing} times the link at {tick}0 ms");
        }
        let used = shares(&mut simulation, 30, 60)[0];
        assert!(used >= 0.95 * alone, "{name}: {used} after the outage");
    }
}

/// A tenth of the packets is lost at random. What that leaves differs, but no ten seconds pass without progress.
#[test]
fn random_loss_stalls_nobody() {
    for Row { name, .. } in &ROWS {
        let mut simulation = run(name, &constant(), 0.1, &[0], 60);
        for from in (0..60).step_by(10) {
            let used = shares(&mut simulation, from, from + 10)[0];
            assert!(used > 0.01, "{name}: {used} from {from} s");
        }
    }
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    for Row { name, .. } in &ROWS {
        let run = || {
            let mut simulation = run(name, &outage(), 0.01, &[0, 3], 20);
            simulation.run_until(20 * SECOND);
            let stats = |flow| {
                let stats = simulation.flow_stats(flow);
                (stats.sent, stats.acked_bytes, stats.rtt_sum, stats.declared_lost)
            };
            [stats(0), stats(1)]
        };
        assert_eq!(run(), run(), "{name}");
    }
}
