//! Leaps to the fair rate.
//!
//! The law moves a flow to the others' rate slowly where round trips are long or the queue swings; but its queue, averaged
//! over a second, says what rate all of them would rest at. At full seconds of the day a flow that is far from it moves its
//! window a part of the way at once. Done by all at the same time this leaves the sum nearly as it is, so that the law does
//! not take it back. A flow that has just left slow start is likely to be the one that is far off, and leaps sooner and
//! farther: to windows of some size, since among many flows a queue of so short a time is no word of theirs.

use astraea_cc::Nanos;

use super::guide::Ended;
use super::rules::Rules;
use crate::backlog::Signals;

/// The queue since the last leap or drain, over periods in which the law was followed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Leap {
    /// Average queueing delay in s.
    queue: f64,
    /// Seconds of such periods.
    lasted: f64,
}

impl Leap {
    /// Time constant of the average in s, or in round trips if that is longer.
    const AVERAGE: f64 = 1.0;
    const ROUNDS: f64 = 5.0;
    /// Round trips at least that it takes to tell.
    const LEAST: f64 = 8.0;

    /// A period of so many seconds has ended in which the law was followed.
    pub(super) fn end_period(&mut self, signals: &Signals, seconds: f64, srtt: Nanos) {
        self.lasted += seconds;
        let constant = Self::AVERAGE.max(Self::ROUNDS * srtt as f64 / 1e9).min(self.lasted);
        self.queue += (signals.queue - self.queue) * (seconds / constant).min(1.0);
    }

    /// The window in packets to leap to over a base round-trip time in ns, if there is one, for a flow that has just left
    /// slow start (`young`) or another.
    pub(super) fn window(
        &self,
        rules: &Rules,
        base: Nanos,
        young: bool,
        ended: &Ended,
        signals: &Signals,
    ) -> Option<f64> {
        let leap = &rules.leap;
        let fair = rules.resting_window((base + ended.back) as f64 / 1e9, self.queue.max(Rules::SHORTEST_QUEUE));
        let stride = if young && fair > rules.modest { &leap.young } else { &leap.old };
        let least = (stride.least as f64 / 1e9).max(Self::LEAST * ended.srtt as f64 / 1e9);
        // A queue that is far longer than flows of the kind leave is no word of theirs.
        let foreign = self.queue > leap.high * rules.wanted_delay(signals.rate);
        if self.lasted < least || signals.loss > leap.loss || foreign {
            return None;
        }
        let distance = libm::log(fair / ended.window);
        let beyond = distance - distance.clamp(-leap.dead, leap.dead);
        let step = (stride.part * beyond).clamp(-leap.down, stride.up);
        (step != 0.0).then(|| ended.window * libm::exp(step))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, ms, signals};
    use super::*;

    const BASE: Nanos = 40_000_000;

    /// What a flow at 2000 packets/s has averaged after so many periods of 100 ms with 4 ms of queue.
    fn averaged(periods: usize) -> Leap {
        let mut leap = Leap::default();
        (0..periods).for_each(|_| leap.end_period(&signals(2000.0, 4.0), 0.1, ms(50.0)));
        leap
    }

    fn to(leap: Leap, signals: &Signals, srtt: f64, window: f64) -> Option<f64> {
        let ended = Ended { length: ms(30.0), srtt: ms(srtt), window, used: true, ..Ended::default() };
        leap.window(&Rules::default(), BASE, false, &ended, signals)
    }

    /// Where a flow leaps to that has just left slow start, with 50 ms of round trip.
    fn young(leap: Leap, queue: f64, window: f64) -> Option<f64> {
        let ended = Ended { length: ms(30.0), srtt: ms(50.0), window, used: true, ..Ended::default() };
        leap.window(&Rules::default(), BASE, true, &ended, &signals(2000.0, queue))
    }

    #[test]
    fn the_average_is_a_mean_at_first_and_follows_the_last_second() {
        let mut leap = averaged(1);
        leap.end_period(&signals(2000.0, 2.0), 0.1, ms(50.0));
        close(leap.queue, 0.003);
        let mut leap = averaged(20);
        leap.end_period(&signals(2000.0, 2.0), 0.1, ms(50.0));
        close(leap.queue, 0.0038);
        // Five round trips, where those are longer.
        leap.end_period(&signals(2000.0, 1.8), 0.1, ms(300.0));
        close(leap.queue, 0.0038 - 0.002 / 15.0);
    }

