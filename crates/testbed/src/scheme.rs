//! Which schemes the kernel has: the one table that says what it calls them. Policies become schemes of the kernel for a
//! trial.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;

use astraea_policy::{Policy, schemes};

/// Where the kernel lists the congestion controls that it has loaded.
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// A scheme that a kernel may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelScheme {
    /// Its name in `--cc`.
    pub name: &'static str,
    /// Its name in `TCP_CONGESTION`.
    pub kernel: &'static str,
    /// Whether it asks TCP to pace; the pacing rate of the others is computed by the kernel, but not used.
    pub paced: bool,
    /// Command that makes it available where it is not.
    pub fix: &'static str,
    /// Whether it is a shipped policy, which a trial registers for itself under another name.
    pub learned: bool,
}

/// All of them, in the order of listings.
pub const SCHEMES: [KernelScheme; 6] = [
    own("cubic", "cubic", false, "modprobe tcp_cubic"),
    own("newreno", "reno", false, "modprobe tcp_reno"),
    own("bbr", "bbr", true, "modprobe tcp_bbr"),
    learned("astraea", "astraea attach"),
    learned("astraea-pure", "astraea attach --policy astraea-pure"),
    learned("astraea-paper", "astraea attach --policy astraea-paper"),
];

const fn own(name: &'static str, kernel: &'static str, paced: bool, fix: &'static str) -> KernelScheme {
    KernelScheme { name, kernel, paced, fix, learned: false }
}

const fn learned(name: &'static str, fix: &'static str) -> KernelScheme {
    KernelScheme { name, kernel: "astraea", paced: true, fix, learned: true }
}

/// The congestion control of a flow.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// As it was asked for: a name in `--cc`, or the path of a policy.
    pub name: String,
    /// Its name in `TCP_CONGESTION`.
    pub kernel: String,
    /// Whether it asks TCP to pace.
    pub paced: bool,
    /// Command that makes it available where it is not.
    pub fix: &'static str,
    /// The policy that has to be registered before, under the name that is then in `kernel`.
    pub policy: Option<Arc<Policy>>,
}

impl Chosen {
    /// A policy in a file.
    pub fn file(path: &str, policy: Policy) -> Self {
        let kernel = "astraea".to_owned();
        Self { name: path.to_owned(), kernel, paced: true, fix: "astraea attach", policy: Some(Arc::new(policy)) }
    }
}

impl From<&KernelScheme> for Chosen {
    fn from(scheme: &KernelScheme) -> Self {
        let policy = scheme.learned.then(|| schemes::policy(scheme.name)).flatten();
        let KernelScheme { name, kernel, paced, fix, .. } = *scheme;
        Self { name: name.to_owned(), kernel: kernel.to_owned(), paced, fix, policy }
    }
}

/// The scheme called `name` in `--cc`.
pub fn find(name: &str) -> Option<&'static KernelScheme> {
    SCHEMES.iter().find(|scheme| scheme.name == name)
}

/// The kernel's names of what it has now; empty where they cannot be read.
pub fn available() -> BTreeSet<String> {
    let listed = fs::read_to_string(AVAILABLE).unwrap_or_default();
    listed.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found() {
        for scheme in &SCHEMES {
            assert_eq!(find(scheme.name), Some(scheme));
        }
        assert_eq!(find("vegas"), None);
        for learned in SCHEMES.iter().filter(|scheme| scheme.learned) {
            assert!(Chosen::from(learned).policy.is_some(), "{}", learned.name);
        }
    }

    #[test]
    fn every_kernel_has_reno() {
        // Reno is compiled into TCP itself, so a readable list without it was not understood.
        let available = available();
        assert!(available.is_empty() || available.contains("reno"), "{available:?}");
    }
}
