//! Signs that a neighbour fills the queue: yielding does not help.
//!
//! A flow among its like that gives way sees the queue fall. Beside CUBIC or BBR it gives way until it has nothing left.

use astraea_cc::{MILLISECOND, Nanos, SECOND};

use super::law;
use super::rules::{NeighbourRules, Rules};
use crate::backlog::Signals;

/// A competition that has ended.
#[derive(Clone, Copy, Debug)]
struct Past {
    ended: Nanos,
    /// Peak of the queueing delay in s.
    peak: f64,
    /// Window in packets.
    window: f64,
}

/// What speaks for a neighbour.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspicion {
    /// Time in ns for which the law has asked for less and the queue has not fallen, and its delay in s at the start.
    pressed: Nanos,
    pressed_at: f64,
    /// How much of the window, as a logarithm, was given up to a queue that stayed.
    yielded: f64,
    last_window: f64,
    /// Window in packets when the queue was last nearly empty, or slow start ended.
    reference: f64,
    /// Drains that left the queue nearly as it was, since one has emptied it.
    in_vain: u32,
    /// Drains by the time of day that did, one after the other, competitions between them or not.
    strikes_in_vain: u32,
    /// Average queueing delay in s over seconds.
    level: f64,
    past: Option<Past>,
    immune_until: Nanos,
    immunity: Nanos,
}

impl Suspicion {
    /// Time constant of the average queueing delay in s.
    const LEVEL: f64 = 3.0;
    /// A relapse needs pressure for this long or three round trips.
    const RELAPSE: Nanos = 200 * MILLISECOND;

    pub(super) fn new(rules: &Rules) -> Self {
        Self {
            pressed: 0,
            pressed_at: 0.0,
            yielded: 0.0,
            last_window: 0.0,
            reference: 0.0,
            in_vain: 0,
            strikes_in_vain: 0,
            level: 0.0,
            past: None,
            immune_until: 0,
            immunity: rules.neighbour.immunity,
        }
    }

    /// A period of this length has ended with this window in packets; `following` says that the law set it.
    pub(super) fn end_period(&mut self, rules: &Rules, length: Nanos, signals: &Signals, window: f64, following: bool) {
        if self.reference == 0.0 || self.nearly_empty(signals) {
            self.reference = window;
        }
        self.level += (signals.queue - self.level) * (length as f64 / 1e9 / Self::LEVEL).min(1.0);
        if self.nearly_empty(signals) {
            self.yielded = 0.0;
        }
        if following && self.last_window > 0.0 {
            let change = libm::log(window / self.last_window);
            if change > 0.0 {
                self.yielded = (self.yielded - change).max(0.0);
            } else if signals.backlog() > rules.wanted(signals.rate) {
                self.yielded -= change;
            }
        }
        self.last_window = window;
        if !following {
            return;
        }
        // By the queue that is there: a flow that gives way expects it to fall, which is the question.
        if law::error_now(rules, signals) < rules.neighbour.pressure {
            // A queue that falls is no sign: count again from there.
            if self.pressed == 0 || signals.queue < 0.8 * self.pressed_at {
                self.pressed_at = signals.queue;
                self.pressed = 0;
            }
            self.pressed += length;
        } else {
            self.pressed = self.pressed.saturating_sub(2 * length);
        }
    }

    fn nearly_empty(&self, signals: &Signals) -> bool {
        signals.queue < 0.2 * self.level.max(0.002)
    }

    /// The window in packets to compete with, if pressure alone is reason enough.
    pub(super) fn pressure(
        &self,
        rules: &Rules,
        now: Nanos,
        srtt: Nanos,
        signals: &Signals,
        window: f64,
    ) -> Option<f64> {
        if let Some(past) = &self.past {
            let back = signals.queue > 0.4 * past.peak && self.pressed > Self::RELAPSE.max(3 * srtt);
            if back && now - past.ended < rules.neighbour.memory {
                return Some(past.window);
            }
        }
        let longer_than = |time: Nanos, round_trips| self.pressed > time.max(round_trips * srtt);
        let pressed = longer_than(rules.neighbour.pressed, 8)
            || self.has_shrunk(rules) && longer_than(rules.neighbour.pressed_shrunk, 3);
        (pressed && now >= self.immune_until).then(|| window.max(rules.neighbour.regained * self.reference))
    }

    /// Whether anything speaks for a neighbour at all, though too little to compete: pressure, drains in vain that a flow began
    /// by itself, or a competition that ended lately.
    pub(super) fn stirs(&self, rules: &Rules, now: Nanos) -> bool {
        let lately = |past: &Past| now - past.ended < rules.neighbour.memory;
        self.pressed > 0 || self.in_vain >= rules.neighbour.drains || self.past.as_ref().is_some_and(lately)
    }

