//! What an application asks of MOCC.

use std::ops::RangeInclusive;

use crate::Feature;

/// What a weight may be. Only their ratios count.
pub const WEIGHT: RangeInclusive<f64> = 0.001..=1.0;

/// The weights as a policy sees them, in order.
pub const FEATURES: [Feature; 3] = [
    Feature::ratio("throughput_weight", "share of the throughput in the three weights", 1.0),
    Feature::ratio("latency_weight", "share of the latency in the three weights", 1.0),
    Feature::ratio("loss_weight", "share of the losses in the three weights", 1.0),
];

/// How much three objectives weigh: throughput, latency, losses. They add up to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preference([f64; 3]);

impl Preference {
    /// Weights in these ratios, or `None` if one of them is outside of [`WEIGHT`].
    pub fn new(weights: [f64; 3]) -> Option<Self> {
        let sum: f64 = weights.iter().sum();
        weights.iter().all(|weight| WEIGHT.contains(weight)).then(|| Self(weights.map(|weight| weight / sum)))
    }

    /// The weights as a policy sees them.
    pub fn values(&self) -> [f32; 3] {
        self.0.map(|weight| weight as f32)
    }

    /// What an interval is worth, in which each objective was reached to this extent (1: wholly): the weighted sum.
    pub fn reward(&self, reached: [f64; 3]) -> f64 {
        self.0.iter().zip(reached).map(|(weight, share)| weight * share).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_count() {
        let preference = Preference::new([0.4, 0.2, 0.2]).unwrap();
        assert_eq!(preference.values(), [0.5, 0.25, 0.25]);
        assert_eq!(preference.reward([1.0, 0.5, 0.0]), 0.625);
        assert_eq!(Preference::new([1.0, 0.5, 0.5]), Some(preference));
        for wrong in [[0.0, 0.5, 0.5], [1.1, 0.1, 0.1], [f64::NAN, 0.5, 0.5]] {
            assert_eq!(Preference::new(wrong), None);
        }
    }
}
