//! Why an emulation cannot be set up.

use std::io;

use astraea_sim::ConfigError;

/// One line: what failed, and what would help.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is inconsistent.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A right is missing.
    #[error("{what}: not permitted; emulated links need root, or CAP_NET_ADMIN and CAP_SYS_ADMIN")]
    Permission {
        /// What was tried.
        what: String,
    },
    /// There is no TUN driver.
    #[error(
        "/dev/net/tun: not there; expected the kernel's TUN driver (modprobe tun; in a container --device /dev/net/tun)"
    )]
    NoTun,
    /// Anything else that the kernel refused.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: String,
        /// The kernel's answer.
        source: io::Error,
    },
}

impl Error {
    /// Whether somebody else has what was asked for, for example a device of that name.
    pub fn is_taken(&self) -> bool {
        matches!(self, Self::System { source, .. } if source.kind() == io::ErrorKind::ResourceBusy)
    }

    /// The failure of `what` with the kernel's answer.
    pub(crate) fn system(what: impl Into<String>, source: impl Into<io::Error>) -> Self {
        let (what, source) = (what.into(), source.into());
        if source.kind() == io::ErrorKind::PermissionDenied {
            return Self::Permission { what };
        }
        Self::System { what, source }
    }
}
