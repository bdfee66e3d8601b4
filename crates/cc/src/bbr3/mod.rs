//! BBR version 3 (draft-ietf-ccwg-bbr-06).

mod aggregation;
mod model;
mod probe_bw;
mod probe_rtt;
mod startup;
#[cfg(test)]
mod tests;
mod window;

use crate::held_back::HeldBack;
use crate::{
    Ack, AnyController, Congestion, Controller, INITIAL_WINDOW, Loss, LostPacket, MILLISECOND, Nanos, RoundCounter,
    Rtt, Scheme, Signal,
};
use aggregation::Aggregation;
use model::{Latest, LongTerm, ShortTerm, Undo};
use probe_bw::Cycle;
use probe_rtt::{MinRtt, ProbeRtt};
use startup::FullBandwidth;
use window::Repair;

/// Pacing gain of Startup, 4 ln 2 (`StartupPacingGain`).
const STARTUP_GAIN: f64 = 2.77;

/// Pacing gain of Drain (`DrainPacingGain`).
const DRAIN_GAIN: f64 = 0.5;

/// Pacing gains of `ProbeBW`: DOWN and UP; CRUISE and REFILL have 1.
const DOWN_GAIN: f64 = 0.9;
const UP_GAIN: f64 = 1.25;

/// Window in bandwidth-delay products (`DefaultCwndGain`), in UP, and in `ProbeRTT` (`ProbeRTTCwndGain`).
const CWND_GAIN: f64 = 2.0;
const UP_CWND_GAIN: f64 = 2.25;
const PROBE_RTT_CWND_GAIN: f64 = 0.5;

/// Part of the rate wanted that is paced (`PacingMarginPercent`).
const PACING_MARGIN: f64 = 0.99;

/// Round-trip time assumed for the first pacing rate (`InitPacingRate`).
const NOMINAL_RTT: Nanos = MILLISECOND;

/// BBR version 3 as a scheme.
pub(crate) const SCHEME: Scheme = Scheme {
    name: "bbr3",
    title: "BBRv3",
    kind: "model",
    year: 2023,
    reference: "Cardwell, Swett and Beshay, draft-ietf-ccwg-bbr-06",
    parameters: &[],
    build: |_, mss| AnyController::Bbr3(Bbr3::new(0, mss)),
};

/// What BBR is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bbr3State {
    /// Doubles the rate each round until the pipe is full.
    Startup,
    /// Empties the queue that `Startup` left.
    Drain,
    /// Slows down, until there is room for others.
    Down,
    /// Sends as fast as the network delivers.
    Cruise,
    /// Fills the pipe for a round, before it is probed.
    Refill,
    /// Probes for more bandwidth.
    Up,
    /// Halves what is in flight, so that the propagation delay can be seen.
    ProbeRtt,
}

impl Bbr3State {
    fn pacing_gain(self) -> f64 {
        match self {
            Self::Startup => STARTUP_GAIN,
            Self::Drain => DRAIN_GAIN,
            Self::Down => DOWN_GAIN,
            Self::Up => UP_GAIN,
            Self::Cruise | Self::Refill | Self::ProbeRtt => 1.0,
        }
    }

    fn cwnd_gain(self) -> f64 {
        match self {
            Self::Up => UP_CWND_GAIN,
            Self::ProbeRtt => PROBE_RTT_CWND_GAIN,
            _ => CWND_GAIN,
        }
    }

    /// Whether it is a state of `ProbeBW`.
    fn probes_bandwidth(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }

    /// Whether the rate or what is in flight grows in it (`IsProbingBW`).
    fn accelerates(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }
}

