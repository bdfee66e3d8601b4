//! What the queue that a newcomer found says of its share.
//!
//! A flow among many leaves slow start with several times its share: it doubles until the queue has grown, and meanwhile
//! the others give way. What it found when it came it took for the path. Once a drain has shown the base round-trip time,
//! its own or the others', it knows how long their queue was; the law rests where every flow sees the same delay, so that
//! this says what rate they had, and nobody who comes needs more.
//!
//! Beside one or two others it is the other way about: their queue is short, so that a flow leaves slow start with less
//! than its share, and after the drain each goes back to what it had. There it takes as much as they had.

use astraea_cc::Nanos;

use super::mean::Mean;
use super::rules::Rules;

/// The round trips of a flow that begins.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Newcomer {
    /// Of periods in which its own window was small.
    found: Mean,
    /// The smallest and the largest of them.
    range: Option<(Nanos, Nanos)>,
    /// Of periods since slow start in which it did not drain.
    since: Mean,
    /// When slow start had ended.
    settled: Option<Nanos>,
}

impl Newcomer {
    /// Round trips that are added to the time for which a flow is a newcomer.
    const ROUNDS: u64 = 5;

    /// A period of slow start has ended with this smallest round-trip time and window in packets.
    pub(super) fn arrives(&mut self, rules: &Rules, low: Option<Nanos>, window: f64) {
        (self.since, self.settled) = (Mean::default(), None);
        if let Some(low) = low
            && (self.found.count == 0 || window <= rules.modest)
        {
            self.found.add(low);
            self.range = Some(self.range.map_or((low, low), |(least, most)| (least.min(low), most.max(low))));
        }
    }

    /// A period after slow start has ended with this smallest round-trip time, in a drain or not.
    pub(super) fn end_period(&mut self, rules: &Rules, now: Nanos, srtt: Nanos, low: Option<Nanos>, drains: bool) {
        let settled = *self.settled.get_or_insert(now);
        if now - settled > rules.newcomer + Self::ROUNDS * srtt {
            (self.found, self.range) = (Mean::default(), None);
        }
        if let Some(low) = low
            && !drains
        {
            self.since.add(low);
        }
    }

    /// The window in packets that the others had at this base round-trip time and with this queue on the way back (both ns),
    /// if it is known: where the law rests at the queue that they kept. A queue that passed is not theirs: the shorter of both means counts.
    pub(super) fn share(&self, rules: &Rules, base: Nanos, back: Nanos) -> Option<f64> {
        let found = self.found.get()?;
        Self::window(rules, base, back, self.since.get().map_or(found, |since| found.min(since)))
    }

    /// The window in packets that one of this size is raised to among few, if it is.
    ///
    /// By the shortest queue that was found, in which the flow's own first packets count least: perhaps more than the others
    /// had. Where it is none the longest counts, perhaps less than they had, if it says so much that nothing else matters.
    pub(super) fn raised(&self, rules: &Rules, base: Nanos, back: Nanos, window: f64) -> Option<f64> {
        let (shortest, longest) = self.range?;
        let limit = rules.newcomer_most * window;
        let at = |rtt| Self::window(rules, base, back, rtt);
        let had = at(shortest).or_else(|| at(longest).filter(|had| *had >= limit))?;
        (had > window).then(|| had.min(limit))
    }

    /// Whether slow start has ended in the last few seconds.
    pub(super) fn is_young(&self, rules: &Rules, now: Nanos) -> bool {
        self.settled.is_some_and(|settled| now - settled < rules.leap.youth)
    }

    /// The window in packets with which the law rests at this round-trip time, with this queue on the way back.
    fn window(rules: &Rules, base: Nanos, back: Nanos, rtt: Nanos) -> Option<f64> {
        let queue = rtt.checked_sub(base)? as f64 / 1e9;
        (queue >= Rules::SHORTEST_QUEUE).then(|| rules.resting_window((base + back) as f64 / 1e9, queue))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, ms};
    use super::*;

    /// A newcomer that found these round trips (ms), the last ones with a large window, and met these ones later.
    fn newcomer(found: &[f64], large: &[f64], since: &[f64]) -> Newcomer {
        let (rules, mut newcomer) = (Rules::default(), Newcomer::default());
        let mut arrive = |lows: &[f64], window| {
            for low in lows {
                newcomer.arrives(&rules, Some(ms(*low)), window);
            }
        };
        arrive(found, 40.0);
        arrive(large, 41.0);
        for low in since {
            newcomer.end_period(&rules, 0, ms(50.0), Some(ms(*low)), false);
        }
        newcomer
    }

    fn share(newcomer: &Newcomer, base: f64) -> Option<f64> {
        newcomer.share(&Rules::default(), ms(base), 0)
    }

