//! Settings of the selectors' environment.

use astraea_policy::selector::Kind;
use serde::Deserialize;

use crate::error::{EnvError, parse};
use crate::multi_flow::MultiFlowConfig;
use crate::one_flow;
use crate::range::Range;

/// Settings. No ranges are published; these are ours.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SelectorConfig {
    /// Whose intervals, features and reward: `antelope` or `hacc`.
    pub form: String,
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
    /// Length of an episode in s: it ends with the first interval that ends later.
    pub duration: f64,
}

impl Default for SelectorConfig {
    fn default() -> Self {
        Self {
            form: Kind::Antelope.name().to_owned(),
            bandwidth: Range::new(1e6, 200e6),
            rtt: Range::new(0.002, 0.4),
            buffer: Range::new(0.1, 8.0),
            buffer_min_packets: 5.0,
            loss: Range::new(0.0, 0.02),
            lossy: 0.3,
            duration: 20.0,
        }
    }
}

impl SelectorConfig {
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
        self.form()?;
        EnvError::unless_within("duration", self.duration, 0.1, 1e6)?;
        self.paths().validate()
    }

    pub(super) fn form(&self) -> Result<Kind, EnvError> {
        let known = Kind::ALL.map(Kind::name).join(" or ");
        Kind::from_name(&self.form)
            .ok_or_else(|| EnvError::new("form", format!("is {:?}, expected {known}", self.form)))
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
            ..one_flow::paths()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_setting() {
        let error = |json| SelectorConfig::from_json(json).unwrap_err().to_string();
        assert!(error(r#"{"bandwith": 3}"#).starts_with("bandwith: unknown field `bandwith`, expected one of"));
        assert!(error(r#"{"rtt": [0.5, 0.1]}"#).starts_with("rtt: is [0.5, 0.1], expected two numbers in order"));
        assert_eq!(error(r#"{"form": "orca"}"#), r#"form: is "orca", expected antelope or hacc"#);
        assert_eq!(error(r#"{"duration": 0}"#), "duration: is 0, expected 0.1 to 1000000");
        assert!(SelectorConfig::from_json(r#"{"form": "hacc", "bandwidth": 48e6, "buffer": 1}"#).is_ok());
    }
}
