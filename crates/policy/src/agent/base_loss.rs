//! What a path loses whatever is sent over it, and what is lost beyond that because flows send too much.
//!
//! Losses of a buffer that holds a few packets come without a queue, as random ones do, and no flow can tell them apart
//! alone: what it does changes little unless it has most of the link, and who has loses the smallest share. So all who lose
//! packets without a queue hold back at the same time of day, by a little more than what is lost. What is lost even then
//! is the path's own: the base loss, as the shortest round trip is the base round-trip time.

use astraea_cc::Nanos;

use super::guide::Ended;
use super::law;
use super::rules::{LossRules, Rules};
use super::tick::Tick;
use crate::backlog::Signals;

/// The base loss of one flow's path, and its losses.
#[derive(Clone, Copy, Debug)]
pub(super) struct BaseLoss {
    /// Average share of lost packets.
    average: f64,
    /// When what all have held back for the last count had arrived …
    from: Nanos,
    /// … and what has been counted since then: packets lost, and all.
    lost: f64,
    all: f64,
    /// Shares that the last two counts allow for; 1: not counted yet.
    found: [f64; 2],
    /// Packets lost, and all, when the last count was over, and from then to the next: all 0, nothing yet.
    held: [f64; 2],
    free: [f64; 2],
    /// Packets lost, and all, of every count, the longer ago the less.
    counted: [f64; 2],
    /// Share that those leave no doubt of.
    certain: f64,
}

impl Default for BaseLoss {
    fn default() -> Self {
        Self {
            average: 0.0,
            from: Nanos::MAX,
            lost: 0.0,
            all: 0.0,
            found: [1.0; 2],
            held: [0.0; 2],
            free: [0.0; 2],
            counted: [0.0; 2],
            certain: 0.0,
        }
    }
}

impl BaseLoss {
    /// Most that a count allows for: if hardly anything came through, it says little.
    const MOST: f64 = 0.5;

    /// That of a flow that loses this share on average.
    #[cfg(test)]
    pub(super) fn of(average: f64) -> Self {
        Self { average, ..Self::default() }
    }

    /// A period has ended with this share of lost packets.
    pub(super) fn end_period(&mut self, rules: &LossRules, ended: &Ended, loss: f64) {
        let share = (ended.length as f64 / 1e9 / rules.average).min(1.0);
        self.average += (loss.min(rules.burst) - self.average) * share;
        if ended.now > self.from {
            self.lost += ended.lost;
            self.all += ended.lost + ended.acked;
        }
    }

    /// Whether it is worth counting, now that the clock has struck: packets are lost, and there is hardly a queue. Flows of long
    /// round trips hear every second, fourth or eighth strike, so that they count when the others do.
    pub(super) fn asks(&self, rules: &Rules, tick: &Tick, srtt: Nanos, signals: &Signals) -> bool {
        let mut every = rules.drain.tick;
        for _ in 0..3 {
            every = if every < rules.losses.rest * srtt { 2 * every } else { every };
        }
        self.average > rules.losses.seen && law::no_queue(rules, signals) && tick.struck(every)
    }

    /// A count begins: all hold back from now on.
    pub(super) fn begin(&mut self, rules: &LossRules, ended: &Ended) {
        self.from = ended.now + ended.srtt + rules.settle;
        let [lost, all] = std::mem::take(&mut self.held);
        self.free = [self.lost - lost, self.all - all];
        (self.lost, self.all) = (0.0, 0.0);
    }

    /// It is over. Few packets say little, so a count allows for more than it has found, and all of them leave no doubt of
    /// less. What a path loses by itself is lost whether all hold back or not.
    pub(super) fn judge(&mut self, rules: &LossRules) {
        let allowed = self.lost + rules.deviations * self.lost.sqrt() + rules.unknown * rules.belief;
        self.found = [(allowed / (self.all + rules.belief)).min(Self::MOST), self.found[0]];
        let [lost, all] = self.counted.map(|sum| sum - sum / rules.counts);
        self.held = [self.lost, self.all];
        self.counted = [lost + self.lost, all + self.all];
        let ([lost, all], [free, passed]) = (self.counted, self.free);
        let unlike = if passed > 0.0 { (free / passed - lost / all.max(1.0)).abs() } else { 1.0 };
        let certain = (lost - rules.deviations * lost.sqrt()) / (all + rules.belief);
        self.certain = (certain - rules.unlike * unlike).max(0.0);
    }

    /// What the path loses by itself at least.
    pub(super) fn certain(&self) -> f64 {
        self.certain
    }

    /// The base loss as it is known. What nobody would count is nobody's.
    fn base(&self, rules: &LossRules) -> f64 {
        let least = self.found[0].min(self.found[1]);
        if least < 1.0 { least.max(rules.seen) } else { rules.unknown }
    }

    /// What is lost beyond it, as it counts in the law's error at a rate in packets/s: the more, the faster a flow is.
    pub(super) fn excess(&self, rules: &LossRules, rate: f64) -> f64 {
        let relative = rate.max(1.0) / Rules::REFERENCE;
        let excess = (self.average - self.base(rules)).max(0.0);
        (rules.gain * relative * relative.sqrt() * excess).min(rules.most)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, ms, signals};
    use super::*;

    /// A flow of 50 ms, in periods of 100 ms.
    struct Flow {
        rules: Rules,
        base_loss: BaseLoss,
        tick: Tick,
        now: Nanos,
    }

    impl Flow {
        fn new() -> Self {
            Self { rules: Rules::default(), base_loss: BaseLoss::default(), tick: Tick::new(0), now: 0 }
        }

        fn ended(&self, acked: f64, lost: f64) -> Ended {
            Ended { now: self.now, length: ms(100.0), srtt: ms(50.0), acked, lost, ..Ended::default() }
        }

