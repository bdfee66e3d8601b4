//! Log-linear histogram of durations.

use astraea_cc::Nanos;

/// Counts of durations in buckets whose width is 1/32 of their power of two: quantiles within 3 %, in 15 kB.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { counts: vec![0; Self::index(Nanos::MAX) + 1], total: 0 }
    }
}

impl Histogram {
    const SUB_BITS: u32 = 5;

    #[inline]
    fn index(value: Nanos) -> usize {
        if value < 1 << Self::SUB_BITS {
            return value as usize;
        }
        let shift = value.ilog2() - Self::SUB_BITS;
        (((shift + 1) << Self::SUB_BITS) as usize) + ((value >> shift) as usize & ((1 << Self::SUB_BITS) - 1))
    }

    /// Smallest value of a bucket.
    fn lower(index: usize) -> Nanos {
        let sub = 1 << Self::SUB_BITS;
        if index < sub {
            return index as Nanos;
        }
        let shift = (index >> Self::SUB_BITS) - 1;
        ((sub + (index & (sub - 1))) as Nanos) << shift
    }

    /// Counts one value.
    #[inline]
    pub fn add(&mut self, value: Nanos) {
        self.counts[Self::index(value)] += 1;
        self.total += 1;
    }

    /// Counts what another histogram has counted.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
    }

    /// Number of values.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The value below which a share `q` (0..=1) of the values lie, interpolated within its bucket; `None` if empty.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let rank = q * self.total as f64;
        let mut below = 0.0;
        for (index, &count) in self.counts.iter().enumerate() {
            let count = count as f64;
            if count > 0.0 && below + count >= rank {
                let lower = Self::lower(index) as f64;
                let upper = Self::lower(index + 1) as f64;
                return Some(lower + (upper - lower) * (rank - below) / count);
            }
            below += count;
        }
        None
    }

    /// Non-empty buckets as (smallest value, smallest value of the next bucket, count).
    pub fn buckets(&self) -> impl Iterator<Item = (Nanos, Nanos, u64)> + '_ {
        let counts = self.counts.iter().enumerate();
        counts.filter(|(_, c)| **c > 0).map(|(i, c)| (Self::lower(i), Self::lower(i + 1), *c))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn empty_has_no_quantile() {
        assert_eq!(Histogram::default().quantile(0.5), None);
    }

    #[test]
    fn quantiles_of_a_uniform_sample() {
        let mut histogram = Histogram::default();
        for value in 0..100_000 {
            histogram.add(value * 1000);
        }
        for q in [0.05, 0.5, 0.95] {
            let expected = q * 1e8;
            let got = histogram.quantile(q).unwrap();
            assert!((got / expected - 1.0).abs() < 0.01, "{q}: {got} for {expected}");
        }
    }

    proptest! {
        #[test]
        fn a_bucket_holds_its_value_within_three_percent(value in any::<u64>()) {
            let index = Histogram::index(value);
            let lower = Histogram::lower(index);
            prop_assert!(lower <= value);
            if index + 1 < Histogram::default().counts.len() {
                let upper = Histogram::lower(index + 1);
                prop_assert!(upper > value);
                prop_assert!(lower < 32 || (upper - lower) as f64 <= lower as f64 / 31.0);
            }
        }
    }
}
