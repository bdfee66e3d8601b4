//! One flow's measurements, start-up, rules and window: a controller that lacks only the policy's answers.

mod base_loss;
mod beat;
mod compete;
mod crowd;
mod doubt;
mod drain;
mod guide;
mod hurry;
mod law;
mod leap;
mod loss_intervals;
mod mean;
mod monitor;
mod newcomer;
mod rules;
mod startup;
mod suspicion;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tick;
mod way_back;

use astraea_cc::{Ack, Congestion, Controller, INITIAL_WINDOW, Loss, MILLISECOND, Nanos, Rtt, SECOND, Signal};

use crate::action;
use crate::backlog::Signals;
use crate::form::Form;
use crate::state::Measurement;
use crate::{Metadata, PolicyState};
use guide::{Ended, Guide, Verdict};
use law::Law;
use monitor::Monitor;
pub use rules::{DrainRules, LeapRules, LossRules, NeighbourRules, Rules, Stride};
use startup::{Exit, Startup};
use way_back::WayBack;

/// The law's step at these signals, as a relative change of the window per round trip, for a flow that remembers
/// nothing: on a path that keeps showing no queue it grows with time (see [`Rules::hurry`]).
pub fn law_step(rules: &Rules, signals: &Signals) -> f64 {
    Law::default().step(rules, signals, 0.0)
}

/// How a flow is driven.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgentConfig {
    /// The embedding of the policy.
    pub form: Form,
    /// What a full action does: eq. 3's alpha for the paper's form, else the relative change of the window in a period
    /// of at most a round trip.
    pub alpha: f64,
    /// Monitoring period in ns.
    pub period: Nanos,
    /// The law and the rules of the guided form.
    pub rules: Rules,
    /// Time of day on this host in ns less the controller's clock, modulo an hour: the guided form drains by it.
    pub clock: Nanos,
}

impl AgentConfig {
    /// The papers' monitoring period.
    pub const PERIOD: Nanos = 30 * astraea_cc::MILLISECOND;

    /// In ns: what is done by the time of day is done at fractions of it.
    pub const HOUR: Nanos = 3_600_000 * astraea_cc::MILLISECOND;

    /// Defaults of a form.
    pub fn new(form: Form) -> Self {
        Self { form, alpha: form.default_alpha(), period: Self::PERIOD, rules: Rules::default(), clock: 0 }
    }

    /// What a policy asks for.
    pub fn of(metadata: &Metadata) -> Self {
        Self { alpha: metadata.alpha, period: metadata.period, ..Self::new(metadata.form) }
    }

    /// What an action (clipped to -1..=1) makes of a window, for this step of the law (guided form only, as a relative
    /// change per round trip) and a smoothed round-trip time in ns. Bounds are the caller's business.
    pub fn answered(&self, window: f64, action: f64, law: f64, srtt: Nanos) -> f64 {
        let action = action.clamp(-1.0, 1.0);
        if self.form == Form::Paper {
            return action::scaled(window, action, self.alpha);
        }
        self.stepped(window, law + self.alpha * action, srtt)
    }

    /// What a period's part of a step, as a relative change per round trip, makes of a window.
    fn stepped(&self, window: f64, step: f64, srtt: Nanos) -> f64 {
        // A step is meant for a reference period; a longer round trip spreads it over its periods.
        let period = self.period as f64;
        let part = (period / Self::PERIOD as f64).min(period / srtt.max(1) as f64);
        window * libm::exp(step * part)
    }
}

