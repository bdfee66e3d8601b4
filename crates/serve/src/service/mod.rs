//! The service: sockets, turns and signals around the [`Engine`].

mod connection;
mod datagrams;
mod engine;
mod error;
mod flows;
mod gather;
mod listen;
mod loaded;
mod metrics;
mod peers;
mod replay;
mod run;
mod seldom;
mod sessions;
mod share;

use std::net::SocketAddr;
use std::time::Duration;

pub use engine::{Dropped, Engine, Limits, Round};
pub use error::ServiceError;
pub use loaded::{Loaded, Source};
pub use run::{Control, Service};
pub use sessions::{Peer, Route};

use crate::{Address, Key};

/// What a service does.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it listens, besides the sockets that systemd hands over.
    pub listen: Vec<Address>,
    /// The policy.
    pub policy: Source,
    /// Key of the datagrams; needed where they can come from other hosts.
    pub key: Option<Key>,
    /// Longest wait for a batch.
    pub max_wait: Duration,
    /// What it remembers.
    pub limits: Limits,
    /// Permissions of sockets in the file system.
    pub mode: u32,
    /// Users who may connect to sockets in the file system; none given: whom the permissions let.
    pub users: Vec<u32>,
    /// Where metrics are shown.
    pub metrics: Option<SocketAddr>,
}

impl Config {
    /// A service of this policy at these addresses.
    pub fn new(policy: Source, listen: Vec<Address>) -> Self {
        Self {
            listen,
            policy,
            key: None,
            max_wait: Duration::from_millis(5),
            limits: Limits::default(),
            mode: 0o660,
            users: Vec::new(),
            metrics: None,
        }
    }
}
