//! The policies that come with the crate, as schemes.

use std::sync::{Arc, LazyLock};

use astraea_cc::{AnyController, Scheme};

use crate::{Pilot, Policy};

/// A policy file within the library.
struct Shipped {
    scheme: Scheme,
    content: &'static [u8],
    policy: LazyLock<Arc<Policy>>,
}

/// The policy of that name under `python/astraea/models`, and the scheme that runs it. Each is a static of its own because a
/// scheme's `build` is a plain function.
macro_rules! shipped {
    ($shipped:ident, $name:literal, $title:literal) => {
        static $shipped: Shipped = Shipped {
            scheme: Scheme {
                name: $name,
                title: $title,
                kind: "learned",
                year: 2024,
                reference: concat!("Liao et al., EuroSys 2024; models/", $name, ".md"),
                parameters: &[],
                build: |_, mss| AnyController::Custom(Box::new(Pilot::new($shipped.policy.clone(), mss))),
            },
            content: include_bytes!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../python/astraea/models/",
                $name,
                ".safetensors"
            )),
            policy: LazyLock::new(|| {
                let policy = Policy::from_bytes($shipped.content);
                Arc::new(policy.expect("a test reads every shipped policy"))
            }),
        };
    };
}

shipped!(ASTRAEA, "astraea", "Astraea");
shipped!(PURE, "astraea-pure", "Astraea, the network alone");
shipped!(PAPER, "astraea-paper", "Astraea, the papers' recipe");

static POLICIES: [&Shipped; 3] = [&ASTRAEA, &PURE, &PAPER];

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
    find(name).map(|shipped| shipped.content)
}

/// The shipped policy of that name, if there is one.
pub(crate) fn policy(name: &str) -> Option<Arc<Policy>> {
    find(name).map(|shipped| shipped.policy.clone())
}

fn find(name: &str) -> Option<&'static Shipped> {
    POLICIES.into_iter().find(|shipped| shipped.scheme.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_policy_can_be_read_and_bears_its_name() {
        for shipped in POLICIES {
            let name = shipped.scheme.name;
            let policy = Policy::from_bytes(shipped.content).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(policy.metadata().notes.get("name").map(String::as_str), Some(name));
            assert_eq!(shipped.policy.to_bytes(), policy.to_bytes(), "{name}");
        }
    }
}