/// A controller whose window is set by actions, once a monitoring period.
///
/// Whoever owns it calls [`end_period`](Agent::end_period) once a period and, if that says so, answers
/// [`state`](Agent::state) with [`act`](Agent::act).
///
/// # Start-up
///
/// Actions of a few per cent would need seconds to find the bandwidth, so a flow begins with slow start, paced at twice
/// `cwnd / srtt`. The policy takes over when eight acknowledgements in a row show a queue: their round trips exceed the
/// smallest by an eighth of it, at least 4 ms and at most 16 ms (RFC 9406 §4.2), or by [`Rules::patience`] times that in
/// the forms with a backlog state (guided: or by [`Rules::early`], if that is less), which then shrink the window to what
/// fits without the queue (guided: to [`Rules::kept`] of it). It also takes over, with half the window, at an ECN mark and
/// at a loss; in the forms with a backlog state only at one that is too heavy to be random. In the guided form, last, when
/// the others drain and had less.
///
/// # Afterwards
///
/// Losses are the policy's business: they do not change the window. A retransmission timeout collapses it to the floor
/// of two packets. From there a guided flow starts up again, and what comes back of the time before tells it nothing about
/// the path (its packets may have waited through an outage); the others leave it to the policy.
///
/// # Applications that send now and then
///
/// A window that is not used says nothing about the path, which may well show no queue (RFC 7661 §3). Once the application
/// has limited a flow, its window grows only after periods in which at least five sixths of it, but for a packet that may have
/// been lost, were in flight, and in slow start once they have been in the period under way; in the papers' form it is the
/// policy's business. (Of a flow that always has something to send
/// less is in flight while a queue falls, when it is to grow.) After a pause, each second of which halves the window, but not
/// below that of the start, slow start finds out.
#[derive(Clone, Debug)]
pub struct Agent {
    config: AgentConfig,
    mss: f64,
    /// Payload bytes, a real number.
    cwnd: f64,
    floor: f64,
    cap: f64,
    begun: bool,
    startup: Startup,
    monitor: Monitor,
    measurement: Measurement,
    signals: Signals,
    last_rtt: Nanos,
    /// When the last acknowledgement arrived.
    heard: Nanos,
    /// The last retransmission timeout.
    timed_out: Nanos,
    /// Whether the window was used in the last closed period.
    used: bool,
    /// Whether it lost packets, then, although the queue was shorter than the law wants it.
    cramped: bool,
    way_back: WayBack,
    guide: Option<Guide>,
    state: PolicyState,
}

impl Agent {
    const STARTUP_GAIN: f64 = 2.0;
    const COMPETING_GAIN: f64 = 1.25;
    /// Linux's smallest retransmission timeout.
    const SILENCE: Nanos = 200 * MILLISECOND;
    /// The part of the window that is in flight when it is used.
    const USED: f64 = 5.0 / 6.0;

    /// A flow that begins, with segments of `mss` payload bytes and a window that never grows beyond `cap` payload bytes.
    pub fn new(config: AgentConfig, mss: u32, cap: f64) -> Self {
        let guided = config.form == Form::Guided;
        let bytes = f64::from(mss);
        let floor = if guided { 0.1 } else { action::FLOOR } * bytes;
        Self {
            config,
            mss: bytes,
            cwnd: f64::from(INITIAL_WINDOW) * bytes,
            floor,
            cap: cap.max(floor),
            begun: false,
            startup: if config.form == Form::Paper {
                Startup::new(1, true)
            } else {
                Startup::new(config.rules.patience, false)
            },
            monitor: Monitor::new(bytes),
            measurement: Measurement::default(),
            signals: Signals::default(),
            last_rtt: 0,
            heard: 0,
            timed_out: 0,
            used: true,
            cramped: false,
            way_back: WayBack::default(),
            guide: guided.then(|| Guide::new(&config.rules, mss, config.clock)),
            state: PolicyState::new(config.form),
        }
    }

    /// How the flow is driven.
    pub fn config(&self) -> &AgentConfig {
        &self.config
    }

    /// Whether slow start still runs: the policy is not asked.
    pub fn is_starting(&self) -> bool {
        self.startup.is_running()
    }

    /// Window in payload bytes, not rounded.
    pub fn window(&self) -> f64 {
        self.cwnd
    }

    /// What the policy sees, shape [`Form::inputs`].
    pub fn state(&self) -> &[f32] {
        self.state.values()
    }

    /// Smoothed round-trip time in ns, 0 before the first sample.
    pub fn srtt(&self) -> Nanos {
        self.monitor.srtt()
    }

    /// What the flow measured over the last closed period.
    pub fn measurement(&self) -> &Measurement {
        &self.measurement
    }

    /// The signals of the last closed period.
    pub fn signals(&self) -> &Signals {
        &self.signals
    }

    /// Base round-trip time in ns as the flow knows it, [`Nanos::MAX`] before the first sample.
    pub fn base_rtt(&self) -> Nanos {
        self.guide.as_ref().map_or(self.monitor.shortest(), Guide::base)
    }

    /// Whether the flow competes with a neighbour of another kind, so that the policy is not asked.
    pub fn is_competing(&self) -> bool {
        self.guide.as_ref().is_some_and(Guide::is_competing)
    }

    /// Whether the law drives the flow, which has lost packets for some seconds in a buffer that is too small for what it
    /// wants.
    pub fn is_cramped(&self) -> bool {
        self.cramped && !self.is_starting() && !self.is_competing()
    }

    /// When the last acknowledgement arrived, in ns; 0 before the first.
    pub fn heard(&self) -> Nanos {
        self.heard
    }