    #[test]
    fn the_others_queue_says_what_they_have() {
        // 10 ms are what the law wants at 542 packets/s: 27 packets in 50 ms.
        let expected = 0.05 * Rules::REFERENCE * (0.01 * Rules::REFERENCE / 10.0).powf(-1.6);
        assert_eq!(expected.round(), 27.0);
        close(share(&newcomer(&[49.0, 51.0], &[90.0], &[60.0]), 40.0).unwrap(), expected);
        // At the same rate three times as much is in flight with 100 ms of queue on the way back.
        let far = newcomer(&[49.0, 51.0], &[], &[]).share(&Rules::default(), ms(40.0), ms(100.0));
        close(far.unwrap(), 3.0 * expected);
        // In slow start, and a queue that passed.
        close(share(&newcomer(&[49.0, 51.0], &[90.0], &[]), 40.0).unwrap(), expected);
        close(share(&newcomer(&[90.0], &[], &[49.0, 51.0]), 40.0).unwrap(), expected);
    }

    #[test]
    fn a_first_period_counts_whatever_the_window() {
        assert_eq!(share(&newcomer(&[], &[50.0, 90.0], &[60.0]), 40.0), share(&newcomer(&[50.0], &[], &[60.0]), 40.0));
        assert!(share(&newcomer(&[], &[50.0], &[60.0]), 40.0).is_some());
    }

    #[test]
    fn the_shortest_queue_that_was_found_says_what_a_flow_is_raised_to() {
        let raised =
            |window| newcomer(&[52.0, 50.0, 51.0], &[49.0], &[60.0]).raised(&Rules::default(), ms(40.0), 0, window);
        // 27 packets.
        assert_eq!(raised(20.0), share(&newcomer(&[50.0], &[], &[60.0]), 40.0));
        assert_eq!((raised(5.0), raised(28.0)), (Some(15.0), None), "to three times the window at most");
        assert_eq!(Newcomer::default().raised(&Rules::default(), ms(40.0), 0, 5.0), None);
    }

    #[test]
    fn without_a_shortest_queue_the_longest_says_it_if_it_says_much() {
        let raised =
            |window| newcomer(&[50.0, 40.4, 45.0], &[60.0], &[]).raised(&Rules::default(), ms(40.0), 0, window);
        assert_eq!((raised(8.9), raised(9.1)), (Some(3.0 * 8.9), None), "a third of 27 packets");
        let none = newcomer(&[40.4], &[], &[]);
        assert_eq!(none.raised(&Rules::default(), ms(40.0), 0, 1.0), None, "there may have been none");
    }

    #[test]
    fn it_is_young_for_five_seconds() {
        let rules = Rules::default();
        let mut flow = newcomer(&[50.0], &[], &[]);
        assert!(!flow.is_young(&rules, ms(1000.0)), "slow start runs");
        flow.end_period(&rules, ms(1000.0), ms(50.0), None, false);
        assert!(flow.is_young(&rules, ms(5999.0)) && !flow.is_young(&rules, ms(6000.0)));
        flow.arrives(&rules, Some(ms(50.0)), 2.0);
        assert!(!flow.is_young(&rules, ms(5000.0)), "it begins anew");
    }

    #[test]
    fn without_a_queue_nothing_is_known() {
        assert_eq!(share(&newcomer(&[40.4], &[], &[60.0]), 40.0), None, ".4 ms are noise");
        assert_eq!(share(&newcomer(&[40.0], &[], &[60.0]), 41.0), None);
        assert_eq!(share(&newcomer(&[], &[], &[60.0]), 40.0), None);
    }

    #[test]
    fn drains_do_not_count() {
        let mut drained = newcomer(&[50.0], &[], &[50.0]);
        drained.end_period(&Rules::default(), 0, ms(50.0), Some(ms(40.0)), true);
        assert_eq!(share(&drained, 40.0), share(&newcomer(&[50.0], &[], &[50.0]), 40.0));
    }

    #[test]
    fn two_seconds_and_five_round_trips_later_it_is_none() {
        let mut newcomer = newcomer(&[50.0], &[], &[50.0]);
        let mut after = |time: f64| {
            newcomer.end_period(&Rules::default(), ms(time), ms(50.0), None, false);
            let raised = newcomer.raised(&Rules::default(), ms(40.0), 0, 5.0);
            assert_eq!(raised.is_some(), share(&newcomer, 40.0).is_some());
            share(&newcomer, 40.0).is_some()
        };
        assert!(after(2250.0) && !after(2251.0), "2 s and 5 x 50 ms");
    }

    #[test]
    fn slow_start_begins_anew() {
        let rules = Rules::default();
        let mut again = newcomer(&[50.0], &[], &[42.0]);
        again.arrives(&rules, Some(ms(50.0)), 2.0);
        assert_eq!(share(&again, 40.0), share(&newcomer(&[50.0], &[], &[]), 40.0), "42 ms are forgotten");
        again.end_period(&rules, ms(60_000.0), ms(50.0), Some(ms(50.0)), false);
        assert_eq!(share(&again, 40.0), share(&newcomer(&[50.0], &[], &[50.0]), 40.0));
    }
}
