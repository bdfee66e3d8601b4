//! The model of the path: what was delivered lately, and the bounds that losses set in the long and in the short run.

use super::{Bbr3, Bbr3State};
use crate::{Ack, LostPacket, RateSample};

/// Part of a flight that may be lost while probing (`LossThresh`).
const LOSS_THRESHOLD: f64 = 0.02;

/// What a round with losses leaves at least (`Beta`).
pub(super) const BETA: f64 = 0.7;

/// What the last round delivered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Latest {
    /// Largest delivery rate in bit/s (`bw_latest`).
    bandwidth: f64,
    /// Largest volume delivered in payload bytes (`inflight_latest`).
    pub(super) inflight: u64,
    /// Delivered payload bytes that end the round (`loss_round_delivered`).
    round_end: u64,
    /// Whether a packet was lost in the round (`is_loss_in_round`).
    pub(super) lossy: bool,
    /// Acknowledgements of the round that revealed a loss.
    pub(super) loss_events: u32,
}

impl Latest {
    /// Takes a sample; true if it ends a round (`UpdateLatestDeliverySignals`).
    fn update(&mut self, rate: &RateSample) -> bool {
        self.bandwidth = self.bandwidth.max(rate.bit_rate().unwrap_or(0.0));
        self.inflight = self.inflight.max(rate.delivered);
        let ends = rate.prior_delivered >= self.round_end;
        if ends {
            self.round_end = rate.total_delivered;
        }
        ends
    }

    /// After a round, only its last sample counts for the next (`AdvanceLatestDeliverySignals`).
    #[inline]
    pub(super) fn advance(&mut self, rate: &RateSample, ended: bool) {
        if ended {
            (self.bandwidth, self.inflight) = (rate.bit_rate().unwrap_or(0.0), rate.delivered);
            self.loss_events = 0;
        }
    }

    /// `ResetCongestionSignals`.
    pub(super) fn reset(&mut self) {
        (self.lossy, self.bandwidth, self.inflight) = (false, 0.0, 0);
    }
}

/// Bounds that last for two probing cycles.
#[derive(Clone, Copy, Debug)]
pub(super) struct LongTerm {
    /// Largest delivery rates of the cycle before and of this one (`max_bw_filter`).
    bandwidth: [f64; 2],
    /// `inflight_longterm`.
    pub(super) inflight: u64,
}

impl Default for LongTerm {
    fn default() -> Self {
        Self { bandwidth: [0.0; 2], inflight: u64::MAX }
    }
}

impl LongTerm {
    #[inline]
    pub(super) fn max_bandwidth(&self) -> f64 {
        self.bandwidth[0].max(self.bandwidth[1])
    }

    /// `AdvanceMaxBwFilter`; a cycle without a sample does not count.
    pub(super) fn advance(&mut self) {
        if self.bandwidth[1] > 0.0 {
            self.bandwidth = [self.bandwidth[1], 0.0];
        }
    }
}

/// Bounds until the next probe.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShortTerm {
    /// `bw_shortterm` in bit/s.
    pub(super) bandwidth: f64,
    /// `inflight_shortterm` in payload bytes.
    pub(super) inflight: u64,
}

impl Default for ShortTerm {
    fn default() -> Self {
        Self { bandwidth: f64::INFINITY, inflight: u64::MAX }
    }
}

/// What a loss that turns out to be none gives back.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    state: Option<Bbr3State>,
    short_term: ShortTerm,
    inflight: u64,
}

/// `IsInflightTooHigh`.
#[inline]
pub(super) fn too_high(lost: u64, sent_in_flight: u64) -> bool {
    lost as f64 > sent_in_flight as f64 * LOSS_THRESHOLD
}

impl Bbr3 {
    /// `UpdateLatestDeliverySignals` and `UpdateCongestionSignals`; true if a round ends.
    #[inline]
    pub(super) fn update_congestion_signals(&mut self, ack: &Ack) -> bool {
        let ends = self.latest.update(&ack.rate);
        if let Some(rate) = ack.rate.bit_rate()
            && (rate >= self.max_bandwidth() || !ack.rate.app_limited)
        {
            self.long_term.bandwidth[1] = self.long_term.bandwidth[1].max(rate);
        }
        if ends {
            if self.latest.lossy && !self.state.accelerates() {
                self.lower_bounds();
            }
            self.latest.lossy = false;
        }
        ends
    }

    /// `InitLowerBounds` and `LossLowerBounds`.
    fn lower_bounds(&mut self) {
        let bounds = &mut self.short_term;
        let bandwidth = if bounds.bandwidth.is_infinite() { self.long_term.max_bandwidth() } else { bounds.bandwidth };
        let inflight = if bounds.inflight == u64::MAX { self.cwnd } else { bounds.inflight };
        bounds.bandwidth = self.latest.bandwidth.max(BETA * bandwidth);
        bounds.inflight = self.latest.inflight.max((BETA * inflight as f64) as u64);
    }

    /// `NoteLoss`.
    pub(super) fn note_loss(&mut self) {
        if !self.latest.lossy {
            self.latest.round_end = self.delivered;
            self.save_state();
        }
        self.latest.lossy = true;
    }

    /// `HandleLostPacket`: finds the flight at which the losses crossed the threshold.
    pub(super) fn handle_lost_packet(&mut self, packet: &LostPacket) {
        self.note_loss();
        if !self.cycle.is_probe_sample || !too_high(packet.lost_since, packet.sent_in_flight) {
            return;
        }
        // `InflightAtLoss`.
        let before = packet.sent_in_flight.saturating_sub(packet.bytes) as f64;
        let lost_before = packet.lost_since.saturating_sub(packet.bytes) as f64;
        let prefix = ((LOSS_THRESHOLD * before - lost_before) / (1.0 - LOSS_THRESHOLD)).max(0.0);
        let inflight = (before + prefix) as u64;
        // `HandleInflightTooHigh`.
        self.cycle.prev_too_high = true;
        self.cycle.is_probe_sample = false;
        if !packet.app_limited {
            self.long_term.inflight = inflight.max((BETA * self.target_inflight() as f64) as u64);
        }
        if self.state == Bbr3State::Up {
            self.undo.state = Some(Bbr3State::Up);
            self.start_down(packet.now);
        }
    }

    /// `SaveStateUponLoss`.
    pub(super) fn save_state(&mut self) {
        self.save_cwnd();
        self.undo = Undo { state: None, short_term: self.short_term, inflight: self.long_term.inflight };
    }

    /// Startup ends because of a loss.
    pub(super) fn undo_to_startup(&mut self) {
        self.undo.state = Some(Bbr3State::Startup);
    }

    /// `HandleSpuriousLossDetection`.
    pub(super) fn handle_spurious_loss(&mut self) {
        self.restore_cwnd();
        self.repair = super::Repair::None;
        self.latest.lossy = false;
        self.full_bandwidth.restart(0.0);
        let undo = self.undo;
        self.short_term.bandwidth = self.short_term.bandwidth.max(undo.short_term.bandwidth);
        self.short_term.inflight = self.short_term.inflight.max(undo.short_term.inflight);
        self.long_term.inflight = self.long_term.inflight.max(undo.inflight);
        let returns = undo.state.is_some_and(|state| state != self.state);
        match undo.state {
            Some(Bbr3State::Startup) if returns => {
                self.full_bandwidth.reached = false;
                if self.state != Bbr3State::ProbeRtt {
                    self.state = Bbr3State::Startup;
                }
            }
            Some(_) if returns && self.state != Bbr3State::ProbeRtt => self.start_refill(),
            _ => {}
        }
        self.undo.state = None;
    }
}
