//! An inference service that decides for the learned flows of a trial.

use std::path::Path;
use std::time::Duration;

use astraea_policy::{AgentConfig, Policy};
use astraea_quic::{Scheme, time_of_day};
use astraea_serve::client::Counts;
use astraea_serve::{Address, Client, Key, Link};

/// How long finding the service may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// A connection to a service, made in the network namespace of the caller's thread.
#[derive(Clone, Debug)]
pub struct Service {
    config: AgentConfig,
    link: Link,
}

impl Service {
    /// Connects to the service at an address, with the shared key of that file if one is given. Errors are one line.
    pub(crate) fn connect(address: &str, key: Option<&str>) -> Result<Self, String> {
        let plain = |error: &dyn std::fmt::Display| error.to_string();
        let address: Address = address.parse().map_err(|error| plain(&error))?;
        let key = key.map(|file| Key::load(Path::new(file))).transpose().map_err(|error| plain(&error))?;
        let period = Duration::from_nanos(AgentConfig::PERIOD);
        let mut client = Client::connect(address.clone(), key, period, PATIENCE).map_err(|error| plain(&error))?;
        let config = client.terms().ok_or_else(|| format!("{address}: the service has gone"))?.agent();
        client.set_timeout(Duration::from_nanos(config.period));
        Ok(Self { config, link: Link::in_real_time(client) })
    }

    /// The scheme of that name whose policy is this one, decided by the service, which must be serving it.
    pub(crate) fn scheme(&self, name: &str, policy: &Policy) -> Result<Scheme, String> {
        self.link.check_policy(name, policy).map_err(|error| error.to_string())?;
        let (config, link) = (self.config, self.link.clone());
        Ok(Scheme::custom(move |mss| link.controller(AgentConfig { clock: time_of_day(), ..config }, mss)))
    }

    /// Who decided.
    pub(crate) fn counts(&self) -> Counts {
        self.link.counts()
    }
}
