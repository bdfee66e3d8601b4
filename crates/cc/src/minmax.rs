//! Extremum over a sliding window in constant memory.

/// Largest (or smallest) sample of a sliding window, approximated by the three best samples of successively later
/// parts of it (Kathleen Nichols' algorithm, as BBR uses it).
///
/// The clock of the window may count nanoseconds or round trips.
#[derive(Clone, Copy, Debug)]
pub struct WindowedExtremum<V> {
    window: u64,
    better: fn(V, V) -> bool,
    /// Best, second and third best: (clock, value), in order of age.
    best: [(u64, V); 3],
    empty: bool,
}

impl<V: Copy + PartialOrd + Default> WindowedExtremum<V> {
    /// Running maximum over `window` units of the clock.
    pub fn max(window: u64) -> Self {
        Self { window, better: |a, b| a >= b, best: [(0, V::default()); 3], empty: true }
    }

    /// Running minimum over `window` units of the clock.
    pub fn min(window: u64) -> Self {
        Self { window, better: |a, b| a <= b, best: [(0, V::default()); 3], empty: true }
    }

    /// Changes the length of the window from the next sample on.
    pub fn set_window(&mut self, window: u64) {
        self.window = window;
    }

    /// Present extremum, `None` before the first sample.
    pub fn get(&self) -> Option<V> {
        (!self.empty).then_some(self.best[0].1)
    }

    /// Forgets everything but this sample.
    pub fn reset(&mut self, clock: u64, value: V) {
        self.best = [(clock, value); 3];
        self.empty = false;
    }

    /// Adds a sample taken at `clock` (never decreasing) and returns the extremum.
    pub fn update(&mut self, clock: u64, value: V) -> V {
        let sample = (clock, value);
        if self.empty || (self.better)(value, self.best[0].1) || clock - self.best[2].0 > self.window {
            self.reset(clock, value);
            return value;
        }
        if (self.better)(value, self.best[1].1) {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if (self.better)(value, self.best[2].1) {
            self.best[2] = sample;
        }
        self.expire(sample);
        self.best[0].1
    }

    /// Drops the best when it has left the window, and renews the runners-up as parts of the window pass.
    fn expire(&mut self, sample: (u64, V)) {
        let age = sample.0 - self.best[0].0;
        if age > self.window {
            self.best = [self.best[1], self.best[2], sample];
            if sample.0 - self.best[0].0 > self.window {
                self.best = [self.best[1], self.best[2], sample];
            }
        } else if self.best[1].0 == self.best[0].0 && age > self.window / 4 {
            self.best[1] = sample;
            self.best[2] = sample;
        } else if self.best[2].0 == self.best[1].0 && age > self.window / 2 {
            self.best[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_maximum_expires() {
        let mut max = WindowedExtremum::max(10);
        assert_eq!(max.get(), None);
        assert_eq!(max.update(0, 100), 100);
        for clock in 1..=10 {
            assert_eq!(max.update(clock, 50), 100);
        }
        assert_eq!(max.update(11, 50), 50);
    }

    proptest! {
        /// Never below the newest sample, never above the true maximum of the window.
        #[test]
        fn the_maximum_is_bounded(samples in prop::collection::vec((0_u64..8, 0_u32..1000), 1..200)) {
            let mut max = WindowedExtremum::max(20);
            let mut clock = 0;
            let mut seen: Vec<(u64, u32)> = Vec::new();
            for (step, value) in samples {
                clock += step;
                seen.push((clock, value));
                let truth = seen.iter().filter(|s| clock - s.0 <= 20).map(|s| s.1).max().unwrap();
                let got = max.update(clock, value);
                prop_assert!(got >= value && got <= truth);
            }
        }

        /// The minimum mirrors the maximum.
        #[test]
        fn the_minimum_is_bounded(samples in prop::collection::vec((0_u64..8, 0_u32..1000), 1..200)) {
            let mut min = WindowedExtremum::min(20);
            let mut clock = 0;
            let mut seen: Vec<(u64, u32)> = Vec::new();
            for (step, value) in samples {
                clock += step;
                seen.push((clock, value));
                let truth = seen.iter().filter(|s| clock - s.0 <= 20).map(|s| s.1).min().unwrap();
                let got = min.update(clock, value);
                prop_assert!(got <= value && got >= truth);
            }
        }
    }
}
