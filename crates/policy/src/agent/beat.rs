//! Whether a queue is at the beat as it is else: flows of the same kind drain then, and nobody else does.
//!
//! A flow that competes with its like by mistake finds their queue whenever it tests, for that is what their law wants. But
//! they drain at half seconds of the day. CUBIC and BBR know no time of day: over seconds their queue is as long then as
//! between. Means are compared, which a jitter that hides the base round-trip time does not touch.

use astraea_cc::{MILLISECOND, Nanos};

use super::mean::Mean;
use super::rules::Rules;

/// The queue when the others' drains show, and else, since the clock has struck.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Beat {
    drained: Mean,
    rest: Mean,
    /// Both from one strike to the next, if they are known.
    last: Option<(Nanos, Nanos)>,
}

impl Beat {
    /// How long drains show, from a round trip after the beat on.
    const SHOWS: Nanos = 150 * MILLISECOND;
    /// Round-trip times from which on they would show between two beats anywhere.
    const FAR: Nanos = 200 * MILLISECOND;
    /// Periods that make a mean.
    const LEAST: u64 = 8;

    /// A period has ended with this queueing delay (s), so long after the last beat.
    pub(super) fn end_period(&mut self, phase: Nanos, srtt: Nanos, queue: f64) {
        if srtt < Self::FAR {
            let queue = (queue * 1e9) as Nanos;
            let shows = (srtt..srtt + Self::SHOWS).contains(&phase);
            if shows { self.drained.add(queue) } else { self.rest.add(queue) }
        }
    }

    /// The clock has struck.
    pub(super) fn strikes(&mut self) {
        let Self { drained, rest, .. } = std::mem::take(self);
        let known = drained.count.min(rest.count) >= Self::LEAST;
        self.last = drained.get().zip(rest.get()).filter(|_| known);
    }

    /// Whether the queue fell at the beats between the last two strikes.
    pub(super) fn falls(&self, rules: &Rules) -> bool {
        self.last.is_some_and(|(drained, rest)| (drained as f64) < rules.neighbour.like * rest as f64)
    }

    /// Whether it was as long then as else.
    pub(super) fn is_even(&self, rules: &Rules) -> bool {
        let even = rules.neighbour.even;
        self.last.is_some_and(|(drained, rest)| {
            let (drained, rest) = (drained as f64, rest as f64);
            drained >= even * rest && rest >= even * drained
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ms;
    use super::*;

    /// What five seconds of periods of 30 ms say with these queues (ms) by the phase (ms).
    fn listened(srtt: f64, queue: impl Fn(f64) -> f64) -> Beat {
        let mut beat = Beat::default();
        for period in 0..166 {
            let phase = f64::from(period * 30 % 500);
            beat.end_period(ms(phase), ms(srtt), queue(phase) / 1e3);
        }
        beat.strikes();
        beat
    }

    /// A queue of 20 ms that is another one between two phases (ms).
    fn dips(from: f64, to: f64, depth: f64) -> impl Fn(f64) -> f64 {
        move |phase| if (from..to).contains(&phase) { depth } else { 20.0 }
    }

    #[test]
    fn a_queue_that_falls_at_the_beat_is_of_its_like() {
        let strikes = |srtt: f64, queue: &dyn Fn(f64) -> f64| listened(srtt, queue).falls(&Rules::default());
        assert!(strikes(50.0, &dips(50.0, 200.0, 15.0)));
        assert!(!strikes(50.0, &dips(50.0, 200.0, 17.0)), "by a fifth at least");
        assert!(strikes(50.0, &dips(80.0, 180.0, 10.0)), "a part of the time is enough");
        assert!(!strikes(50.0, &dips(250.0, 400.0, 5.0)), "not at the beat");
        assert!(!strikes(50.0, &|_| 20.0));
        assert!(!strikes(200.0, &dips(200.0, 350.0, 5.0)), "too far to tell");
    }

    #[test]
    fn few_periods_say_nothing() {
        let mut beat = Beat::default();
        (0..8).for_each(|_| beat.end_period(ms(300.0), ms(50.0), 0.02));
        (0..7).for_each(|_| beat.end_period(ms(100.0), ms(50.0), 0.001));
        let falls = |mut beat: Beat| {
            beat.strikes();
            beat.falls(&Rules::default())
        };
        assert!(!falls(beat));
        beat.end_period(ms(100.0), ms(50.0), 0.001);
        assert!(falls(beat));
        beat.strikes();
        assert!(!falls(beat), "it begins anew");
    }

    #[test]
    fn a_queue_that_is_the_same_at_the_beat_is_of_others() {
        let even = |beat: Beat| beat.is_even(&Rules::default());
        assert!(even(listened(50.0, |_| 20.0)) && even(listened(50.0, dips(50.0, 200.0, 18.5))));
        assert!(!even(listened(50.0, dips(50.0, 200.0, 17.0))), "by a tenth at most");
        assert!(!even(listened(50.0, dips(50.0, 200.0, 23.0))), "either way");
        assert!(!even(listened(200.0, |_| 20.0)) && !even(Beat::default()), "nothing is known");
    }
}
