//! Orca: CUBIC whose window a network multiplies once a period (Abbasloo, Yen and Chao, SIGCOMM 2020).

mod policy;
mod report;
mod sender;

use std::sync::{Arc, LazyLock};

use astraea_cc::{AnyController, Parameter, Scheme, Values};

pub use policy::OrcaPolicy;
pub use report::{FEATURES, History, Report};
pub use sender::{Actor, Answer, MOST, Orca, PERIOD, Terms};

/// The policy that comes with the crate; `examples/train_orca.py` made it.
static SHIPPED: LazyLock<Arc<OrcaPolicy>> = LazyLock::new(|| {
    let policy = OrcaPolicy::from_bytes(include_bytes!("shipped.orca"));
    Arc::new(policy.expect("a test reads the shipped policy"))
});

/// The policy that comes with the crate.
pub fn shipped() -> Arc<OrcaPolicy> {
    SHIPPED.clone()
}

/// The shipped policy as a scheme.
pub(crate) static SCHEME: Scheme = Scheme {
    name: "orca",
    title: "Orca",
    kind: "learned",
    year: 2020,
    reference: "Abbasloo et al., SIGCOMM 2020; models/orca.md",
    parameters: &[Parameter {
        name: "most",
        default: MOST,
        min: 10.0,
        max: 1e9,
        unit: "packets",
        doc: "largest window that an action or the start-up leads to; 2900 are what 4 MiB of a socket's buffer hold",
    }],
    build,
};

fn build(values: &Values<'_>, mss: u32) -> AnyController {
    AnyController::Custom(Box::new(Orca::of(shipped(), values.get("most"), mss)))
}