        /// So many periods in which so many packets were acknowledged and lost.
        fn periods(&mut self, count: usize, acked: f64, lost: f64) {
            for _ in 0..count {
                self.now += ms(100.0);
                self.tick.end_period(self.now);
                let ended = self.ended(acked, lost);
                self.base_loss.end_period(&self.rules.losses, &ended, lost / (lost + acked));
            }
        }

        fn asks(&self, srtt: f64, backlog: f64) -> bool {
            let signals = signals(Rules::REFERENCE, 1e3 * backlog / Rules::REFERENCE);
            self.base_loss.asks(&self.rules, &self.tick, ms(srtt), &signals)
        }

        /// A count of four periods, of which the first two and a half pass until what is held back arrives.
        fn count(&mut self, acked: f64, lost: f64) {
            self.base_loss.begin(&self.rules.losses, &self.ended(0.0, 0.0));
            self.periods(2, 1000.0, 500.0);
            self.periods(2, acked, lost);
            self.base_loss.judge(&self.rules.losses);
        }

        fn base(&self) -> f64 {
            self.base_loss.base(&self.rules.losses)
        }

        fn excess(&self, rate: f64) -> f64 {
            self.base_loss.excess(&self.rules.losses, rate)
        }
    }

    #[test]
    fn losses_without_a_queue_are_counted_when_the_clock_strikes() {
        let mut flow = Flow::new();
        flow.periods(50, 1000.0, 1.0);
        assert!(!flow.asks(50.0, 0.0), "a loss in a thousand");
        flow.periods(49, 990.0, 10.0);
        assert!(!flow.asks(50.0, 0.0), "9.9 s");
        flow.periods(1, 990.0, 10.0);
        assert!(flow.asks(50.0, 2.4));
        assert!(!flow.asks(50.0, 2.6), "of ten wanted packets these are a queue");
        // Twenty round trips apart: of 500 ms every 10 s, of 501 every 20 s, of 3 s every 40 s though that is not enough.
        assert_eq!([500.0, 501.0].map(|srtt| flow.asks(srtt, 0.0)), [true, false]);
        flow.periods(100, 990.0, 10.0);
        assert_eq!([501.0, 1000.0, 3000.0].map(|srtt| flow.asks(srtt, 0.0)), [true, true, false]);
        flow.periods(200, 990.0, 10.0);
        assert!(flow.asks(3000.0, 0.0));
    }

    #[test]
    fn what_is_lost_when_all_hold_back_is_the_path_s_own() {
        let mut flow = Flow::new();
        assert_eq!(flow.base(), flow.rules.losses.unknown);
        flow.count(950.0, 50.0);
        // 100 of 2000, twice its root, and a quarter of a packet of 50.
        let first = (100.0 + 20.0 + 0.25) / 2050.0;
        close(flow.base(), first);
        flow.count(990.0, 10.0);
        let second = (20.0 + 2.0 * 20.0_f64.sqrt() + 0.25) / 2050.0;
        close(flow.base(), second);
        flow.count(950.0, 50.0);
        close(flow.base(), second); // others may not have held back
        flow.count(950.0, 50.0);
        close(flow.base(), first);
        flow.count(1000.0, 0.0);
        close(flow.base(), 0.002);
        flow.count(0.0, 1e4);
        flow.count(0.0, 1e4);
        close(flow.base(), 0.5);
    }

    #[test]
    fn what_all_counts_together_leave_no_doubt_of_is_certain() {
        let counted = |flow: &mut Flow, acked: f64, lost: f64| {
            flow.count(acked, lost);
            flow.base_loss.certain()
        };
        // 100 of 2000 in each count, and a twentieth of what is sent between them.
        let mut flow = Flow::new();
        assert_eq!(counted(&mut flow, 950.0, 50.0), 0.0, "what is lost otherwise is not known");
        flow.periods(60, 950.0, 50.0);
        // Of as many again the first are worth four fifths.
        let certain = (180.0 - 2.0 * 180.0_f64.sqrt()) / 3650.0;
        close(counted(&mut flow, 950.0, 50.0), certain);
        flow.periods(60, 940.0, 60.0);
        let certain = (244.0 - 2.0 * 244.0_f64.sqrt()) / 4930.0;
        close(counted(&mut flow, 950.0, 50.0), certain - 2.0 * 0.01);
        flow.periods(60, 900.0, 100.0);
        assert_eq!(counted(&mut flow, 950.0, 50.0), 0.0, "half of it is no accident");
        flow.periods(60, 990.0, 10.0);
        assert_eq!(counted(&mut flow, 950.0, 50.0), 0.0, "somebody came while all held back");
        let mut slow = Flow::new();
        slow.count(9.0, 1.0);
        slow.periods(60, 9.0, 1.0);
        assert_eq!(counted(&mut slow, 9.0, 1.0), 0.0, "two of twenty may be chance");
    }

    #[test]
    fn only_what_is_lost_beyond_that_counts_and_more_for_fast_flows() {
        let mut flow = Flow::new();
        flow.periods(1000, 985.0, 15.0);
        // Until it has been counted, half a per cent is the path's own.
        close(flow.excess(Rules::REFERENCE), 30.0 * 0.01);
        close(flow.excess(Rules::REFERENCE / 4.0), 30.0 * 0.01 / 8.0);
        close(flow.excess(4.0 * Rules::REFERENCE), 1.0); // and no more
        flow.count(970.0, 30.0);
        flow.periods(1000, 985.0, 15.0);
        assert_eq!(flow.excess(Rules::REFERENCE), 0.0);
    }

    #[test]
    fn a_burst_counts_little() {
        let mut flow = Flow::new();
        flow.periods(1, 0.0, 1e4);
        close(flow.base_loss.average, 0.05 / 30.0);
    }
}
