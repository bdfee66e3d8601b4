//! The rules around the law: finding the base round-trip time, and living with neighbours of other kinds.

use astraea_cc::{Ack, Congestion, MILLISECOND, Nanos, Rtt};

use super::base_loss::BaseLoss;
use super::beat::Beat;
use super::compete::Compete;
use super::crowd::Crowd;
use super::doubt::Doubt;
use super::drain::{Cause, Drain, Stage};
use super::hurry::Hurry;
use super::law::{self, Law};
use super::leap::Leap;
use super::newcomer::Newcomer;
use super::rules::Rules;
use super::suspicion::Suspicion;
use super::tick::Tick;
use crate::backlog::Signals;

/// What a flow is doing.
#[derive(Clone, Debug)]
enum Mode {
    /// The law and the policy set the window.
    Follow,
    /// The window is held down to see the base round-trip time; a test interrupts a competition.
    Drain(Drain, Option<Box<Compete>>),
    /// A neighbour fills the queue.
    Compete(Box<Compete>),
}

/// State of the rules of one flow.
#[derive(Clone, Debug)]
pub(super) struct Guide {
    rules: Rules,
    mss: u32,
    law: Law,
    mode: Mode,
    suspicion: Suspicion,
    doubt: Doubt,
    base_loss: BaseLoss,
    crowd: Crowd,
    tick: Tick,
    beat: Beat,
    newcomer: Newcomer,
    leap: Leap,
    /// Base round-trip time in ns, when a sample last came near it, and what it was when the last period ended.
    base: Nanos,
    touched: Nanos,
    last_base: Nanos,
    /// How far above the base at most, in ns beyond noise, a sample comes near it: the queue may be shorter than [`near`].
    room: Nanos,
    /// Average queueing delay in s.
    average: f64,
    /// Whether it has risen since the last drain began, and when that was over.
    risen: bool,
    drained: Nanos,
    last_drain: Nanos,
    /// That and `average` when the drain under way began.
    undisturbed: (Nanos, f64),
    /// Drains in a row that the clock asked for and that did not show the base.
    failures: u32,
}

/// What a period means for the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// The law and the policy change it.
    Follow,
    /// It becomes this many packets.
    Hold(f64),
    /// It stays, or acknowledgements change it.
    Leave,
}

/// A period that has ended, as the rules see it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ended {
    /// When it ended.
    pub(super) now: Nanos,
    /// How long it was.
    pub(super) length: Nanos,
    /// Its smallest round-trip time, if an acknowledgement came.
    pub(super) low: Option<Nanos>,
    /// Smoothed round-trip time.
    pub(super) srtt: Nanos,
    /// The queue in ns on the way back, which is in `srtt` but neither in `low` nor in the base.
    pub(super) back: Nanos,
    /// Window in packets.
    pub(super) window: f64,
    /// Whether it was used.
    pub(super) used: bool,
    /// Packets acknowledged, and found lost.
    pub(super) acked: f64,
    pub(super) lost: f64,
}

/// Round-trip times in ns that are not told apart.
const NOISE: Nanos = MILLISECOND / 5;

/// The longest round-trip time in ns that counts as this base: it is a fiftieth and .2 ms longer.
pub(super) fn near(base: Nanos) -> Nanos {
    base.saturating_add(base / 50).saturating_add(NOISE)
}

impl Guide {
    pub(super) fn new(rules: &Rules, mss: u32, clock: Nanos) -> Self {
        Self {
            rules: *rules,
            mss,
            law: Law::default(),
            mode: Mode::Follow,
            suspicion: Suspicion::new(rules),
            doubt: Doubt::new(rules),
            base_loss: BaseLoss::default(),
            crowd: Crowd::default(),
            tick: Tick::new(clock),
            beat: Beat::default(),
            newcomer: Newcomer::default(),
            leap: Leap::default(),
            base: Nanos::MAX,
            touched: 0,
            last_base: 0,
            room: Nanos::MAX,
            average: 0.0,
            risen: false,
            drained: 0,
            last_drain: 0,
            undisturbed: (0, 0.0),
            failures: 0,
        }
    }

    /// Base round-trip time in ns as it is known.
    pub(super) fn base(&self) -> Nanos {
        self.base
    }

    /// Whether packets have been lost for some seconds although the queue is shorter than the law wants it: the buffer is too
    /// small for what all want.
    pub(super) fn is_cramped(&self, signals: &Signals) -> bool {
        self.crowd.loses(&self.rules.crowd) && law::wants_more(&self.rules, signals)
    }

