//! Selectors: not a window is learned but which of six classic schemes sets it (Antelope, ICNP 2021; HACC).

mod candidate;
mod choice;
mod forest;
mod interval;
mod policy;
mod sender;

use std::sync::{Arc, LazyLock};

use astraea_cc::{AnyController, Parameter, Scheme, Values};

pub use candidate::CANDIDATES;
pub use choice::{Caution, Choose, Judge};
pub use forest::Forest;
pub use interval::{Interval, Kind};
pub use policy::SelectorPolicy;
pub use sender::Selector;

/// The policies that come with the crate; `examples/train_selector.py` made them.
static SHIPPED: LazyLock<[Arc<SelectorPolicy>; 2]> = LazyLock::new(|| {
    let contents: [&[u8]; 2] = [include_bytes!("shipped.antelope"), include_bytes!("shipped.hacc")];
    Kind::ALL.map(|kind| {
        let policy = SelectorPolicy::from_bytes(kind, contents[kind as usize]);
        Arc::new(policy.expect("a test reads the shipped policies"))
    })
});

/// The policy of that kind that comes with the crate.
pub fn shipped(kind: Kind) -> Arc<SelectorPolicy> {
    SHIPPED[kind as usize].clone()
}

/// The shipped policies as schemes.
pub(crate) static SCHEMES: [Scheme; 2] = [
    Scheme {
        name: "antelope",
        title: "Antelope",
        kind: "selector",
        year: 2021,
        reference: "Zhou et al., ICNP 2021; models/antelope.md",
        parameters: &[],
        build: |_, mss| build(Kind::Antelope, Caution::default(), mss),
    },
    Scheme {
        name: "hacc",
        title: "HACC",
        kind: "selector",
        // The paper says no year.
        year: 0,
        reference: "Peng et al.; models/hacc.md",
        parameters: &[
            Parameter {
                name: "price",
                default: 0.05,
                min: 0.0,
                max: 10.0,
                unit: "1",
                doc: "what another scheme must be expected to be worth more (alpha of the paper)",
            },
            Parameter {
                name: "disparity",
                default: 1.5,
                min: 1.0,
                max: 1000.0,
                unit: "1",
                doc: "how many times as large or small throughput or delay must have become for another decision",
            },
        ],
        build: |values, mss| build(Kind::Hacc, caution(values), mss),
    },
];

fn caution(values: &Values<'_>) -> Caution {
    Caution { price: values.get("price"), disparity: values.get("disparity") }
}

fn build(kind: Kind, caution: Caution, mss: u32) -> AnyController {
    AnyController::Custom(Box::new(Selector::of(shipped(kind), caution, mss)))
}
