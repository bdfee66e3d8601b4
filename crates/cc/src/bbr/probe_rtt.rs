//! The minimum round-trip time, and the mode that looks for it.

use super::{Bbr, BbrMode, window};
use crate::held_back::HeldBack;
use crate::{Ack, MILLISECOND, Nanos, SECOND};

/// Age at which the minimum no longer counts (`bbr_min_rtt_win_sec`).
const WINDOW: Nanos = 10 * SECOND;

/// Least time with four packets in flight (`bbr_probe_rtt_mode_ms`).
const DURATION: Nanos = 200 * MILLISECOND;

/// Smallest round-trip sample and when it was taken.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    sample: Option<Nanos>,
    taken_at: Nanos,
}

impl MinRtt {
    /// One that is taken for measured now.
    pub(super) fn known(sample: Option<Nanos>, taken_at: Nanos) -> Self {
        Self { sample, taken_at }
    }

    #[inline]
    pub(super) fn get(&self) -> Option<Nanos> {
        self.sample
    }

    /// Adds a sample; true if the minimum before it was too old.
    #[inline]
    fn update(&mut self, now: Nanos, sample: Option<Nanos>) -> bool {
        let expired = self.sample.is_some() && now > self.taken_at + WINDOW;
        if let Some(sample) = sample
            && (expired || self.sample.is_none_or(|min| sample < min))
        {
            *self = Self { sample: Some(sample), taken_at: now };
        }
        expired
    }
}

/// Progress of `PROBE_RTT`, and which rate samples it spoils.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    /// When it may end, once the flight is small enough.
    done_at: Option<Nanos>,
    round_done: bool,
    pub(super) held_back: HeldBack,
}

impl Bbr {
    #[inline]
    pub(super) fn update_min_rtt(&mut self, ack: &Ack, round_start: bool) {
        let expired = self.min_rtt.update(ack.now, ack.rtt);
        if expired && !self.idle_restart && self.mode != BbrMode::ProbeRtt {
            self.save_cwnd();
            self.mode = BbrMode::ProbeRtt;
            self.probe_rtt.done_at = None;
        }
        if self.mode == BbrMode::ProbeRtt {
            self.hold(ack, round_start);
        }
        if ack.rate.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// Waits for the flight to shrink, then for 200 ms and one round.
    fn hold(&mut self, ack: &Ack, round_start: bool) {
        self.probe_rtt.held_back.extend(ack);
        if self.probe_rtt.done_at.is_some() {
            self.probe_rtt.round_done |= round_start;
            if self.probe_rtt.round_done {
                self.check_probe_rtt_done(ack.now);
            }
        } else if ack.in_flight <= window::MINIMUM * self.mss {
            self.probe_rtt.done_at = Some(ack.now + DURATION);
            self.probe_rtt.round_done = false;
            self.rounds.restart(ack.rate.total_delivered);
        }
    }

    /// Goes back to where it was when the time is over.
    pub(super) fn check_probe_rtt_done(&mut self, now: Nanos) {
        if self.probe_rtt.done_at.is_none_or(|done_at| now <= done_at) {
            return;
        }
        self.min_rtt.taken_at = now;
        self.cwnd = self.cwnd.max(self.recovery.saved_cwnd());
        if self.full_pipe.reached() {
            self.start_cycle(now);
        } else {
            self.mode = BbrMode::Startup;
        }
    }
}
