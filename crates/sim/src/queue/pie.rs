//! PIE (RFC 8033): drops arriving packets with a probability that a proportional-integral controller adjusts so that
//! the queueing delay stays at a reference.
//!
//! With the optional elements ECN (section 5.1), de-randomisation (5.4) and the cap of the adjustment (5.5). The delay
//! is read from time stamps (section 4.3 allows either): the wait of the oldest packet. That value is known exactly at
//! every update instant although updates are made up for lazily, at the next arrival or departure.
//! Always active: the optional element of section 5.3 would let a large buffer fill by a third first.

use super::fifo::Fifo;
use super::{Discipline, Limit, MTU, Packet, Verdict};
use astraea_cc::Nanos;
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

/// Above this probability packets are dropped even if they could be marked (RFC 8033 section 5.1).
const MARK_LIMIT: f64 = 0.1;

/// Parameters of PIE (RFC 8033 sections 4.1, 4.2, 4.4).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PieConfig {
    /// Reference delay in ns (`QDELAY_REF`). Default 15 ms.
    pub target_ns: Nanos,
    /// Time between updates of the probability in ns (`T_UPDATE`). Default 15 ms.
    pub tupdate_ns: Nanos,
    /// Gain of the deviation from the reference, in Hz. Default 1/8.
    pub alpha: f64,
    /// Gain of the change of the delay, in Hz. Default 5/4.
    pub beta: f64,
    /// How long a burst is let through untouched, in ns (`MAX_BURST`). Default 150 ms.
    pub burst_ns: Nanos,
    /// Mark capable packets instead of dropping them. Default off.
    pub ecn: bool,
}

impl Default for PieConfig {
    fn default() -> Self {
        Self {
            target_ns: 15_000_000,
            tupdate_ns: 15_000_000,
            alpha: 0.125,
            beta: 1.25,
            burst_ns: 150_000_000,
            ecn: false,
        }
    }
}

impl PieConfig {
    pub(super) fn validate(self) -> Result<(), String> {
        if self.target_ns == 0 || self.tupdate_ns == 0 {
            let (target, update) = (self.target_ns, self.tupdate_ns);
            return Err(format!("expected a target_ns and a tupdate_ns above 0, got {target} and {update}"));
        }
        for (key, gain) in [("alpha", self.alpha), ("beta", self.beta)] {
            if !(gain.is_finite() && gain > 0.0) {
                return Err(format!("expected {key} above 0, got {gain}"));
            }
        }
        Ok(())
    }
}

/// A FIFO under PIE.
#[derive(Clone, Debug)]
pub struct Pie<P> {
    config: PieConfig,
    limit: Limit,
    fifo: Fifo<P>,
    drop_probability: f64,
    /// Sum of the probabilities since the last drop (`accu_prob`).
    accumulated: f64,
    burst_left: Nanos,
    /// Delay in ns at the update before.
    last_delay: Nanos,
    next_update: Nanos,
}

impl<P> Pie<P> {
    /// An empty queue whose first update is due one period after time zero.
    pub fn new(config: PieConfig, limit: Limit) -> Self {
        Self {
            config,
            limit,
            fifo: Fifo::new(),
            drop_probability: 0.0,
            accumulated: 0.0,
            burst_left: config.burst_ns,
            last_delay: 0,
            next_update: config.tupdate_ns,
        }
    }

    /// The probability with which arriving packets are dropped or marked.
    pub fn drop_probability(&self) -> f64 {
        self.drop_probability
    }
}

impl<P: Packet> Pie<P> {
    /// Makes up for the updates that were due by `now`; the queue has not changed since the last call.
    fn catch_up(&mut self, now: Nanos) {
        while self.next_update <= now {
            let at_rest = self.fifo.is_empty() && self.last_delay == 0 && self.drop_probability == 0.0;
            if at_rest && self.burst_left == self.config.burst_ns {
                // Further updates change nothing.
                let behind = (now - self.next_update) / self.config.tupdate_ns + 1;
                self.next_update += behind * self.config.tupdate_ns;
                return;
            }
            self.update(self.fifo.head_delay(self.next_update));
            self.next_update += self.config.tupdate_ns;
        }
    }

    /// RFC 8033 section 4.2 for the probability, 4.4 for the burst allowance, 5.5 for the cap.
    fn update(&mut self, delay: Nanos) {
        let PieConfig { target_ns, tupdate_ns, alpha, beta, burst_ns, .. } = self.config;
        let seconds = |later: Nanos, earlier: Nanos| (later as f64 - earlier as f64) * 1e-9;
        let mut change = alpha * seconds(delay, target_ns) + beta * seconds(delay, self.last_delay);
        change *= tuning(self.drop_probability);
        if self.drop_probability >= 0.1 {
            change = change.min(0.02);
        }
        self.drop_probability += change;
        if delay == 0 && self.last_delay == 0 {
            self.drop_probability *= 0.98;
        }
        self.drop_probability = self.drop_probability.clamp(0.0, 1.0);

        self.burst_left = self.burst_left.saturating_sub(tupdate_ns);
        if self.drop_probability == 0.0 && delay < target_ns / 2 && self.last_delay < target_ns / 2 {
            self.burst_left = burst_ns;
        }
        self.last_delay = delay;
    }

