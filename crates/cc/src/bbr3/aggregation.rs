//! How much more is acknowledged in a bunch than the bandwidth explains (`UpdateACKAggregation`).

use super::Bbr3;
use crate::{Ack, Nanos, WindowedExtremum};

/// Rounds over which the largest excess counts (`ExtraAckedFilterLen`); one until the pipe is full.
const ROUNDS: u64 = 10;

/// Largest excess of the last rounds, in payload bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aggregation {
    interval_start: Nanos,
    delivered: u64,
    extra: WindowedExtremum<u64>,
}

impl Default for Aggregation {
    fn default() -> Self {
        Self { interval_start: 0, delivered: 0, extra: WindowedExtremum::max(1) }
    }
}

impl Aggregation {
    /// A new interval, after an idle time.
    pub(super) fn restart(&mut self, now: Nanos) {
        self.interval_start = now;
    }

    /// The excess in payload bytes (`extra_acked`).
    #[inline]
    pub(super) fn extra(&self) -> u64 {
        self.extra.get().unwrap_or(0)
    }
}

impl Bbr3 {
    #[inline]
    pub(super) fn update_aggregation(&mut self, ack: &Ack) {
        let (cwnd, round, bandwidth) = (self.cwnd, self.rounds.count(), self.bandwidth);
        let seen = &mut self.aggregation;
        let interval = ack.now.saturating_sub(seen.interval_start);
        let mut expected = (bandwidth * interval as f64 / 8e9) as u64;
        if seen.delivered <= expected {
            (seen.delivered, seen.interval_start, expected) = (0, ack.now, 0);
        }
        seen.delivered += ack.acked;
        let extra = (seen.delivered - expected).min(cwnd);
        seen.extra.set_window(if self.full_bandwidth.reached { ROUNDS } else { 1 });
        seen.extra.update(round, extra);
    }
}