/// BBR version 3: a model of bandwidth and propagation delay as in version 1, and bounds that losses set.
///
/// Pinned to draft-ietf-ccwg-bbr-06 with the changes in the working group's repository up to 3 August 2026, whose names
/// stand beside the constants. Each file of this module holds the draft's pseudo-code of one part: `startup`,
/// `probe_bw`, `probe_rtt`, `model` (bounds), `aggregation`, `window`.
///
/// * Long-term bound: more than 2 % lost in a probe makes the flight at which that happened the most in flight
///   (`inflight_longterm`), at least 0.7 of the target. CRUISE leaves 15 % of it free.
/// * Short-term bounds: each round with a loss outside of a probe brings rate and flight down to what was delivered, at
///   most by 0.7; the next probe forgets it.
/// * Probes come every 2 to 3 s, or as many rounds as there are packets in the target flight, at most 62 or 63, so that
///   a Reno flow beside it could get as much. `ProbeRTT` comes every 5 s.
///
/// What the draft leaves open or a transport of single packets changes:
///
/// * The offload budget is that of QUIC, one send quantum.
/// * Discontiguous lost ranges are counted as Linux does, by acknowledgements that reveal a loss.
/// * The prior window is saved before `ProbeRTT` is entered.
/// * The transport does not know that `ProbeRTT` holds it back, see `HeldBack`; it reports a restart from idleness only
///   after a retransmission timeout without data.
/// * After a timeout, the repair lasts until what was in flight has been delivered.
/// * The pacing rate is at least one segment a second.
///
/// Marks (RFC 3168) are ignored, as in the draft.
#[derive(Clone, Debug)]
pub struct Bbr3 {
    mss: u64,
    seed: u64,
    state: Bbr3State,
    rounds: RoundCounter,
    /// Whether the present acknowledgement starts a round.
    round_start: bool,
    /// Round in which Drain began (`drain_start_round`).
    drain_start: u64,
    full_bandwidth: FullBandwidth,
    latest: Latest,
    long_term: LongTerm,
    short_term: ShortTerm,
    undo: Undo,
    cycle: Cycle,
    min_rtt: MinRtt,
    probe_rtt: ProbeRtt,
    held_back: HeldBack,
    aggregation: Aggregation,
    repair: Repair,
    /// Bandwidth that the rate is derived from, in payload bit/s (`BBR.bw`).
    bandwidth: f64,
    pacing_rate: f64,
    paced_by_rtt: bool,
    cwnd: u64,
    /// Window before the repair or `ProbeRTT` (`prior_cwnd`).
    saved_cwnd: u64,
    /// The window held the sender back in the last round or in this one.
    cwnd_limited: [bool; 2],
    delivered: u64,
    idle_restart: bool,
}

impl Bbr3 {
    /// A connection that begins, with segments of `mss` payload bytes (at least 1). `seed` and the time decide when it
    /// probes.
    pub fn new(seed: u64, mss: u32) -> Self {
        let mss = u64::from(mss.max(1));
        let mut bbr = Self {
            mss,
            seed,
            state: Bbr3State::Startup,
            rounds: RoundCounter::default(),
            round_start: false,
            drain_start: 0,
            full_bandwidth: FullBandwidth::default(),
            latest: Latest::default(),
            long_term: LongTerm::default(),
            short_term: ShortTerm::default(),
            undo: Undo::default(),
            cycle: Cycle::default(),
            min_rtt: MinRtt::default(),
            probe_rtt: ProbeRtt::default(),
            held_back: HeldBack::default(),
            aggregation: Aggregation::default(),
            repair: Repair::None,
            bandwidth: 0.0,
            pacing_rate: 0.0,
            paced_by_rtt: false,
            cwnd: u64::from(INITIAL_WINDOW) * mss,
            saved_cwnd: 0,
            cwnd_limited: [false; 2],
            delivered: 0,
            idle_restart: false,
        };
        bbr.pacing_rate = bbr.first_pacing_rate(NOMINAL_RTT);
        bbr
    }

    /// What it is doing.
    pub fn state(&self) -> Bbr3State {
        self.state
    }

    /// Largest delivery rate of this probing cycle and the one before, in payload bit/s (`max_bw`).
    pub fn max_bandwidth(&self) -> f64 {
        self.long_term.max_bandwidth()
    }