    /// Whether an arriving packet is to be dropped or marked (RFC 8033 sections 4.1 and 5.4).
    fn signals(&mut self, rng: &mut impl Rng) -> bool {
        let calm = self.last_delay < self.config.target_ns / 2 && self.drop_probability < 0.2;
        if self.burst_left > 0 || calm || self.fifo.bytes() <= 2 * u64::from(MTU) {
            return false;
        }
        if self.drop_probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += self.drop_probability;
        if self.accumulated < 0.85 {
            return false;
        }
        let signal = self.accumulated >= 8.5 || rng.random_bool(self.drop_probability);
        if signal {
            self.accumulated = 0.0;
        }
        signal
    }
}

/// By how much adjustments are scaled down while the probability is small (RFC 8033 section 4.2).
fn tuning(drop_probability: f64) -> f64 {
    match drop_probability {
        p if p < 0.000_001 => 1.0 / 2048.0,
        p if p < 0.000_01 => 1.0 / 512.0,
        p if p < 0.000_1 => 1.0 / 128.0,
        p if p < 0.001 => 1.0 / 32.0,
        p if p < 0.01 => 1.0 / 8.0,
        p if p < 0.1 => 1.0 / 2.0,
        _ => 1.0,
    }
}

impl<P: Packet> Discipline<P> for Pie<P> {
    fn enqueue(&mut self, now: Nanos, mut packet: P, rng: &mut impl Rng) -> Verdict<P> {
        self.catch_up(now);
        if !self.fifo.has_room(self.limit, &packet) {
            return Verdict::Dropped(packet);
        }
        if self.signals(rng) {
            if !(self.config.ecn && packet.ecn_capable() && self.drop_probability <= MARK_LIMIT) {
                return Verdict::Dropped(packet);
            }
            packet.mark_ce();
        }
        self.fifo.push(now, packet);
        Verdict::Queued
    }

    fn dequeue(&mut self, now: Nanos, _dropped: &mut Vec<P>) -> Option<P> {
        self.catch_up(now);
        self.fifo.pop()
    }

    fn len(&self) -> usize {
        self.fifo.len()
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Outcome, TestPacket, drive, rng};
    use super::*;

    const MS: Nanos = 1_000_000;
    const BYTE_TIME: Nanos = 400; // 20 Mbit/s, 0.6 ms for a packet

    /// `load` times the capacity for `seconds`; packets can be marked if `capable`.
    fn overload(queue: &mut Pie<TestPacket>, load: f64, seconds: u64, capable: bool) -> Outcome {
        let every = (1500.0 * BYTE_TIME as f64 / load) as Nanos;
        let packet = |id| if capable { TestPacket::new(id, 0, 1500).capable() } else { TestPacket::new(id, 0, 1500) };
        drive(queue, (0..seconds * 1000 * MS / every).map(|id| (id * every, packet(id))), BYTE_TIME)
    }

    #[test]
    fn holds_the_reference_delay_under_constant_overload() {
        for load in [1.05, 1.25, 2.0] {
            let mut queue = Pie::new(PieConfig::default(), Limit::Infinite);
            let outcome = overload(&mut queue, load, 60, false);
            let delay = outcome.mean_delay(30_000 * MS) * 1e3;
            assert!((14.0..16.0).contains(&delay), "load {load}: {delay} ms");
            // What does not fit through the link has to be dropped.
            let needed = 1.0 - 1.0 / load;
            let dropped = outcome.dropped.iter().filter(|(at, _)| *at >= 30_000 * MS).count() as f64;
            let offered = 30.0 * load / (1500.0 * BYTE_TIME as f64 * 1e-9);
            assert!((dropped / offered / needed - 1.0).abs() < 0.02, "load {load}: dropped {}", dropped / offered);
        }
    }

    #[test]
    fn lets_a_first_burst_through() {
        // 144 ms at ten times the rate make 1.3 s of queue, but the allowance is 150 ms.
        let burst = || (0..2400).map(|id| (id * 60_000, TestPacket::new(id, 0, 1500)));
        let mut queue = Pie::new(PieConfig::default(), Limit::Infinite);
        assert!(drive(&mut queue, burst(), BYTE_TIME).dropped.is_empty());
        // Without an allowance the same burst is cut.
        let mut queue = Pie::new(PieConfig { burst_ns: 0, ..PieConfig::default() }, Limit::Infinite);
        assert!(!drive(&mut queue, burst(), BYTE_TIME).dropped.is_empty());
    }

