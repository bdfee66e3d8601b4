//! Where a service listens.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::str::FromStr;

/// An address: `unix:PATH` or `udp:HOST:PORT`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A stream socket in the file system.
    Unix(PathBuf),
    /// Datagrams.
    Udp(SocketAddr),
}

impl Address {
    /// The socket of a service that runs as a unit of the system.
    pub const DEFAULT: &str = "unix:/run/astraea/serve.sock";

    /// Longest path that the system takes (`sockaddr_un`), less its end.
    const LONGEST: usize = 107;

    /// Whether messages can leave this host.
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Udp(address) if !address.ip().is_loopback())
    }
}

/// Why a text is no address. Displays as one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum AddressError {
    #[error("address {0:?}: expected unix:PATH or udp:HOST:PORT")]
    Form(String),
    #[error("address {0:?}: the path is empty or longer than {longest} bytes", longest = Address::LONGEST)]
    Path(String),
    #[error("address {0:?}: expected a host that is known and a port, like udp:127.0.0.1:8888")]
    Host(String),
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let Some((kind, rest)) = text.split_once(':') else { return Err(AddressError::Form(text.to_owned())) };
        match kind {
            "unix" if (1..=Self::LONGEST).contains(&rest.len()) && !rest.contains('\0') => Ok(Self::Unix(rest.into())),
            "unix" => Err(AddressError::Path(text.to_owned())),
            "udp" => {
                let found = rest.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
                found.map(Self::Udp).ok_or_else(|| AddressError::Host(text.to_owned()))
            }
            _ => Err(AddressError::Form(text.to_owned())),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Udp(address) => write!(f, "udp:{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for text in ["unix:/run/a.sock", "unix:a b", "udp:127.0.0.1:8888", "udp:[::1]:1"] {
            assert_eq!(text.parse::<Address>().unwrap().to_string(), text);
        }
        assert!(!"udp:127.9.9.9:1".parse::<Address>().unwrap().is_remote());
        assert!("udp:0.0.0.0:1".parse::<Address>().unwrap().is_remote());
    }

    #[test]
    fn each_mistake_has_one_line() {
        let long = format!("unix:{}", "x".repeat(108));
        for text in ["", "tcp:1.2.3.4:1", "/run/a.sock", "unix:", &long, "udp:127.0.0.1", "udp:127.0.0.1:99999"] {
            let line = text.parse::<Address>().unwrap_err().to_string();
            assert!(line.starts_with("address ") && !line.contains('\n'), "{line}");
        }
    }
}
