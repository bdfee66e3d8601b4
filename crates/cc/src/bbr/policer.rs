//! Whether a token-bucket policer drops what exceeds its rate ("long-term bandwidth", `bbr_lt_bw_*`).
//!
//! A policer lets a burst pass and then drops everything above its rate, so the largest delivery rate misleads. Two
//! intervals in a row with much loss and the same throughput give it away.

use crate::{MILLISECOND, Nanos};

/// Least rounds of an interval (`bbr_lt_intvl_min_rtts`); after four times as many it is too long.
const INTERVAL_ROUNDS: u32 = 4;

/// Loss above this share of what was delivered may be a policer's: 19.5 % (`bbr_lt_loss_thresh`).
const LOSS: f64 = 50.0 / 256.0;

/// Rates of two intervals are alike within this share (`bbr_lt_bw_ratio`) …
const ALIKE: f64 = 1.0 / 8.0;

/// … or within this many bit/s (`bbr_lt_bw_diff`).
const ALIKE_BITS: f64 = 4000.0;

/// Rounds in `PROBE_BW` for which the rate is used (`bbr_lt_bw_max_rtts`).
const USED_ROUNDS: u32 = 48;

/// What one acknowledgement shows.
pub(super) struct Observation {
    pub(super) now: Nanos,
    /// Payload bytes delivered so far.
    pub(super) delivered: u64,
    /// Whether it revealed a loss.
    pub(super) lossy: bool,
    pub(super) round_start: bool,
    pub(super) app_limited: bool,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Policer {
    /// Throughput in bit/s of the previous interval, or of both once it is in use.
    rate: Option<f64>,
    in_use: bool,
    sampling: bool,
    rounds: u32,
    since: Nanos,
    /// Delivered when the interval began.
    delivered: u64,
    /// Lost since then.
    lost: u64,
}

impl Policer {
    /// Rate of the policer in bit/s, if there seems to be one.
    #[inline]
    pub(super) fn rate(&self) -> Option<f64> {
        if self.in_use { self.rate } else { None }
    }

    /// Counts payload bytes as lost.
    pub(super) fn on_loss(&mut self, lost: u64) {
        self.lost += lost;
    }

    /// Forgets everything.
    pub(super) fn reset(&mut self, now: Nanos, delivered: u64) {
        *self = Self { since: now, delivered, ..Self::default() };
    }

    /// Takes one acknowledgement; true if the rate has been used for long enough, and bandwidth is to be probed again.
    #[inline]
    pub(super) fn on_sample(&mut self, sample: &Observation, probing: bool) -> bool {
        if !self.in_use && !self.sampling && !sample.lossy {
            return false;
        }
        self.take(sample, probing)
    }

    fn take(&mut self, sample: &Observation, probing: bool) -> bool {
        if self.in_use {
            self.rounds += u32::from(probing && sample.round_start);
            let over = self.rounds >= USED_ROUNDS;
            if over {
                self.reset(sample.now, sample.delivered);
            }
            return over;
        }
        if !self.sampling {
            // From the first loss on: by then the burst that a policer lets pass is used up.
            self.begin(sample);
            self.sampling = true;
        }
        self.rounds += u32::from(sample.round_start);
        if sample.app_limited || self.rounds > 4 * INTERVAL_ROUNDS {
            self.reset(sample.now, sample.delivered);
        } else if self.rounds >= INTERVAL_ROUNDS && sample.lossy {
            self.end(sample);
        }
        false
    }

    fn begin(&mut self, sample: &Observation) {
        (self.since, self.delivered, self.lost, self.rounds) = (sample.now, sample.delivered, 0, 0);
    }

    /// The interval ends with a loss, when the policer has no tokens left.
    fn end(&mut self, sample: &Observation) {
        let delivered = sample.delivered.saturating_sub(self.delivered) as f64;
        let time = sample.now.saturating_sub(self.since);
        if delivered == 0.0 || (self.lost as f64) < LOSS * delivered || time < MILLISECOND {
            return;
        }
        let rate = delivered * 8e9 / time as f64;
        if let Some(before) = self.rate
            && (rate - before).abs() <= (ALIKE * before).max(ALIKE_BITS)
        {
            self.rate = Some(f64::midpoint(rate, before));
            self.in_use = true;
            self.rounds = 0;
        } else {
            self.rate = Some(rate);
            self.begin(sample);
        }
    }
}