    /// A drain has emptied the queue.
    pub(super) fn emptied(&mut self) {
        (self.in_vain, self.strikes_in_vain) = (0, 0);
    }

    /// A drain has left the queue nearly as it was. The window in packets to compete with, if that is reason enough.
    pub(super) fn failed_drain(&mut self, rules: &Rules, now: Nanos) -> Option<f64> {
        self.in_vain += 1;
        let reason = self.in_vain >= rules.neighbour.drains && self.has_shrunk(rules) && now >= self.immune_until;
        reason.then_some(rules.neighbour.regained * self.reference)
    }

    /// A drain by the time of day has not emptied the queue, and may have left it nearly as it was, though all of this kind
    /// drain then; `even` says that the queue does not fall at the others' either. The window in packets to compete with, if
    /// that is reason enough. Not by what was yielded: the law rests at some rate beside any queue, and who has come down to
    /// it yields no more.
    pub(super) fn failed_strike(&mut self, rules: &Rules, now: Nanos, stayed: bool, even: bool) -> Option<f64> {
        let NeighbourRules { strikes, former, regained, .. } = rules.neighbour;
        self.strikes_in_vain = if stayed { self.strikes_in_vain + 1 } else { 0 };
        let fallen = self.reference >= former
            && libm::log(self.reference / self.last_window) > rules.neighbour.shrunk_logarithm();
        let reason = self.strikes_in_vain >= strikes && even && fallen && now >= self.immune_until;
        reason.then_some(regained * self.reference)
    }

    /// Whether much of the window was given up to a queue that stayed.
    fn has_shrunk(&self, rules: &Rules) -> bool {
        self.yielded > rules.neighbour.shrunk_logarithm()
    }

    /// A competition begins: there is nothing to suspect any more.
    pub(super) fn forget(&mut self) {
        self.pressed = 0;
    }

    /// The flow begins again, with a window that nobody's queue has made so small.
    pub(super) fn restart(&mut self) {
        (self.pressed, self.yielded, self.last_window, self.reference) = (0, 0.0, 0.0, 0.0);
        self.strikes_in_vain = 0;
    }

    /// A competition has ended with this peak of the queueing delay (s) and window (packets).
    pub(super) fn competed(&mut self, now: Nanos, confirmed: bool, peak: f64, window: f64) {
        (self.pressed, self.yielded, self.reference) = (0, 0.0, window);
        self.past = confirmed.then_some(Past { ended: now, peak, window });
        if !confirmed {
            self.immune_until = now + self.immunity;
            self.immunity = (2 * self.immunity).min(120 * SECOND);
        }
    }

    /// What looked like a competition was a longer path.
    pub(super) fn mistaken(&mut self, window: f64) {
        (self.pressed, self.reference, self.past) = (0, window, None);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, ms, signals};
    use super::*;

    const SRTT: Nanos = 50_000_000;

    struct Flow {
        rules: Rules,
        suspicion: Suspicion,
        window: f64,
    }

    impl Flow {
        /// A flow with 100 packets.
        fn new() -> Self {
            let rules = Rules::default();
            Self { rules, suspicion: Suspicion::new(&rules), window: 100.0 }
        }

        /// So many periods of 100 ms at 2777 packets/s, where ten packets are wanted, with this backlog in packets.
        fn periods(&mut self, count: usize, backlog: f64) {
            self.signals(count, &signals(Rules::REFERENCE, 1e3 * backlog / Rules::REFERENCE));
        }

        fn signals(&mut self, count: usize, signals: &Signals) {
            (0..count)
                .for_each(|_| self.suspicion.end_period(&self.rules, 100 * MILLISECOND, signals, self.window, true));
        }

        /// What pressure says at a time in ms.
        fn pressure(&self, at: f64, srtt: Nanos) -> Option<f64> {
            let signals = signals(Rules::REFERENCE, 40.0 / 2.777);
            self.suspicion.pressure(&self.rules, ms(at), srtt, &signals, self.window)
        }
    }

    #[test]
    fn pressure_that_lasts_is_a_neighbour() {
        let mut flow = Flow::new();
        flow.periods(24, 40.0);
        assert_eq!(flow.pressure(0.0, SRTT), None);
        flow.window = 50.0;
        flow.periods(2, 40.0);
        assert_eq!(flow.pressure(0.0, SRTT), Some(60.0), ".6 of the window before");
        assert_eq!(flow.pressure(0.0, 8 * SRTT), None, "eight round trips of 400 ms have to pass");
        flow.window = 70.0;
        assert_eq!(flow.pressure(0.0, SRTT), Some(70.0));
        flow.suspicion.forget();
        assert_eq!(flow.pressure(0.0, SRTT), None);
    }

