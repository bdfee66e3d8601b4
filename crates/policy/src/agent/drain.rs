//! A drain: the window is held down for a while, so that the queue empties and round trips show the base.
//!
//! All flows see the same rise of the queue, and the same empty queue afterwards, so they drain together without a word.

use astraea_cc::{Nanos, SECOND};

use super::guide::Ended;
use super::rules::Rules;
use crate::backlog::Signals;

/// Why the queue is drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The queueing delay rose: somebody has come, or the path has changed.
    Rise,
    /// The base round-trip time has not been seen for a while.
    Clock,
    /// The time of day has come at which everybody drains.
    Tick,
    /// A neighbour fills the queue, and may have gone.
    Test,
    /// Losses without a queue: the base round-trip time may be known too long.
    Doubt,
    /// Losses without a queue: what is lost when all hold back is the path's own.
    Loss,
}

/// A drain under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Drain {
    pub(super) cause: Cause,
    /// When the window may grow again.
    until: Nanos,
    /// When the round trips of the last packets that were held back have come in.
    judge: Nanos,
    /// When a drain that did not show the base is given up.
    give_up: Nanos,
    /// Window in packets during the drain.
    pub(super) hold: f64,
    /// Window in packets to go back to.
    pub(super) back: f64,
    /// Window in packets at the start.
    pub(super) start: f64,
    /// Queueing delay at the start, or its peak, in s.
    pub(super) before: f64,
    /// Queueing delay in s that the law wants at the rate of the start.
    wanted: f64,
    /// Queueing delay in s that this flow itself keeps up during a test, where its window is held above the product.
    own: f64,
    /// Smallest and largest of the periods' smallest round-trip times once the drain has had its effect.
    pub(super) low: Nanos,
    high: Nanos,
    /// The two smallest since the drain began: others may have begun theirs before.
    shortest: [Nanos; 2],
    /// Largest spread of the round-trip times of a period in s.
    spread: f64,
    /// Whether packets were lost: a full queue may be what stays.
    lossy: bool,
}

/// Where a drain stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The window is held down.
    Holding,
    /// It is back, and the effect is awaited.
    Awaiting,
    /// It did not show the base in time; the law goes on meanwhile.
    Watching,
    /// It has ended.
    Over,
}

impl Drain {
    /// Longest wait for a round trip of a flow that hardly sends.
    const SILENCE: Nanos = 2 * SECOND;

    /// A drain that begins with the end of a period, for a base round-trip time in ns without a queue on the way back.
    pub(super) fn new(rules: &Rules, cause: Cause, ended: &Ended, signals: &Signals, base: Nanos) -> Self {
        let Ended { now, length, srtt, back: way_back, window, .. } = *ended;
        let product = signals.rate * (base + way_back) as f64 / 1e9;
        let back = match cause {
            // Room for the wanted backlog: the queue has just grown by more than that, or others drain too.
            Cause::Rise | Cause::Tick => (product + rules.wanted(signals.rate)).min(window),
            Cause::Doubt | Cause::Loss => window,
            Cause::Clock | Cause::Test => product,
        };
        let (held, least) = match cause {
            // The product stays in flight, so that the queue of a neighbour who stayed is not emptied by the test.
            Cause::Test => (product, 0.4),
            // The product is what is in doubt.
            Cause::Doubt => (0.0, rules.drain.doubt_depth),
            // What does not come through need not be sent.
            Cause::Loss => ((1.0 - signals.loss) * (1.0 - rules.losses.depth) * window, 0.3),
            Cause::Rise | Cause::Clock | Cause::Tick => {
                // A base that is known too long takes a part of the queue for a part of the path.
                let margin = (rules.drain.margin * signals.queue).min(0.5 * base as f64 / 1e9);
                let depth = if cause == Cause::Tick { rules.drain.tick_depth } else { rules.drain.depth };
                (depth * (product - margin * signals.rate), 0.3)
            }
        };
        let until = match cause {
            Cause::Loss => now + srtt.max(rules.losses.settle) + rules.losses.settle,
            Cause::Test => now + srtt.max(rules.neighbour.test_length) + length,
            _ => now + srtt.max(rules.drain.length) + length,
        };
        let judge = until + srtt;
        // Neither far below: the base or the rate may be wrong.
        let hold = held.max(least * window).min(window);
        Self {
            cause,
            until,
            judge,
            give_up: if matches!(cause, Cause::Rise | Cause::Clock | Cause::Tick) {
                judge + rules.drain.watch
            } else {
                judge
            },
            hold,
            back: back.max(0.5 * window),
            start: window,
            before: signals.queue,
            wanted: rules.wanted_delay(signals.rate),
            own: (hold - product).max(0.0) / signals.rate.max(1.0),
            low: Nanos::MAX,
            high: 0,
            shortest: [Nanos::MAX; 2],
            spread: 0.0,
            lossy: signals.loss > rules.drain.doubtful,
        }
    }