    /// Estimated propagation delay, there and back, in ns.
    pub fn min_rtt(&self) -> Option<Nanos> {
        self.min_rtt.get()
    }

    /// The most payload bytes in flight that a probe has found not to lose too much; `None` before a probe lost any
    /// (`inflight_longterm`).
    pub fn inflight_bound(&self) -> Option<u64> {
        (self.long_term.inflight < u64::MAX).then_some(self.long_term.inflight)
    }

    fn first_pacing_rate(&self, rtt: Nanos) -> f64 {
        self.paced(self.cwnd as f64 * 8e9 / rtt.max(1) as f64, STARTUP_GAIN)
    }

    fn paced(&self, bandwidth: f64, gain: f64) -> f64 {
        (bandwidth * gain * PACING_MARGIN).max(self.mss as f64 * 8.0)
    }

    /// Until the pipe is full the rate only rises.
    #[inline]
    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = self.paced(self.bandwidth, gain);
        if self.full_bandwidth.reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// Starts a round with the next packet sent (`StartRound`).
    fn start_round(&mut self) {
        self.rounds.restart(self.delivered);
    }

    fn count_round(&mut self, ack: &Ack) {
        self.round_start = self.rounds.on_ack(&ack.rate);
        if self.round_start {
            self.cycle.rounds_since_up += 1;
            self.cwnd_limited = [self.cwnd_limited[1], false];
        }
        self.cwnd_limited[1] |= ack.cwnd_limited;
    }

    fn is_cwnd_limited(&self) -> bool {
        self.cwnd_limited[0] || self.cwnd_limited[1]
    }
}

impl Controller for Bbr3 {
    #[inline]
    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        self.delivered = ack.rate.total_delivered;
        let mut ack = *ack;
        ack.rate.app_limited |= self.held_back.covers(&ack);

        // `UpdateModelAndState`.
        self.count_round(&ack);
        let loss_round = self.update_congestion_signals(&ack);
        self.update_aggregation(&ack);
        self.check_full_bandwidth(&ack);
        self.check_startup_done(&ack, loss_round);
        self.check_drain_done(&ack);
        if ack.acked > 0 {
            self.update_cycle(&ack);
        }
        self.update_min_rtt(&ack);
        self.latest.advance(&ack.rate, loss_round);
        self.bandwidth = self.max_bandwidth().min(self.short_term.bandwidth);

        // `UpdateControlParameters`.
        if !self.paced_by_rtt && rtt.has_sample() {
            self.paced_by_rtt = true;
            self.pacing_rate = self.first_pacing_rate(rtt.smoothed());
        }
        self.set_pacing_rate(self.state.pacing_gain());
        self.set_cwnd(&ack);
    }

    fn on_packet_lost(&mut self, packet: &LostPacket) {
        self.handle_lost_packet(packet);
    }

    fn on_loss(&mut self, _loss: &Loss) {
        self.latest.loss_events += 1;
    }

    fn on_congestion(&mut self, event: &Congestion) {
        if event.signal == Signal::Loss {
            self.save_cwnd();
            self.repair = Repair::Losses;
        }
    }

    fn on_timeout(&mut self, _now: Nanos, flight_size: u64) {
        self.note_loss();
        self.save_state();
        self.repair = Repair::Timeout { until: self.delivered + flight_size };
        self.cwnd = self.mss;
    }

    fn on_spurious_congestion(&mut self, _now: Nanos) {
        self.handle_spurious_loss();
    }

    fn on_idle_restart(&mut self, now: Nanos, _idle: Nanos) {
        self.idle_restart = true;
        self.aggregation.restart(now);
        if self.state.probes_bandwidth() {
            self.set_pacing_rate(1.0);
        } else if self.state == Bbr3State::ProbeRtt {
            self.check_probe_rtt_done(now);
        }
    }

    #[inline]
    fn cwnd(&self) -> u64 {
        self.cwnd
    }

    #[inline]
    fn pacing_rate(&self) -> Option<f64> {
        Some(self.pacing_rate)
    }
}
