//! BBR version 1, as in Linux 6.1 (draft-cardwell-iccrg-bbr-congestion-control-00).

mod aggregation;
mod cycle;
mod full_pipe;
mod policer;
mod probe_rtt;
mod recovery;
#[cfg(test)]
mod tests;
mod window;

use crate::{
    Ack, AnyController, Congestion, Controller, INITIAL_WINDOW, Loss, MILLISECOND, Nanos, Rtt, Scheme, Signal,
};
use crate::{Connection, HandOver, RoundCounter, SplitMix64, Successor, WindowedExtremum};
use aggregation::Aggregation;
use cycle::Cycle;
use full_pipe::FullPipe;
use policer::{Observation, Policer};
use probe_rtt::{MinRtt, ProbeRtt};
use recovery::Recovery;

/// Gain of STARTUP for rate and window, 2/ln 2: the rate doubles each round trip (`bbr_high_gain`).
const HIGH_GAIN: f64 = 2.885;

/// Gain of DRAIN: empties in one round trip the queue that STARTUP built (`bbr_drain_gain`).
const DRAIN_GAIN: f64 = 1.0 / HIGH_GAIN;

/// Window in bandwidth-delay products in `PROBE_BW`: room for delayed and bunched acknowledgements (`bbr_cwnd_gain`).
const CWND_GAIN: f64 = 2.0;

/// Window of the maximum filter of the delivery rate in round trips: one gain cycle and two more (`bbr_bw_rtts`).
const BANDWIDTH_ROUNDS: u64 = 10;

/// Part of the rate wanted that is paced, so that queues shrink on average (`bbr_pacing_margin_percent`).
const PACING_MARGIN: f64 = 0.99;

/// Round-trip time assumed for the first pacing rate (`bbr_init_pacing_rate_from_rtt`).
const NOMINAL_RTT: Nanos = MILLISECOND;

/// BBR as a scheme.
pub(crate) const SCHEME: Scheme = Scheme {
    name: "bbr",
    title: "BBR",
    kind: "model",
    year: 2016,
    reference: "Cardwell et al. 2016; draft-cardwell-iccrg-bbr-congestion-control-00; Linux 6.1",
    parameters: &[],
    build: |_, mss| AnyController::Bbr(Bbr::new(0, mss)),
};

/// What BBR is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BbrMode {
    /// Doubles the rate each round trip until the delivery rate stops growing.
    Startup,
    /// Empties the queue that `Startup` left.
    Drain,
    /// Cycles the pacing gain around 1 to probe for bandwidth and to yield it.
    ProbeBw,
    /// Holds four packets in flight for a moment, so that the propagation delay can be seen.
    ProbeRtt,
}

/// BBR version 1: paces at the largest delivery rate of ten round trips, and keeps at most two bandwidth-delay products in
/// flight.
///
/// Pinned to Linux 6.1, `net/ipv4/tcp_bbr.c`, whose names stand beside the constants; where it differs from the draft:
/// the pacing margin of 1 %, the room for aggregated acknowledgements, an end of the 0.75 phase after one round trip at
/// the latest, the policer mode, and that only a strictly smaller sample renews the minimum round-trip time (since Linux
/// 5.11; otherwise a lone flow on a path with exact delays would never probe it).
///
/// What a transport of single packets changes, since its contract differs from the kernel's:
///
/// * Packets leave one by one when pacing allows, so what is in flight is in the network
///   (`bbr_packets_in_net_at_edt` corrects for bursts handed to the pacer ahead of their time). The budget of three
///   bursts in the window is kept, since the window and the ends of phases depend on it.
/// * The restart from idleness begins when the transport reports it, which is after a retransmission timeout without
///   data; the kernel does this after any application-limited pause that empties the path.
/// * Acknowledgements are not told apart by whether the receiver delayed them.
/// * A repair of losses lasts until as much has been delivered as was in flight when the last of them was found.
/// * The pacing rate is at least one segment a second.
/// * The window is saved before `PROBE_RTT` is entered; the kernel enters first, so that an earlier, larger one stays.
///
/// Marks (RFC 3168) are ignored.
#[derive(Clone, Debug)]
pub struct Bbr {
    mss: u64,
    seed: u64,
    mode: BbrMode,
    rounds: RoundCounter,
    /// Delivery rate in bit/s, by round.
    bandwidth: WindowedExtremum<f64>,
    full_pipe: FullPipe,
    cycle: Cycle,
    min_rtt: MinRtt,
    probe_rtt: ProbeRtt,
    aggregation: Aggregation,
    policer: Policer,
    recovery: Recovery,
    pacing_gain: f64,
    cwnd_gain: f64,
    /// Payload bit/s.
    pacing_rate: f64,
    /// A round-trip sample has been turned into a pacing rate.
    paced_by_rtt: bool,
    /// Payload bytes.
    cwnd: u64,
    /// What another scheme would find as its slow-start threshold, in payload bytes: the bandwidth-delay product at the end of
    /// STARTUP (`bbr_check_drain`). It decides nothing here.
    ssthresh: u64,
    /// Payload bytes declared lost since the last acknowledgement.
    lost: u64,
    /// Payload bytes delivered so far.
    delivered: u64,
    /// The sender was idle, and nothing has been delivered since.
    idle_restart: bool,
}

