//! What the two senders of PCC share: monitor intervals, trials in random order, and the walk that follows them.
//!
//! Pinned to PCC-Uspace master (`PCCproject/PCC-Uspace`, `src/pcc`, commit 30c2cfe), the authors' own sender. Constants
//! carry its names.

mod interval;
mod reliable;
mod trend;

use std::fmt::Debug;

use crate::{Ack, INITIAL_WINDOW, LostPacket, MILLISECOND, Nanos, Rtt, SplitMix64};

pub(crate) use interval::Measured;
use interval::{Interval, Sample};
use reliable::Reliability;
pub(crate) use trend::Trend;

/// Relative distance of a trial's rate from the central one (`kProbingStepSize`).
pub(crate) const PROBE: f64 = 0.05;

/// Pairs of trials, one above and one below the central rate each (`kNumIntervalGroupsInProbingPrimary`).
pub(crate) const PAIRS: usize = 3;

/// Round-trip time assumed before the first sample: the first rate is the initial window over it (`kInitialRtt`).
const INITIAL_RTT: Nanos = 100 * MILLISECOND;

/// Largest rate in bit/s. Not in the source, which has no bound; an application that sends nothing must not raise it
/// for ever.
const MAX_RATE: f64 = 1e12;

/// Window in products of rate and smoothed round-trip time. The source has no window: the rate decides. This one takes
/// effect when acknowledgements stay away, and bounds what is sent into an outage.
const WINDOW_PRODUCTS: f64 = 4.0;

/// Smallest window in packets: an interval needs four samples of its own.
const MIN_WINDOW: u64 = 8;

/// Which way the rate goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Up,
    Down,
}

impl Direction {
    /// 1 or -1.
    pub(crate) fn sign(self) -> f64 {
        match self {
            Self::Up => 1.0,
            Self::Down => -1.0,
        }
    }
}

/// What a sender is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PccPhase {
    /// Doubles the rate while that pays.
    Starting,
    /// Tries rates above and below the present one.
    Probing,
    /// Goes on in the direction that the trials have shown.
    Moving,
}

/// A rate in bit/s and the utility that it had.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) rate: f64,
    pub(crate) utility: f64,
}

/// The higher and the lower rate of a pair, in the order of trial.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pair(pub(crate) Outcome, pub(crate) Outcome);

impl Pair {
    /// Which of the two rates was better.
    pub(crate) fn direction(&self) -> Direction {
        if (self.0.utility > self.1.utility) == (self.0.rate > self.1.rate) { Direction::Up } else { Direction::Down }
    }

    /// The better outcome.
    pub(crate) fn better(&self) -> Outcome {
        if self.0.utility > self.1.utility { self.0 } else { self.1 }
    }

    /// How much better it was.
    pub(crate) fn gain(&self) -> f64 {
        (self.0.utility - self.1.utility).abs()
    }
}

/// What follows an interval in which the sender moved on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Step {
    /// It paid: the next rate.
    On(f64),
    /// It did not: the rate around which to try again.
    Back(f64),
    /// The rate has become as small as it may: try again around it.
    Floor,
}

/// What tells one sender of PCC from another.
pub(crate) trait Rule: Clone + Debug {
    /// Utility of what an interval showed; larger is better.
    fn utility(&mut self, measured: &Measured) -> f64;

    /// The direction in which the trials point, if enough of them do.
    fn agree(pairs: &[Pair; PAIRS]) -> Option<Direction>;

    /// The rate after trials around `rate`.
    fn first_step(&mut self, rate: f64, direction: Direction, pairs: &[Pair; PAIRS]) -> Step;

    /// The rate after one more interval in that direction; `rate` is the present one, and `latest` the outcome before.
    fn next_step(&mut self, rate: f64, direction: Direction, latest: Outcome, outcome: Outcome) -> Step;

    /// The rate while the results of an interval are on their way.
    fn waiting_rate(&self, phase: PccPhase, rate: f64, direction: Direction) -> f64;

    /// Smallest rate in bit/s, given that of two packets in a smoothed round-trip time.
    fn floor(&self, two_packets: f64) -> f64;
}

