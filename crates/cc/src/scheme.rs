//! The schemes that a user can name, their parameters, and controllers built from them.

mod any;
mod error;
mod manual;
mod values;

pub use any::AnyController;
pub use error::SchemeError;
pub use manual::Manual;
pub use values::Values;

use crate::{
    allegro, bbr, bbr3, c2tcp, compound, constant, copa, cubic, illinois, newreno, remy, vegas, vivace, westwood,
};
use error::nearest;

/// Unit of a parameter that is either 0 or 1.
const SWITCH: &str = "0 or 1";

/// A number that a user can set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Name, in `snake_case`.
    pub name: &'static str,
    /// Value unless set.
    pub default: f64,
    /// Smallest value allowed.
    pub min: f64,
    /// Largest value allowed.
    pub max: f64,
    /// Unit, `"1"` for a plain number, `"0 or 1"` for a switch.
    pub unit: &'static str,
    /// One line on what it does.
    pub doc: &'static str,
}

impl Parameter {
    /// A parameter that is either 0 or 1.
    pub const fn switch(name: &'static str, default: bool, doc: &'static str) -> Self {
        Self { name, default: if default { 1.0 } else { 0.0 }, min: 0.0, max: 1.0, unit: SWITCH, doc }
    }

    /// A number of packets, up to a million.
    pub const fn packets(name: &'static str, default: f64, doc: &'static str) -> Self {
        Self { name, default, min: 0.0, max: 1e6, unit: "packets", doc }
    }

    /// Whether the parameter may have this value.
    pub fn accepts(&self, value: f64) -> bool {
        (self.min..=self.max).contains(&value) && (self.unit != SWITCH || value.fract() == 0.0)
    }
}

/// A congestion control scheme.
#[derive(Clone, Copy, Debug)]
pub struct Scheme {
    /// What a user types.
    pub name: &'static str,
    /// What a legend or table shows.
    pub title: &'static str,
    /// Family: `"classic"` (window follows losses), `"delay"` (the queueing delay), `"hybrid"` (losses, and delay or
    /// rate), `"model"` (an estimate of bandwidth and propagation delay), `"online-learning"` (trials of its own),
    /// `"table"` (rules that a program wrote), `"learned"` (a policy's answers), `"selector"` (one of others, which models
    /// choose) or `"constant"`.
    pub kind: &'static str,
    /// Year of the defining publication, 0 if there is none.
    pub year: u16,
    /// Defining publication.
    pub reference: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Makes a controller from checked parameters for segments of this many payload bytes (at least 1).
    pub build: fn(&Values<'_>, u32) -> AnyController,
}

/// Every scheme of this crate, each from the file of its algorithm.
pub static SCHEMES: &[Scheme] = &[
    newreno::SCHEME,
    cubic::SCHEME,
    copa::SCHEME,
    vegas::SCHEME,
    compound::SCHEME,
    illinois::SCHEME,
    westwood::SCHEME,
    c2tcp::SCHEME,
    bbr::SCHEME,
    bbr3::SCHEME,
    allegro::SCHEME,
    vivace::SCHEME,
    remy::SCHEME,
    constant::RATE,
    constant::WINDOW,
];

/// Names are unique.
impl PartialEq for Scheme {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Scheme {
    /// The scheme called `name` among these.
    ///
    /// # Errors
    /// [`SchemeError::UnknownScheme`].
    pub fn find(name: &str, schemes: impl Iterator<Item = &'static Self>) -> Result<&'static Self, SchemeError> {
        let schemes: Vec<_> = schemes.collect();
        schemes.iter().find(|scheme| scheme.name == name).copied().ok_or_else(|| {
            let known: Vec<_> = schemes.iter().map(|scheme| scheme.name).collect();
            SchemeError::UnknownScheme { name: name.to_owned(), nearest: nearest(name, known.iter().copied()), known }
        })
    }

    /// Whether these parameters can be set to these values.
    ///
    /// # Errors
    /// The first parameter that is unknown, given twice or out of range.
    pub fn check(&'static self, params: &[(String, f64)]) -> Result<(), SchemeError> {
        for (index, (name, value)) in params.iter().enumerate() {
            let Some(parameter) = self.parameters.iter().find(|parameter| parameter.name == name) else {
                let nearest = nearest(name, self.parameters.iter().map(|parameter| parameter.name));
                return Err(SchemeError::UnknownParameter { scheme: self, name: name.clone(), nearest });
            };
            if params[..index].iter().any(|earlier| earlier.0 == *name) {
                return Err(SchemeError::Repeated { scheme: self, parameter });
            }
            if !parameter.accepts(*value) {
                return Err(SchemeError::OutOfRange { scheme: self, parameter, value: *value });
            }
        }
        Ok(())
    }

    /// A controller for segments of `mss` payload bytes (at least 1); parameters that are not given have their default.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn controller(&'static self, params: &[(String, f64)], mss: u32) -> Result<AnyController, SchemeError> {
        Ok((self.build)(&self.values(params)?, mss))
    }