impl Bbr {
    /// A connection that begins, with segments of `mss` payload bytes (at least 1). `seed` and the time decide at which
    /// phase a gain cycle starts.
    pub fn new(seed: u64, mss: u32) -> Self {
        let mss = u64::from(mss.max(1));
        let cwnd = u64::from(INITIAL_WINDOW) * mss;
        let mut bbr = Self {
            mss,
            seed,
            mode: BbrMode::Startup,
            rounds: RoundCounter::default(),
            bandwidth: WindowedExtremum::max(BANDWIDTH_ROUNDS),
            full_pipe: FullPipe::default(),
            cycle: Cycle::default(),
            min_rtt: MinRtt::default(),
            probe_rtt: ProbeRtt::default(),
            aggregation: Aggregation::default(),
            policer: Policer::default(),
            recovery: Recovery::default(),
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            pacing_rate: 0.0,
            paced_by_rtt: false,
            cwnd,
            ssthresh: u64::MAX,
            lost: 0,
            delivered: 0,
            idle_restart: false,
        };
        bbr.pacing_rate = bbr.first_pacing_rate(NOMINAL_RTT);
        bbr
    }

    /// What it is doing.
    pub fn mode(&self) -> BbrMode {
        self.mode
    }

    /// Estimated bandwidth of the path in payload bit/s; 0 before the first sample.
    pub fn bandwidth(&self) -> f64 {
        self.policer.rate().unwrap_or_else(|| self.max_bandwidth())
    }

    /// Estimated propagation delay, there and back, in ns.
    pub fn min_rtt(&self) -> Option<Nanos> {
        self.min_rtt.get()
    }

    /// Whether it takes the path to be policed, and sends at the rate that passed over the last intervals.
    pub fn is_policed(&self) -> bool {
        self.policer.rate().is_some()
    }

    fn max_bandwidth(&self) -> f64 {
        self.bandwidth.get().unwrap_or(0.0)
    }

    /// Takes the delivery-rate sample; true if it starts a round.
    #[inline]
    fn update_bandwidth(&mut self, ack: &Ack, app_limited: bool, lost: u64) -> bool {
        let Some(rate) = ack.rate.bit_rate() else { return false };
        let round_start = self.rounds.on_ack(&ack.rate);
        if round_start {
            self.recovery.end_conservation();
        }
        let (now, delivered) = (ack.now, ack.rate.total_delivered);
        let seen = Observation { now, delivered, lossy: lost > 0, round_start, app_limited };
        if self.policer.on_sample(&seen, self.mode == BbrMode::ProbeBw) {
            self.start_cycle(ack.now);
        }
        // An application that sends little says nothing about a path that has carried more.
        if !app_limited || rate >= self.max_bandwidth() {
            self.bandwidth.update(self.rounds.count(), rate);
        }
        round_start
    }

    /// Enters `PROBE_BW` at a random phase of the cycle.
    fn start_cycle(&mut self, now: Nanos) {
        self.mode = BbrMode::ProbeBw;
        // The time tells apart flows of the same seed, which never see the same acknowledgement.
        self.cycle.start(now, &mut SplitMix64::new(self.seed ^ now));
    }

    #[inline]
    fn update_cycle(&mut self, ack: &Ack, lost: u64) {
        if self.mode == BbrMode::ProbeBw && self.phase_is_over(ack, lost) {
            self.cycle.advance(ack.now);
        }
    }

    fn phase_is_over(&self, ack: &Ack, lost: u64) -> bool {
        let full_length = self.min_rtt.get().is_some_and(|rtt| self.cycle.elapsed(ack.now) > rtt);
        let in_flight = ack.in_flight + ack.acked + lost;
        if self.pacing_gain > 1.0 {
            full_length && (lost > 0 || in_flight >= self.inflight(self.pacing_gain))
        } else if self.pacing_gain < 1.0 {
            full_length || in_flight <= self.inflight(1.0)
        } else {
            full_length
        }
    }

