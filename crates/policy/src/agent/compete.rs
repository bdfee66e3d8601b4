//! Competing with a neighbour that fills the queue whatever this flow does.
//!
//! Beside senders that yield to loss the flow is CUBIC; beside senders that do not (BBR), a CUBIC window would shrink to
//! nothing, so it holds its own: one packet more a round trip, a fraction of a packet less for each that is lost.

use astraea_cc::{Ack, Congestion, Controller, Cubic, CubicConfig, Nanos, Rtt, SECOND};

use super::loss_intervals::LossIntervals;
use super::rules::Rules;
use crate::backlog::Signals;

/// A competition under way.
#[derive(Clone, Debug)]
pub(super) struct Compete {
    mss: f64,
    cubic: Cubic,
    /// Window in packets beside senders that do not yield to loss.
    steadfast: Option<f64>,
    /// Largest queueing delay in s, forgotten over seconds.
    pub(super) peak: f64,
    losses: LossIntervals,
    tested: Nanos,
    /// Whether a test has shown that somebody else fills the queue.
    pub(super) confirmed: bool,
    /// Tests in a row since then that found nobody.
    alone: u32,
    plateau: Plateau,
}

/// A queueing delay (s) that has stayed the same since a time, and the window in packets then.
#[derive(Clone, Copy, Debug)]
struct Plateau {
    delay: f64,
    since: Nanos,
    window: f64,
}

impl Compete {
    /// Time constant of the peak in s.
    const PEAK: f64 = 4.0;
    /// A test is due early when the queue has fallen to this share of its peak: others may have left, or be testing.
    const FALLING: f64 = 0.85;

    /// A competition that begins with a window in packets.
    pub(super) fn new(now: Nanos, window: f64, mss: u32) -> Self {
        let mut compete = Self {
            mss: f64::from(mss),
            cubic: Cubic::new(CubicConfig::RFC_9438, mss),
            steadfast: None,
            peak: 0.0,
            losses: LossIntervals::default(),
            tested: now,
            confirmed: false,
            alone: 0,
            plateau: Plateau { delay: 0.0, since: now, window },
        };
        compete.be_cubic(window);
        compete
    }

    /// The same after this window in packets and with this queueing delay in s: if the larger window does not move it, the
    /// delay is the path's own.
    pub(super) fn after(mut self, window: f64, delay: f64) -> Self {
        (self.plateau.window, self.plateau.delay) = (window, delay);
        self
    }

    fn be_cubic(&mut self, window: f64) {
        self.steadfast = None;
        self.cubic.continue_from((window * self.mss) as u64);
    }

    /// Window in packets.
    pub(super) fn window(&self) -> f64 {
        self.steadfast.unwrap_or(self.cubic.cwnd() as f64 / self.mss)
    }

    /// A period of `seconds` has ended.
    pub(super) fn end_period(&mut self, rules: &Rules, now: Nanos, seconds: f64, signals: &Signals, window: f64) {
        self.peak = (self.peak * (1.0 - seconds / Self::PEAK)).max(signals.queue);
        self.losses.deliver(signals.rate * seconds);
        let Plateau { delay, .. } = self.plateau;
        if signals.queue < delay - 0.0005 || signals.queue > delay * 1.01 + 0.0005 {
            self.plateau = Plateau { delay: signals.queue, since: now, window };
        }
        // Losses that come far more often than among flows that yield to them are of senders that do not mind.
        let unyielding = self.losses.mean().is_some_and(|mean| window * window > rules.neighbour.lossy * mean);
        match self.steadfast {
            None if unyielding => self.steadfast = Some(window),
            Some(steadfast) if !unyielding => self.be_cubic(steadfast),
            _ => {}
        }
    }

    /// The queueing delay in s that has not moved although the window has: it is the path's own, there is no neighbour.
    pub(super) fn immovable(&self, now: Nanos, srtt: Nanos, window: f64) -> Option<f64> {
        let Plateau { delay, since, window: before } = self.plateau;
        let moved = libm::log(window / before).abs() > 0.15;
        (moved && now - since > SECOND.max(4 * srtt)).then_some(delay)
    }

