//! Every scheme that a user can name: the classic ones, the yardsticks, and the shipped policies.

use std::sync::Arc;

use astraea_cc::{AnyController, Nanos, SCHEMES, Scheme, SchemeError};

use crate::{Pilot, Policy, aurora, fast, mocc, orca, selector};

/// All schemes.
pub fn all() -> impl Iterator<Item = &'static Scheme> {
    let rivals = [&aurora::SCHEME, &mocc::SCHEME, &orca::SCHEME].into_iter().chain(&selector::SCHEMES);
    SCHEMES.iter().chain(rivals).chain(&fast::SCHEMES).chain(crate::shipped::schemes())
}

/// The scheme called `name`.
///
/// # Errors
/// [`SchemeError::UnknownScheme`].
pub fn find(name: &str) -> Result<&'static Scheme, SchemeError> {
    Scheme::find(name, all())
}

/// A controller of the scheme called `name`, see [`Scheme::controller`].
///
/// # Errors
/// As [`find`] and [`Scheme::check`].
pub fn build(name: &str, params: &[(String, f64)], mss: u32) -> Result<AnyController, SchemeError> {
    find(name)?.controller(params, mss)
}

/// The policy that comes under this name, if there is one.
pub fn policy(name: &str) -> Option<Arc<Policy>> {
    crate::shipped::policy(name)
}

/// A controller that runs a policy, for a host whose time of day is that of the controller's clock and so many ns.
pub fn learned(policy: Arc<Policy>, clock: Nanos, mss: u32) -> AnyController {
    AnyController::Custom(Box::new(Pilot::with_clock(policy, clock, mss)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use astraea_cc::{Controller, MSS};

    #[test]
    fn the_registry_is_consistent() {
        let names: Vec<_> = all().map(|scheme| scheme.name).collect();
        for (index, scheme) in all().enumerate() {
            assert!(!names[..index].contains(&scheme.name), "{} twice", scheme.name);
            for parameter in scheme.parameters {
                assert!(parameter.accepts(parameter.default), "{} of {}", parameter.name, scheme.name);
            }
            assert!(build(scheme.name, &[], MSS).unwrap().cwnd() >= u64::from(MSS), "{}", scheme.name);
        }
    }

    #[test]
    fn each_mistake_has_one_clear_line() {
        let error = |name: &str, params: &[(String, f64)]| build(name, params, MSS).unwrap_err().to_string();
        assert_eq!(error("fast-orakel", &[]), r#"unknown scheme "fast-orakel", did you mean "fast-oracle"?"#);
        assert_eq!(error("cubik", &[]), r#"unknown scheme "cubik", did you mean "cubic"?"#);
        let listed = error("quic", &[]);
        assert!(listed.contains("newreno") && listed.contains("fast-oracle"), "{listed}");
        assert_eq!(
            error("fast", &[("backlog".to_owned(), 0.0)]),
            r#"parameter "backlog" of scheme "fast" is 0, expected 0.1 to 10000 packets"#
        );
    }
}
