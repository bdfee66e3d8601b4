//! Writes a rule table for `RemyCC`, as Remy does (Winstein and Balakrishnan 2013), over networks drawn from a range:
//!
//! ```sh
//! cargo run --release --example train_remy -- RULES SEED FILE.dna
//! ```
//!
//! Begins with four rules written by hand, for a path without a queue and three lengths of it. Again and again it
//! improves every rule, the one that is used most first, one number at a time and as long as the mean objective grows,
//! and divides the one that is used most where half of its memories lie on either side, until there are RULES rules.
//! The table `crates/cc/src/remy/shipped.dna` is the outcome of `train_remy 21 1`, 20 minutes on two busy cores.

#![allow(clippy::print_stdout, reason = "it tells how far it is")]

use std::error::Error;
use std::sync::{Arc, Mutex};

use astraea_cc::{
    Ack, AnyController, Congestion, Controller, Nanos, Remy, RemyAxis, RemyDomain, RemyRule, RemyTable, RemyTree, Rtt,
    SECOND, SplitMix64,
};
use astraea_sim::{Config, Simulation};
use serde_json::json;

/// Axes that the table goes by.
const AXES: [RemyAxis; 3] = [RemyAxis::SendEwma, RemyAxis::ReceiveEwma, RemyAxis::RttRatio];

/// Networks that a table is judged by, and the length of each simulation.
const NETWORKS: u64 = 16;
const LENGTH: Nanos = 12 * SECOND;

/// Memories kept for each rule, to find where to divide it.
const MEMORIES: usize = 2000;

/// Steps tried in each number of a rule, both ways and 4 and 16 times as large: packets, part of the window, part of
/// the gap.
const STEPS: [f64; 3] = [1.0, 0.002, 0.05];

/// The first rules: ratio of round-trip times up to which one holds, packets added and part of the window kept. Growth
/// without a queue, a window that falls with the queue otherwise: flows of the same path see the same queue, and end up
/// alike.
const FIRST: [(f64, i32, f64); 4] = [(1.05, 1, 1.0), (1.2, 1, 0.99), (1.5, 1, 0.98), (163_840.0, 1, 0.95)];

/// The first gap between packets in ms: shorter than any link of the range allows.
const FIRST_INTERSEND: f64 = 0.05;

/// How often each rule was used, and some of the memories with which it was.
type Usage = Vec<(u64, Vec<[f64; 6]>)>;

/// A `RemyCC` that writes down which rules it uses.
struct Observed {
    remy: Remy,
    usage: Arc<Mutex<Usage>>,
}

impl Controller for Observed {
    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        self.remy.on_ack(ack, rtt);
        let mut usage = self.usage.lock().expect("nobody panics");
        let (count, memories) = &mut usage[self.remy.rule()];
        *count += 1;
        // Ever rarer, so that all of the simulation is seen.
        if memories.len() < MEMORIES && count.is_multiple_of(*count / 500 + 1) {
            memories.push(self.remy.memory().axes());
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        self.remy.on_congestion(event);
    }

    fn on_timeout(&mut self, now: Nanos, flight_size: u64) {
        self.remy.on_timeout(now, flight_size);
    }

    fn on_idle_restart(&mut self, now: Nanos, idle: Nanos) {
        self.remy.on_idle_restart(now, idle);
    }

    fn cwnd(&self) -> u64 {
        self.remy.cwnd()
    }

    fn pacing_rate(&self) -> Option<f64> {
        self.remy.pacing_rate()
    }
}