    /// Whether a neighbour's queue is fought for.
    pub(super) fn is_competing(&self) -> bool {
        matches!(self.mode, Mode::Compete(_))
    }

    /// The law's step for these signals, as a relative change of the window (packets) per round trip.
    pub(super) fn step(&self, signals: &Signals, window: f64) -> f64 {
        self.law.step(&self.rules, signals, window)
    }

    /// Takes a sample of the round-trip time.
    pub(super) fn on_sample(&mut self, now: Nanos, rtt: Nanos) {
        let longest = self.base.saturating_add(self.room).saturating_add(NOISE);
        if rtt <= near(self.base).min(longest) {
            self.touched = now;
        }
        self.base = self.base.min(rtt);
    }

    /// A period of slow start has ended with this smallest round-trip time. Returns the window in packets with which slow
    /// start ends, if the others have drained and had less than this flow.
    pub(super) fn arrives(&mut self, low: Option<Nanos>, back: Nanos, window: f64) -> Option<f64> {
        let lowered = if self.base_fell() { self.fit_in(window, back, false) } else { None };
        if lowered.is_none() {
            self.newcomer.arrives(&self.rules, low, window);
        }
        lowered
    }

    /// Whether the base round-trip time has fallen since the last period ended, by more than noise.
    fn base_fell(&mut self) -> bool {
        let before = std::mem::replace(&mut self.last_base, self.base);
        before.saturating_sub(self.base) as f64 > 1e9 * Rules::SHORTEST_QUEUE
    }

    /// A period has ended with these signals.
    pub(super) fn end_period(&mut self, ended: &Ended, signals: &Signals) -> Verdict {
        let Ended { now, length, low, srtt, back, window, used, .. } = *ended;
        let seconds = length as f64 / 1e9;
        self.room = (0.25e9 * self.rules.wanted_delay(signals.rate)) as Nanos;
        let fell = self.base_fell();
        let rise = signals.queue - self.average;
        self.average += rise * (seconds / self.rules.drain.average).min(1.0);
        let following = matches!(self.mode, Mode::Follow);
        self.law.excess = self.base_loss.excess(&self.rules.losses, signals.rate);
        self.law.certain = self.base_loss.certain();
        self.law.crowding = self.crowd.crowding(&self.rules.crowd, signals.rate, self.law.certain);
        self.base_loss.end_period(&self.rules.losses, ended, signals.loss);
        self.crowd.end_period(&self.rules.crowd, length, signals.loss);
        if used {
            self.law.end_period(&self.rules, signals, ended, following);
        } else {
            self.law.hurry.pause();
        }
        self.suspicion.end_period(&self.rules, length, signals, window, following);
        if following {
            self.doubt.end_period(&self.rules, signals, length);
            if used {
                self.leap.end_period(signals, seconds, srtt);
            }
        }
        self.newcomer.end_period(&self.rules, now, srtt, low, matches!(self.mode, Mode::Drain(..)));
        self.tick.end_period(now);
        let struck = self.tick.struck(self.rules.drain.tick);
        if !matches!(self.mode, Mode::Drain(..)) {
            self.beat.end_period(self.tick.phase(self.rules.drain.beat), srtt, signals.queue);
            if struck {
                self.beat.strikes();
            }
        }
        match &mut self.mode {
            // Others have drained while this flow did not: it knows as much as they do.
            Mode::Follow => match fell.then(|| self.fit_in(window, back, false)).flatten() {
                Some(lowered) => Verdict::Hold(lowered),
                None => self.follow(ended, signals, rise),
            },
            Mode::Drain(drain, _) => match drain.end_period(now, low, signals.spread, self.base) {
                Stage::Holding => Verdict::Leave,
                Stage::Awaiting => Verdict::Hold(drain.back),
                Stage::Watching => Verdict::Follow,
                Stage::Over => self.end_drain(ended, signals),
            },
            Mode::Compete(compete) => {
                compete.end_period(&self.rules, now, seconds, signals, window);
                // Flows of the same kind after all.
                if struck && self.beat.falls(&self.rules) {
                    let peak = compete.peak;
                    self.mode = Mode::Follow;
                    self.suspicion.competed(now, false, peak, window);
                    Verdict::Follow
                } else if let Some(delay) = compete.immovable(now, srtt, window) {
                    self.mode = Mode::Follow;
                    self.suspicion.mistaken(window);
                    self.believe(now, self.base + (delay * 1e9) as Nanos);
                    Verdict::Follow
                } else if compete.test_is_due(&self.rules, now, srtt, signals, struck) {
                    self.drain(Cause::Test, ended, signals)
                } else {
                    Verdict::Leave
                }
            }
        }
    }

