//! How well a policy did in an episode.

use astraea_cc::{MILLISECOND, Nanos};

use super::Act;
use super::divergence::Divergence;
use super::events::{Life, settled_share};
use crate::multi_flow::MultiFlow;

/// Length of a recording slot in ns.
pub(super) const SLOT: Nanos = 10 * MILLISECOND;

/// Slots over which shares are compared.
const WINDOW: usize = (500 * MILLISECOND / SLOT) as usize;

/// Names and meanings of the numbers of a score, in order.
pub const SCORES: [(&str, &str); 13] = [
    ("jain", "mean Jain index of the throughputs over the 500 ms slots that two flows at least share, 1 without any"),
    ("jain_own", "the same without neighbours"),
    ("shared", "number of those slots"),
    ("utilization", "delivered bytes over what the link could carry while any flow was there"),
    ("rtt_inflation", "mean round-trip time of the flows that ask, in units of the base one"),
    ("queue_delay_ms", "mean wait at the bottleneck in ms"),
    ("loss", "share of the packets that the queue dropped: loss beyond the random one"),
    ("settled", "share of arrivals, departures and changes after which all flows come to equal shares and stay there"),
    ("neighbour_ratio", "mean throughput of a flow that asks over that of a neighbour, while both were there"),
    ("reward", "mean of the built-in reward over the decisions"),
    ("decisions", "number of decisions"),
    ("seconds", "simulated time in s"),
    ("diverged", "1 if the episode was ended because a flow had lost control"),
];

/// The numbers of [`SCORES`] for an episode; NaN where there is nothing to judge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score(pub [f64; SCORES.len()]);

impl Score {
    /// Runs an episode that has just been reset, with recording, to its end; `None` if `stop` says so before that.
    pub(super) fn run(env: &mut MultiFlow, policy: &mut impl Act, stop: impl Fn() -> bool) -> Option<Self> {
        let mut divergence = Divergence::new(env);
        let (mut decisions, mut reward, mut diverged) = (0.0, 0.0, false);
        let end = env.duration();
        while let Some(decision) = env.next_decision(end) {
            if stop() {
                return None;
            }
            let action = policy.act(env.local_state(decision.flow));
            decisions += 1.0;
            reward += env.reward().total;
            if divergence.sees(env, decision.flow, decision.time) {
                diverged = true;
                break;
            }
            env.act(decision.flow, f64::from(action));
        }
        let seen = Seen::new(env);
        let (jain, shared) = seen.jain(|_| true);
        let (jain_own, _) = seen.jain(|life| !life.neighbour);
        Some(Self([
            jain,
            jain_own,
            shared,
            seen.utilization(),
            seen.rtt_inflation,
            seen.queue_delay_ms,
            seen.loss,
            seen.settled(env),
            seen.neighbour_ratio(),
            reward / decisions,
            decisions,
            env.now() as f64 / 1e9,
            f64::from(u8::from(diverged)),
        ]))
    }
}

/// What was recorded of an episode.
struct Seen {
    lives: Vec<Life>,
    /// Payload bytes that the link could carry in each slot.
    capacity: Vec<f64>,
    rtt_inflation: f64,
    queue_delay_ms: f64,
    loss: f64,
}

