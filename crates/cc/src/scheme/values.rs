//! The values of a scheme's parameters.

use super::Scheme;
use crate::{Nanos, SECOND};

/// Checked values of a scheme's parameters.
pub struct Values<'a> {
    scheme: &'static Scheme,
    given: &'a [(String, f64)],
}

impl<'a> Values<'a> {
    pub(super) fn new(scheme: &'static Scheme, given: &'a [(String, f64)]) -> Self {
        Self { scheme, given }
    }

    /// The value of a parameter: as given, or its default.
    ///
    /// # Panics
    /// If the scheme has no such parameter.
    pub fn get(&self, name: &str) -> f64 {
        let given = self.given.iter().find(|(given, _)| given == name).map(|(_, value)| *value);
        let default = || self.scheme.parameters.iter().find(|parameter| parameter.name == name).map(|p| p.default);
        given.or_else(default).expect("a scheme asks for parameters that it declares")
    }

    /// Whether a switch is on; panics as [`get`](Self::get) does.
    pub fn switch(&self, name: &str) -> bool {
        self.get(name) != 0.0
    }

    /// A parameter in s as a time in ns; panics as [`get`](Self::get) does.
    pub fn time(&self, name: &str) -> Nanos {
        (self.get(name) * SECOND as f64).round() as Nanos
    }

    /// A parameter in packets as payload bytes; panics as [`get`](Self::get) does.
    pub fn bytes(&self, name: &str, mss: u32) -> u64 {
        (self.get(name) * f64::from(mss)).round() as u64
    }
}
