//! Losses on a path that seems to have no queue: they are random, or the base round-trip time is known too long.
//!
//! A buffer of a few milliseconds has no room for a rise that asks for a drain, and a flow that came when it was full takes
//! it for a part of the path: it sees losses without a queue, and takes the others' share. Such a flow has most of the link,
//! so that it empties the buffer by holding itself back for a round trip, whatever the others do.

use astraea_cc::Nanos;

use super::guide::near;
use super::law;
use super::rules::Rules;
use crate::backlog::Signals;

/// What speaks against the base round-trip time that is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Doubt {
    /// Time in ns with losses and without a queue, less that with either otherwise …
    lasted: Nanos,
    /// … and how much of it asks for a drain.
    patience: Nanos,
    /// Base round-trip time in ns when that drain began.
    base: Nanos,
}

impl Doubt {
    pub(super) fn new(rules: &Rules) -> Self {
        Self { lasted: 0, patience: rules.drain.doubt, base: 0 }
    }

    /// A period of so many ns has ended in which the law was followed.
    pub(super) fn end_period(&mut self, rules: &Rules, signals: &Signals, length: Nanos) {
        let doubtful = signals.loss > rules.drain.doubtful && law::no_queue(rules, signals);
        self.lasted = if doubtful { self.lasted + length } else { self.lasted.saturating_sub(length) };
    }

    /// Whether it is time for a drain, for a smoothed round-trip time in ns.
    pub(super) fn asks(&self, srtt: Nanos) -> bool {
        self.lasted > self.patience.max(4 * srtt)
    }

    /// A drain begins, with this base in ns.
    pub(super) fn begin(&mut self, base: Nanos) {
        (self.lasted, self.base) = (0, base);
    }

    /// It has ended, with this base in ns: losses that were random ask again later and later.
    pub(super) fn judge(&mut self, rules: &Rules, base: Nanos) {
        let shorter = near(base) < self.base;
        self.patience = if shorter { rules.drain.doubt } else { (2 * self.patience).min(rules.drain.doubt_most) };
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ms, signals};
    use super::*;

    const SRTT: Nanos = 20_000_000;

    /// So many periods of 100 ms at the reference rate, where ten packets are wanted, with this backlog in packets.
    fn periods(doubt: &mut Doubt, count: usize, backlog: f64, loss: f64) {
        let signals = Signals { loss, ..signals(Rules::REFERENCE, 1e3 * backlog / Rules::REFERENCE) };
        (0..count).for_each(|_| doubt.end_period(&Rules::default(), &signals, ms(100.0)));
    }

    #[test]
    fn losses_without_a_queue_raise_it_and_nothing_else_does() {
        let mut doubt = Doubt::new(&Rules::default());
        periods(&mut doubt, 100, 0.0, 0.003);
        periods(&mut doubt, 100, 2.6, 0.1);
        assert_eq!(doubt.lasted, 0, "a loss in 333 is what policies are for, and 2.6 packets are a queue");
        periods(&mut doubt, 10, 2.4, 0.0031);
        assert!(!doubt.asks(SRTT));
        periods(&mut doubt, 1, 2.4, 0.0031);
        assert!(doubt.asks(SRTT));
        assert!(!doubt.asks(15 * SRTT), "four round trips of 300 ms have to pass");
        periods(&mut doubt, 1, 2.4, 0.0);
        assert!(!doubt.asks(SRTT), "relief counts as much");
    }

    #[test]
    fn random_losses_are_doubted_less_and_less() {
        let rules = Rules::default();
        let mut doubt = Doubt::new(&rules);
        for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
            assert_eq!(doubt.patience, ms(1e3 * f64::from(seconds)));
            doubt.begin(ms(20.0));
            // Half a millisecond is a fiftieth of 20 ms and .2 ms, and a little less.
            doubt.judge(&rules, ms(19.5));
        }
        doubt.begin(ms(20.0));
        doubt.judge(&rules, ms(19.0));
        assert_eq!(doubt.patience, ms(1e3), "a shorter base begins anew");
    }
}
