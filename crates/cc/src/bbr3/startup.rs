//! Startup and Drain, and when the pipe is full.

use super::model::too_high;
use super::{Bbr3, Bbr3State};
use crate::Ack;

/// The delivery rate must grow by this factor in a round to count as growth.
const GROWTH: f64 = 1.25;

/// Rounds without growth after which the pipe is full.
const ROUNDS: u32 = 3;

/// Lost ranges in a round that end Startup if more than the threshold is lost (`BBRStartupFullLossCnt`).
const LOSS_EVENTS: u32 = 6;

/// Rounds after which Drain ends at the latest.
const DRAIN_ROUNDS: u64 = 3;

/// Looks for a plateau of the delivery rate.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullBandwidth {
    /// Delivery rate in bit/s that last counted as growth (`full_bw`).
    bandwidth: f64,
    rounds: u32,
    /// Full since it was last restarted (`full_bw_now`).
    pub(super) now: bool,
    /// Full at any time (`full_bw_reached`).
    pub(super) reached: bool,
}

impl FullBandwidth {
    /// `ResetFullBW`, with a rate that does not count as growth.
    pub(super) fn restart(&mut self, bandwidth: f64) {
        (self.bandwidth, self.rounds, self.now) = (bandwidth, 0, false);
    }
}

impl Bbr3 {
    /// `CheckFullBWReached`.
    #[inline]
    pub(super) fn check_full_bandwidth(&mut self, ack: &Ack) {
        let Some(rate) = ack.rate.bit_rate() else { return };
        let full = &mut self.full_bandwidth;
        if full.now || !self.round_start || ack.rate.app_limited {
            return;
        }
        if rate >= full.bandwidth * GROWTH {
            full.restart(rate);
            return;
        }
        full.rounds += 1;
        full.now = full.rounds >= ROUNDS;
        full.reached |= full.now;
    }

    /// `CheckStartupDone`.
    pub(super) fn check_startup_done(&mut self, ack: &Ack, loss_round: bool) {
        if self.state != Bbr3State::Startup {
            return;
        }
        let lossy = self.latest.loss_events >= LOSS_EVENTS && too_high(ack.rate.lost, ack.rate.sent_in_flight);
        if loss_round && ack.in_recovery && lossy {
            self.undo_to_startup();
            self.full_bandwidth.reached = true;
            self.long_term.inflight = self.bdp(self.bandwidth).max(self.latest.inflight);
        }
        if self.full_bandwidth.reached {
            self.state = Bbr3State::Drain;
            self.drain_start = self.rounds.count();
        }
    }

    /// `CheckDrainDone`.
    pub(super) fn check_drain_done(&mut self, ack: &Ack) {
        if self.state != Bbr3State::Drain {
            return;
        }
        let too_long = self.rounds.count() > self.drain_start + DRAIN_ROUNDS;
        if too_long || ack.in_flight <= self.inflight(self.bandwidth, 1.0) {
            self.start_down(ack.now);
        }
    }
}