    fn follow(&mut self, ended: &Ended, signals: &Signals, rise: f64) -> Verdict {
        let Ended { now, srtt, window, .. } = *ended;
        if let Some(window) = self.suspicion.pressure(&self.rules, now, srtt, signals, window) {
            return self.compete(Compete::new(now, window, self.mss).after(ended.window, signals.queue));
        }
        let rules = &self.rules.drain;
        let since = now - self.last_drain;
        let rises = rise > rules.rise.max(rules.rise_share * self.base as f64 / 1e9);
        self.risen |= rises && now - self.drained >= rules.echo + 2 * srtt;
        let together = self.risen && self.tick.struck(rules.beat) && !self.suspicion.stirs(&self.rules, now);
        let rested = since >= rules.rest.max(4 * srtt);
        let unseen = now - self.touched;
        if self.base_loss.asks(&self.rules, &self.tick, srtt, signals) {
            self.base_loss.begin(&self.rules.losses, ended);
            self.drain(Cause::Loss, ended, signals)
        } else if (together || self.tick.struck(rules.tick)) && unseen >= rules.unseen {
            self.drain(Cause::Tick, ended, signals)
        } else if rested && rises {
            self.drain(Cause::Rise, ended, signals)
        } else if rested && self.doubt.asks(srtt) {
            self.doubt.begin(self.base);
            self.drain(Cause::Doubt, ended, signals)
        } else if unseen >= rules.memory && since >= rules.memory / 2 {
            self.drain(Cause::Clock, ended, signals)
        } else if self.tick.struck(self.rules.leap.every) {
            self.leap(self.leap, ended, signals)
        } else {
            Verdict::Follow
        }
    }

    /// Leaps if what was averaged says so.
    fn leap(&mut self, averaged: Leap, ended: &Ended, signals: &Signals) -> Verdict {
        let young = self.newcomer.is_young(&self.rules, ended.now);
        match averaged.window(&self.rules, self.base, young, ended, signals) {
            Some(window) if window > ended.window || !self.suspicion.stirs(&self.rules, ended.now) => {
                self.leap = Leap::default();
                Verdict::Hold(window)
            }
            _ => Verdict::Follow,
        }
    }

    fn drain(&mut self, cause: Cause, ended: &Ended, signals: &Signals) -> Verdict {
        let mut drain = Drain::new(&self.rules, cause, ended, signals, self.base);
        let interrupted = match std::mem::replace(&mut self.mode, Mode::Follow) {
            Mode::Compete(compete) => {
                (drain.before, drain.back) = (compete.peak, compete.window());
                Some(compete)
            }
            _ => None,
        };
        self.risen = false;
        self.undisturbed = (self.last_drain, self.average);
        self.last_drain = ended.now;
        let hold = drain.hold;
        self.mode = Mode::Drain(drain, interrupted);
        Verdict::Hold(hold)
    }

    /// A drain is over. Whoever drained with all others knows the base, and what the queue was before.
    fn end_drain(&mut self, ended: &Ended, signals: &Signals) -> Verdict {
        let Mode::Drain(drain, _) = &self.mode else { return Verdict::Follow };
        let few = drain.emptied_short(&self.rules, self.base);
        let together = drain.cause == Cause::Tick && drain.emptied(self.base);
        self.drained = ended.now;
        if drain.cause == Cause::Loss {
            self.base_loss.judge(&self.rules.losses);
            self.mode = Mode::Follow;
            // That there was no queue while all held back is no reason to hurry.
            self.law.hurry.pause();
            return self.fit_in(ended.window, ended.back, false).map_or(Verdict::Follow, Verdict::Hold);
        }
        let averaged = std::mem::take(&mut self.leap);
        match self.judge(ended.now) {
            Verdict::Follow => match self.fit_in(ended.window, ended.back, few) {
                Some(window) => Verdict::Hold(window),
                None if together => self.leap(averaged, ended, signals),
                None => Verdict::Follow,
            },
            verdict => verdict,
        }
    }