    #[test]
    fn a_flow_leaps_once_it_can_tell() {
        let now = signals(2000.0, 4.0);
        assert!(to(averaged(9), &now, 50.0, 300.0).is_none() && to(averaged(11), &now, 50.0, 300.0).is_some());
        assert!(to(averaged(11), &now, 150.0, 300.0).is_none(), "eight round trips are 1.2 s");
        assert!(to(averaged(13), &now, 150.0, 300.0).is_some());
    }

    #[test]
    fn a_queue_of_others_and_losses_say_nothing() {
        let fast = signals(5000.0, 4.0); // 2.5 ms are wanted
        assert!(to(averaged(11), &fast, 50.0, 300.0).is_some());
        let faster = signals(9000.0, 4.0); // 1.73 ms
        assert_eq!(to(averaged(11), &faster, 50.0, 300.0), None);
        let lossy = |loss| Signals { loss, ..signals(2000.0, 4.0) };
        assert!(to(averaged(11), &lossy(0.002), 50.0, 300.0).is_some());
        assert_eq!(to(averaged(11), &lossy(0.0021), 50.0, 300.0), None);
    }

    #[test]
    fn half_of_the_way_beyond_what_is_left_alone() {
        let (rules, now) = (Rules::default(), signals(2000.0, 4.0));
        let fair = rules.resting_window(0.040, 0.004);
        let at = |distance: f64| to(averaged(11), &now, 50.0, fair * distance.exp()).map(|to| (to / fair).ln());
        close(at(1.0).unwrap(), 0.65);
        close(at(-0.6).unwrap(), -0.45);
        assert_eq!((at(0.29), at(-0.29)), (None, None));
        close(at(-3.0).unwrap(), -2.8);
        close(at(3.0).unwrap(), 2.3);
    }

    #[test]
    fn what_waits_on_the_way_back_is_in_flight_too() {
        let now = signals(2000.0, 4.0);
        let leaps = |back: f64, window: f64| {
            let (srtt, back) = (ms(50.0 + back), ms(back));
            let ended = Ended { length: ms(30.0), srtt, back, window, used: true, ..Ended::default() };
            averaged(20).window(&Rules::default(), BASE, false, &ended, &now)
        };
        // 40 and 4 ms, and as much again.
        close(leaps(44.0, 600.0).unwrap() / leaps(0.0, 300.0).unwrap(), 2.0);
    }

    #[test]
    fn after_slow_start_a_flow_leaps_sooner_and_farther() {
        assert!(young(averaged(4), 4.0, 300.0).is_none() && young(averaged(6), 4.0, 300.0).is_some());
        let fair = Rules::default().resting_window(0.040, 0.004);
        let at = |distance: f64| young(averaged(6), 4.0, fair * distance.exp()).map(|to| (to / fair).ln());
        close(at(1.0).unwrap(), 1.0 - 0.75 * 0.7);
        close(at(-0.5).unwrap(), -0.5 + 0.75 * 0.2);
        assert_eq!((at(0.29), at(-0.29)), (None, None));
        close(at(-3.0).unwrap(), -2.3);
        close(at(3.0).unwrap(), 2.3);
    }

    #[test]
    fn to_a_small_window_everybody_leaps_alike() {
        // 8 ms are what flows of 774 packets/s want: 37 packets.
        let (mut leap, now) = (Leap::default(), signals(2000.0, 8.0));
        (0..6).for_each(|_| leap.end_period(&now, 0.1, ms(50.0)));
        assert_eq!(young(leap, 8.0, 300.0), None);
        (0..6).for_each(|_| leap.end_period(&now, 0.1, ms(50.0)));
        assert_eq!(young(leap, 8.0, 300.0), to(leap, &now, 50.0, 300.0));
        assert!(young(leap, 8.0, 300.0).is_some());
    }
}
