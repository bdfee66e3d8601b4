//! Settings of the multi-flow environment.

use astraea_policy::action::ALPHA;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::Value;

use super::domain::{self, Changes, Neighbours, Outages, ShortFlows};
use super::global::GLOBAL_FEATURES;
use super::reward::RewardConfig;
use crate::error::{EnvError, parse};
use crate::range::{Range, Spread};

/// Settings; the defaults are the training ranges of Astraea (table 3) and what the papers leave open, as documented.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MultiFlowConfig {
    /// Bottleneck rate in bit/s on the wire.
    pub bandwidth: Range,
    /// How the rate is spread.
    pub bandwidth_scale: Spread,
    /// Base round-trip time in s.
    pub rtt: Range,
    /// How the base round-trip time is spread.
    pub rtt_scale: Spread,
    /// Buffer as a multiple of the bandwidth-delay product; log-uniform.
    pub buffer: Range,
    /// Smallest buffer in full-sized packets.
    pub buffer_min_packets: f64,
    /// Probability that the queue is managed by `CoDel` (RFC 8289, its defaults) instead of drop-tail.
    pub codel: f64,
    /// Share of packets lost at random; uniform.
    pub loss: Range,
    /// Probability that an episode loses packets at random.
    pub lossy: f64,
    /// Largest extra delay of a packet in s; each has its own, uniform from 0 to this, and the order is kept.
    /// Log-uniform.
    pub jitter: Range,
    /// Probability that an episode has jitter.
    pub jittered: f64,
    /// Acknowledgements leave the receivers together, once in so many s; log-uniform.
    pub aggregation: Range,
    /// Probability that an episode has aggregated acknowledgements.
    pub aggregated: f64,
    /// Number of flows of an episode.
    pub flows: Range,
    /// How the number of flows is spread.
    pub flows_scale: Spread,
    /// Probability that each flow has a base round-trip time of its own, instead of all the same.
    pub heterogeneous: f64,
    /// Mean time between arrivals in s: the first flow starts at once, the others follow as a Poisson process. The mean
    /// of an episode is log-uniform (uniform if the range begins at 0).
    pub arrival_gap: Range,
    /// Mean life of a flow in s, exponentially distributed; the mean of an episode is log-uniform. `None`: to the end of
    /// the episode.
    #[serde(deserialize_with = "lifetime")]
    pub lifetime: Option<Range>,
    /// Short flows beside the others.
    pub short_flows: ShortFlows,
    /// Flows of other schemes.
    pub neighbours: Neighbours,
    /// Changes of capacity and base round-trip time.
    pub changes: Changes,
    /// Interruptions.
    pub outages: Outages,
    /// Segments leave together in packets that take the bottleneck so many s each, as with segmentation offload, which
    /// makes simulation as much faster; 0: one by one. At least 16 of them fit into the buffer and into a flow's share
    /// of the path's bandwidth-delay product: where that is little, they are smaller.
    pub offload: f64,
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
            bandwidth_scale: Spread::Uniform,
            rtt: Range::new(0.010, 0.140),
            rtt_scale: Spread::Uniform,
            buffer: Range::new(0.1, 16.0),
            buffer_min_packets: 1.0,
            codel: 0.0,
            loss: Range::new(0.0, 0.0),
            lossy: 1.0,
            jitter: Range::new(1e-5, 5e-3),
            jittered: 0.0,
            aggregation: Range::new(1e-3, 1e-2),
            aggregated: 0.0,
            flows: Range::new(2.0, 5.0),
            flows_scale: Spread::Uniform,
            heterogeneous: 0.5,
            arrival_gap: Range::new(4.0, 4.0),
            lifetime: Some(Range::new(20.0, 20.0)),
            short_flows: ShortFlows::default(),
            neighbours: Neighbours::default(),
            changes: Changes::default(),
            outages: Outages::default(),
            offload: 0.0,
            duration: 30.0,
            period: 0.030,
            alpha: ALPHA,
            window_limit: 20.0,
            reward: RewardConfig::default(),
        }
    }
}

impl MultiFlowConfig {
    /// Settings that are tables of settings.
    const TABLES: [&str; 5] = ["short_flows", "neighbours", "changes", "outages", "reward"];

    /// Largest number of flows that an episode may have.
    pub const MAX_FLOWS: f64 = 1000.0;

    /// Most flows of an episode that ask for actions: the first of all flows, by index.
    pub fn max_agents(&self) -> usize {
        self.flows.high as usize + if self.short_flows.probability > 0.0 { ShortFlows::MOST } else { 0 }
    }

