//! What can go wrong, in one line each.

use std::path::PathBuf;

/// Why the kernel does not do what it was asked to.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum Error {
    #[error("Linux {found}: the controller needs 6.10 or newer")]
    OldKernel { found: String },
    #[error("this kernel tells no types (no /sys/kernel/btf/vmlinux); it was built without CONFIG_DEBUG_INFO_BTF")]
    NoTypes,
    #[error(
        "this kernel has no congestion controllers in BPF (no {0} in its types); it was built without CONFIG_BPF_JIT or CONFIG_BPF_SYSCALL"
    )]
    NoStructOps(&'static str),
    #[error("missing capability {0}; run as root, or give astraead CAP_BPF and CAP_PERFMON")]
    Capability(&'static str),
    #[error(
        "nobody in a user namespace may load BPF programs, not even its root; run as the host's root, outside the namespace"
    )]
    UserNamespace,
    #[error("{path}: no BPF file system is mounted there; mount one with: mount -t bpf bpf {path}", path = .0.display())]
    NoFileSystem(PathBuf),
    #[error("{name} is attached already ({path}); detach it first", path = .path.display())]
    Attached { name: String, path: PathBuf },
    #[error("a congestion controller called {0} is registered already, and not by this program")]
    NameTaken(String),
    #[error("{name} is not attached: there is no {path}", path = .path.display())]
    NotAttached { name: String, path: PathBuf },
    #[error("what is attached was attached by another version of this program; detach it, then attach again")]
    OtherVersion,
    #[error("the name {0:?} does not fit: expected 1 to 15 letters, digits, _ or .")]
    Name(String),
    #[error("a network {shape} does not fit into the kernel: {what}")]
    TooLarge { shape: String, what: String },
    #[error("{action}: {reason}")]
    System { action: String, reason: String },
}

impl Error {
    /// An error of the kernel or of libbpf, with what was being done.
    pub(crate) fn system(action: impl Into<String>, error: &dyn std::error::Error) -> Self {
        let mut reason = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            let text = error.to_string();
            if !reason.contains(&text) {
                reason = format!("{reason}: {text}");
            }
            source = error.source();
        }
        Self::System { action: action.into(), reason }
    }
}

/// Results of this crate.
pub(crate) type Result<T> = std::result::Result<T, Error>;
