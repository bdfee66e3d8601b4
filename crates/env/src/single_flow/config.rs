//! Settings of the single-flow environment.

use astraea_policy::mocc::{Preference, WEIGHT};
use serde::Deserialize;

use crate::error::{EnvError, parse};
use crate::range::Range;

/// What the drawn link delay stands for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelayMeaning {
    /// The delay of one direction: the base round-trip time is twice the draw. This is what the original gym comes to,
    /// where acknowledgements cross a second link with the same delay.
    #[default]
    OneWay,
    /// The base round-trip time itself.
    RoundTrip,
}

/// Settings; the defaults are those that Aurora was trained with.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SingleFlowConfig {
    /// Capacity in packets of 1500 bytes per second.
    pub bandwidth: Range,
    /// Link delay in s.
    pub delay: Range,
    /// What `delay` stands for.
    pub delay_is: DelayMeaning,
    /// Room for waiting packets; log-uniform.
    pub queue: Range,
    /// Share of packets lost at random.
    pub loss: Range,
    /// First sending rate as a multiple of the capacity.
    pub start: Range,
    /// Smallest and largest sending rate in packets/s.
    pub rate_limits: Range,
    /// Length of a monitor interval as a multiple of the mean round-trip time of the one before.
    pub interval: f64,
    /// Steps of an episode.
    pub steps: u32,
    /// Intervals in an observation.
    pub history: usize,
    /// How much a full action changes the rate: see [`astraea_policy::action::scaled`].
    pub alpha: f64,
    /// Largest magnitude of an action.
    pub action_limit: f64,
    /// Reward for each packet/s acknowledged.
    pub throughput_weight: f64,
    /// Penalty for each second of mean round-trip time.
    pub latency_weight: f64,
    /// Penalty for losing everything.
    pub loss_weight: f64,
    /// What may be asked of the flow, as weights of throughput, latency and losses: an episode has one of these, which the
    /// observation ends with, and MOCC's reward. Without any it is Aurora's, of the three weights above.
    pub preferences: Vec<[f64; 3]>,
    /// Factor of the whole reward.
    pub reward_scale: f64,
}

impl Default for SingleFlowConfig {
    fn default() -> Self {
        Self {
            bandwidth: Range::new(100.0, 500.0),
            delay: Range::new(0.05, 0.5),
            delay_is: DelayMeaning::OneWay,
            queue: Range::new(2.0, 2981.0),
            loss: Range::new(0.0, 0.05),
            start: Range::new(0.3, 1.5),
            rate_limits: Range::new(40.0, 1000.0),
            interval: 0.5,
            steps: 400,
            history: 10,
            alpha: astraea_policy::action::ALPHA,
            action_limit: 1.0,
            throughput_weight: 10.0,
            latency_weight: 1000.0,
            loss_weight: 2000.0,
            preferences: Vec::new(),
            reward_scale: 1.0,
        }
    }
}

impl SingleFlowConfig {
    /// Reads settings from a JSON object.
    ///
    /// # Errors
    /// Names the first setting that is unknown, of the wrong kind or out of range.
    pub fn from_json(json: &str) -> Result<Self, EnvError> {
        let config: Self = parse(json, &[])?;
        config.validate()?;
        Ok(config)
    }

    /// What may be asked of the flow.
    ///
    /// # Errors
    /// If a weight is out of range.
    pub(super) fn asked(&self) -> Result<Vec<Preference>, EnvError> {
        let preference = |weights: &[f64; 3]| {
            Preference::new(*weights).ok_or_else(|| {
                let problem = format!("is {weights:?}, expected three weights, {} to {}", WEIGHT.start(), WEIGHT.end());
                EnvError::new("preferences", problem)
            })
        };
        self.preferences.iter().map(preference).collect()
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// Names the first setting that is out of range.
    pub fn validate(&self) -> Result<(), EnvError> {
        self.bandwidth.check("bandwidth", 1.0, 1e7)?;
        self.delay.check("delay", 1e-4, 10.0)?;
        self.queue.check("queue", 2.0, 1e6)?;
        self.loss.check("loss", 0.0, 1.0)?;
        self.start.check("start", 0.01, 100.0)?;
        self.rate_limits.check("rate_limits", 1.0, 1e7)?;
        EnvError::unless_within("interval", self.interval, 0.01, 100.0)?;
        EnvError::unless_within("steps", f64::from(self.steps), 1.0, 1e9)?;
        EnvError::unless_within("history", self.history as f64, 1.0, 1000.0)?;
        EnvError::unless_within("alpha", self.alpha, 1e-6, 10.0)?;
        EnvError::unless_within("action_limit", self.action_limit, 1e-6, 1e12)?;
        for (name, weight) in [
            ("throughput_weight", self.throughput_weight),
            ("latency_weight", self.latency_weight),
            ("loss_weight", self.loss_weight),
            ("reward_scale", self.reward_scale),
        ] {
            EnvError::unless_within(name, weight, -1e9, 1e9)?;
        }
        self.asked().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_setting() {
        let error = |json| SingleFlowConfig::from_json(json).unwrap_err().to_string();
        assert!(error(r#"{"bandwith": 3}"#).starts_with("bandwith: unknown field `bandwith`, expected one of"));
        assert_eq!(
            error(r#"{"delay": [0.5, 0.1]}"#),
            "delay: is [0.5, 0.1], expected two numbers in order, 0.0001 to 10"
        );
        assert!(error(r#"{"queue": "big"}"#).starts_with("queue: invalid type: string \"big\""));
        assert_eq!(error(r#"{"alpha": 0}"#), "alpha: is 0, expected 0.000001 to 10");
        assert_eq!(
            error(r#"{"preferences": [[0.8, 0.1, 0.1], [0.5, 0.5, 0]]}"#),
            "preferences: is [0.5, 0.5, 0.0], expected three weights, 0.001 to 1"
        );
        assert!(error(r#"{"preferences": [0.8, 0.1, 0.1]}"#).starts_with("preferences: invalid type"));
        assert!(error(r#"{"steps": -1}"#).starts_with("steps: invalid value"));
        assert!(error("[]").starts_with("settings: expected a JSON object"));
    }

    #[test]
    fn missing_settings_have_their_defaults() {
        let config = SingleFlowConfig::from_json(r#"{"delay_is": "round_trip", "bandwidth": 200}"#).unwrap();
        assert_eq!(config.delay_is, DelayMeaning::RoundTrip);
        assert_eq!(config.bandwidth, Range::new(200.0, 200.0));
        assert_eq!(config.steps, 400);
    }
}
