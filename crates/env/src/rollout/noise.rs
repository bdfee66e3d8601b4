//! Exploration noise.

use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::range::Range;

/// Correlation of the noise of one decision with that of the next.
const RHO: f64 = 0.7;

/// What the scale of an episode is drawn from.
const SCALES: Range = Range::new(0.2, 1.5);

/// Noise of each flow of an episode: a stationary first-order autoregressive process.
pub(super) struct Noise {
    rng: Xoshiro256PlusPlus,
    deviation: f64,
    /// The last value of each flow, if it had one.
    values: Vec<Option<f64>>,
}

impl Noise {
    /// Noise for that many flows; its standard deviation is `scale` times what the episode draws.
    pub(super) fn new(seed: u64, scale: f64, flows: usize) -> Self {
        // Another stream than that of the episode, which was seeded with the same number.
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(!seed);
        let deviation = scale * SCALES.uniform(&mut rng);
        Self { rng, deviation, values: vec![None; flows] }
    }

    /// The noise of the next decision of a flow.
    pub(super) fn next(&mut self, flow: usize) -> f64 {
        if self.deviation == 0.0 {
            return 0.0;
        }
        let fresh = self.deviation * normal(&mut self.rng);
        let value = self.values[flow].map_or(fresh, |last| RHO * last + (1.0 - RHO * RHO).sqrt() * fresh);
        self.values[flow] = Some(value);
        value
    }
}

/// A standard normal draw (Box and Muller 1958).
fn normal(rng: &mut impl Rng) -> f64 {
    let radius = (-2.0 * libm::log(1.0 - rng.random::<f64>())).sqrt();
    radius * libm::cos(std::f64::consts::TAU * rng.random::<f64>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_has_its_deviation_and_its_memory() {
        let n = 40_000;
        let mut noise = Noise::new(1, 0.5, 2);
        let draws: Vec<f64> = (0..n).map(|_| noise.next(1)).collect();
        let product = |lag: usize| draws.iter().zip(&draws[lag..]).map(|(a, b)| a * b).sum::<f64>() / n as f64;
        let sigma = noise.deviation;
        assert!((0.1..=0.75).contains(&sigma));
        // The effective number of draws is n (1 - rho^2) / (1 + rho^2) = n / 2.9: deviations of about 1.2 %.
        assert!((product(0) / (sigma * sigma) - 1.0).abs() < 0.06);
        assert!((product(1) / product(0) - RHO).abs() < 0.03);
        assert_eq!(noise.values[0], None, "each flow has its own");
    }

    #[test]
    fn without_noise_there_is_none() {
        let mut noise = Noise::new(1, 0.0, 1);
        assert_eq!((noise.next(0), noise.next(0)), (0.0, 0.0));
    }
}