/// A sender of PCC: sends at one rate for a monitor interval, learns a round trip later what that was worth, and moves.
#[derive(Clone, Debug)]
pub(crate) struct Pcc<R> {
    pub(crate) rule: R,
    mss: u64,
    seed: u64,
    phase: PccPhase,
    /// Central rate in bit/s.
    rate: f64,
    direction: Direction,
    /// The outcome that the next one is compared with: the last that paid, while starting, in the trials or since. As in the
    /// source it is kept when the sender starts anew.
    latest: Outcome,
    /// Intervals of which the results count, in order.
    intervals: [Interval; 2 * PAIRS],
    started: usize,
    /// All intervals have been sent, and at least one result is missing.
    waiting: bool,
    /// The last acknowledgement: how regular it was shows with the next one.
    pending: Option<Sample>,
    reliability: Reliability,
    smoothed: Nanos,
    min_rtt: Nanos,
}

impl<R: Rule> Pcc<R> {
    /// A connection that begins, with segments of `mss` payload bytes. `seed` and the time decide the order of trials.
    pub(crate) fn new(rule: R, seed: u64, mss: u32) -> Self {
        let mss = u64::from(mss.max(1));
        Self {
            rule,
            mss,
            seed,
            phase: PccPhase::Starting,
            rate: u64::from(INITIAL_WINDOW) as f64 * mss as f64 * 8e9 / INITIAL_RTT as f64,
            direction: Direction::Up,
            latest: Outcome::default(),
            intervals: [Interval::default(); 2 * PAIRS],
            started: 0,
            waiting: false,
            pending: None,
            reliability: Reliability::default(),
            smoothed: 0,
            min_rtt: 0,
        }
    }

    /// What it is doing.
    pub(crate) fn phase(&self) -> PccPhase {
        self.phase
    }

    /// Central rate in bit/s.
    pub(crate) fn rate(&self) -> f64 {
        self.rate
    }

    #[inline]
    pub(crate) fn on_sent(&mut self, now: Nanos, bytes: u64) {
        if self.smoothed == 0 {
            return;
        }
        if !self.waiting && (self.started == 0 || self.intervals[self.started - 1].is_over(now)) {
            let wanted = if self.phase == PccPhase::Probing { 2 * PAIRS } else { 1 };
            if self.started < wanted { self.begin(now) } else { self.waiting = true }
        }
        if !self.waiting {
            self.intervals[self.started - 1].on_sent(now, bytes);
        }
    }

    fn begin(&mut self, now: Nanos) {
        let rate =
            if self.phase == PccPhase::Probing { self.rate * (1.0 + self.trial(now) * PROBE) } else { self.rate };
        self.intervals[self.started] = Interval::new(rate, self.min_rtt, self.phase == PccPhase::Starting);
        self.started += 1;
    }

    /// 1 or -1: a coin for the first trial of a pair, the other side for the second.
    fn trial(&self, now: Nanos) -> f64 {
        match self.started.checked_sub(1) {
            Some(last) if last % 2 == 0 => (self.rate - self.intervals[last].rate()).signum(),
            // The time tells apart flows of the same seed.
            _ if SplitMix64::new(self.seed ^ now).below(2) == 1 => 1.0,
            _ => -1.0,
        }
    }

