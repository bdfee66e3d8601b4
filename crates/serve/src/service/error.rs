//! Why a service does not start.

use astraea_policy::PolicyError;

use crate::{Address, KeyError};

/// Why there is no service. Displays as one line.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ServiceError {
    #[error(transparent)]
    Policy(#[from] PolicyError),
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("nothing to listen on: expected at least one address")]
    Nowhere,
    #[error("{0} can be reached from other hosts: expected a key (--key) for the messages, or a loopback address")]
    NoKey(Address),
    #[error("{0} is given twice")]
    Twice(Address),
    #[error("{0}: another service listens there")]
    Taken(Address),
    #[error("{0}: there is a file that is no socket")]
    NoSocket(Address),
    #[error("{0}: there is a socket of another type that is in use, expected a path of the service's own")]
    OtherSocket(Address),
    #[error("{address}: {reason}")]
    Listen { address: Address, reason: String },
    #[error(
        "--user {0}: in this user namespace that user has no number, so that nobody can be told to be it \
         (PrivateUsers=no lets a service of systemd's see users)"
    )]
    User(u32),
    #[error("metrics on {address}: {reason}")]
    Metrics { address: std::net::SocketAddr, reason: String },
    #[error("the sockets that systemd hands over: {0}")]
    Activation(String),
    #[error("{0}")]
    System(String),
}
