//! The policies that come with the crate, as schemes.

use std::sync::{Arc, OnceLock};

use astraea_cc::{AnyController, Scheme};

use crate::{Pilot, Policy};

/// A policy file within the library.
struct Shipped {
    scheme: Scheme,
    content: &'static [u8],
    policy: OnceLock<Arc<Policy>>,
}

/// A scheme that runs the policy of that name under `python/astraea/models`. Its place in [`POLICIES`] is given because
/// a scheme's `build` is a plain function and finds its policy by it.
macro_rules! shipped {
    ($index:literal, $name:literal, $title:literal, $year:literal, $reference:literal) => {
        Shipped {
            scheme: Scheme {
                name: $name,
                title: $title,
                kind: "learned",
                year: $year,
                reference: $reference,
                parameters: &[],
                build: |_, mss| build($index, mss),
            },
            content: include_bytes!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../python/astraea/models/",
                $name,
                ".safetensors"
            )),
            policy: OnceLock::new(),
        }
    };
}

static POLICIES: [Shipped; 3] = [
    shipped!(0, "astraea", "Astraea", 2024, "Liao et al., EuroSys 2024; models/astraea.md"),
    shipped!(
        1,
        "astraea-pure",
        "Astraea, the network alone",
        2024,
        "Liao et al., EuroSys 2024; models/astraea-pure.md"
    ),
    shipped!(
        2,
        "astraea-paper",
        "Astraea, the papers' recipe",
        2024,
        "Liao et al., EuroSys 2024; models/astraea-paper.md"
    ),
];

/// The shipped policies as schemes.
pub(crate) fn schemes() -> impl Iterator<Item = &'static Scheme> {
    POLICIES.iter().map(|shipped| &shipped.scheme)
}

/// The names of the shipped policies.
pub fn names() -> impl Iterator<Item = &'static str> {
    POLICIES.iter().map(|shipped| shipped.scheme.name)
}

/// The file of the shipped policy called `name`.
pub fn file(name: &str) -> Option<&'static [u8]> {
    POLICIES.iter().find(|shipped| shipped.scheme.name == name).map(|shipped| shipped.content)
}

/// The shipped policy of that name, if there is one.
pub(crate) fn policy(name: &str) -> Option<Arc<Policy>> {
    POLICIES.iter().find(|shipped| shipped.scheme.name == name).map(Shipped::read)
}

impl Shipped {
    fn read(&self) -> Arc<Policy> {
        let read = || Arc::new(Policy::from_bytes(self.content).expect("a test reads every shipped policy"));
        self.policy.get_or_init(read).clone()
    }
}

fn build(index: usize, mss: u32) -> AnyController {
    AnyController::Custom(Box::new(Pilot::new(POLICIES[index].read(), mss)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_policy_can_be_read_and_bears_its_name() {
        for (index, shipped) in POLICIES.iter().enumerate() {
            let name = shipped.scheme.name;
            let policy = Policy::from_bytes(shipped.content).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(policy.metadata().notes.get("name").map(String::as_str), Some(name));
            build(index, astraea_cc::MSS);
            assert!(shipped.policy.get().is_some_and(|built| built.to_bytes() == policy.to_bytes()), "{name}");
        }
    }
}
