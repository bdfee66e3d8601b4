//! Random loss that has nothing to do with congestion: independent, or in bursts.

use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

/// How packets are lost at random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LossConfig {
    /// Never.
    #[default]
    None,
    /// Each packet with this probability, independently.
    Bernoulli(f64),
    /// Every n-th packet: the model behind response functions such as RFC 9438 §5.1.
    Periodic(u64),
    /// In bursts, by a Markov chain with a good and a bad state.
    GilbertElliott(GilbertElliott),
}

/// The Gilbert-Elliott chain (Gilbert 1960, Elliott 1963). It begins in the good state and takes a step after each
/// packet, so a bad period lasts `1/r` packets on average and a share `p/(p+r)` of the packets meets the bad state.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GilbertElliott {
    /// Probability of a step from good to bad.
    pub p: f64,
    /// Probability of a step from bad to good.
    pub r: f64,
    /// Probability that a packet is lost in the good state. Default 0.
    #[serde(default)]
    pub loss_good: f64,
    /// Probability that a packet is lost in the bad state. Default 1.
    #[serde(default = "certain")]
    pub loss_bad: f64,
}

fn certain() -> f64 {
    1.0
}

impl LossConfig {
    /// Checks that all probabilities are between 0 and 1 and that not everything is lost for ever.
    ///
    /// # Errors
    ///
    /// One line that names the parameter and says what was expected.
    pub fn validate(&self) -> Result<(), String> {
        match *self {
            Self::Bernoulli(p) if (0.0..1.0).contains(&p) => Ok(()),
            Self::Bernoulli(p) => Err(format!("loss: expected a probability from 0 to below 1, got {p}")),
            Self::Periodic(0 | 1) => Err("loss: expected a period of 2 packets or more".to_owned()),
            Self::None | Self::Periodic(_) => Ok(()),
            Self::GilbertElliott(GilbertElliott { p, r, loss_good, loss_bad }) => {
                for (key, value) in [("p", p), ("loss_good", loss_good), ("loss_bad", loss_bad)] {
                    if !(0.0..=1.0).contains(&value) {
                        return Err(format!("loss: expected {key} from 0 to 1, got {value}"));
                    }
                }
                if !(r > 0.0 && r <= 1.0) {
                    return Err(format!("loss: expected r above 0 and at most 1, got {r}"));
                }
                if loss_good == 1.0 {
                    return Err("loss: expected loss_good below 1, got 1".to_owned());
                }
                Ok(())
            }
        }
    }

    /// A model in its initial state. The parameters must have been validated.
    pub fn build(self) -> LossModel {
        LossModel { config: self, bad: false, packets: 0 }
    }
}

/// Decides which packets are lost.
#[derive(Clone, Copy, Debug)]
pub struct LossModel {
    config: LossConfig,
    bad: bool,
    packets: u64,
}

impl LossModel {
    /// Whether the next packet is lost.
    #[inline]
    pub fn lost(&mut self, rng: &mut impl Rng) -> bool {
        match self.config {
            LossConfig::None => false,
            LossConfig::Bernoulli(p) => rng.random_bool(p),
            LossConfig::Periodic(period) => {
                self.packets += 1;
                self.packets.is_multiple_of(period)
            }
            LossConfig::GilbertElliott(chain) => {
                let lost = rng.random_bool(if self.bad { chain.loss_bad } else { chain.loss_good });
                self.bad ^= rng.random_bool(if self.bad { chain.r } else { chain.p });
                lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    fn draw(config: LossConfig, packets: usize) -> Vec<bool> {
        let (mut model, mut rng) = (config.build(), Xoshiro256PlusPlus::seed_from_u64(5));
        (0..packets).map(|_| model.lost(&mut rng)).collect()
    }

    fn share(losses: &[bool]) -> f64 {
        losses.iter().filter(|&&lost| lost).count() as f64 / losses.len() as f64
    }

    /// Standard deviations by which `share` of `packets` independent draws misses `p`.
    fn deviations(share: f64, p: f64, packets: usize) -> f64 {
        (share - p).abs() / (p * (1.0 - p) / packets as f64).sqrt()
    }

    #[test]
    fn bernoulli_losses_are_independent() {
        assert!(draw(LossConfig::None, 1000).iter().all(|lost| !lost));
        let losses = draw(LossConfig::Bernoulli(0.1), 1_000_000);
        assert!(deviations(share(&losses), 0.1, losses.len()) < 4.0);
        let after_a_loss: Vec<_> = losses.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]).collect();
        assert!(deviations(share(&after_a_loss), 0.1, after_a_loss.len()) < 4.0);
    }

    #[test]
    fn gilbert_elliott_losses_come_in_bursts() {
        let chain = GilbertElliott { p: 0.01, r: 0.25, loss_good: 0.0, loss_bad: 1.0 };
        let losses = draw(LossConfig::GilbertElliott(chain), 1_000_000);
        // Bad share p / (p + r) = 1/26; bursts of 1/r = 4 packets; after a loss the next one is lost with 1 - r.
        assert!((share(&losses) * 26.0 - 1.0).abs() < 0.05, "share {}", share(&losses));
        let after_a_loss: Vec<_> = losses.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]).collect();
        assert!(deviations(share(&after_a_loss), 0.75, after_a_loss.len()) < 4.0);
        let bursts = losses.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let length = losses.iter().filter(|&&lost| lost).count() as f64 / bursts as f64;
        assert!((length - 4.0).abs() < 0.1, "bursts of {length}");
    }

    #[test]
    fn gilbert_elliott_loses_in_both_states_by_their_probabilities() {
        let chain = GilbertElliott { p: 0.1, r: 0.3, loss_good: 0.02, loss_bad: 0.5 };
        let losses = draw(LossConfig::GilbertElliott(chain), 1_000_000);
        // 3/4 * 0.02 + 1/4 * 0.5 = 0.14
        assert!((share(&losses) - 0.14).abs() < 0.003, "share {}", share(&losses));
    }

    #[test]
    fn configuration() {
        let read = |json: &str| serde_json::from_str::<LossConfig>(json).map_err(|error| error.to_string());
        assert_eq!(read(r#""none""#), Ok(LossConfig::None));
        assert_eq!(read(r#"{"bernoulli":0.5}"#), Ok(LossConfig::Bernoulli(0.5)));
        let chain = GilbertElliott { p: 0.1, r: 0.2, loss_good: 0.0, loss_bad: 1.0 };
        assert_eq!(read(r#"{"gilbert_elliott":{"p":0.1,"r":0.2}}"#), Ok(LossConfig::GilbertElliott(chain)));
        assert!(read(r#"{"gilbert_elliott":{"p":0.1,"r":0.2,"k":1}}"#).is_err());
        for bad in [
            LossConfig::Bernoulli(1.0),
            LossConfig::Bernoulli(-0.1),
            LossConfig::Bernoulli(f64::NAN),
            LossConfig::GilbertElliott(GilbertElliott { r: 0.0, ..chain }),
            LossConfig::GilbertElliott(GilbertElliott { p: 1.1, ..chain }),
            LossConfig::GilbertElliott(GilbertElliott { loss_good: 1.0, ..chain }),
        ] {
            assert!(bad.validate().is_err(), "{bad:?}");
        }
        assert_eq!(LossConfig::GilbertElliott(chain).validate(), Ok(()));
    }
}