    #[test]
    fn less_pressure_is_enough_once_the_window_has_shrunk() {
        let mut flow = Flow::new();
        flow.periods(3, 40.0);
        assert_eq!(flow.pressure(0.0, SRTT), None, "300 ms alone");
        flow.window = 34.0;
        flow.periods(1, 40.0);
        assert_eq!(flow.pressure(0.0, SRTT), None, "a factor of 2.94 is below 3");
        flow.window = 33.0;
        flow.periods(1, 40.0);
        assert_eq!(flow.pressure(0.0, SRTT), Some(60.0), ".6 of the window before");
        assert_eq!(flow.pressure(0.0, 4 * SRTT), None, "three round trips of 200 ms have to pass");
        flow.periods(1, 31.0); // less than .8 of 40
        assert_eq!(flow.pressure(0.0, SRTT), None, "the queue falls");
    }

    #[test]
    fn relief_counts_twice_and_a_falling_queue_begins_anew() {
        let mut flow = Flow::new();
        flow.periods(20, 40.0);
        flow.periods(5, 19.0); // an error of -0.9
        flow.periods(14, 40.0);
        assert_eq!(flow.pressure(0.0, SRTT), None, "2 s less 1 s and 1.4 s more");
        flow.periods(2, 40.0);
        assert!(flow.pressure(0.0, SRTT).is_some());
        flow.periods(1, 31.0); // less than .8 of 40
        assert_eq!(flow.pressure(0.0, SRTT), None);
    }

    #[test]
    fn a_flow_that_gives_way_fast_is_pressed_by_what_is_there() {
        let mut flow = Flow::new();
        // It expects next to nothing of the 40 packets once its own steps have had their effect.
        let yielding = Signals { ahead: 0.0, ..signals(Rules::REFERENCE, 40.0 / 2.777) };
        flow.signals(26, &yielding);
        assert_eq!(flow.pressure(0.0, SRTT), Some(100.0));
        // And a flow that grows is not pressed by what it expects.
        let mut growing = Flow::new();
        growing.signals(26, &Signals { ahead: 0.1, ..signals(Rules::REFERENCE, 10.0 / 2.777) });
        assert_eq!(growing.pressure(0.0, SRTT), None);
    }

    #[test]
    fn a_flow_that_does_not_follow_the_law_suspects_nobody() {
        let mut flow = Flow::new();
        let pressing = signals(Rules::REFERENCE, 20.0);
        (0..50).for_each(|_| flow.suspicion.end_period(&flow.rules, 100 * MILLISECOND, &pressing, 100.0, false));
        assert_eq!(flow.pressure(0.0, SRTT), None);
    }

    #[test]
    fn a_window_given_up_for_nothing_makes_failed_drains_a_sign() {
        let mut flow = Flow::new();
        assert_eq!(flow.suspicion.failed_drain(&flow.rules, 0), None, "the first");
        flow.periods(1, 15.0);
        flow.window = 34.0;
        flow.periods(1, 15.0);
        assert_eq!(flow.suspicion.failed_drain(&flow.rules, 0), None, "a factor of 2.94 is below 3");
        flow.window = 33.0;
        flow.periods(1, 15.0);
        close(flow.suspicion.failed_drain(&flow.rules, 0).unwrap(), 60.0);
        // Growth takes it back.
        flow.window = 40.0;
        flow.periods(1, 15.0);
        assert_eq!(flow.suspicion.failed_drain(&flow.rules, 0), None);
        flow.window = 20.0;
        flow.periods(1, 15.0);
        assert!(flow.suspicion.failed_drain(&flow.rules, 0).is_some());
        flow.periods(1, 0.0);
        assert_eq!(flow.suspicion.failed_drain(&flow.rules, 0), None, "the queue has emptied");
    }

    #[test]
    fn one_drain_in_vain_may_be_an_accident() {
        let mut flow = Flow::new();
        flow.periods(1, 15.0);
        flow.window = 25.0;
        flow.periods(1, 15.0);
        assert_eq!(flow.suspicion.failed_drain(&flow.rules, 0), None);
        flow.suspicion.emptied();
        assert_eq!(flow.suspicion.failed_drain(&flow.rules, 0), None, "one has emptied the queue in between");
        close(flow.suspicion.failed_drain(&flow.rules, 0).unwrap(), 60.0);
    }

    #[test]
    fn giving_way_to_a_queue_that_is_as_wanted_is_no_sign() {
        let mut flow = Flow::new();
        flow.suspicion.in_vain = 1;
        flow.periods(1, 9.0);
        flow.window = 10.0;
        flow.periods(1, 9.0);
        assert_eq!(flow.suspicion.failed_drain(&flow.rules, 0), None);
    }

