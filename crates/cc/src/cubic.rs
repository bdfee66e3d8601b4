//! CUBIC: as in RFC 9438 with the slow start of `HyStart++` (RFC 9406), or as Linux has it.

use crate::newreno::halvings;
use crate::window_use::WindowUse;
use crate::{
    Ack, AnyController, ClassicHyStart, Congestion, Connection, Controller, HandOver, HyStart, HyStartPhase,
    INITIAL_WINDOW, MIN_RTO, Nanos, Parameter, Rtt, Scheme, Signal, Successor, Values,
};

/// Growth per round trip in Linux while no loss has shown where the cubic should be flat (`cnt` at most 20).
const BLIND_GROWTH: f64 = 0.05;

/// Constants of CUBIC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CubicConfig {
    /// Scale C of the cubic, in segments/s³ (RFC 9438 §5.1).
    pub c: f64,
    /// Part of the window that is kept after congestion (§4.6).
    pub beta: f64,
    /// Give up more of the window when the path seems to have shrunk (§4.7).
    pub fast_convergence: bool,
    /// `HyStart++` in the initial slow start (§4.10 recommends it); otherwise that of RFC 5681.
    pub hystart: bool,
    /// As Linux does it (`net/ipv4/tcp_cubic.c`) where that is not what the RFC says; see [`Cubic`].
    pub linux: bool,
}

impl CubicConfig {
    /// What RFC 9438 recommends, with the slow start of `HyStart++` (RFC 9406).
    pub const RFC_9438: Self = Self { c: 0.4, beta: 0.7, fast_convergence: true, hystart: true, linux: false };

    /// The same constants as Linux has them: `net/ipv4/tcp_cubic.c`, with its own slow start.
    pub const LINUX: Self = Self { linux: true, ..Self::RFC_9438 };
}

/// CUBIC as a scheme: as Linux has it, unless set.
pub(crate) const SCHEME: Scheme = Scheme {
    name: "cubic",
    title: "CUBIC",
    kind: "classic",
    year: 2008,
    reference: "Ha, Rhee and Xu 2008; RFC 9438; Linux",
    parameters: &[
        Parameter::switch("hystart", CubicConfig::LINUX.hystart, "leave slow start before the queue overflows"),
        Parameter::switch("linux", CubicConfig::LINUX.linux, "as Linux does it; off: RFC 9438 with HyStart++"),
        Parameter::switch(
            "fast_convergence",
            CubicConfig::LINUX.fast_convergence,
            "give up more of the window when the path has shrunk",
        ),
        Parameter {
            name: "beta",
            default: CubicConfig::LINUX.beta,
            min: 0.1,
            max: 0.95,
            unit: "1",
            doc: "part of the window kept after congestion",
        },
        Parameter {
            name: "c",
            default: CubicConfig::LINUX.c,
            min: 0.001,
            max: 1000.0,
            unit: "packets/s^3",
            doc: "scale of the cubic window growth",
        },
    ],
    build,
};

fn build(values: &Values<'_>, mss: u32) -> AnyController {
    let config = CubicConfig {
        c: values.get("c"),
        beta: values.get("beta"),
        fast_convergence: values.switch("fast_convergence"),
        hystart: values.switch("hystart"),
        linux: values.switch("linux"),
    };
    AnyController::Cubic(Cubic::new(config, mss))
}

