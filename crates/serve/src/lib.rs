//! The inference service: one process answers many senders, each once a monitoring period (Astraea §4, §5.4).
//!
//! A sender measures and keeps the rules; what it asks for is the network's action, and its request is a [`Report`] of
//! the period that has ended. `docs/protocol.md` specifies the messages.
//!
//! * [`wire`]: the messages, as bytes; [`Key`]: their authentication;
//! * [`Client`]: asks for any number of flows, and answers by the local [`rule`] when the service does not;
//!   [`Remote`] puts it into a controller;
//! * [`Engine`] (feature `service`): sessions, flows, batches, without sockets or clock;
//!   [`Service`]: the process around it; [`page`]: metrics for scrapers.

mod address;
mod auth;
pub mod client;
#[cfg(feature = "service")]
pub mod page;
mod remote;
mod report;
pub mod rule;
#[cfg(feature = "service")]
pub mod service;
mod version;
pub mod wire;

pub use address::{Address, AddressError};
pub use auth::{Key, KeyError};
pub use client::{Client, ClientError, Decision, Origin};
pub use remote::{Link, Remote};
pub use report::{HISTORY, Report, Reporter};
#[cfg(feature = "service")]
pub use service::{Config, Control, Engine, Limits, Service, ServiceError, Source};
pub use version::version;