impl Seen {
    fn new(env: &mut MultiFlow) -> Self {
        let now = env.now();
        let slots = (now / SLOT) as usize;
        let scenario = env.scenario().clone();
        let simulation = env.simulation_mut();
        let mut capacity = Vec::with_capacity(slots);
        for slot in 0..slots as Nanos {
            let wire = simulation.capacity_bytes(0, slot * SLOT, (slot + 1) * SLOT);
            capacity.push(scenario.payload(wire));
        }
        let spans: Vec<_> = simulation
            .flows()
            .iter()
            .map(|flow| (flow.started_at().unwrap_or(now), flow.ended_at().unwrap_or(now)))
            .collect();
        let stats = simulation.link_stats(0);
        let loss = stats.dropped as f64 / stats.offered as f64;
        let queue_delay_ms = stats.wait_sum as f64 / stats.served as f64 / 1e6;
        let recorder = simulation.recorder().expect("scores are made of recordings");
        let (mut ratio, mut samples) = (0.0, 0.0);
        let mut lives = Vec::with_capacity(spans.len());
        for (index, (start, end)) in spans.into_iter().enumerate() {
            let series = &recorder.flow(index)[..recorder.flow(index).len().min(slots)];
            let neighbour = scenario.flows[index].neighbour.is_some();
            let delivered = series.iter().map(|slot| slot.delivered as f64).collect();
            lives.push(Life { delivered, start, end, neighbour });
            if !neighbour {
                for (number, slot) in (0..).zip(series).filter(|(_, slot)| slot.rtt_count > 0) {
                    ratio += slot.rtt_sum as f64 / 1e9 / scenario.rtt(index, number * SLOT);
                    samples += f64::from(slot.rtt_count);
                }
            }
        }
        Self { lives, capacity, rtt_inflation: ratio / samples, queue_delay_ms, loss }
    }

    /// The windows of 500 ms: first slot, and the one after the last.
    fn windows(&self) -> impl Iterator<Item = (usize, usize)> {
        (0..self.capacity.len() / WINDOW).map(|window| (window * WINDOW, (window + 1) * WINDOW))
    }

    /// Bytes of the flows that were there for a whole window.
    fn shares(&self, (from, until): (usize, usize), of: impl Fn(&Life) -> bool) -> impl Iterator<Item = f64> {
        let (begin, end) = (from as Nanos * SLOT, until as Nanos * SLOT);
        let there = self.lives.iter().filter(move |life| of(life) && life.spans(begin, end));
        there.map(move |life| life.bytes(from, until))
    }

    /// Mean index, and over how many windows.
    fn jain(&self, of: impl Fn(&Life) -> bool + Copy) -> (f64, f64) {
        let (mut sum, mut windows) = (0.0, 0.0);
        for window in self.windows() {
            let add = |(n, sum, squares), x: f64| (n + 1.0, sum + x, squares + x * x);
            let (n, total, squares) = self.shares(window, of).fold((0.0, 0.0, 0.0), add);
            if n >= 2.0 && squares > 0.0 {
                sum += total * total / (n * squares);
                windows += 1.0;
            }
        }
        (if windows > 0.0 { sum / windows } else { 1.0 }, windows)
    }

    fn utilization(&self) -> f64 {
        let (mut delivered, mut capacity) = (0.0, 0.0);
        for (slot, room) in self.capacity.iter().enumerate() {
            let (from, until) = (slot as Nanos * SLOT, (slot as Nanos + 1) * SLOT);
            if self.lives.iter().any(|life| life.start < until && life.end > from) {
                capacity += room;
                delivered += self.lives.iter().map(|life| life.bytes(slot, slot + 1)).sum::<f64>();
            }
        }
        delivered / capacity
    }

    fn settled(&self, env: &MultiFlow) -> f64 {
        if self.lives.iter().any(|life| life.neighbour) {
            return f64::NAN;
        }
        settled_share(&self.lives, &env.scenario().path.changes(), &self.capacity).unwrap_or(f64::NAN)
    }

    fn neighbour_ratio(&self) -> f64 {
        let mut sums = [0.0; 2];
        for window in self.windows() {
            let mean = |of: fn(&Life) -> bool| {
                let (n, sum) = self.shares(window, of).fold((0.0, 0.0), |(n, sum), x| (n + 1.0, sum + x));
                (n > 0.0).then(|| sum / n)
            };
            if let (Some(own), Some(other)) = (mean(|life| !life.neighbour), mean(|life| life.neighbour)) {
                sums[0] += own;
                sums[1] += other;
            }
        }
        sums[0] / sums[1]
    }
}