    /// A period has ended with this smallest round-trip time and spread (s), for a base in ns.
    pub(super) fn end_period(&mut self, now: Nanos, low: Option<Nanos>, spread: f64, base: Nanos) -> Stage {
        self.spread = self.spread.max(spread);
        if let Some(low) = low {
            let [first, second] = self.shortest;
            self.shortest = [first.min(low), second.min(first.max(low))];
        }
        if now < self.until {
            return Stage::Holding;
        }
        if let Some(low) = low {
            (self.low, self.high) = (self.low.min(low), self.high.max(low));
        }
        match now {
            _ if now < self.judge => Stage::Awaiting,
            // A flow of less than a packet per round trip is waited for.
            _ if self.low == Nanos::MAX && now < self.give_up + Self::SILENCE => Stage::Watching,
            _ if now >= self.give_up || self.emptied(base) => Stage::Over,
            _ => Stage::Watching,
        }
    }

    /// Queueing delay in s that it left.
    pub(super) fn left(&self, base: Nanos) -> f64 {
        if self.low == Nanos::MAX { 0.0 } else { self.low.saturating_sub(base) as f64 / 1e9 }
    }

    /// Whether it has emptied the queue: what is left is little of it, or too little to be one at this rate.
    pub(super) fn emptied(&self, base: Nanos) -> bool {
        self.left(base) < (0.3 * self.before).max((0.25 * self.wanted).min(0.001))
    }

    /// Whether it has plainly emptied a queue that had risen and was short even so. Where it was long, flows are many, and
    /// what is taken for the base may be a part of it; so it may be where the smallest round trip came once.
    pub(super) fn emptied_short(&self, rules: &Rules, base: Nanos) -> bool {
        let [first, second] = self.shortest;
        self.cause == Cause::Rise
            && self.emptied(base)
            && self.before < rules.newcomer_short * self.wanted
            && second < Nanos::MAX
            && ((second - first) as f64) < 0.25e9 * self.before
    }

    /// Whether, as a test, it has found that nobody else fills the queue: but for what this flow kept up itself little is
    /// left of its peak, or no more than the law of others would leave.
    pub(super) fn finds_nobody(&self, rules: &Rules, base: Nanos) -> bool {
        self.left(base) - self.own <= (rules.neighbour.empty * self.before).max(self.wanted).max(0.001)
    }

    /// Whether it left the queue nearly as it was.
    pub(super) fn left_all(&self, rules: &Rules, base: Nanos) -> bool {
        self.left(base) > rules.neighbour.stayed * self.before
    }

    /// Whether it left the round trips as they were and all alike, but for noise: the path itself is longer, or does not let
    /// acknowledgements of this rate through as fast as the first ones.
    pub(super) fn shows_longer_path(&self, base: Nanos) -> bool {
        let left = self.left(base);
        let range = self.high.saturating_sub(self.low) as f64 / 1e9;
        // The smallest of a period varies less than they do.
        let noise = if self.lossy { 0.0 } else { 0.3 * self.spread };
        left > 0.9 * self.before - noise.min(0.2 * self.before) && range < 0.01 * left + 0.0003 + noise
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, ms, signals};
    use super::*;

    const BASE: f64 = 40.0;

    /// A drain that begins at 1 s with a window of 100 packets, 10 ms of queue and 50 ms of round trip.
    fn drain(cause: Cause, rate: f64) -> Drain {
        with_back(cause, rate, 0.0)
    }

