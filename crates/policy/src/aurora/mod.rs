//! Aurora: a policy that was trained alone, on one flow a link, and sets a rate (Jay et al., ICML 2019).

mod history;
mod interval;
mod policy;
mod sender;

use std::sync::{Arc, LazyLock};

use astraea_cc::{AnyController, Parameter, Scheme, Values};

pub use history::{FEATURES, History};
pub use interval::Interval;
pub(crate) use policy::{ACTIVATION, KEYS};
pub use policy::{AuroraPolicy, AuroraTerms};
pub use sender::{Aurora, AuroraConfig};

/// The policy that comes with the crate; `examples/train_aurora.py` made it.
static SHIPPED: LazyLock<Arc<AuroraPolicy>> = LazyLock::new(|| {
    let policy = AuroraPolicy::from_bytes(include_bytes!("shipped.aurora"));
    Arc::new(policy.expect("a test reads the shipped policy"))
});

/// The policy that comes with the crate.
pub fn shipped() -> Arc<AuroraPolicy> {
    SHIPPED.clone()
}

/// The shipped policy as a scheme.
pub(crate) static SCHEME: Scheme = Scheme {
    name: "aurora",
    title: "Aurora",
    kind: "learned",
    year: 2019,
    reference: "Jay et al., ICML 2019; models/aurora.md",
    parameters: &[
        rate("start", 6e6, "rate at the start"),
        rate("least", 0.5e6, "smallest rate"),
        rate("most", 300e6, "largest rate"),
        Parameter {
            name: "alpha",
            default: 0.025,
            min: 1e-4,
            max: 1.0,
            unit: "1",
            doc: "change of the rate by an action of 1: .025 in the paper, .05 in its authors' sender",
        },
    ],
    build,
};

/// A parameter that is a rate.
pub(crate) const fn rate(name: &'static str, default: f64, doc: &'static str) -> Parameter {
    Parameter { name, default, min: 1e3, max: 1e12, unit: "bit/s", doc }
}

fn build(values: &Values<'_>, mss: u32) -> AnyController {
    let [start, least, most] = ["start", "least", "most"].map(|name| values.get(name));
    let config = AuroraConfig { start, least, most: most.max(least), alpha: values.get("alpha") };
    AnyController::Custom(Box::new(Aurora::new(shipped(), config, mss)))
}