/// CUBIC: the window is a cubic function of the time since the last congestion, flat where that happened.
///
/// Windows are segments as `f64`, in the notation of RFC 9438. Where the RFC leaves a choice:
///
/// * the reduction starts from the flight (§4.6), but never from more than the window;
/// * slow start outside the initial one, whose threshold is known, is that of RFC 5681, counted in bytes;
/// * after an idle period longer than a retransmission timeout the window restarts as in RFC 5681 §4.1 and the next
///   congestion avoidance begins a new epoch; pauses, however short, and application-limited times shift it (§5.8);
/// * in the Reno-friendly region an acknowledgement never shrinks the window to `W_est`;
/// * marks (RFC 3168) reduce the window as losses do, but down to one segment (§4.6).
///
/// Linux departs from it in these ways, as far as a flow shows them:
///
/// * slow start, the initial one and later ones, ends by the older `HyStart` ([`ClassicHyStart`]), once until the next timeout;
/// * idle for more than a retransmission timeout, the window is halved with each that has passed, three quarters of it are the
///   slow-start threshold at least, and the epoch goes on;
/// * the window grows for a whole flight once it held the sender back, and in slow start from half of it in flight
///   (`tcp_is_cwnd_limited`; §5.8: only while it does);
/// * the epoch is shifted when a packet leaves and no other is in flight, by the time since the one before, round trip and all
///   (`CA_EVENT_TX_START`; §5.8: by all time in which the window is not used);
/// * until the first loss, and the first after a timeout, the window grows by at least 5 % in a round trip;
/// * marks leave two segments at least, as losses do;
/// * an undone reduction brings back window and threshold, not the cubic: it is flat at that window (§4.9: all of it);
/// * the reduction starts from the window (RFC 9438 §4.6 says flight);
/// * the cubic is looked at the smallest round-trip time ahead (§4.2: the smoothed one);
/// * the Reno-friendly window grows by α at all sizes (§4.3: by 1 above the previous window), and is approached within
///   a round trip.
#[derive(Clone, Debug)]
pub struct Cubic {
    config: CubicConfig,
    /// Payload bytes in a segment.
    mss: f64,
    /// Reno-friendly growth in segments per round trip (§4.3).
    alpha: f64,
    state: State,
    /// Before the last reduction, for when it turns out to have been spurious (§4.9).
    undo: Option<State>,
    /// How far the window is used (`linux`).
    usage: WindowUse,
    hystart: HyStart,
    classic: ClassicHyStart,
    /// It has ended a slow start since the last timeout, and does not look at another one (`linux`).
    found: bool,
    /// Nothing has been acknowledged since the last timeout.
    timed_out: bool,
    /// The window was last in use: when the newest acknowledgement came, or the newest packet left (`linux`).
    last_used: Nanos,
    rto: Nanos,
}

/// Windows in segments.
#[derive(Clone, Copy, Debug)]
struct State {
    cwnd: f64,
    ssthresh: f64,
    /// Window at the last congestion, possibly lowered by fast convergence; 0 when it is not known.
    w_max: f64,
    /// Window when `ssthresh` was last set.
    cwnd_prior: f64,
    /// The present stage of congestion avoidance, from its first acknowledgement.
    epoch: Option<Epoch>,
}

#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// Later than the true start by the time that the sender did not use its window.
    start: Nanos,
    /// Window at which the cubic is flat: `w_max`, or the one at the start where that was larger …
    origin: f64,
    /// … and the seconds until it is there.
    k: f64,
    /// Window that Reno would have.
    w_est: f64,
    /// No loss has shown yet how large the window may be.
    blind: bool,
}

impl Epoch {
    /// Without a `w_max` to return to (after `HyStart++` or a timeout, §4.8 and §4.10) the cubic is flat at the present
    /// window and turns up at once.
    #[cold]
    fn begin(now: Nanos, cwnd: f64, w_max: f64, c: f64) -> Self {
        let origin = w_max.max(cwnd);
        Self { start: now, blind: w_max == 0.0, origin, k: libm::cbrt((origin - cwnd) / c), w_est: cwnd }
    }
}

impl Cubic {
    /// A connection that begins, with segments of `mss` payload bytes (at least 1).
    pub fn new(config: CubicConfig, mss: u32) -> Self {
        let mss = mss.max(1);
        Self {
            config,
            mss: f64::from(mss),
            alpha: 3.0 * (1.0 - config.beta) / (1.0 + config.beta),
            state: State {
                cwnd: f64::from(INITIAL_WINDOW),
                ssthresh: f64::INFINITY,
                w_max: 0.0,
                cwnd_prior: 0.0,
                epoch: None,
            },
            undo: None,
            usage: WindowUse::default(),
            hystart: HyStart::new(mss, false),
            classic: ClassicHyStart::default(),
            found: false,
            timed_out: false,
            last_used: 0,
            rto: Rtt::default().retransmission_timeout(MIN_RTO),
        }
    }

    /// Goes on in congestion avoidance from a window in bytes that was found by other means: the cubic is flat there.
    pub fn continue_from(&mut self, window: u64) {
        let window = (window as f64 / self.mss).max(2.0);
        self.state = State { cwnd: window, ssthresh: window, w_max: window, cwnd_prior: window, epoch: None };
    }

    /// Window in segments, a real number.
    pub fn window(&self) -> f64 {
        self.state.cwnd
    }

    /// Gives the window another value, in segments, from outside; all else stays as it is. That is what a socket option of
    /// Orca's kernel does.
    pub fn set_window(&mut self, segments: f64) {
        self.state.cwnd = segments;
    }