    /// The same with a queue of so many ms on the way back.
    fn with_back(cause: Cause, rate: f64, back: f64) -> Drain {
        let (srtt, back) = (ms(50.0 + back), ms(back));
        let (now, length) = (ms(1000.0), ms(30.0));
        let ended = Ended { now, length, srtt, back, window: 100.0, used: true, ..Ended::default() };
        Drain::new(&Rules::default(), cause, &ended, &signals(rate, 10.0), ms(BASE))
    }

    /// The stages at these times after its begin and smallest round-trip times (both ms).
    fn stages(drain: &mut Drain, periods: &[(f64, f64)]) -> Vec<Stage> {
        periods.iter().map(|(at, low)| drain.end_period(ms(1000.0 + at), Some(ms(*low)), 0.0, ms(BASE))).collect()
    }

    #[test]
    fn the_window_leaves_room_for_what_it_is_about() {
        // 2000 packets/s for 40 ms: 80 packets, and the wanted backlog is 10 (2000 / 2777)^.375.
        let rise = drain(Cause::Rise, 2000.0);
        // A quarter of the queue of 20 packets is left out.
        close(rise.hold, 0.98 * 75.0);
        close(rise.back, 80.0 + 10.0 * (2000.0_f64 / 2777.0).powf(0.375));
        let clock = drain(Cause::Clock, 2000.0);
        close(clock.hold, 0.98 * 75.0);
        close(clock.back, 80.0);
        close(drain(Cause::Test, 2000.0).hold, 80.0);
        close(with_back(Cause::Test, 1000.0, 40.0).hold, 80.0); // what waits on the way back is in flight too
        let doubt = drain(Cause::Doubt, 2000.0);
        close(doubt.hold, 50.0);
        close(doubt.back, 100.0);
    }

    #[test]
    fn the_window_is_not_trusted_to_a_wrong_product() {
        let small = drain(Cause::Clock, 500.0);
        close(small.hold, 30.0);
        close(small.back, 50.0);
        let large = drain(Cause::Rise, 4000.0);
        close(large.hold, 100.0);
        close(large.back, 100.0);
    }

    #[test]
    fn it_holds_waits_and_judges() {
        // A round trip and a period to hold, then a round trip; what is seen while it holds does not count.
        let mut empty = drain(Cause::Clock, 2000.0);
        let seen = stages(&mut empty, &[(30.0, 40.0), (79.0, 40.0), (80.0, 45.0), (129.0, 44.0), (130.0, 42.9)]);
        assert_eq!(seen, [Stage::Holding, Stage::Holding, Stage::Awaiting, Stage::Awaiting, Stage::Over]);
        close(empty.left(ms(BASE)), 0.0029);
        assert!(empty.emptied(ms(BASE)), "less than .3 of 10 ms");
    }

    #[test]
    fn one_that_failed_is_watched_on() {
        let mut failed = drain(Cause::Clock, 2000.0);
        let seen = stages(&mut failed, &[(100.0, 45.0), (130.0, 43.1), (249.0, 43.1), (250.0, 43.1)]);
        assert_eq!(seen, [Stage::Awaiting, Stage::Watching, Stage::Watching, Stage::Over]);
        assert!(!failed.emptied(ms(BASE)));
        // A test holds for 300 ms and a period.
        let mut test = drain(Cause::Test, 2000.0);
        let seen = stages(&mut test, &[(329.0, 45.0), (330.0, 45.0), (380.0, 45.0)]);
        assert_eq!(seen, [Stage::Holding, Stage::Awaiting, Stage::Over]);
        let mut doubt = drain(Cause::Doubt, 2000.0);
        assert_eq!(stages(&mut doubt, &[(80.0, 45.0), (130.0, 45.0)]), [Stage::Awaiting, Stage::Over]);
    }

