//! Flows of a simulation that an inference service decides for.

use std::path::Path;
use std::time::Duration;

use astraea_cc::{AnyController, Nanos};
use astraea_policy::{AgentConfig, Policy};
use astraea_serve::{Address, Client, Key, Link};
use pyo3::PyErr;
use pyo3::exceptions::PyConnectionError;

use crate::job::value_error;

/// How long an answer may take, and finding the service: the simulated time stands still meanwhile.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection to a service.
pub(crate) struct Service {
    address: Address,
    config: AgentConfig,
    link: Link,
}

impl Service {
    /// Connects to the service at an address, with the shared key of that file if one is given.
    pub(crate) fn connect(address: &str, key: Option<&str>) -> Result<Self, PyErr> {
        let address: Address = address.parse().map_err(value_error)?;
        let key = key.map(|file| Key::load(Path::new(file))).transpose().map_err(connection_error)?;
        let patience = PATIENCE / 5;
        let client = Client::connect(address.clone(), key, PATIENCE, patience).map_err(connection_error)?;
        let terms = client.terms().ok_or_else(|| connection_error(format!("{address}: has gone")))?;
        Ok(Self { address, config: terms.agent(), link: Link::all_or_nothing(client) })
    }

    /// A controller of a flow whose scheme is this policy, which the service must be serving; `clock` as in [`AgentConfig`].
    pub(crate) fn controller(
        &self,
        scheme: &str,
        policy: &Policy,
        clock: Nanos,
        mss: u32,
    ) -> Result<AnyController, PyErr> {
        self.link.check_policy(scheme, policy).map_err(connection_error)?;
        Ok(AnyController::Custom(Box::new(self.link.controller(AgentConfig { clock, ..self.config }, mss))))
    }

    /// Fails if the service left some decisions to the local rule: they would not be those of the scheme.
    pub(crate) fn check(&self) -> Result<(), PyErr> {
        let counts = self.link.counts();
        if counts.ruled == 0 {
            return Ok(());
        }
        let (address, all) = (&self.address, counts.ruled + counts.answered);
        Err(connection_error(format!("{address}: did not answer {} of {all} requests", counts.ruled)))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "used as an argument of map_err")]
fn connection_error(error: impl ToString) -> PyErr {
    PyConnectionError::new_err(error.to_string())
}
