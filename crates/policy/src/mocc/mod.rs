//! MOCC: a policy of Aurora's kind that is told what to go for (Ma et al., `EuroSys` 2022).

mod policy;
mod preference;

use std::sync::{Arc, LazyLock};

use astraea_cc::{AnyController, Parameter, Scheme, SchemeError, Values};

use crate::aurora::{Aurora, AuroraConfig, rate};

pub use policy::MoccPolicy;
pub use preference::{FEATURES, Preference, WEIGHT};

/// The policy that comes with the crate; `examples/train_mocc.py` made it.
static SHIPPED: LazyLock<Arc<MoccPolicy>> = LazyLock::new(|| {
    let policy = MoccPolicy::from_bytes(include_bytes!("shipped.mocc"));
    Arc::new(policy.expect("a test reads the shipped policy"))
});

/// The policy that comes with the crate.
pub fn shipped() -> Arc<MoccPolicy> {
    SHIPPED.clone()
}

/// The shipped policy as a scheme.
///
/// The sender is Aurora's ([`Aurora`]), from which the paper has features, intervals and action.
pub(crate) static SCHEME: Scheme = Scheme {
    name: "mocc",
    title: "MOCC",
    kind: "learned",
    year: 2022,
    reference: "Ma et al., EuroSys 2022; models/mocc.md",
    parameters: &[
        weight("throughput", 0.8, "weight of the throughput; of the three weights only the ratios count"),
        weight("latency", 0.1, "weight of the round-trip time"),
        weight("loss", 0.1, "weight of the losses"),
        // Ours: the slowest link of its training. Aurora's 6 Mbit/s are more than the fastest.
        rate("start", 1e6, "rate at the start"),
        rate("least", 0.5e6, "smallest rate"),
        rate("most", 300e6, "largest rate"),
    ],
    build,
};

const fn weight(name: &'static str, default: f64, doc: &'static str) -> Parameter {
    Parameter { name, default, min: *WEIGHT.start(), max: *WEIGHT.end(), unit: "1", doc }
}

fn build(values: &Values<'_>, mss: u32) -> AnyController {
    AnyController::Custom(Box::new(MoccConfig::new(values).sender(&shipped(), mss)))
}

/// What is asked of a flow, and rates in payload bit/s as [`AuroraConfig`] has them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MoccConfig {
    /// How much the objectives weigh.
    pub preference: Preference,
    /// At the start.
    pub start: f64,
    /// Smallest.
    pub least: f64,
    /// Largest, no less than the smallest.
    pub most: f64,
}

impl MoccConfig {
    /// What parameters of the scheme say.
    ///
    /// # Errors
    /// The first parameter that is unknown, given twice or out of range.
    pub fn of(params: &[(String, f64)]) -> Result<Self, SchemeError> {
        SCHEME.values(params).map(|values| Self::new(&values))
    }

    fn new(values: &Values<'_>) -> Self {
        let [throughput, latency, loss] = ["throughput", "latency", "loss"].map(|name| values.get(name));
        let preference = Preference::new([throughput, latency, loss]).expect("parameters within their limits");
        let [start, least, most] = ["start", "least", "most"].map(|name| values.get(name));
        Self { preference, start, least, most: most.max(least) }
    }

    /// A connection that begins, with segments of `mss` payload bytes (at least 1).
    pub fn sender(&self, policy: &MoccPolicy, mss: u32) -> Aurora {
        let policy = Arc::new(policy.prefer(self.preference));
        let Self { start, least, most, .. } = *self;
        let config = AuroraConfig { start, least, most, ..AuroraConfig::of(&policy) };
        Aurora::new(policy, config, mss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_what_they_are_called() {
        let of = |name: &str, value: f64| MoccConfig::of(&[(name.to_owned(), value)]).unwrap();
        let preference = |weights| Preference::new(weights).unwrap();
        assert_eq!(of("throughput", 0.5).preference, preference([0.5, 0.1, 0.1]));
        assert_eq!(of("latency", 0.5).preference, preference([0.8, 0.5, 0.1]));
        assert_eq!(of("loss", 0.5).preference, preference([0.8, 0.1, 0.5]));
        let rates = of("most", 1e5);
        assert_eq!((rates.start, rates.least, rates.most), (1e6, 0.5e6, 0.5e6), "no less than the smallest");
    }
}
