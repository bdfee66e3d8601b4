//! How much more arrives in a bunch of acknowledgements than the bandwidth explains.

use crate::{Ack, MILLISECOND, Nanos};

/// Rounds that each of two halves of the maximum filter covers (`bbr_extra_acked_win_rtts`).
const ROUNDS: u32 = 5;

/// The extra room in the window is at most what the bandwidth delivers in this time (`bbr_extra_acked_max_us`).
const LONGEST: Nanos = 100 * MILLISECOND;

/// Packets acknowledged after which an epoch begins anew (`bbr_ack_epoch_acked_reset_thresh`).
const EPOCH_PACKETS: u64 = 1 << 20;

/// Largest excess of the last five to ten rounds, in payload bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Aggregation {
    epoch_start: Nanos,
    epoch_acked: u64,
    /// Maxima of the present five rounds and of the five before.
    extra: [u64; 2],
    rounds: u32,
}

impl Aggregation {
    /// A new epoch, after an idle time.
    pub(super) fn restart(&mut self, now: Nanos) {
        (self.epoch_start, self.epoch_acked) = (now, 0);
    }

    #[inline]
    pub(super) fn on_ack(&mut self, ack: &Ack, bandwidth: f64, cwnd: u64, mss: u64, round_start: bool) {
        if round_start {
            self.rounds += 1;
            if self.rounds >= ROUNDS {
                (self.rounds, self.extra) = (0, [0, self.extra[0]]);
            }
        }
        let epoch = ack.now.saturating_sub(self.epoch_start);
        let mut expected = (bandwidth * epoch as f64 / 8e9) as u64;
        if self.epoch_acked <= expected || self.epoch_acked + ack.acked >= EPOCH_PACKETS * mss {
            self.restart(ack.now);
            expected = 0;
        }
        self.epoch_acked += ack.acked;
        self.extra[0] = self.extra[0].max((self.epoch_acked - expected).min(cwnd));
    }

    /// Payload bytes to add to the window.
    #[inline]
    pub(super) fn room(&self, bandwidth: f64) -> u64 {
        let most = (bandwidth * LONGEST as f64 / 8e9) as u64;
        self.extra[0].max(self.extra[1]).min(most)
    }
}