    #[test]
    fn pressure_drains_in_vain_and_a_competition_stir_suspicion() {
        let mut flow = Flow::new();
        let stirs = |flow: &Flow, at: f64| flow.suspicion.stirs(&flow.rules, ms(at));
        flow.periods(1, 20.0);
        assert!(!stirs(&flow, 0.0), "an error of -1");
        flow.periods(1, 21.0);
        assert!(stirs(&flow, 0.0));
        flow.periods(1, 9.0);
        assert!(!stirs(&flow, 0.0), "relief");
        flow.suspicion.failed_drain(&flow.rules, 0);
        assert!(!stirs(&flow, 0.0), "one may be an accident");
        flow.suspicion.failed_drain(&flow.rules, 0);
        assert!(stirs(&flow, 0.0));
        flow.suspicion.emptied();
        assert!(!stirs(&flow, 0.0));
        flow.suspicion.competed(ms(1_000.0), true, 0.030, 80.0);
        assert!(stirs(&flow, 12_999.0) && !stirs(&flow, 13_000.0));
    }

    #[test]
    fn a_relapse_needs_little_pressure_for_a_while() {
        let mut flow = Flow::new();
        flow.suspicion.competed(ms(10_000.0), true, 0.030, 80.0);
        flow.periods(2, 40.0);
        assert_eq!(flow.pressure(10_200.0, SRTT), None);
        flow.periods(1, 40.0);
        assert_eq!(flow.pressure(10_300.0, SRTT), Some(80.0));
        assert_eq!(flow.pressure(10_300.0, 2 * SRTT), None, "three round trips of 100 ms have to pass");
        assert_eq!(flow.pressure(21_999.0, SRTT), Some(80.0));
        assert_eq!(flow.pressure(22_000.0, SRTT), None, "forgotten");
        let low = signals(4000.0, 11.9); // below .4 of the peak
        assert_eq!(flow.suspicion.pressure(&flow.rules, ms(10_300.0), SRTT, &low, 100.0), None);
        flow.suspicion.mistaken(100.0);
        flow.periods(3, 40.0);
        assert_eq!(flow.pressure(10_300.0, SRTT), None);
    }

    #[test]
    fn a_window_that_a_pause_has_made_small_was_not_given_up() {
        let mut flow = Flow::new();
        flow.periods(1, 15.0);
        flow.suspicion.restart();
        flow.window = 20.0;
        flow.periods(4, 40.0); // would be enough of a window that has shrunk by 3
        assert_eq!(flow.pressure(1e4, SRTT), None);
        flow.periods(22, 40.0);
        assert_eq!(flow.pressure(1e4, SRTT), Some(20.0), "nor is the window of before the aim");
    }

    #[test]
    fn strikes_in_vain_are_a_sign_where_much_of_a_window_is_gone() {
        let strike = |reference: f64, window: f64, stayed: [bool; 3]| {
            let mut flow = Flow::new();
            flow.window = reference;
            flow.periods(1, 0.0);
            flow.window = window;
            flow.periods(1, 9.0); // as wanted: nothing is yielded
            stayed.map(|stayed| flow.suspicion.failed_strike(&flow.rules, 0, stayed, true))
        };
        assert_eq!(strike(40.0, 13.0, [true, true, true]), [None, Some(24.0), Some(24.0)]);
        assert_eq!(strike(40.0, 13.0, [true, false, true]), [None; 3], "not in a row");
        assert_eq!(strike(40.0, 14.0, [true; 3]), [None; 3], "not by a factor of three");
        assert_eq!(strike(29.0, 5.0, [true; 3]), [None; 3], "one among many");
        let mut flow = Flow::new();
        flow.suspicion.competed(ms(1e3), false, 0.030, 100.0);
        flow.window = 20.0;
        flow.periods(1, 9.0);
        let found = [2e3, 3e3, 12e3].map(|now| flow.suspicion.failed_strike(&flow.rules, ms(now), true, true));
        assert_eq!(found, [None, None, Some(60.0)], "immune at first");
        assert_eq!(flow.suspicion.failed_strike(&flow.rules, ms(12e3), true, false), None, "others drain");
        flow.suspicion.emptied();
        assert_eq!(flow.suspicion.failed_strike(&flow.rules, ms(12e3), true, true), None);
    }

    #[test]
    fn suspicions_that_prove_wrong_give_immunity_for_longer_each_time() {
        let mut flow = Flow::new();
        let mut now = 0.0;
        for seconds in [10.0, 20.0, 40.0, 80.0, 120.0, 120.0] {
            flow.suspicion.competed(ms(now), false, 0.030, 100.0);
            flow.periods(30, 40.0);
            assert_eq!(flow.pressure(now + 1e3 * seconds - 1.0, SRTT), None);
            now += 1e3 * seconds;
            assert_eq!(flow.pressure(now, SRTT), Some(100.0));
        }
    }
}
