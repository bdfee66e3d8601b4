//! How long bytes take at a constant rate, without a division per packet.

use astraea_cc::Nanos;

/// A rate, with the time for a byte as a 64-bit fraction: `mantissa / 2^shift` ns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteTime {
    rate: f64,
    mantissa: u64,
    shift: u32,
}

impl ByteTime {
    /// `rate` in bit/s, within [`super::RATE_RANGE`].
    pub(crate) fn new(rate: f64) -> Self {
        // rate = significand * 2^exponent with a 53-bit significand, as the range excludes subnormal numbers.
        let bits = rate.to_bits();
        let significand = u128::from((bits & ((1 << 52) - 1)) | (1 << 52));
        let exponent = (bits >> 52) as i32 - 1075;
        // 8e9 / rate scaled up as far as 64 bits allow: rounding down then loses less than one part in 2^63.
        let dividend = 8_000_000_000_u128;
        let mut scale = 84;
        while (dividend << scale) / significand > u128::from(u64::MAX) {
            scale -= 1;
        }
        let mantissa = ((dividend << scale) / significand) as u64;
        Self { rate, mantissa, shift: (scale + exponent) as u32 }
    }

    pub(crate) fn rate(self) -> f64 {
        self.rate
    }

    /// Time in ns for `size` bytes, rounded up. Exact for whole rates: the scaling loses less than the smallest
    /// possible distance of `size * 8e9 / rate` from a whole number.
    #[inline]
    pub(crate) fn of(self, size: u32) -> Nanos {
        let scaled = u128::from(size) * u128::from(self.mantissa);
        ((scaled + ((1 << self.shift) - 1)) >> self.shift) as Nanos
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn round_rates_give_round_times() {
        for (rate, size, expected) in [
            (1e8, 1500, 120_000),
            (1e9, 1500, 12_000),
            (1.2e7, 1500, 1_000_000),
            (3e6, 1500, 4_000_000),
            (1e10, 40, 32),
            (1e13, 1500, 2),
            (1.0, 1, 8_000_000_000),
            (7.0, 7, 8_000_000_000),
            (1e8, 0, 0),
        ] {
            assert_eq!(ByteTime::new(rate).of(size), expected, "{size} bytes at {rate} bit/s");
        }
    }

    proptest! {
        #[test]
        fn whole_rates_are_exact(rate in prop_oneof![1_u64..=10_000, 1_u64..=10_000_000_000_000], size in 0_u32..=1_000_000) {
            let exact = (u128::from(size) * 8_000_000_000).div_ceil(u128::from(rate));
            prop_assert_eq!(u128::from(ByteTime::new(rate as f64).of(size)), exact);
        }

        #[test]
        fn other_rates_are_close(rate in 1.0_f64..1e11, size in 1_u32..=100_000) {
            let time = ByteTime::new(rate).of(size) as f64;
            let exact = f64::from(size) * 8e9 / rate;
            prop_assert!(time >= exact * (1.0 - 1e-15) && time <= exact * (1.0 + 1e-15) + 1.0, "{} for {}", time, exact);
        }
    }
}