    #[test]
    fn adjustments_follow_the_table_and_the_cap() {
        let at = |probability, delay, last_delay| {
            let mut queue = Pie::<TestPacket>::new(PieConfig::default(), Limit::Infinite);
            (queue.drop_probability, queue.last_delay) = (probability, last_delay);
            queue.update(delay);
            queue.drop_probability - probability
        };
        let near = |got: f64, want: f64| assert!((got - want).abs() < 1e-15 + 1e-9 * want.abs(), "{got} for {want}");
        // 25 ms now and before: alpha * 10 ms = 0.00125 before scaling.
        let steps = [(0.0, 2048.0), (5e-6, 512.0), (5e-5, 128.0), (5e-4, 32.0), (5e-3, 8.0), (0.05, 2.0), (0.5, 1.0)];
        for (probability, divisor) in steps {
            near(at(probability, 25 * MS, 25 * MS), 0.00125 / divisor);
        }
        // A rise by 10 ms from the reference: alpha and beta both, (0.125 + 1.25) * 10 ms.
        near(at(0.05, 25 * MS, 15 * MS), 0.01375 / 2.0);
        // A rise by 100 ms would add 0.1375; the cap is 0.02 from a probability of 0.1 on.
        near(at(0.2, 115 * MS, 15 * MS), 0.02);
        // An empty queue: alpha * -15 ms, then a decay of 2 %.
        near(0.5 + at(0.5, 0, 0), (0.5 - 0.001_875) * 0.98);
        near(at(0.0, 0, 0), 0.0);
        near(at(1.0, 100 * MS, 0), 0.0);
    }

    #[test]
    fn packets_bypass_the_random_drop_when_the_queue_is_no_problem() {
        // So much probability has accumulated that the next packet is dropped for certain, unless it bypasses.
        let drops = |probability, last_delay_ms: u64, waiting, burst_left| {
            let mut queue = Pie::<TestPacket>::new(PieConfig::default(), Limit::Infinite);
            for id in 0..waiting {
                queue.fifo.push(0, TestPacket::new(id, 0, 1500));
            }
            (queue.drop_probability, queue.last_delay) = (probability, last_delay_ms * MS);
            (queue.accumulated, queue.burst_left) = (8.5, burst_left);
            queue.signals(&mut rng())
        };
        assert!(drops(1e-9, 8, 3, 0));
        assert!(!drops(1e-9, 8, 3, 1), "burst allowance");
        assert!(!drops(1e-9, 8, 2, 0), "two packets wait");
        assert!(!drops(0.19, 7, 3, 0), "delay below half of the reference");
        assert!(drops(0.21, 7, 3, 0), "but the probability is high");
    }

    #[test]
    fn drops_are_spread_out() {
        let mut queue = Pie::new(PieConfig::default(), Limit::Infinite);
        let outcome = overload(&mut queue, 1.05, 60, false);
        let ids: Vec<_> = outcome.dropped.iter().filter(|(at, _)| *at >= 30_000 * MS).map(|(_, p)| p.id).collect();
        // At a probability near 0.048 at least 0.85 / p packets pass between drops; independent drops would often be
        // neighbours.
        let gaps: Vec<_> = ids.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.len() > 1000);
        assert!(gaps.iter().all(|&gap| gap >= 8), "shortest gap {:?}", gaps.iter().min());
    }

    #[test]
    fn marks_up_to_a_tenth_and_drops_beyond() {
        let config = PieConfig { ecn: true, ..PieConfig::default() };
        let mut queue = Pie::new(config, Limit::Infinite);
        // Senders that do not react to marks push the probability beyond the limit for marking.
        let outcome = overload(&mut queue, 1.25, 30, true);
        let first_drop = outcome.dropped.first().expect("drops beyond the limit").0;
        let marked: Vec<_> = outcome.sent.iter().filter(|(_, p)| p.marked).map(|(_, p)| p.enqueued).collect();
        assert!(marked.iter().filter(|&&at| at < first_drop).count() > 10);
        assert!(queue.drop_probability() > MARK_LIMIT);
    }

    #[test]
    fn a_long_idle_time_resets_the_controller_at_once() {
        let mut queue = Pie::new(PieConfig::default(), Limit::Infinite);
        overload(&mut queue, 2.0, 10, false);
        assert!(queue.drop_probability() > 0.3);
        while queue.dequeue(10_000 * MS, &mut Vec::new()).is_some() {}
        // A year of missed updates; the steps until the controller is at rest are few.
        let year = 365 * 86_400 * 1000 * MS;
        assert!(queue.dequeue(year, &mut Vec::new()).is_none());
        assert_eq!(queue.drop_probability(), 0.0);
        assert_eq!(queue.burst_left, PieConfig::default().burst_ns);
        assert!(queue.next_update > year && queue.next_update <= year + 15 * MS);
        assert_eq!(queue.next_update % (15 * MS), 0);
    }
}
