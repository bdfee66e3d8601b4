//! What a machine lacks for real traffic, asked of the system and not of the code under test: where nothing is missing, what
//! does not work is a failure and no reason to skip.
#![allow(dead_code, reason = "each test uses a part")]

use std::fs::{File, read_to_string};
use std::path::Path;

/// Bits of capabilities (`linux/capability.h`).
const NET_ADMIN: u32 = 12;
const SYS_ADMIN: u32 = 21;
const PERFMON: u32 = 38;
const BPF: u32 = 39;

fn read(path: &str) -> String {
    read_to_string(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn holds(capabilities: &[u32]) -> bool {
    let status = read("/proc/self/status");
    let held = status.lines().find_map(|line| line.strip_prefix("CapEff:")).expect("every Linux tells them");
    let held = u64::from_str_radix(held.trim(), 16).expect("they are hexadecimal");
    capabilities.iter().all(|bit| held >> bit & 1 == 1)
}

/// Whether this is the user namespace of the host, whose rights the kernel asks for where devices have limits and where
/// programs are loaded: all users there are, are users of it.
fn is_host() -> bool {
    read("/proc/self/uid_map").split_whitespace().eq(["0", "0", "4294967295"])
}

/// Whether something is missing, which is printed.
pub(crate) fn skipped(missing: Option<&str>) -> bool {
    if let Some(missing) = missing {
        eprintln!("skipped: this machine lacks {missing}");
    }
    missing.is_some()
}

/// What it takes to make network namespaces.
pub(crate) fn missing_for_namespaces() -> Option<&'static str> {
    (!holds(&[NET_ADMIN, SYS_ADMIN])).then_some("CAP_NET_ADMIN or CAP_SYS_ADMIN")
}

/// What it takes to emulate links between them.
pub(crate) fn missing_for_links() -> Option<&'static str> {
    let tun = || File::options().read(true).write(true).open("/dev/net/tun");
    missing_for_namespaces()
        .or_else(|| (!is_host()).then_some("the host's root"))
        .or_else(|| tun().is_err().then_some("the TUN driver"))
}

/// What it takes to load a congestion controller.
pub(crate) fn missing_for_controllers() -> Option<&'static str> {
    let release = read("/proc/sys/kernel/osrelease");
    let numbers = release.split(['.', '-']).map_while(|number| number.trim().parse::<u32>().ok());
    let rights = holds(&[SYS_ADMIN]) || holds(&[BPF, PERFMON]);
    [
        (numbers.take(2).ge([6, 10]), "Linux 6.10"),
        (Path::new("/sys/kernel/btf/vmlinux").exists(), "a kernel that tells its types"),
        (Path::new("/proc/sys/net/core/bpf_jit_enable").exists(), "a kernel that compiles BPF"),
        (rights, "CAP_BPF or CAP_PERFMON"),
        (is_host(), "the host's root"),
    ]
    .into_iter()
    .find_map(|(there, what)| (!there).then_some(what))
}
