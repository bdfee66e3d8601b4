//! Which schemes the kernel has: the one table that says what it calls them.

use std::collections::BTreeSet;
use std::fs;

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
}

/// All of them, in the order of listings.
pub const SCHEMES: [KernelScheme; 4] = [
    KernelScheme { name: "cubic", kernel: "cubic", paced: false, fix: "modprobe tcp_cubic" },
    KernelScheme { name: "newreno", kernel: "reno", paced: false, fix: "modprobe tcp_reno" },
    KernelScheme { name: "bbr", kernel: "bbr", paced: true, fix: "modprobe tcp_bbr" },
    KernelScheme { name: "astraea", kernel: "astraea", paced: true, fix: "astraea attach" },
];

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
        assert_eq!(SCHEMES.iter().map(|s| s.kernel).collect::<BTreeSet<_>>().len(), SCHEMES.len());
    }

    #[test]
    fn every_kernel_has_reno() {
        // Reno is compiled into TCP itself, so a readable list without it was not understood.
        let available = available();
        assert!(available.is_empty() || available.contains("reno"), "{available:?}");
    }
}