/// The range of networks: 10 to 200 Mbit/s and 10 to 150 ms, both evenly in logarithms; a drop-tail buffer of 1 to 3
/// products; 1 to 4 senders, half of the networks with senders that are on and off for 5 s each, the others with ones
/// that arrive 2 s apart and stay.
fn network(number: u64, seed: u64) -> (Config, f64, f64) {
    let mut random = SplitMix64::new(seed ^ (number << 32));
    let mut draw = |low: f64, high: f64| {
        let unit = random.next_u64() as f64 / u64::MAX as f64;
        (low.ln() + unit * (high / low).ln()).exp()
    };
    let (rate, rtt, buffer) = (draw(10e6, 200e6), draw(0.01, 0.15), draw(1.0, 3.0));
    let senders = 1 + number % 4;
    let on_off = number % 8 >= 4;
    let half = SECOND * 5;
    let flows: Vec<_> = (0..senders)
        .map(|i| {
            let source = if on_off {
                json!({"on_off": {"on_ns": half, "off_ns": half, "exponential": true}})
            } else {
                json!("bulk")
            };
            json!({"start_ns": 2 * SECOND * i, "path": [0], "source": source})
        })
        .collect();
    let delay = (rtt * 5e8) as u64;
    let config = json!({
        "duration_ns": LENGTH,
        "links": [{"name": "link", "rate": {"constant": rate}, "delay": {"constant": delay},
                   "limit": {"bytes": (rate * rtt * buffer / 8.0).max(1e4) as u64}}],
        "flows": flows
    });
    (serde_json::from_value(config).expect("a configuration"), rate / senders as f64, rtt)
}

/// Remy's objective with delta 1: the mean over senders of log2 (throughput over fair share) less log2 (round-trip time
/// over that of the path).
fn objective(table: &Arc<RemyTable>, number: u64, seed: u64, usage: Option<&Arc<Mutex<Usage>>>) -> f64 {
    let (config, share, rtt) = network(number, seed);
    let mut simulation = Simulation::new(&config, number, |flow| {
        let remy = Remy::new(table.clone(), config.flows[flow].mss);
        match usage {
            Some(usage) => AnyController::Custom(Box::new(Observed { remy, usage: usage.clone() })),
            None => AnyController::Remy(remy),
        }
    })
    .expect("a valid configuration");
    simulation.run_until(LENGTH);
    let flows = config.flows.len();
    let scores = (0..flows).map(|flow| {
        let stats = simulation.flow_stats(flow);
        let on = (LENGTH - config.flows[flow].start_ns) as f64 / 1e9;
        let throughput = (stats.delivered_bytes as f64 * 8.0 / on).max(1e3);
        let delay = if stats.rtt_count > 0 { stats.rtt_sum as f64 / stats.rtt_count as f64 / 1e9 } else { 10.0 };
        (throughput / share).log2() - (delay / rtt).log2()
    });
    scores.sum::<f64>() / flows as f64
}

/// Mean objective over all networks, on all cores.
fn score(tree: &RemyTree, seed: u64, usage: Option<&Arc<Mutex<Usage>>>) -> f64 {
    let table = Arc::new(RemyTable::new(tree));
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let mut scores = vec![0.0; NETWORKS as usize];
    std::thread::scope(|scope| {
        let chunk = NETWORKS.div_ceil(threads) as usize;
        for (index, part) in scores.chunks_mut(chunk).enumerate() {
            let table = &table;
            scope.spawn(move || {
                for (i, score) in part.iter_mut().enumerate() {
                    *score = objective(table, (index * chunk + i) as u64, seed, usage);
                }
            });
        }
    });
    // In order, whatever the number of threads.
    scores.iter().sum::<f64>() / NETWORKS as f64
}

/// The leaf of that index, in depth-first order.
fn leaf(tree: &mut RemyTree, index: usize) -> &mut RemyTree {
    fn find<'a>(tree: &'a mut RemyTree, left: &mut usize) -> Option<&'a mut RemyTree> {
        if matches!(tree, RemyTree::Leaf(..)) {
            if *left == 0 {
                return Some(tree);
            }
            *left -= 1;
            return None;
        }
        let RemyTree::Node(_, children) = tree else { return None };
        children.iter_mut().find_map(|child| find(child, left))
    }
    let mut left = index;
    find(tree, &mut left).expect("a leaf of that index")
}

fn rule_of(tree: &mut RemyTree, index: usize) -> &mut RemyRule {
    match leaf(tree, index) {
        RemyTree::Leaf(_, rule) => rule,
        RemyTree::Node(..) => unreachable!("a leaf"),
    }
}

