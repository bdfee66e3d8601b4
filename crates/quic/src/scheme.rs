//! What controls a connection.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use astraea_cc::{AnyController, Controller, Nanos, SchemeError};
use astraea_policy::{AgentConfig, Policy, SchemeFile, SchemeFileError, schemes};

/// Makes the controller of each new connection.
#[derive(Clone)]
pub struct Scheme(Arc<dyn Fn(u32) -> AnyController + Send + Sync>);

impl Scheme {
    /// The scheme that users know by that name, for example `"astraea"` or `"copa"`, with these of its parameters set.
    ///
    /// # Errors
    /// One line if there is no such scheme or parameter, or if a value is out of range.
    pub fn named(name: &str, params: &[(String, f64)]) -> Result<Self, SchemeError> {
        let scheme = schemes::find(name)?;
        scheme.check(params)?;
        if let Some(policy) = schemes::policy(name) {
            return Ok(Self::of(policy));
        }
        let params = params.to_vec();
        Ok(Self::any(move |mss| {
            scheme.controller(&params, mss).unwrap_or_else(|error| unreachable!("checked above: {error}"))
        }))
    }

    /// A policy, for example read from a file by [`Policy::from_bytes`].
    pub fn learned(policy: Policy) -> Self {
        Self::of(Arc::new(policy))
    }

    /// What a file holds that stands for a scheme, with these of its parameters set; errors call it `name`.
    ///
    /// # Errors
    /// One line if it takes no such parameters, or if a value is out of range.
    pub fn file(name: &str, file: SchemeFile, params: &[(String, f64)]) -> Result<Self, SchemeFileError> {
        file.check(name, params)?;
        let (name, params) = (name.to_owned(), params.to_vec());
        Ok(Self::any(move |mss| {
            let made = file.controller(&name, &params, time_of_day(), mss);
            made.unwrap_or_else(|error| unreachable!("checked above: {error}"))
        }))
    }

    fn of(policy: Arc<Policy>) -> Self {
        Self::any(move |mss| schemes::learned(policy.clone(), time_of_day(), mss))
    }

    /// A controller of one's own, made for segments of that many bytes.
    pub fn custom<C: Controller + Send + Sync + 'static>(make: impl Fn(u32) -> C + Send + Sync + 'static) -> Self {
        Self::any(move |mss| AnyController::Custom(Box::new(make(mss))))
    }

    fn any(make: impl Fn(u32) -> AnyController + Send + Sync + 'static) -> Self {
        Self(Arc::new(make))
    }

    /// A controller for segments of `mss` bytes.
    pub fn controller(&self, mss: u32) -> AnyController {
        (self.0)(mss)
    }
}

/// Time of day as [`AgentConfig::clock`] of a controller made now: a connection's clock begins with its controller.
pub fn time_of_day() -> Nanos {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (since.as_nanos() % u128::from(AgentConfig::HOUR)) as Nanos
}

impl fmt::Debug for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Scheme")
    }
}