    /// These values of its parameters, and the defaults of the others.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn values<'a>(&'static self, params: &'a [(String, f64)]) -> Result<Values<'a>, SchemeError> {
        self.check(params)?;
        Ok(Values::new(self, params))
    }
}

/// A controller of the scheme of this crate that is called `name`, see [`Scheme::controller`].
///
/// # Errors
/// As [`Scheme::find`] and [`Scheme::check`].
pub fn build(name: &str, params: &[(String, f64)], mss: u32) -> Result<AnyController, SchemeError> {
    Scheme::find(name, SCHEMES.iter())?.controller(params, mss)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Controller, MSS};

    fn set(params: &[(&str, f64)]) -> Vec<(String, f64)> {
        params.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    fn error(name: &str, params: &[(&str, f64)]) -> String {
        build(name, &set(params), MSS).expect_err("a mistake").to_string()
    }

    #[test]
    fn the_registry_is_consistent() {
        for (index, scheme) in SCHEMES.iter().enumerate() {
            assert!(SCHEMES[..index].iter().all(|other| other.name != scheme.name), "{} twice", scheme.name);
            for parameter in scheme.parameters {
                assert!(parameter.accepts(parameter.default), "{} of {}", parameter.name, scheme.name);
            }
            assert!(build(scheme.name, &[], MSS).is_ok(), "{}", scheme.name);
        }
    }

    #[test]
    fn parameters_reach_the_controller() {
        let window = build("constant-window", &set(&[("window", 2.5)]), 1000).unwrap();
        assert_eq!((window.cwnd(), window.pacing_rate()), (2500, None));
        let rate = build("constant-rate", &set(&[("rate", 5e6), ("window", 20.0)]), 1000).unwrap();
        assert_eq!((rate.cwnd(), rate.pacing_rate()), (20_000, Some(5e6)));
    }

    #[test]
    fn each_mistake_has_one_clear_line() {
        assert_eq!(error("cubik", &[]), r#"unknown scheme "cubik", did you mean "cubic"?"#);
        assert_eq!(error("reno", &[]), r#"unknown scheme "reno", did you mean "newreno"?"#);
        assert_eq!(error("NewReno", &[]), r#"unknown scheme "NewReno", did you mean "newreno"?"#);
        assert_eq!(
            error("quic", &[]),
            r#"unknown scheme "quic", expected one of newreno, cubic, copa, vegas, compound, illinois, westwood, c2tcp, bbr, bbr3, allegro, vivace, remy, constant-rate, constant-window"#
        );
        assert_eq!(error("cubic", &[("bta", 0.5)]), r#"scheme "cubic" has no parameter "bta", did you mean "beta"?"#);
        assert_eq!(
            error("cubic", &[("window", 5.0)]),
            r#"scheme "cubic" has no parameter "window", expected one of hystart, linux, fast_convergence, beta, c"#
        );
        assert_eq!(error("newreno", &[("beta", 0.5)]), r#"scheme "newreno" has no parameter "beta", it takes none"#);
        assert_eq!(
            error("cubic", &[("beta", 1.5)]),
            r#"parameter "beta" of scheme "cubic" is 1.5, expected 0.1 to 0.95"#
        );
        assert_eq!(
            error("cubic", &[("hystart", 0.5)]),
            r#"parameter "hystart" of scheme "cubic" is 0.5, expected 0 or 1"#
        );
        assert_eq!(
            error("constant-window", &[("window", f64::NAN)]),
            r#"parameter "window" of scheme "constant-window" is NaN, expected 1 to 1000000 packets"#
        );
        assert_eq!(
            error("cubic", &[("beta", 0.5), ("beta", 0.6)]),
            r#"parameter "beta" of scheme "cubic" is given twice"#
        );
    }
}