    pub(crate) fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        let Some(sample) = ack.rtt else { return };
        let first = self.smoothed == 0;
        self.smoothed = rtt.smoothed().max(1);
        if first && sample < INITIAL_RTT {
            self.set_rate(self.rate * INITIAL_RTT as f64 / sample.max(1) as f64);
        }
        self.min_rtt = rtt.min().unwrap_or(sample);
        let next =
            Sample { now: ack.now, sent_at: ack.sent_at, bytes: ack.acked, rtt: sample, smoothed: self.smoothed };
        if let Some(pending) = self.pending.replace(next) {
            let reliable = self.reliability.judge(&pending, &next);
            for interval in &mut self.intervals[..self.started] {
                interval.on_ack(&pending, reliable, self.smoothed, ack.hole_open);
            }
            self.evaluate();
        }
    }

    pub(crate) fn on_packet_lost(&mut self, packet: &LostPacket) {
        for interval in &mut self.intervals[..self.started] {
            interval.on_lost(packet.sent_at, packet.bytes, self.smoothed);
        }
    }

    /// Everything in flight is taken to be lost; the intervals concerned show it.
    pub(crate) fn on_timeout(&mut self) {
        self.pending = None;
        for interval in &mut self.intervals[..self.started] {
            interval.on_timeout(self.smoothed);
        }
    }

    /// Once all results are there: decides, and begins anew with the next packet.
    fn evaluate(&mut self) {
        let intervals = &self.intervals[..self.started];
        if self.started == 0 || !intervals.iter().all(Interval::is_complete) {
            return;
        }
        let started = std::mem::take(&mut self.started);
        self.waiting = false;
        if self.intervals[..started].iter().any(Interval::is_void) {
            return;
        }
        let mut outcomes = [Outcome::default(); 2 * PAIRS];
        for (outcome, interval) in outcomes.iter_mut().zip(&self.intervals[..started]) {
            *outcome = Outcome { rate: interval.rate(), utility: self.rule.utility(&interval.measured(self.mss)) };
        }
        match self.phase {
            PccPhase::Starting if outcomes[0].utility > self.latest.utility => {
                self.latest = outcomes[0];
                self.set_rate(2.0 * self.rate);
            }
            PccPhase::Starting => {
                self.set_rate(0.5 * self.rate);
                self.phase = PccPhase::Probing;
            }
            PccPhase::Probing => self.decide(&outcomes, started),
            PccPhase::Moving => {
                let step = self.rule.next_step(self.rate, self.direction, self.latest, outcomes[0]);
                if !matches!(step, Step::Back(_)) {
                    self.latest = outcomes[0];
                }
                self.take(step);
            }
        }
    }

    fn decide(&mut self, outcomes: &[Outcome; 2 * PAIRS], started: usize) {
        let mut pairs = [Pair::default(); PAIRS];
        for (pair, two) in pairs.iter_mut().zip(outcomes.chunks_exact(2)) {
            *pair = Pair(two[0], two[1]);
        }
        // An application that sends little may leave some trials out.
        let direction = if started == 2 * PAIRS { R::agree(&pairs) } else { None };
        if let Some(direction) = direction {
            self.direction = direction;
            let last = pairs.iter().rfind(|pair| pair.direction() == direction);
            self.latest = last.map_or(self.latest, Pair::better);
            let step = self.rule.first_step(self.rate, direction, &pairs);
            self.take(step);
        }
        // At the floor there is nothing below to try. Who has just decided to go there tries around it first.
        let tries = direction.is_some() && self.phase == PccPhase::Probing;
        if !tries && self.rate <= self.floor() {
            self.phase = PccPhase::Starting;
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::On(rate) => {
                self.set_rate(rate);
                self.phase = PccPhase::Moving;
            }
            Step::Back(rate) => {
                self.set_rate(rate);
                self.phase = PccPhase::Probing;
            }
            Step::Floor => {
                self.set_rate(0.0);
                self.phase = PccPhase::Probing;
            }
        }
    }

    fn floor(&self) -> f64 {
        self.rule.floor(2.0 * self.mss as f64 * 8e9 / self.smoothed.max(1) as f64).min(MAX_RATE)
    }

    fn set_rate(&mut self, rate: f64) {
        self.rate = rate.clamp(self.floor(), MAX_RATE);
    }

    /// Rate at which the present packet leaves, in bit/s.
    #[inline]
    pub(crate) fn pacing_rate(&self) -> f64 {
        if self.waiting {
            self.rule.waiting_rate(self.phase, self.rate, self.direction)
        } else if self.started > 0 {
            self.intervals[self.started - 1].rate()
        } else {
            self.rate
        }
    }

    /// Window in payload bytes.
    #[inline]
    pub(crate) fn cwnd(&self) -> u64 {
        if self.smoothed == 0 {
            return u64::from(INITIAL_WINDOW) * self.mss;
        }
        let product = self.rate * self.smoothed as f64 / 8e9;
        ((WINDOW_PRODUCTS * product) as u64).max(MIN_WINDOW * self.mss)
    }
}

