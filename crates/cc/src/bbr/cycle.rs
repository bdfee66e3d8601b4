//! The cycle of pacing gains in `PROBE_BW`.

use crate::{Nanos, SplitMix64};

/// Probe for more, drain what that queued, then cruise (`bbr_pacing_gain`).
const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// The phase that drains; no cycle starts with it (`bbr_cycle_rand` leaves seven phases).
const DRAINING: usize = 1;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cycle {
    phase: usize,
    since: Nanos,
}

impl Cycle {
    /// Starts at a random phase.
    pub(super) fn start(&mut self, now: Nanos, random: &mut SplitMix64) {
        let phases = GAINS.len();
        let ahead = random.below(phases as u64 - 1) as usize;
        *self = Self { phase: (DRAINING + 1 + ahead) % phases, since: now };
    }

    pub(super) fn advance(&mut self, now: Nanos) {
        *self = Self { phase: (self.phase + 1) % GAINS.len(), since: now };
    }

    #[inline]
    pub(super) fn elapsed(&self, now: Nanos) -> Nanos {
        now.saturating_sub(self.since)
    }

    #[inline]
    pub(super) fn gain(&self) -> f64 {
        GAINS[self.phase]
    }

    /// Whether this is the phase that probes for more bandwidth.
    #[inline]
    pub(super) fn probes(&self) -> bool {
        self.phase == 0
    }
}