    /// Slow-start threshold in segments, infinite before the first congestion.
    pub fn ssthresh(&self) -> f64 {
        self.state.ssthresh
    }

    /// `W_max` in segments: where the cubic is flat; `None` while it is not known.
    pub fn w_max(&self) -> Option<f64> {
        (self.state.w_max > 0.0).then_some(self.state.w_max)
    }

    /// When the present stage of congestion avoidance began, later by the pauses in it; `None` outside of one.
    pub(crate) fn epoch_start(&self) -> Option<Nanos> {
        self.state.epoch.as_ref().map(|epoch| epoch.start)
    }

    /// Whether the window may grow, by how far it is used (`linux`).
    pub(crate) fn may_grow(&self) -> bool {
        self.usage.allows_growth(self.cwnd(), self.state.cwnd < self.state.ssthresh)
    }

    /// Whether the flow uses enough of its window for it to grow.
    #[inline]
    fn is_used(&mut self, ack: &Ack) -> bool {
        if !self.config.linux {
            return ack.cwnd_limited;
        }
        let cwnd = self.cwnd();
        self.usage.on_ack(ack, cwnd, self.mss as u64);
        self.may_grow()
    }

    /// Slow start (§4.10). Returns the acknowledged bytes that are left for congestion avoidance.
    fn slow_start(&mut self, ack: &Ack, used: bool, acked: f64, rtt: &Rtt) -> f64 {
        let state = &mut self.state;
        if self.config.linux {
            let looks = self.config.hystart && !self.found;
            if looks && self.classic.on_ack(ack, state.cwnd, self.mss, rtt.smoothed()) {
                self.found = true;
                state.ssthresh = state.cwnd;
                return acked;
            }
        } else if self.config.hystart && state.ssthresh == f64::INFINITY {
            let growth = self.hystart.on_ack(ack);
            if self.hystart.phase() == HyStartPhase::Done {
                state.ssthresh = state.cwnd;
                state.cwnd_prior = state.cwnd;
                return acked;
            }
            if used {
                state.cwnd += growth as f64 / self.mss;
            }
            return 0.0;
        }
        if !used {
            return 0.0;
        }
        let room = state.ssthresh - state.cwnd;
        let segments = acked / self.mss;
        if segments < room {
            state.cwnd += segments;
            return 0.0;
        }
        state.cwnd = state.ssthresh;
        acked - room * self.mss
    }

    /// Congestion avoidance (§4.2 to §4.5).
    #[inline]
    fn avoid_congestion(&mut self, ack: &Ack, acked: f64, rtt: &Rtt) {
        let CubicConfig { c, linux, .. } = self.config;
        let State { cwnd, w_max, cwnd_prior, epoch, .. } = &mut self.state;
        let epoch = epoch.get_or_insert_with(|| Epoch::begin(ack.now, *cwnd, *w_max, c));
        if !linux {
            *w_max = epoch.origin; // §4.8 and §4.10; in Linux only losses show it
        }
        let w_cubic = |t: f64| c * (t - epoch.k) * (t - epoch.k) * (t - epoch.k) + epoch.origin;
        let t = (ack.now - epoch.start) as f64 * 1e-9;
        let ahead = if linux { rtt.min().unwrap_or(0) } else { rtt.smoothed() } as f64 * 1e-9;
        // Part of a window, and so of a round trip, that this acknowledgement covers.
        let part = (acked / (*cwnd * self.mss)).min(1.0);

        let alpha = if epoch.w_est >= *cwnd_prior && !linux { 1.0 } else { self.alpha };
        let w_est = epoch.w_est + alpha * part;
        if w_cubic(t) < w_est && !linux {
            *cwnd = cwnd.max(w_est);
        } else {
            let mut target = w_cubic(t + ahead);
            if linux {
                let least = if epoch.blind { (1.0 + BLIND_GROWTH) * *cwnd } else { 0.0 };
                target = target.max(w_est).max(least);
            }
            *cwnd += (target.max(*cwnd).min(1.5 * *cwnd) - *cwnd) * part;
        }
        epoch.w_est = w_est;
    }

    /// Remembers the state, then sets `w_max` (§4.7) and `ssthresh` (§4.6). Returns `ssthresh` without its floor.
    fn reduce(&mut self, flight_size: u64) -> f64 {
        self.undo = Some(self.state);
        let CubicConfig { beta, fast_convergence, linux, .. } = self.config;
        let state = &mut self.state;
        let shrinking = fast_convergence && state.cwnd < state.w_max;
        state.w_max = if shrinking { state.cwnd * (1.0 + beta) / 2.0 } else { state.cwnd };
        state.cwnd_prior = state.cwnd;
        state.epoch = None;
        let flight = if linux { f64::INFINITY } else { flight_size as f64 / self.mss };
        let reduced = beta * state.cwnd.min(flight);
        state.ssthresh = reduced.max(2.0);
        reduced
    }
}