    /// Closes the monitoring period that ends at `now`. Returns whether the policy is to be asked.
    pub fn end_period(&mut self, now: Nanos) -> bool {
        let ask = self.close_period(now);
        self.cramped = self.guide.as_ref().is_some_and(|guide| guide.is_cramped(&self.signals));
        self.monitor.note_window(self.cwnd / self.mss);
        ask
    }

    fn close_period(&mut self, now: Nanos) -> bool {
        let period = self.monitor.close(now);
        if self.guide.is_none() && period.acked == 0 && self.monitor.is_empty() {
            // The application pauses: nothing was measured. In the kernel such a period does not even end.
            return false;
        }
        self.way_back.end_period();
        self.used = self.uses(period.in_flight, period.app_limited);
        self.measurement = self.monitor.measurement(&period, self.cwnd, self.pacing_rate().unwrap_or(0.0));
        if let Some(low) = period.rtt_min {
            self.last_rtt = low;
        }
        let known = self.last_rtt > 0;
        let base = self.base_rtt();
        self.signals = self.monitor.signals(&period, self.last_rtt, base, self.cwnd / self.mss);
        match &mut self.state {
            PolicyState::Paper(state) => state.push(&self.measurement),
            PolicyState::Backlog(state) => {
                if known {
                    state.push(&self.signals);
                }
            }
        }
        let starting = self.is_starting();
        let silent = self.is_silent(now);
        let Some(guide) = &mut self.guide else { return known && !starting };
        if starting {
            if let Some(window) = guide.arrives(period.rtt_min, self.way_back.standing(), self.cwnd / self.mss) {
                self.startup.stop();
                self.set_window(window * self.mss);
            }
            return false;
        }
        if !known || silent {
            return false;
        }
        let ended = Ended {
            now,
            length: period.length,
            low: period.rtt_min,
            srtt: self.monitor.srtt(),
            back: self.way_back.standing(),
            window: self.cwnd / self.mss,
            used: self.used,
            acked: period.acked as f64 / self.mss,
            lost: period.lost as f64 / self.mss,
        };
        match guide.end_period(&ended, &self.signals) {
            Verdict::Follow => true,
            Verdict::Hold(window) => {
                self.set_window(window * self.mss);
                false
            }
            Verdict::Leave => false,
        }
    }

    /// Whether the window is used: once the application has limited the flow, by what is in flight.
    fn uses(&self, in_flight: u64, app_limited: bool) -> bool {
        !app_limited || in_flight as f64 + self.mss >= Self::USED * self.cwnd
    }

    /// Whether acknowledgements have failed to come for longer than a retransmission timeout, or than a window of less
    /// than a packet leaves between two: nothing is known of the path, and its last delay is no reason to grow.
    fn is_silent(&self, now: Nanos) -> bool {
        let srtt = self.monitor.srtt() as f64;
        let usual = 2.0 * srtt + srtt / (self.cwnd / self.mss).min(1.0);
        now.saturating_sub(self.heard) as f64 > usual.max(Self::SILENCE as f64)
    }

    /// Whether the law drives a window of so few packets that whole ones would change it by much. The pace keeps to such a
    /// window, and one packet more may be in flight: three packets for 3.7 would be a fifth less than it says.
    fn is_small(&self) -> bool {
        self.guide.is_some()
            && !self.startup.is_running()
            && !self.is_competing()
            && self.cwnd <= self.config.rules.modest * self.mss
    }

    /// Carries out an action (clipped to -1..=1) on the window.
    pub fn act(&mut self, action: f64) {
        let (config, srtt) = (&self.config, self.monitor.srtt());
        let answered = match &self.guide {
            Some(guide) => {
                let network = config.alpha * action.clamp(-1.0, 1.0);
                let step =
                    config.rules.step(guide.step(&self.signals, self.cwnd / self.mss), network, self.signals.loss);
                config.stepped(self.cwnd, step, srtt)
            }
            None => config.answered(self.cwnd, action, 0.0, srtt),
        };
        if self.config.form == Form::Paper {
            self.set_window(answered);
        } else {
            if self.used || answered < self.cwnd {
                self.set_window(answered);
            }
            self.monitor.note_window(self.cwnd / self.mss);
        }
    }

    fn set_window(&mut self, cwnd: f64) {
        self.cwnd = cwnd.clamp(self.floor, self.cap);
    }

    fn leave_startup(&mut self, exit: Exit, rtt: Option<Nanos>) {
        let base = self.base_rtt();
        let drained = rtt.filter(|rtt| *rtt > 0 && base != Nanos::MAX).map_or(1.0, |rtt| base as f64 / rtt as f64);
        match (self.config.form, exit) {
            (Form::Guided, Exit::Delay) => {
                self.set_window(self.cwnd * drained.min(1.0) * self.config.rules.kept);
            }
            (Form::Pure, Exit::Delay) => self.set_window(self.cwnd * drained.min(1.0)),
            (_, Exit::Loss) => self.set_window(self.cwnd / 2.0),
            (Form::Paper, Exit::Delay) => {}
        }
    }
}

