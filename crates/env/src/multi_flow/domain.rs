//! What may happen in an episode besides flows that come and go: by default, nothing of it.

use astraea_cc::MSS;
use serde::Deserialize;

use crate::error::EnvError;
use crate::range::Range;

/// Flows of other schemes on the same link. They ask for no action, but they count as flows.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Neighbours {
    /// Probability that an episode has some.
    pub probability: f64,
    /// Their schemes; each neighbour draws one.
    pub schemes: Vec<String>,
    /// How many they are; uniform. They arrive and leave as the other flows do, mixed with them at random.
    pub flows: Range,
}

impl Default for Neighbours {
    fn default() -> Self {
        Self { probability: 0.0, schemes: vec!["cubic".into(), "bbr".into()], flows: Range::new(1.0, 3.0) }
    }
}

impl Neighbours {
    fn validate(&self) -> Result<(), EnvError> {
        EnvError::unless_within("neighbours.probability", self.probability, 0.0, 1.0)?;
        if self.schemes.is_empty() {
            return Err(EnvError::new("neighbours.schemes", "is empty, expected at least one scheme"));
        }
        for name in &self.schemes {
            astraea_cc::build(name, &[], MSS).map_err(|e| EnvError::new("neighbours.schemes", e))?;
        }
        self.flows.check("neighbours.flows", 1.0, 100.0)?;
        self.flows.check_whole("neighbours.flows")
    }
}

/// A path that changes under the flows. Capacity and base round-trip time are drawn again from their ranges, both at
/// the same moments where both change (as in a hand-over).
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Changes {
    /// Probability that the capacity of an episode changes.
    pub bandwidth: f64,
    /// Probability that the base round-trip time of an episode changes. Differences between flows stay as they are.
    pub rtt: f64,
    /// Time in s from one change to the next; uniform.
    pub every: Range,
}

impl Default for Changes {
    fn default() -> Self {
        Self { bandwidth: 0.0, rtt: 0.0, every: Range::new(5.0, 15.0) }
    }
}

/// Times in which the link carries nothing. What waits, waits on.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Outages {
    /// Probability that an episode has some.
    pub probability: f64,
    /// Time in s from the end of one to the next; uniform.
    pub every: Range,
    /// Length in s; log-uniform.
    pub length: Range,
}

impl Default for Outages {
    fn default() -> Self {
        Self { probability: 0.0, every: Range::new(5.0, 20.0), length: Range::new(0.1, 3.0) }
    }
}

/// Flows with little to send that come all the time, beside the long ones.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShortFlows {
    /// Probability that an episode has some.
    pub probability: f64,
    /// Mean time between their arrivals in s, a Poisson process; the mean of an episode is log-uniform.
    pub every: Range,
    /// Payload bytes of each; log-uniform.
    pub bytes: Range,
}

impl ShortFlows {
    /// Most short flows of an episode; further ones do not come.
    pub const MOST: usize = 200;
}

impl Default for ShortFlows {
    fn default() -> Self {
        Self { probability: 0.0, every: Range::new(0.3, 3.0), bytes: Range::new(1e4, 1e6) }
    }
}

/// Checks all of them.
pub(super) fn validate(
    neighbours: &Neighbours,
    changes: &Changes,
    outages: &Outages,
    short_flows: &ShortFlows,
) -> Result<(), EnvError> {
    neighbours.validate()?;
    for (setting, probability) in [
        ("changes.bandwidth", changes.bandwidth),
        ("changes.rtt", changes.rtt),
        ("outages.probability", outages.probability),
        ("short_flows.probability", short_flows.probability),
    ] {
        EnvError::unless_within(setting, probability, 0.0, 1.0)?;
    }
    changes.every.check("changes.every", 0.1, 1e6)?;
    outages.every.check("outages.every", 0.1, 1e6)?;
    outages.length.check("outages.length", 1e-3, 1e3)?;
    short_flows.every.check("short_flows.every", 1e-2, 1e6)?;
    short_flows.bytes.check("short_flows.bytes", 1.0, 1e12)
}
