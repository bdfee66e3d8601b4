//! Ranges that parameters are drawn from.

use std::fmt;

use rand::{Rng, RngExt};
use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};

use crate::error::EnvError;

/// How draws are spread over a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spread {
    /// Each value is as likely as any other.
    #[default]
    Uniform,
    /// Each logarithm is as likely as any other.
    Log,
}

/// A closed range; in JSON `[low, high]`, or a number for a range of one point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Range {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Range {
    /// The range from `low` to `high`.
    pub const fn new(low: f64, high: f64) -> Self {
        Self { low, high }
    }

    /// Checks that both ends are in order and within `low..=high`.
    pub(crate) fn check(&self, setting: &str, low: f64, high: f64) -> Result<(), EnvError> {
        if low <= self.low && self.low <= self.high && self.high <= high {
            return Ok(());
        }
        let Self { low: from, high: to } = self;
        Err(EnvError::new(setting, format!("is [{from}, {to}], expected two numbers in order, {low} to {high}")))
    }

    /// Checks that the ends are whole numbers.
    pub(crate) fn check_whole(&self, setting: &str) -> Result<(), EnvError> {
        if self.low.fract() == 0.0 && self.high.fract() == 0.0 {
            return Ok(());
        }
        Err(EnvError::new(setting, "expected whole numbers"))
    }

    /// The point, if the range is only one.
    pub(crate) fn point(&self) -> Option<f64> {
        (self.low == self.high).then_some(self.low)
    }

    /// A draw that is spread like this.
    pub(crate) fn draw(&self, spread: Spread, rng: &mut impl Rng) -> f64 {
        match spread {
            Spread::Uniform => self.uniform(rng),
            Spread::Log => self.log_uniform(rng),
        }
    }

    /// A uniform draw.
    pub(crate) fn uniform(&self, rng: &mut impl Rng) -> f64 {
        self.low + (self.high - self.low) * rng.random::<f64>()
    }

    /// A draw whose logarithm is uniform; the lower end must be positive.
    pub(crate) fn log_uniform(&self, rng: &mut impl Rng) -> f64 {
        let logs = Self::new(libm::log(self.low), libm::log(self.high));
        libm::exp(logs.uniform(rng)).clamp(self.low, self.high)
    }

    /// A draw of an integer from ends that are integers. On a log scale each integer is as likely as the stretch of
    /// logarithms around it.
    pub(crate) fn integer(&self, spread: Spread, rng: &mut impl Rng) -> usize {
        match spread {
            Spread::Uniform => rng.random_range(self.low as usize..=self.high as usize),
            Spread::Log => {
                let around = Self::new(self.low - 0.5, self.high + 0.5);
                (around.log_uniform(rng).round() as usize).clamp(self.low as usize, self.high as usize)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Range {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RangeVisitor;

        impl<'de> Visitor<'de> for RangeVisitor {
            type Value = Range;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number or a pair [low, high]")
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Range, E> {
                Ok(Range::new(value, value))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Range, E> {
                self.visit_f64(value as f64)
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Range, E> {
                self.visit_f64(value as f64)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut ends: A) -> Result<Range, A::Error> {
                let mut next = |i| ends.next_element()?.ok_or_else(|| A::Error::invalid_length(i, &self));
                let range = Range::new(next(0)?, next(1)?);
                match ends.next_element::<f64>()? {
                    None => Ok(range),
                    Some(_) => Err(A::Error::invalid_length(3, &self)),
                }
            }
        }

        deserializer.deserialize_any(RangeVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    #[test]
    fn a_number_is_a_range_of_one_point() {
        assert_eq!(serde_json::from_str::<Range>("3").unwrap(), Range::new(3.0, 3.0));
        assert_eq!(serde_json::from_str::<Range>("[-1, 2.5]").unwrap(), Range::new(-1.0, 2.5));
        for wrong in ["[1]", "[1,2,3]", "\"1\"", "null"] {
            let error = serde_json::from_str::<Range>(wrong).unwrap_err().to_string();
            assert!(error.contains("expected a number or a pair [low, high]"), "{error}");
        }
    }

    #[test]
    fn draws_are_spread_as_promised() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let range = Range::new(1.0, 100.0);
        let below_ten = |draw: &mut dyn FnMut() -> f64| (0..10_000).filter(|_| draw() < 10.0).count();
        // A tenth of the uniform draws, half of the log-uniform ones; 10 000 draws have a deviation of 0.5 %.
        assert!(below_ten(&mut || range.uniform(&mut rng)).abs_diff(909) < 120);
        assert!(below_ten(&mut || range.log_uniform(&mut rng)).abs_diff(5000) < 200);
        let mut integer = |low, high, spread| Range::new(low, high).integer(spread, &mut rng);
        let ends: std::collections::BTreeSet<_> = (0..100).map(|_| integer(2.0, 4.0, Spread::Uniform)).collect();
        assert_eq!(ends, [2, 3, 4].into());
        // One to five are the logarithms from ln 0.5 to ln 5.5 of those from ln 0.5 to ln 50.5.
        let few = (0..10_000).filter(|_| integer(1.0, 50.0, Spread::Log) <= 5).count();
        assert!(few.abs_diff(5196) < 200);
        assert_eq!(Range::new(0.3, 0.3).log_uniform(&mut rng), 0.3);
    }
}
