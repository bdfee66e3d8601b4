//! Settings of the multi-flow environment.

use astraea_policy::action::ALPHA;
use serde::Deserialize;

use super::reward::RewardConfig;
use crate::error::{EnvError, parse};
use crate::range::Range;

/// Settings; the defaults are the training ranges of Astraea (table 3) and what the papers leave open, as documented.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MultiFlowConfig {
    /// Bottleneck rate in bit/s on the wire; uniform.
    pub bandwidth: Range,
    /// Base round-trip time in s; uniform.
    pub rtt: Range,
    /// Buffer as a multiple of the bandwidth-delay product; log-uniform.
    pub buffer: Range,
    /// Share of packets lost at random; uniform.
    pub loss: Range,
    /// Number of flows of an episode; uniform.
    pub flows: Range,
    /// Probability that each flow has a base round-trip time of its own, instead of all the same.
    pub heterogeneous: f64,
    /// Mean time between arrivals in s: the first flow starts at once, the others follow as a Poisson process.
    pub arrival_gap: f64,
    /// Mean life of a flow in s, exponentially distributed; `None`: to the end of the episode.
    pub lifetime: Option<f64>,
    /// Length of an episode in s.
    pub duration: f64,
    /// Monitoring period in s.
    pub period: f64,
    /// How much a full action changes the window: see [`astraea_policy::action::scaled`].
    pub alpha: f64,
    /// Largest window as a multiple of the flow's bandwidth-delay product. A policy that diverges would otherwise spend
    /// its time on packets that are dropped.
    pub window_limit: f64,
    /// The reward.
    pub reward: RewardConfig,
}

impl Default for MultiFlowConfig {
    fn default() -> Self {
        Self {
            bandwidth: Range::new(40e6, 160e6),
            rtt: Range::new(0.010, 0.140),
            buffer: Range::new(0.1, 16.0),
            loss: Range::new(0.0, 0.0),
            flows: Range::new(2.0, 5.0),
            heterogeneous: 0.5,
            arrival_gap: 4.0,
            lifetime: Some(20.0),
            duration: 30.0,
            period: 0.030,
            alpha: ALPHA,
            window_limit: 20.0,
            reward: RewardConfig::default(),
        }
    }
}

impl MultiFlowConfig {
    /// Largest number of flows that an episode may have.
    pub const MAX_FLOWS: f64 = 1000.0;

    /// Reads settings from a JSON object.
    ///
    /// # Errors
    /// Names the first setting that is unknown, of the wrong kind or out of range.
    pub fn from_json(json: &str) -> Result<Self, EnvError> {
        let config: Self = parse(json)?;
        config.validate()?;
        Ok(config)
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// Names the first setting that is out of range.
    pub fn validate(&self) -> Result<(), EnvError> {
        self.bandwidth.check("bandwidth", 1e4, 1e11)?;
        self.rtt.check("rtt", 1e-4, 10.0)?;
        self.buffer.check("buffer", 1e-3, 1000.0)?;
        self.loss.check("loss", 0.0, 0.99)?;
        self.flows.check("flows", 1.0, Self::MAX_FLOWS)?;
        if self.flows.low.fract() != 0.0 || self.flows.high.fract() != 0.0 {
            return Err(EnvError::new("flows", "expected whole numbers"));
        }
        EnvError::unless_within("heterogeneous", self.heterogeneous, 0.0, 1.0)?;
        EnvError::unless_within("arrival_gap", self.arrival_gap, 0.0, 1e6)?;
        if let Some(lifetime) = self.lifetime {
            EnvError::unless_within("lifetime", lifetime, 1e-3, 1e6)?;
        }
        EnvError::unless_within("duration", self.duration, 1e-3, 1e6)?;
        EnvError::unless_within("period", self.period, 1e-4, 10.0)?;
        EnvError::unless_within("alpha", self.alpha, 1e-6, 1.0)?;
        EnvError::unless_within("window_limit", self.window_limit, 1.0, 1000.0)?;
        self.reward.validate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_setting() {
        let error = |json| MultiFlowConfig::from_json(json).unwrap_err().to_string();
        assert_eq!(error(r#"{"flows": 2.5}"#), "flows: expected whole numbers");
        assert_eq!(error(r#"{"rtt": 0}"#), "rtt: is [0, 0], expected two numbers in order, 0.0001 to 10");
        assert!(error(r#"{"reward": {"fair": 1}}"#).starts_with("reward: unknown field `fair`"));
        assert!(error(r#"{"lifetime": "long"}"#).starts_with("lifetime: invalid type"));
        assert_eq!(error(r#"{"reward": {"bound": 0}}"#), "reward.bound: is 0, expected 0.000001 to 1000000000");
    }

    #[test]
    fn null_lifetime_means_to_the_end() {
        assert_eq!(MultiFlowConfig::from_json(r#"{"lifetime": null}"#).unwrap().lifetime, None);
    }
}