/// The rule with one number changed, within Remy's ranges.
fn changed(rule: RemyRule, number: usize, step: f64) -> RemyRule {
    let mut rule = rule;
    match number {
        0 => rule.increment = (f64::from(rule.increment) + step).clamp(-64.0, 256.0) as i32,
        1 => rule.multiple = (rule.multiple + step).clamp(0.0, 1.0),
        _ => rule.intersend = (rule.intersend * (1.0 + step).max(0.1)).clamp(0.01, 10.0),
    }
    rule
}

/// Improves one rule as long as that pays; returns the objective.
fn improve(tree: &mut RemyTree, index: usize, seed: u64, before: f64) -> f64 {
    let mut best = before;
    loop {
        let start = *rule_of(tree, index);
        let mut found = start;
        for (number, step) in STEPS.into_iter().enumerate() {
            for factor in [1.0, -1.0, 4.0, -4.0, 16.0, -16.0] {
                let candidate = changed(found, number, step * factor);
                if candidate == found {
                    continue;
                }
                *rule_of(tree, index) = candidate;
                let reached = score(tree, seed, None);
                if reached > best + 1e-4 {
                    (best, found) = (reached, candidate);
                }
            }
        }
        *rule_of(tree, index) = found;
        if found == start {
            return best;
        }
    }
}

/// Where to divide an axis: at the middle of the memories, or at their mean where most of them are at one end.
fn middle(mut values: Vec<f64>, lower: f64, upper: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    [*values.get(values.len() / 2)?, mean].into_iter().find(|middle| lower < *middle && *middle < upper)
}

/// Divides a leaf on each axis on which its memories differ.
fn divide(tree: &mut RemyTree, index: usize, memories: &[[f64; 6]]) {
    let slot = leaf(tree, index);
    let RemyTree::Leaf(domain, rule) = slot.clone() else { unreachable!("a leaf") };
    let mut boxes = vec![domain];
    for axis in AXES {
        let axis = axis as usize;
        let values = memories.iter().map(|memory| memory[axis]).collect();
        let Some(middle) = middle(values, domain.lower[axis], domain.upper[axis]) else { continue };
        let halves = |of: &RemyDomain| {
            let (mut low, mut high) = (*of, *of);
            (low.upper[axis], high.lower[axis]) = (middle, middle);
            [low, high]
        };
        boxes = boxes.iter().flat_map(halves).collect();
    }
    *slot = RemyTree::Node(domain, boxes.into_iter().map(|part| RemyTree::Leaf(part, rule)).collect());
}

/// The tree of the first rules.
fn first() -> RemyTree {
    let everything = RemyDomain::of(&AXES.map(|axis| (axis, 0.0, RemyDomain::default().upper[axis as usize])));
    let mut lower = 0.0;
    let leaves = FIRST.map(|(upper, increment, multiple)| {
        let mut domain = everything;
        let ratio = RemyAxis::RttRatio as usize;
        (domain.lower[ratio], domain.upper[ratio]) = (lower, upper);
        lower = upper;
        RemyTree::Leaf(domain, RemyRule { increment, multiple, intersend: FIRST_INTERSEND })
    });
    RemyTree::Node(everything, leaves.into())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [rules, seed, file] = &arguments[..] else { return Err("expected RULES SEED FILE.dna".into()) };
    let (rules, seed): (usize, u64) = (rules.parse()?, seed.parse()?);
    let mut tree = first();
    loop {
        let count = RemyTable::new(&tree).len();
        let mut improved = vec![false; count];
        // Every rule once, the most used first.
        loop {
            let usage = Arc::new(Mutex::new(vec![(0, Vec::new()); count]));
            let before = score(&tree, seed, Some(&usage));
            let usage = usage.lock().expect("nobody panics");
            let next = (0..count).filter(|index| !improved[*index] && usage[*index].0 > 0).max_by_key(|i| usage[*i].0);
            let Some(index) = next else {
                println!("{count} rules: {before:.4}");
                std::fs::write(file, tree.to_dna())?;
                if count >= rules {
                    return Ok(());
                }
                let most = (0..count).max_by_key(|index| usage[*index].0).expect("a rule");
                divide(&mut tree, most, &usage[most].1);
                break;
            };
            improved[index] = true;
            let after = improve(&mut tree, index, seed, before);
            println!("  rule {index}: {before:.4} to {after:.4}, {:?}", rule_of(&mut tree, index));
        }
    }
}