    /// Length of a global state: see [`MultiFlow::write_global_state`](super::MultiFlow::write_global_state).
    pub fn global_len(&self) -> usize {
        GLOBAL_FEATURES.len() + usize::from(self.neighbours.probability > 0.0)
    }

    /// Reads settings from a JSON object.
    ///
    /// # Errors
    /// Names the first setting that is unknown, of the wrong kind or out of range.
    pub fn from_json(json: &str) -> Result<Self, EnvError> {
        let config: Self = parse(json, &Self::TABLES)?;
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
        EnvError::unless_within("buffer_min_packets", self.buffer_min_packets, 1.0, 1e6)?;
        self.loss.check("loss", 0.0, 0.99)?;
        self.jitter.check("jitter", 1e-9, 10.0)?;
        self.aggregation.check("aggregation", 1e-9, 10.0)?;
        self.flows.check("flows", 1.0, Self::MAX_FLOWS)?;
        self.flows.check_whole("flows")?;
        for (setting, probability) in [
            ("codel", self.codel),
            ("lossy", self.lossy),
            ("jittered", self.jittered),
            ("aggregated", self.aggregated),
            ("heterogeneous", self.heterogeneous),
        ] {
            EnvError::unless_within(setting, probability, 0.0, 1.0)?;
        }
        self.arrival_gap.check("arrival_gap", 0.0, 1e6)?;
        if let Some(lifetime) = &self.lifetime {
            lifetime.check("lifetime", 1e-3, 1e6)?;
        }
        domain::validate(&self.neighbours, &self.changes, &self.outages, &self.short_flows)?;
        EnvError::unless_within("offload", self.offload, 0.0, 0.1)?;
        EnvError::unless_within("duration", self.duration, 1e-3, 1e6)?;
        EnvError::unless_within("period", self.period, 1e-4, 10.0)?;
        EnvError::unless_within("alpha", self.alpha, 1e-6, 1.0)?;
        EnvError::unless_within("window_limit", self.window_limit, 1.0, 1000.0)?;
        self.reward.validate()
    }
}

/// A mean life; `null` is none, and so is "never", for formats without a null.
fn lifetime<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Range>, D::Error> {
    match Value::deserialize(from)? {
        Value::Null => Ok(None),
        Value::String(word) if word == "never" => Ok(None),
        given => Range::deserialize(given).map(Some).map_err(D::Error::custom),
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
        assert_eq!(
            error(r#"{"rtt_scale": "logarithmic"}"#),
            "rtt_scale: unknown variant `logarithmic`, expected `uniform` or `log`"
        );
        assert_eq!(error(r#"{"offload": 1}"#), "offload: is 1, expected 0 to 0.1");
        assert_eq!(error(r#"{"jittered": 2}"#), "jittered: is 2, expected 0 to 1");
        assert_eq!(
            error(r#"{"neighbours": {"schemes": ["cubik"]}}"#),
            "neighbours.schemes: unknown scheme \"cubik\", did you mean \"cubic\"?"
        );
        assert_eq!(error(r#"{"neighbours": {"flows": [1, 2.5]}}"#), "neighbours.flows: expected whole numbers");
        assert_eq!(error(r#"{"outages": {"probability": -1}}"#), "outages.probability: is -1, expected 0 to 1");
        assert!(error(r#"{"changes": {"loss": 1}}"#).starts_with("changes: unknown field `loss`"));
        assert_eq!(error(r#"{"reward": {"bound": 0}}"#), "reward.bound: is 0, expected 0.000001 to 1000000000");
    }

    #[test]
    fn tables_are_no_lists() {
        let error = |json: &str| MultiFlowConfig::from_json(json).unwrap_err().to_string();
        for table in MultiFlowConfig::TABLES {
            let given = |value: &str| error(&format!("{{\"{table}\": {value}}}"));
            assert_eq!(given("[0.3, 3]"), format!("{table}: expected a table of settings, not a list"));
            assert_eq!(given("null"), format!("{table}: expected a table of settings, not null"));
            MultiFlowConfig::from_json(&format!("{{\"{table}\": {{}}}}")).unwrap();
        }
        assert_eq!(error(r#"{"reward": "relative"}"#), "reward: expected a table of settings, not text");
    }

    #[test]
    fn no_lifetime_means_to_the_end() {
        for never in ["null", "\"never\""] {
            let json = format!("{{\"lifetime\": {never}}}");
            assert_eq!(MultiFlowConfig::from_json(&json).unwrap().lifetime, None);
        }
        let lifetime = MultiFlowConfig::from_json(r#"{"lifetime": [5, 10]}"#).unwrap().lifetime;
        assert_eq!(lifetime, Some(Range::new(5.0, 10.0)));
    }
}
