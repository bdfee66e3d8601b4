//! The values of a scheme's parameters.

use super::Scheme;

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

    /// A parameter in packets as payload bytes; panics as [`get`](Self::get) does.
    pub fn bytes(&self, name: &str, mss: u32) -> u64 {
        (self.get(name) * f64::from(mss)).round() as u64
    }
}
