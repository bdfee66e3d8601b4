//! `ProbeBW`: the cycle of DOWN, CRUISE, REFILL and UP.

use super::model::too_high;
use super::{Bbr3, Bbr3State, window};
use crate::{Ack, Nanos, SECOND, SplitMix64};

/// Part of the long-term bound that is left free (`Headroom`).
const HEADROOM: f64 = 0.15;

/// Shortest time between probes; a random part of a second is added.
const WAIT: Nanos = 2 * SECOND;

/// Most rounds between probes, so that Reno could get as much.
const RENO_ROUNDS: u64 = 63;

/// Largest exponent of the growth of the bound per round.
const MAX_UP_ROUNDS: u32 = 30;

/// What acknowledgements tell about the last probe (`ack_phase`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// Progress of the cycle.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cycle {
    pub(super) phase: AckPhase,
    /// Samples are of a probe (`is_bw_probe_sample`).
    pub(super) is_probe_sample: bool,
    /// The last probe lost too much (`prev_probe_too_high`).
    pub(super) prev_too_high: bool,
    /// The last probe ended where the one before had lost too much (`prev_probe_precautionary`).
    prev_precautionary: bool,
    /// Payload bytes acknowledged since the bound grew, and how many make it grow by a segment.
    up_acked: u64,
    acked_per_step: u64,
    /// Rounds over which the bound has grown in this probe.
    up_rounds: u32,
    pub(super) rounds_since_up: u64,
    started_at: Nanos,
    /// `bw_probe_wait`.
    wait: Nanos,
}

impl Bbr3 {
    /// `StartProbeBW_DOWN`.
    pub(super) fn start_down(&mut self, now: Nanos) {
        self.latest.reset();
        // The time tells apart flows of the same seed.
        let mut random = SplitMix64::new(self.seed ^ now);
        self.cycle.acked_per_step = u64::MAX;
        self.cycle.rounds_since_up = random.below(2);
        self.cycle.wait = WAIT + random.below(SECOND);
        self.cycle.started_at = now;
        self.cycle.phase = AckPhase::ProbeStopping;
        self.start_round();
        self.state = Bbr3State::Down;
    }

    /// `StartProbeBW_REFILL`.
    pub(super) fn start_refill(&mut self) {
        self.short_term = super::ShortTerm::default();
        (self.cycle.up_rounds, self.cycle.up_acked) = (0, 0);
        self.cycle.prev_precautionary = false;
        self.cycle.phase = AckPhase::Refilling;
        self.start_round();
        self.state = Bbr3State::Refill;
    }

    /// `StartProbeBW_UP`.
    fn start_up(&mut self, ack: &Ack) {
        self.cycle.phase = AckPhase::ProbeStarting;
        self.start_round();
        self.full_bandwidth.restart(ack.rate.bit_rate().unwrap_or(0.0));
        self.state = Bbr3State::Up;
        self.raise_slope();
    }

    /// `UpdateProbeBWCyclePhase`.
    pub(super) fn update_cycle(&mut self, ack: &Ack) {
        if !self.full_bandwidth.reached || self.adapt_long_term(ack) {
            return;
        }
        let go_down = self.state == Bbr3State::Up && self.is_time_to_go_down(ack);
        match self.state {
            Bbr3State::Down | Bbr3State::Cruise if self.is_time_to_probe(ack.now) => self.start_refill(),
            Bbr3State::Down if self.is_time_to_cruise(ack) => self.state = Bbr3State::Cruise,
            Bbr3State::Refill if self.round_start => {
                self.cycle.is_probe_sample = true;
                self.start_up(ack);
            }
            Bbr3State::Up if go_down => {
                self.cycle.prev_too_high = false;
                self.start_down(ack.now);
            }
            _ => {}
        }
    }

    fn is_time_to_probe(&self, now: Nanos) -> bool {
        let reno_rounds = (self.target_inflight() / self.mss).min(RENO_ROUNDS);
        now > self.cycle.started_at + self.cycle.wait || self.cycle.rounds_since_up >= reno_rounds
    }

    fn is_time_to_cruise(&self, ack: &Ack) -> bool {
        ack.in_flight <= self.inflight_with_headroom() && ack.in_flight <= self.inflight(self.max_bandwidth(), 1.0)
    }

    fn is_time_to_go_down(&mut self, ack: &Ack) -> bool {
        if self.cycle.prev_too_high && ack.in_flight >= self.long_term.inflight {
            self.cycle.prev_precautionary = true;
            return true;
        }
        if self.is_cwnd_limited() && self.cwnd >= self.long_term.inflight {
            // The bound, not the path, limits the bandwidth.
            self.full_bandwidth.restart(ack.rate.bit_rate().unwrap_or(0.0));
            return false;
        }
        self.full_bandwidth.now
    }

    /// `InflightWithHeadroom`, in payload bytes.
    pub(super) fn inflight_with_headroom(&self) -> u64 {
        let bound = self.long_term.inflight;
        if bound == u64::MAX {
            return bound;
        }
        let headroom = ((HEADROOM * bound as f64) as u64).max(self.mss);
        bound.saturating_sub(headroom).max(window::MINIMUM * self.mss)
    }

    /// `RaiseInflightLongtermSlope`: a segment more in this round, then 2, 4, 8 …
    fn raise_slope(&mut self) {
        let growth = 1 << self.cycle.up_rounds;
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(MAX_UP_ROUNDS);
        self.cycle.acked_per_step = (self.cwnd / growth).max(self.mss);
    }

    /// `ProbeInflightLongtermUpward`.
    fn raise_bound(&mut self, ack: &Ack) {
        if !self.is_cwnd_limited() || self.cwnd < self.long_term.inflight {
            return;
        }
        self.cycle.up_acked += ack.acked;
        let steps = self.cycle.up_acked / self.cycle.acked_per_step;
        self.cycle.up_acked -= steps * self.cycle.acked_per_step;
        self.long_term.inflight = self.long_term.inflight.saturating_add(steps * self.mss);
        if self.round_start {
            self.raise_slope();
        }
    }

    /// `AdaptLongTermModel`; true if it has decided the next state.
    fn adapt_long_term(&mut self, ack: &Ack) -> bool {
        if self.cycle.phase == AckPhase::ProbeStarting && self.round_start {
            self.cycle.phase = AckPhase::ProbeFeedback;
        }
        if self.cycle.phase == AckPhase::ProbeStopping && self.round_start {
            self.cycle.is_probe_sample = false;
            self.cycle.phase = AckPhase::Init;
            if self.state.probes_bandwidth() {
                if !ack.rate.app_limited {
                    self.long_term.advance();
                }
                if self.cycle.prev_precautionary && !self.cycle.prev_too_high {
                    self.start_refill();
                    return true;
                }
            }
        }
        if self.long_term.inflight < u64::MAX && !too_high(ack.rate.lost, ack.rate.sent_in_flight) {
            self.long_term.inflight = self.long_term.inflight.max(ack.rate.sent_in_flight);
            if self.state == Bbr3State::Up {
                self.raise_bound(ack);
            }
        }
        false
    }
}