    fn check_drain(&mut self, ack: &Ack) {
        if self.mode == BbrMode::Startup && self.full_pipe.reached() {
            self.mode = BbrMode::Drain;
            self.ssthresh = self.inflight(1.0);
        }
        if self.mode == BbrMode::Drain && ack.in_flight <= self.inflight(1.0) {
            self.start_cycle(ack.now);
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            BbrMode::Startup => (HIGH_GAIN, HIGH_GAIN),
            BbrMode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            BbrMode::ProbeBw if self.is_policed() => (1.0, CWND_GAIN),
            BbrMode::ProbeBw => (self.cycle.gain(), CWND_GAIN),
            BbrMode::ProbeRtt => (1.0, 1.0),
        };
    }

    fn first_pacing_rate(&self, rtt: Nanos) -> f64 {
        self.paced(self.cwnd as f64 * 8e9 / rtt.max(1) as f64, HIGH_GAIN)
    }

    fn paced(&self, bandwidth: f64, gain: f64) -> f64 {
        (bandwidth * gain * PACING_MARGIN).max(self.mss as f64 * 8.0)
    }

    /// Until the pipe is full the rate only rises, so that early samples of short bursts do not slow STARTUP down.
    #[inline]
    fn set_pacing_rate(&mut self, gain: f64) {
        let rate = self.paced(self.bandwidth(), gain);
        if self.full_pipe.reached() || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }
}

impl Controller for Bbr {
    #[inline]
    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        let lost = std::mem::take(&mut self.lost);
        self.delivered = ack.rate.total_delivered;
        let app_limited = ack.rate.app_limited | self.probe_rtt.held_back.covers(ack);

        let round_start = self.update_bandwidth(ack, app_limited, lost);
        if ack.acked > 0 && ack.rate.interval > 0 {
            let (bandwidth, cwnd) = (self.bandwidth(), self.cwnd);
            self.aggregation.on_ack(ack, bandwidth, cwnd, self.mss, round_start);
        }
        self.update_cycle(ack, lost);
        if round_start && !app_limited {
            self.full_pipe.on_round(self.max_bandwidth());
        }
        self.check_drain(ack);
        self.update_min_rtt(ack, round_start);
        self.update_gains();

        if !self.paced_by_rtt && rtt.has_sample() {
            self.paced_by_rtt = true;
            self.pacing_rate = self.first_pacing_rate(rtt.smoothed());
        }
        self.set_pacing_rate(self.pacing_gain);
        self.set_cwnd(ack, lost);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.lost += loss.lost;
        self.policer.on_loss(loss.lost);
    }

    fn on_congestion(&mut self, event: &Congestion) {
        if event.signal == Signal::Loss {
            self.save_cwnd();
            self.recovery.on_loss(self.delivered, event.flight_size);
        }
    }

    fn on_timeout(&mut self, now: Nanos, flight_size: u64) {
        self.save_cwnd();
        self.recovery.on_timeout(self.delivered, flight_size);
        self.full_pipe.forget_bandwidth();
        // The kernel treats it as the end of a round with a loss.
        self.policer.on_loss(flight_size);
        let seen = Observation { now, delivered: self.delivered, lossy: true, round_start: true, app_limited: false };
        if self.policer.on_sample(&seen, self.mode == BbrMode::ProbeBw) {
            self.start_cycle(now);
        }
        self.cwnd = self.mss;
    }

    fn on_spurious_congestion(&mut self, now: Nanos) {
        self.recovery.undo();
        self.full_pipe.restart();
        self.policer.reset(now, self.delivered);
    }

    fn on_idle_restart(&mut self, now: Nanos, _idle: Nanos) {
        self.idle_restart = true;
        self.aggregation.restart(now);
        match self.mode {
            // No more than the bandwidth: a burst at 1.25 would serve nobody.
            BbrMode::ProbeBw => self.set_pacing_rate(1.0),
            BbrMode::ProbeRtt => self.check_probe_rtt_done(now),
            _ => {}
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

impl Successor for Bbr {
    fn hand_over(&self) -> HandOver {
        HandOver { cwnd: self.cwnd, ssthresh: self.ssthresh }
    }

    /// Begins with STARTUP from the window that is there, and with the smallest round-trip time of the connection (`bbr_init`). A
    /// repair that goes on is one that begins; there is no earlier window to return to after it.
    fn take_over(&mut self, from: HandOver, connection: &Connection) {
        let Connection { now, rtt, delivered, in_flight, in_recovery } = connection;
        (self.cwnd, self.delivered) = (from.cwnd, *delivered);
        self.rounds.restart(*delivered);
        self.aggregation.restart(*now);
        self.policer.reset(*now, *delivered);
        self.min_rtt = MinRtt::known(rtt.min(), *now);
        self.paced_by_rtt = rtt.has_sample();
        self.pacing_rate = self.first_pacing_rate(if rtt.has_sample() { rtt.smoothed() } else { NOMINAL_RTT });
        if *in_recovery {
            self.recovery.on_loss(*delivered, *in_flight);
        }
    }
}