    #[test]
    fn a_neighbour_leaves_more_than_the_law_of_others() {
        let rules = Rules::default();
        let test = |rate: f64, before: f64, low: f64| {
            let mut test = drain(Cause::Test, rate);
            test.before = before / 1e3;
            stages(&mut test, &[(380.0, low)]);
            (test.finds_nobody(&rules, ms(BASE)), test.left_all(&rules, ms(BASE)))
        };
        // At 2777 packets/s the law wants ten packets: 3.6 ms.
        assert_eq!(test(Rules::REFERENCE, 10.0, 43.5), (true, false));
        assert_eq!(test(Rules::REFERENCE, 10.0, 43.7), (false, false));
        // Of a peak of 40 ms .15 are 6 ms.
        assert_eq!(test(Rules::REFERENCE, 40.0, 45.9), (true, false));
        assert_eq!(test(Rules::REFERENCE, 40.0, 71.9), (false, false));
        assert_eq!(test(Rules::REFERENCE, 40.0, 72.1), (false, true));
        // At 400 000 packets/s it is a third of a millisecond, and one is noise.
        assert_eq!(test(4e5, 2.0, 40.9), (true, false));
    }

    #[test]
    fn what_a_test_keeps_up_itself_is_no_neighbours() {
        // A product of 20 packets at 500 packets/s; .4 of the window are 40, and the other 20 take 40 ms.
        let finds_nobody = |low: f64| {
            let mut test = drain(Cause::Test, 500.0);
            close(test.hold, 40.0);
            stages(&mut test, &[(380.0, low)]);
            test.finds_nobody(&Rules::default(), ms(BASE))
        };
        // The law wants 10.5 ms at this rate.
        assert!(finds_nobody(BASE + 50.4));
        assert!(!finds_nobody(BASE + 50.6));
    }

    #[test]
    fn alike_and_undrained_round_trips_are_a_longer_path() {
        let longer = |lows: [f64; 2]| {
            let mut drain = drain(Cause::Rise, 2000.0);
            stages(&mut drain, &[(100.0, lows[0]), (130.0, lows[1])]);
            drain.shows_longer_path(ms(BASE))
        };
        assert!(longer([50.0, 50.3]), "within .3 ms and a hundredth of 10 ms");
        assert!(!longer([50.0, 50.5]), "a queue would move like that");
        assert!(!longer([48.9, 48.9]), "more than a tenth was drained");
        let mut silent = drain(Cause::Rise, 2000.0);
        // Given up at 250 ms at the latest otherwise.
        assert_eq!(silent.end_period(ms(3249.0), None, 0.0, ms(BASE)), Stage::Watching, "for 2 s");
        assert_eq!(silent.end_period(ms(3250.0), None, 0.0, ms(BASE)), Stage::Over);
        assert!(!silent.shows_longer_path(ms(BASE)));
    }

    #[test]
    fn noise_does_not_hide_a_longer_path() {
        let longer = |spread: f64, lows: [f64; 2]| {
            let mut drain = drain(Cause::Tick, 2000.0);
            drain.end_period(ms(1100.0), Some(ms(lows[0])), spread / 1e3, ms(BASE));
            drain.end_period(ms(1130.0), Some(ms(lows[1])), 0.0, ms(BASE));
            drain.shows_longer_path(ms(BASE))
        };
        // Three tenths of 2 ms are .6 ms: 8.4 of 10 ms, and a range of about 1 ms.
        assert!(longer(2.0, [48.5, 49.4]));
        assert!(!longer(2.0, [48.3, 48.3]) && !longer(2.0, [48.5, 49.6]) && !longer(0.0, [48.5, 48.5]));
        // However much there is, .3 of the queue drained is no noise.
        assert!(longer(20.0, [47.1, 47.1]) && !longer(20.0, [46.9, 46.9]));
        // Nor is what a full queue leaves.
        let mut full = Drain { lossy: true, ..drain(Cause::Tick, 2000.0) };
        full.end_period(ms(1100.0), Some(ms(48.5)), 0.002, ms(BASE));
        assert!(!full.shows_longer_path(ms(BASE)));
    }

    #[test]
    fn a_millisecond_is_a_queue_where_the_law_wants_less() {
        let emptied = |rate: f64, low: f64| {
            let mut drain = drain(Cause::Tick, rate);
            drain.before = 0.001;
            stages(&mut drain, &[(130.0, low)]);
            drain.emptied(ms(BASE))
        };
        assert!(emptied(2000.0, BASE + 0.99));
        // At 40 000 packets/s the law wants .95 ms, and a quarter of that is .24.
        assert!(emptied(40_000.0, BASE + 0.29), "three tenths of what there was");
        assert!(!emptied(40_000.0, BASE + 0.31));
    }
}