/// A [`Controller`] around a [`Pcc`], for a type with a field `pcc`.
macro_rules! controller {
    ($name:ty) => {
        impl Controller for $name {
            #[inline]
            fn on_sent(&mut self, now: Nanos, bytes: u64, _in_flight: u64) {
                self.pcc.on_sent(now, bytes);
            }

            #[inline]
            fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
                self.pcc.on_ack(ack, rtt);
            }

            fn on_packet_lost(&mut self, packet: &LostPacket) {
                self.pcc.on_packet_lost(packet);
            }

            // Only the utility says what a loss means.
            fn on_congestion(&mut self, _event: &Congestion) {}

            fn on_timeout(&mut self, _now: Nanos, _flight_size: u64) {
                self.pcc.on_timeout();
            }

            #[inline]
            fn cwnd(&self) -> u64 {
                self.pcc.cwnd()
            }

            #[inline]
            fn pacing_rate(&self) -> Option<f64> {
                Some(self.pcc.pacing_rate())
            }
        }
    };
}
pub(crate) use controller;

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOR: f64 = 1e6;

    /// Trials that all agree are followed by this step.
    #[derive(Clone, Debug)]
    struct Scripted(Step);

    impl Rule for Scripted {
        fn utility(&mut self, _measured: &Measured) -> f64 {
            0.0
        }

        fn agree(pairs: &[Pair; PAIRS]) -> Option<Direction> {
            let direction = pairs[0].direction();
            pairs.iter().all(|pair| pair.direction() == direction).then_some(direction)
        }

        fn first_step(&mut self, _rate: f64, _direction: Direction, _pairs: &[Pair; PAIRS]) -> Step {
            self.0
        }

        fn next_step(&mut self, _rate: f64, _direction: Direction, _latest: Outcome, _outcome: Outcome) -> Step {
            self.0
        }

        fn waiting_rate(&self, _phase: PccPhase, rate: f64, _direction: Direction) -> f64 {
            rate
        }

        fn floor(&self, _two_packets: f64) -> f64 {
            FLOOR
        }
    }

    /// A sender that tries rates around `rate`, and what it does once they agree.
    fn probing(rate: f64, step: Step) -> Pcc<Scripted> {
        let mut pcc = Pcc::new(Scripted(step), 1, 1000);
        pcc.rate = rate;
        pcc.phase = PccPhase::Probing;
        pcc.latest = Outcome { rate, utility: 5.0 };
        pcc
    }

    /// Trials of which the higher rate was the better one in so many pairs.
    fn trials(up: usize) -> [Outcome; 2 * PAIRS] {
        std::array::from_fn(|index| match (index % 2, index / 2 < up) {
            (0, _) => Outcome { rate: 0.95, utility: 2.0 },
            (_, true) => Outcome { rate: 1.05, utility: 3.0 },
            (_, false) => Outcome { rate: 1.05, utility: 1.0 },
        })
    }

    #[test]
    fn a_round_without_a_decision_at_the_floor_starts_anew() {
        let mut pcc = probing(FLOOR, Step::On(FLOOR));
        pcc.decide(&trials(1), 2 * PAIRS);
        assert_eq!((pcc.phase(), pcc.rate(), pcc.latest.utility), (PccPhase::Starting, FLOOR, 5.0));
        let mut pcc = probing(FLOOR, Step::On(FLOOR));
        pcc.decide(&trials(3), 2 * PAIRS - 1);
        assert_eq!(pcc.phase(), PccPhase::Starting, "a trial was left out");
        let mut pcc = probing(1.1 * FLOOR, Step::On(FLOOR));
        pcc.decide(&trials(1), 2 * PAIRS);
        assert_eq!(pcc.phase(), PccPhase::Probing, "there is something below to try");
    }

    #[test]
    fn a_decision_for_the_floor_is_followed_by_trials_around_it() {
        let mut pcc = probing(1.1 * FLOOR, Step::Floor);
        pcc.decide(&trials(1), 2 * PAIRS);
        pcc.decide(&trials(0), 2 * PAIRS);
        assert_eq!((pcc.phase(), pcc.rate(), pcc.latest.utility), (PccPhase::Probing, FLOOR, 2.0));
        let mut pcc = probing(1.1 * FLOOR, Step::On(FLOOR));
        pcc.decide(&trials(0), 2 * PAIRS);
        assert_eq!(pcc.phase(), PccPhase::Starting, "it has arrived there exactly");
    }
}