impl Controller for Agent {
    fn on_sent(&mut self, now: Nanos, _bytes: u64, in_flight: u64) {
        if !self.begun {
            self.begun = true;
            self.monitor.begin(now);
        }
        self.monitor.on_sent(in_flight);
    }

    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        let back = if self.guide.is_some() { self.way_back.queue(ack) } else { 0 };
        let fresh = |sample: &Nanos| ack.now.saturating_sub(*sample) >= self.timed_out;
        // The round trip as it would be without a queue on the way back.
        let sample = ack.rtt.filter(fresh).map(|sample| sample.saturating_sub(back).max(1));
        self.heard = ack.now;
        self.monitor.on_ack(ack, sample, rtt.smoothed());
        if let (Some(sample), Some(guide)) = (sample, &mut self.guide) {
            guide.on_sample(ack.now, sample);
        }
        if self.startup.is_running() {
            let (in_flight, app_limited) = self.monitor.in_flight();
            if !ack.rate.app_limited && (self.config.form == Form::Paper || self.uses(in_flight, app_limited)) {
                self.set_window(self.cwnd + ack.acked as f64);
            }
            if self.config.form == Form::Guided && rtt.smoothed() > 0 {
                // A flow among many finds a queue that is enough for its rate long before a round trip shows it.
                let (rules, seconds) = (&self.config.rules, rtt.smoothed() as f64 / 1e9);
                let rate = self.cwnd / self.mss / seconds;
                self.startup.enough = (rules.early * rules.wanted_delay(rate) * 1e9) as Nanos;
            }
            let base = self.base_rtt();
            if let Some(exit) = self.startup.on_ack(ack, sample, base) {
                self.leave_startup(exit, sample);
            } else if self.cwnd >= self.cap {
                self.startup.stop();
            }
        } else if let Some(window) = self.guide.as_mut().and_then(|guide| guide.on_ack(ack, rtt)) {
            self.set_window(window * self.mss);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.monitor.on_loss(loss.lost, loss.in_flight);
        if self.startup.is_running()
            && let Some(exit) = self.startup.on_loss(loss.lost, self.mss as u64)
        {
            self.leave_startup(exit, None);
        }
        if let Some(window) = self.guide.as_mut().and_then(|guide| guide.on_loss(loss.lost)) {
            self.set_window(window * self.mss);
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        // A mark is no accident; of losses `on_loss` has judged.
        if self.startup.is_running() && event.signal == Signal::Ecn {
            self.startup.stop();
            self.leave_startup(Exit::Loss, None);
        }
        if let Some(window) = self.guide.as_mut().and_then(|guide| guide.on_congestion(event)) {
            self.set_window(window * self.mss);
        }
    }

    fn on_timeout(&mut self, now: Nanos, flight_size: u64) {
        self.monitor.on_loss(flight_size, 0);
        self.cwnd = action::FLOOR * self.mss;
        if let Some(guide) = &mut self.guide {
            guide.restart();
            self.startup.restart();
            self.timed_out = now;
        } else {
            self.startup.stop();
        }
    }

    fn on_idle_restart(&mut self, now: Nanos, idle: Nanos) {
        self.monitor.begin(now);
        let halvings = (idle / SECOND).min(60) as i32;
        if halvings == 0 {
            return;
        }
        let initial = f64::from(INITIAL_WINDOW) * self.mss;
        self.set_window(self.cwnd.min(initial.max(self.cwnd * 0.5_f64.powi(halvings))));
        self.startup.restart();
        if let Some(guide) = &mut self.guide {
            guide.resume(now);
        }
    }

    fn cwnd(&self) -> u64 {
        let room = if self.is_small() { self.mss } else { 0.0 };
        (self.cwnd + room).max(action::FLOOR * self.mss) as u64
    }

    fn pacing_rate(&self) -> Option<f64> {
        let gain = if self.startup.is_running() {
            Self::STARTUP_GAIN
        } else if self.is_competing() {
            Self::COMPETING_GAIN
        } else {
            1.0
        };
        // After an outage the average remembers the packet that waited through it: what comes back now tells more.
        let latest = if self.last_rtt > 0 { 2 * (self.last_rtt + self.way_back.standing()) } else { Nanos::MAX };
        let srtt = self.monitor.srtt().min(latest);
        (srtt > 0).then(|| gain * self.cwnd * 8e9 / srtt as f64)
    }
}
