//! Settings of Orca's environment.

use serde::Deserialize;

use crate::error::{EnvError, parse};
use crate::multi_flow::MultiFlowConfig;
use crate::one_flow;
use crate::range::Range;

/// Settings. The rates are those of the links that lie beside the authors' code, 6 to 192 Mbit/s; the other ranges are ours.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OrcaConfig {
    /// Rate of the bottleneck in bit/s on the wire; log-uniform.
    pub bandwidth: Range,
    /// Base round-trip time in s; log-uniform.
    pub rtt: Range,
    /// Buffer as a multiple of the bandwidth-delay product; log-uniform.
    pub buffer: Range,
    /// Smallest buffer in packets.
    pub buffer_min_packets: f64,
    /// Share of packets lost at random.
    pub loss: Range,
    /// Probability that an episode loses packets at random.
    pub lossy: f64,
    /// Time between reports in s.
    pub period: f64,
    /// Reports of an episode.
    pub steps: u32,
    /// Reports in an observation.
    pub history: usize,
    /// Largest window that an action or the start-up leads to, as a multiple of the bandwidth-delay product: 16 packets at
    /// least, and no more than the scheme's.
    pub window_limit: f64,
}

impl Default for OrcaConfig {
    fn default() -> Self {
        Self {
            bandwidth: Range::new(6e6, 192e6),
            rtt: Range::new(0.004, 0.4),
            buffer: Range::new(0.25, 8.0),
            buffer_min_packets: 5.0,
            loss: Range::new(0.0, 0.02),
            lossy: 0.0,
            period: 0.02,
            steps: 500,
            history: 10,
            window_limit: 20.0,
        }
    }
}

impl OrcaConfig {
    /// Reads settings from a JSON object.
    ///
    /// # Errors
    /// Names the first setting that is unknown, of the wrong kind or out of range.
    pub fn from_json(json: &str) -> Result<Self, EnvError> {
        let config: Self = parse(json, &[])?;
        config.validate()?;
        Ok(config)
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// Names the first setting that is out of range.
    pub fn validate(&self) -> Result<(), EnvError> {
        EnvError::unless_within("period", self.period, 1e-3, 1.0)?;
        EnvError::unless_within("steps", f64::from(self.steps), 1.0, 1e9)?;
        EnvError::unless_within("history", self.history as f64, 1.0, 100.0)?;
        self.paths().validate()
    }

    /// What episodes are drawn from.
    pub(super) fn paths(&self) -> MultiFlowConfig {
        MultiFlowConfig {
            bandwidth: self.bandwidth,
            rtt: self.rtt,
            buffer: self.buffer,
            buffer_min_packets: self.buffer_min_packets,
            loss: self.loss,
            lossy: self.lossy,
            window_limit: self.window_limit,
            ..one_flow::paths()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_setting() {
        let error = |json| OrcaConfig::from_json(json).unwrap_err().to_string();
        assert!(error(r#"{"bandwith": 3}"#).starts_with("bandwith: unknown field `bandwith`, expected one of"));
        assert!(error(r#"{"rtt": [0.5, 0.1]}"#).starts_with("rtt: is [0.5, 0.1], expected two numbers in order"));
        assert_eq!(error(r#"{"steps": 0}"#), "steps: is 0, expected 1 to 1000000000");
        assert_eq!(error(r#"{"period": 2}"#), "period: is 2, expected 0.001 to 1");
        assert_eq!(error(r#"{"history": 0}"#), "history: is 0, expected 1 to 100");
        assert!(OrcaConfig::from_json(r#"{"bandwidth": 48e6, "buffer": 1}"#).is_ok());
    }
}
