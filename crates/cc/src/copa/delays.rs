//! What Copa knows of the path: round-trip times over windows of different length.

use crate::{Nanos, SECOND, SlidingExtremum};

/// Windowed extrema of the round-trip time.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    smoothed: Nanos,
    latest: Nanos,
    min: SlidingExtremum<Nanos>,
    standing: SlidingExtremum<Nanos>,
    recent_min: SlidingExtremum<Nanos>,
    recent_max: SlidingExtremum<Nanos>,
}

impl Default for Delays {
    fn default() -> Self {
        Self {
            smoothed: 0,
            latest: 0,
            min: SlidingExtremum::min(),
            standing: SlidingExtremum::min(),
            recent_min: SlidingExtremum::min(),
            recent_max: SlidingExtremum::max(),
        }
    }
}

impl Delays {
    /// `RTT_min` looks back 10 s (paper §2.1), or 20 `RTT_min` where that is more (genericCC).
    const MIN_WINDOW: Nanos = 10 * SECOND;
    const MIN_WINDOW_ROUNDS: u64 = 20;

    /// Adds a sample.
    pub(super) fn update(&mut self, now: Nanos, sample: Nanos) {
        self.latest = sample;
        // Gain 1/16 (genericCC); TCP's is 1/8.
        self.smoothed = if self.standing.get().is_none() { sample } else { (15 * self.smoothed + sample) / 16 };
        let window = self.min.get().map_or(0, |min| min.saturating_mul(Self::MIN_WINDOW_ROUNDS));
        self.min.update(now, sample, window.max(Self::MIN_WINDOW));
        // Half a round trip hides jitter of the acknowledgements and still follows the queue (§2.1).
        self.standing.update(now, sample, self.smoothed / 2);
        self.recent_min.update(now, sample, 4 * self.smoothed);
        self.recent_max.update(now, sample, 4 * self.smoothed);
    }

    /// The newest sample.
    #[inline]
    pub(super) fn latest(&self) -> Nanos {
        self.latest
    }

    /// `RTT_standing`: the smallest sample of half a smoothed round-trip time, `None` before the first.
    #[inline]
    pub(super) fn standing(&self) -> Option<Nanos> {
        self.standing.get()
    }

    /// `d_q` = `RTT_standing` - `RTT_min`: the queue of the bottleneck in time.
    #[inline]
    pub(super) fn queueing(&self) -> Nanos {
        self.standing.get().unwrap_or(0).saturating_sub(self.min.get().unwrap_or(0))
    }

    /// Whether the queue was nearly empty in the last four round trips: below a tenth of its range (§2.2).
    ///
    /// An empty queue counts as nearly empty even if it has always been, which the strict inequality of genericCC would
    /// deny; between real hosts no two round trips are equal and it makes no difference.
    pub(super) fn nearly_empty(&self) -> bool {
        let above = |value: Option<Nanos>| value.unwrap_or(0).saturating_sub(self.min.get().unwrap_or(0));
        above(self.recent_min.get()) <= above(self.recent_max.get()) / 10
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MILLISECOND;

    const MS: Nanos = MILLISECOND;

    #[test]
    fn the_standing_delay_is_that_of_half_a_round_trip() {
        let mut delays = Delays::default();
        for ms in 0..=50 {
            delays.update(ms * MS, 100 * MS);
        }
        delays.update(60 * MS, 132 * MS);
        // Smoothed (15 * 100 + 132) / 16 = 102 ms: what is at most 51 ms old counts.
        assert_eq!((delays.standing(), delays.queueing()), (Some(100 * MS), 0));
        delays.update(101 * MS, 134 * MS);
        // Now 104 ms; the last sample of 100 ms is 51 ms old.
        assert_eq!((delays.standing(), delays.queueing()), (Some(100 * MS), 0));
        delays.update(104 * MS, 136 * MS);
        // 106 ms; it is 54 ms old and has left.
        assert_eq!((delays.standing(), delays.queueing()), (Some(132 * MS), 32 * MS));
        assert_eq!(delays.latest(), 136 * MS);
    }

    #[test]
    fn nearly_empty_is_a_tenth_of_the_range_in_four_round_trips() {
        let mut delays = Delays::default();
        delays.update(0, 100 * MS);
        assert!(delays.nearly_empty());
        let mut now = SECOND;
        let mut feed = |samples: [u64; 3]| {
            for round in 0..30 {
                now += 10 * MS;
                delays.update(now, samples[round % 3] * MS);
            }
            delays.nearly_empty()
        };
        // Above 100 ms: at least 5 of at most 40, which is more than a tenth; 4 of 40, which is not.
        assert!(!feed([105, 140, 120]));
        assert!(!feed([105, 140, 120]));
        assert!(feed([104, 140, 120]));
    }

    #[test]
    fn the_smallest_is_forgotten_after_ten_seconds() {
        let mut delays = Delays::default();
        delays.update(0, 100 * MS);
        for tenth in 1..=100 {
            delays.update(tenth * 100 * MS, 150 * MS);
            assert_eq!(delays.queueing(), 50 * MS);
        }
        delays.update(10 * SECOND + 1, 150 * MS);
        assert_eq!(delays.queueing(), 0);
    }

    #[test]
    fn the_second_smallest_takes_over_though_it_was_never_the_smallest() {
        let mut delays = Delays::default();
        delays.update(0, 100 * MS);
        delays.update(2 * SECOND, 101 * MS);
        for tenth in 21..=100 {
            delays.update(tenth * 100 * MS, 150 * MS);
        }
        assert_eq!(delays.queueing(), 50 * MS);
        delays.update(10 * SECOND + 1, 150 * MS);
        assert_eq!(delays.queueing(), 49 * MS);
        delays.update(12 * SECOND + 1, 150 * MS);
        assert_eq!(delays.queueing(), 0);
    }
}