impl Controller for Cubic {
    #[inline]
    fn on_sent(&mut self, now: Nanos, bytes: u64, in_flight: u64) {
        // Before this, nothing was in flight: a pause, however short, in which no window was used (§5.8).
        let pause = in_flight == bytes;
        if pause && let Some(epoch) = &mut self.state.epoch {
            epoch.start = (epoch.start + now.saturating_sub(self.last_used)).min(now);
        }
        if pause || self.config.linux {
            self.last_used = now;
        }
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        let unused = ack.now.saturating_sub(self.last_used);
        if !self.config.linux {
            self.last_used = ack.now;
        }
        self.rto = rtt.retransmission_timeout(MIN_RTO);
        self.timed_out &= ack.acked == 0;
        let used = self.is_used(ack);
        if ack.hole_open {
            return;
        }
        let mut acked = ack.acked as f64;
        if self.state.cwnd < self.state.ssthresh {
            acked = self.slow_start(ack, used, acked, rtt);
            if acked <= 0.0 {
                return;
            }
        }
        if ack.in_recovery {
            return;
        }
        if used {
            self.avoid_congestion(ack, acked, rtt);
        } else if !self.config.linux
            && let Some(epoch) = &mut self.state.epoch
        {
            epoch.start = (epoch.start + unused).min(ack.now);
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        let reduced = self.reduce(event.flight_size);
        let marked = event.signal == Signal::Ecn;
        self.state.cwnd = reduced.max(if marked && !self.config.linux { 1.0 } else { 2.0 });
        if marked {
            self.undo = None;
        }
    }

    fn reduces_proportionally(&self) -> bool {
        true
    }

    fn on_timeout(&mut self, _now: Nanos, flight_size: u64) {
        // RFC 5681 §3.1: ssthresh is kept when the same data times out again.
        if !self.timed_out {
            self.reduce(flight_size);
        }
        self.state.cwnd = 1.0;
        self.state.w_max = 0.0;
        self.classic = ClassicHyStart::default();
        self.found = false;
        self.timed_out = true;
    }

    fn on_spurious_congestion(&mut self, _now: Nanos) {
        let Some(before) = self.undo.take() else { return };
        let state = &mut self.state;
        if self.config.linux {
            // Window and threshold come back (`tcp_reno_undo_cwnd`); of the cubic, what the reduction has made of it stays.
            state.cwnd = state.cwnd.max(before.cwnd);
            state.ssthresh = state.ssthresh.max(before.ssthresh).max(0.75 * before.cwnd);
        } else if state.cwnd < state.cwnd_prior {
            *state = before;
        }
    }

    fn on_idle_restart(&mut self, _now: Nanos, idle: Nanos) {
        let (restart, state) = (f64::from(INITIAL_WINDOW), &mut self.state);
        if idle <= self.rto || state.cwnd <= restart {
            return;
        }
        if self.config.linux {
            // The window is halved with every timeout that has passed; the epoch goes on.
            state.ssthresh = state.ssthresh.max(0.75 * state.cwnd);
            state.cwnd = (state.cwnd * 0.5_f64.powi(halvings(idle, self.rto).cast_signed())).max(restart);
        } else {
            state.cwnd = restart;
            state.epoch = None;
        }
    }

    #[inline]
    fn cwnd(&self) -> u64 {
        (self.state.cwnd * self.mss + 0.5) as u64
    }
}

impl Successor for Cubic {
    fn hand_over(&self) -> HandOver {
        let bytes = |segments: f64| (segments * self.mss + 0.5) as u64;
        HandOver { cwnd: self.cwnd(), ssthresh: bytes(self.state.ssthresh) }
    }

    /// Window and threshold are there, the cubic is not (`cubictcp_init`).
    fn take_over(&mut self, from: HandOver, connection: &Connection) {
        let threshold = if from.ssthresh == u64::MAX { f64::INFINITY } else { from.ssthresh as f64 / self.mss };
        self.state.cwnd = from.cwnd as f64 / self.mss;
        self.state.ssthresh = threshold;
        self.last_used = connection.now;
        self.rto = connection.rtt.retransmission_timeout(MIN_RTO);
    }
}