    /// Whether it is time to test, in which case the next test counts from now.
    pub(super) fn test_is_due(
        &mut self,
        rules: &Rules,
        now: Nanos,
        srtt: Nanos,
        signals: &Signals,
        struck: bool,
    ) -> bool {
        let since = now - self.tested;
        let falling = signals.queue < Self::FALLING * self.peak && since > (2 * SECOND).max(8 * srtt);
        let (time, round_trips) =
            if self.confirmed { (rules.neighbour.test, 12) } else { (rules.neighbour.first_test, 6) };
        let due = struck || falling || since > time.max(round_trips * srtt);
        if due {
            self.tested = now;
        }
        due
    }

    /// A test has found nobody, or somebody. Returns whether the competition is over.
    pub(super) fn judge(&mut self, rules: &Rules, nobody: bool) -> bool {
        if nobody {
            self.alone += 1;
        } else {
            (self.confirmed, self.alone) = (true, 0);
        }
        nobody && (!self.confirmed || self.alone >= rules.neighbour.gone)
    }

    /// An acknowledgement moves the window.
    pub(super) fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        match &mut self.steadfast {
            Some(_) if ack.rate.app_limited => {}
            Some(window) => *window += ack.acked as f64 / self.mss / *window,
            None => self.cubic.on_ack(ack, rtt),
        }
    }

    /// Payload bytes were lost.
    pub(super) fn on_loss(&mut self, rules: &Rules, lost: u64) {
        if let Some(window) = &mut self.steadfast {
            *window = (*window - rules.neighbour.per_loss * lost as f64 / self.mss).max(2.0);
        }
    }

    /// A round trip with losses begins.
    pub(super) fn on_congestion(&mut self, event: &Congestion) {
        self.losses.lose();
        if self.steadfast.is_none() {
            self.cubic.on_congestion(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use astraea_cc::{RateSample, Signal};

    use super::super::testing::{MSS, ack, close, congestion, ms, signals};
    use super::*;

    const SRTT: Nanos = 50_000_000;

    fn rules() -> Rules {
        Rules::default()
    }

    /// A competition that begins at 0 with 100 packets.
    fn compete() -> Compete {
        Compete::new(0, 100.0, MSS)
    }

    /// Two intervals of so many packets between losses, and a period.
    fn lossy(compete: &mut Compete, packets: f64, window: f64) {
        for _ in 0..2 {
            compete.losses.deliver(packets);
            compete.losses.lose();
        }
        compete.end_period(&rules(), 0, 0.03, &signals(2000.0, 20.0), window);
    }

    #[test]
    fn it_is_cubic_beside_senders_that_yield() {
        let mut compete = compete();
        close(compete.window(), 100.0);
        // 100 x 100 / 2600 is below 4.
        lossy(&mut compete, 2600.0, 100.0);
        compete.on_loss(&rules(), 4 * u64::from(MSS));
        close(compete.window(), 100.0);
        compete.on_congestion(&congestion(Signal::Loss));
        close(compete.window(), 70.0);
    }

    #[test]
    fn it_holds_its_own_beside_others() {
        let mut compete = compete();
        lossy(&mut compete, 2400.0, 100.0);
        compete.on_congestion(&congestion(Signal::Loss));
        close(compete.window(), 100.0);
        compete.on_loss(&rules(), 4 * u64::from(MSS));
        close(compete.window(), 99.0);
        compete.on_ack(&ack(0, 99, None), &Rtt::default());
        close(compete.window(), 100.0);
        let limited = RateSample { app_limited: true, ..RateSample::default() };
        compete.on_ack(&Ack { rate: limited, ..ack(0, 99, None) }, &Rtt::default());
        close(compete.window(), 100.0); // what is not used does not grow
        compete.on_loss(&rules(), 10_000 * u64::from(MSS));
        close(compete.window(), 2.0);
        lossy(&mut compete, 2400.0, 2.0);
        compete.on_congestion(&congestion(Signal::Loss));
        assert!(compete.steadfast.is_none(), "CUBIC again once losses are rare for its window");
    }

    #[test]
    fn one_loss_says_nothing_about_neighbours() {
        let mut compete = compete();
        compete.on_congestion(&congestion(Signal::Loss));
        compete.end_period(&rules(), 0, 0.03, &signals(2000.0, 20.0), 100.0);
        close(compete.window(), 70.0);
        compete.on_congestion(&congestion(Signal::Loss));
        compete.end_period(&rules(), 0, 0.03, &signals(2000.0, 20.0), 49.0);
        assert_eq!(compete.steadfast, Some(49.0), "60 packets between two");
    }

    #[test]
    fn a_neighbour_that_was_found_is_gone_when_two_tests_in_a_row_find_nobody() {
        let mut compete = compete();
        assert!(compete.clone().judge(&rules(), true), "nobody ever was");
        let found = [false, true, false, true, true].map(|nobody| compete.judge(&rules(), nobody));
        assert_eq!(found, [false, false, false, false, true]);
    }

    #[test]
    fn the_peak_is_forgotten_over_seconds() {
        let mut compete = compete();
        compete.end_period(&rules(), 0, 0.03, &signals(2000.0, 50.0), 100.0);
        close(compete.peak, 0.05);
        compete.end_period(&rules(), 0, 0.4, &signals(2000.0, 1.0), 100.0);
        close(compete.peak, 0.045);
    }

    #[test]
    fn tests_are_due_after_a_while_or_when_the_queue_falls() {
        let full = signals(2000.0, 50.0);
        let due = |compete: &mut Compete, at: f64, srtt: Nanos, queue: f64| {
            compete.test_is_due(&rules(), ms(at), srtt, &signals(2000.0, queue), false)
        };
        let mut first = compete();
        assert!(!due(&mut first, 700.0, SRTT, 50.0));
        assert!(due(&mut first, 701.0, SRTT, 50.0));
        assert!(!due(&mut first, 1401.0, SRTT, 50.0), "counted from the last");
        let mut far = compete();
        assert!(!due(&mut far, 1800.0, 6 * SRTT, 50.0), "six round trips of 300 ms");
        assert!(due(&mut far, 1801.0, 6 * SRTT, 50.0));
        let mut confirmed = compete();
        confirmed.confirmed = true;
        confirmed.end_period(&rules(), 0, 0.03, &full, 100.0);
        assert!(!due(&mut confirmed, 5000.0, SRTT, 50.0));
        assert!(!due(&mut confirmed, 2001.0, SRTT, 42.6), "above .85 of the peak");
        assert!(!due(&mut confirmed, 2000.0, SRTT, 42.4), "too early");
        assert!(due(&mut confirmed, 2001.0, SRTT, 42.4));
        assert!(due(&mut confirmed, 7002.0, SRTT, 50.0));
    }

    #[test]
    fn a_delay_that_the_window_it_begins_with_does_not_move_is_the_paths() {
        let mut compete = compete().after(60.0, 0.02);
        compete.end_period(&rules(), ms(30.0), 0.03, &signals(2000.0, 20.2), 100.0);
        assert_eq!(compete.immovable(ms(1001.0), SRTT, 100.0), Some(0.02));
        compete.end_period(&rules(), ms(60.0), 0.03, &signals(2000.0, 24.0), 100.0);
        assert_eq!(compete.immovable(ms(1061.0), SRTT, 100.0), None, "it has moved, and the window has not since");
    }

    #[test]
    fn a_delay_that_does_not_follow_the_window_is_the_paths() {
        let mut compete = compete();
        compete.end_period(&rules(), ms(1000.0), 0.03, &signals(2000.0, 20.0), 100.0);
        // Half a millisecond and a hundredth are no move.
        compete.end_period(&rules(), ms(1500.0), 0.03, &signals(2000.0, 20.6), 110.0);
        assert_eq!(compete.immovable(ms(2000.0), SRTT, 120.0), None, "a second has to pass");
        assert_eq!(compete.immovable(ms(2001.0), SRTT, 120.0), Some(0.02));
        assert_eq!(compete.immovable(ms(2001.0), SRTT, 83.0), Some(0.02));
        assert_eq!(compete.immovable(ms(2001.0), SRTT, 110.0), None, "the window has hardly moved");
        assert_eq!(compete.immovable(ms(2001.0), 6 * SRTT, 120.0), None, "four round trips have to pass");
        compete.end_period(&rules(), ms(1800.0), 0.03, &signals(2000.0, 20.8), 110.0);
        assert_eq!(compete.immovable(ms(2001.0), SRTT, 150.0), None);
    }
}
