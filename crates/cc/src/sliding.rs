//! Exact extremum over a sliding window whose length may change.

use std::collections::VecDeque;

use crate::Nanos;

/// Largest or smallest sample of the last while, where what "a while" is may change with every sample.
///
/// Keeps only samples that can still become the extremum: those that no later sample equals or betters. Each sample
/// enters and leaves once, so an update takes constant time on average; memory grows to the longest run of samples
/// that get steadily worse within the window. Where windows are long and constant,
/// [`WindowedExtremum`](crate::WindowedExtremum) does with three samples.
#[derive(Clone, Debug)]
pub struct SlidingExtremum<V> {
    better: fn(V, V) -> bool,
    /// (time, value) in order of age; values get worse towards the end.
    samples: VecDeque<(Nanos, V)>,
}

impl<V: Copy + PartialOrd> SlidingExtremum<V> {
    /// Running minimum.
    pub fn min() -> Self {
        Self { better: |a, b| a <= b, samples: VecDeque::new() }
    }

    /// Running maximum.
    pub fn max() -> Self {
        Self { better: |a, b| a >= b, samples: VecDeque::new() }
    }

    /// Adds a sample taken at `now` (never decreasing) and returns the extremum of those not older than `window`.
    pub fn update(&mut self, now: Nanos, value: V, window: Nanos) -> V {
        while self.samples.back().is_some_and(|&(_, last)| (self.better)(value, last)) {
            self.samples.pop_back();
        }
        self.samples.push_back((now, value));
        let oldest = now.saturating_sub(window);
        while self.samples[0].0 < oldest {
            self.samples.pop_front();
        }
        self.samples[0].1
    }

    /// Extremum at the last update, `None` before the first.
    #[inline]
    pub fn get(&self) -> Option<V> {
        self.samples.front().map(|&(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_shorter_window_forgets_at_once() {
        let mut min = SlidingExtremum::min();
        assert_eq!(min.get(), None);
        assert_eq!(min.update(0, 3, 10), 3);
        assert_eq!(min.update(5, 4, 10), 3);
        assert_eq!(min.update(9, 7, 10), 3);
        assert_eq!(min.update(10, 9, 10), 3);
        assert_eq!(min.update(10, 8, 5), 4);
        assert_eq!(min.get(), Some(4));
        assert_eq!(min.update(40, 9, 5), 9);
    }

    proptest! {
        /// While the window does not grow by more than time passes, nothing that it covers has been forgotten.
        #[test]
        fn it_is_exact(samples in prop::collection::vec((0_u64..8, 0_u32..50, 0_u64..6), 1..300)) {
            let (mut min, mut max) = (SlidingExtremum::min(), SlidingExtremum::max());
            let (mut now, mut window) = (100, 20_u64);
            let mut seen: Vec<(u64, u32)> = Vec::new();
            for (step, value, change) in samples {
                now += step;
                // By -3 to 2, but by no more than time has passed.
                window = (window + change.min(step + 3)).saturating_sub(3);
                seen.push((now, value));
                let covered = || seen.iter().filter(|s| now - s.0 <= window).map(|s| s.1);
                prop_assert_eq!(Some(min.update(now, value, window)), covered().min());
                prop_assert_eq!(Some(max.update(now, value, window)), covered().max());
            }
        }
    }
}