    /// What a drain that is over has shown.
    fn judge(&mut self, now: Nanos) -> Verdict {
        let Mode::Drain(drain, interrupted) = std::mem::replace(&mut self.mode, Mode::Follow) else {
            return Verdict::Follow;
        };
        if drain.cause == Cause::Tick && !drain.emptied(self.base) {
            // Others have another clock, or are of another kind: it leaves nothing behind but a strike in vain, lest this flow
            // rests when they drain for a reason.
            (self.last_drain, self.average) = self.undisturbed;
            let (stayed, even) = (drain.left_all(&self.rules, self.base), self.beat.is_even(&self.rules));
            return match self.suspicion.failed_strike(&self.rules, now, stayed, even) {
                Some(window) => self.compete(Compete::new(now, window, self.mss)),
                None => self.drained_in_vain(now, &drain),
            };
        }
        self.average = 0.0;
        if let Some(mut compete) = interrupted {
            if !compete.judge(&self.rules, drain.finds_nobody(&self.rules, self.base)) {
                self.mode = Mode::Compete(compete);
                return Verdict::Leave;
            }
            self.suspicion.competed(now, compete.confirmed, drain.before, drain.back);
            self.failures = 0;
        } else if drain.cause == Cause::Doubt {
            self.doubt.judge(&self.rules, self.base);
        } else if drain.emptied(self.base) {
            self.failures = 0;
            self.suspicion.emptied();
        } else if drain.left_all(&self.rules, self.base)
            && let Some(window) = self.suspicion.failed_drain(&self.rules, now)
        {
            return self.compete(Compete::new(now, window, self.mss));
        } else if drain.cause == Cause::Rise {
            return self.drained_in_vain(now, &drain);
        } else {
            self.failures += 1;
            if self.failures >= self.rules.drain.failures {
                self.believe(now, drain.low);
            }
        }
        Verdict::Follow
    }

    /// A newcomer's window once the base is known, if it is to be another: no more than the others have, and among `few` no
    /// less.
    fn fit_in(&self, window: f64, back: Nanos, few: bool) -> Option<f64> {
        let rules = &self.rules;
        let share = self.newcomer.share(rules, self.base, back)?;
        if share < window {
            return Some(share.max(rules.newcomer_least * window));
        }
        if few && window > rules.modest { self.newcomer.raised(rules, self.base, back, window) } else { None }
    }

    /// What a drain says that did not empty the queue: perhaps that there was none.
    fn drained_in_vain(&mut self, now: Nanos, drain: &Drain) -> Verdict {
        if !drain.shows_longer_path(self.base) {
            return Verdict::Follow;
        }
        self.believe(now, drain.low);
        Verdict::Hold(drain.start)
    }

    /// The base round-trip time has become longer.
    fn believe(&mut self, now: Nanos, base: Nanos) {
        self.failures = 0;
        self.base = base;
        self.touched = now;
        self.law.hurry.forget();
    }

    fn compete(&mut self, compete: Compete) -> Verdict {
        self.suspicion.forget();
        self.beat = Beat::default();
        self.leap = Leap::default();
        let window = compete.window();
        self.mode = Mode::Compete(Box::new(compete));
        Verdict::Hold(window)
    }

    /// An acknowledgement came. Returns the window in packets while competing.
    pub(super) fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) -> Option<f64> {
        let Mode::Compete(compete) = &mut self.mode else { return None };
        compete.on_ack(ack, rtt);
        Some(compete.window())
    }

    /// Payload bytes were lost. Returns the window in packets while competing.
    pub(super) fn on_loss(&mut self, lost: u64) -> Option<f64> {
        let Mode::Compete(compete) = &mut self.mode else { return None };
        compete.on_loss(&self.rules, lost);
        Some(compete.window())
    }

    /// A round trip with losses begins. Returns the window in packets while competing.
    pub(super) fn on_congestion(&mut self, event: &Congestion) -> Option<f64> {
        match &mut self.mode {
            Mode::Follow | Mode::Drain(_, None) => None,
            Mode::Drain(drain, Some(compete)) => {
                compete.on_congestion(event);
                drain.back = compete.window();
                None
            }
            Mode::Compete(compete) => {
                compete.on_congestion(event);
                Some(compete.window())
            }
        }
    }

    /// There is data again after a pause, in which nobody could see the base.
    pub(super) fn resume(&mut self, now: Nanos) {
        self.touched = now;
        self.restart();
    }

    /// Begins again: everything in flight was lost, or nothing has been for long.
    pub(super) fn restart(&mut self) {
        self.mode = Mode::Follow;
        self.law.hurry = Hurry::default();
        self.suspicion.restart();
        self.beat = Beat::default();
        self.newcomer = Newcomer::default();
        self.leap = Leap::default();
    }
}

#[cfg(test)]
mod tests;
