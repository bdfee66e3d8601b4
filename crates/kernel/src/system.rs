//! Whether this kernel and this process can load the controller, and what is missing if not.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use astraea_policy::AgentConfig;
use nix::time::{ClockId, clock_gettime};

use crate::error::{Error, Result};
use crate::lock::Lock;

/// The oldest kernel whose `cong_control` has the arguments that the program takes.
const OLDEST: (u32, u32) = (6, 10);

/// The first one that calls `cwnd_event_tx_start`.
const TELLS_PAUSES: (u32, u32) = (7, 1);

/// What says which user namespace this process is in …
const USER_NAMESPACE: &str = "/proc/self/ns/user";

/// … and the inode number there of the host's (`PROC_USER_INIT_INO` of `linux/proc_ns.h`).
const HOST_USER: u64 = 0xEFFF_FFFD;

/// Where a kernel tells its types.
pub const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// Types that a kernel has if it can register congestion controllers written in BPF.
const STRUCT_OPS: &str = "bpf_struct_ops_tcp_congestion_ops";

/// Where BPF objects have names, by convention.
pub const FILE_SYSTEM: &str = "/sys/fs/bpf";

/// Checks everything that loading needs: kernel, types, capabilities. Nothing is changed.
///
/// # Errors
/// The first thing that is missing.
pub fn check() -> Result<()> {
    version()?;
    types()?;
    rights()
}

/// Checks the kernel's version.
///
/// # Errors
/// An old one.
pub fn version() -> Result<()> {
    kernel(&release())
}

/// Looks for the types that loading needs.
///
/// # Errors
/// The kernel tells none, or not those.
pub fn types() -> Result<()> {
    struct_ops(&fs::read(TYPES).map_err(|_| Error::NoTypes)?)
}

/// Checks what can be told at once. Looking through all types takes as long as the rest of attaching, so it is left for
/// when loading has failed.
pub(crate) fn glance() -> Result<()> {
    version()?;
    rights()
}

/// Time of day less the clock that BPF programs see, in ns, modulo an hour: what makes ticks of the one out of the other.
pub(crate) fn time_of_day() -> u64 {
    let nanos = |id| clock_gettime(id).map_or(0, |time| Duration::from(time).as_nanos());
    let ahead = nanos(ClockId::CLOCK_REALTIME).saturating_sub(nanos(ClockId::CLOCK_MONOTONIC));
    (ahead % u128::from(AgentConfig::HOUR)) as u64
}

/// The capabilities that loading needs and that this process lacks. Those of a user namespace of its own are none: the
/// kernel asks for the host's.
pub fn lacking() -> Vec<&'static str> {
    without(if is_host_user() { capabilities() } else { 0 })
}

/// The effective capabilities of this process, each the bit of its number in `linux/capability.h`.
pub fn capabilities() -> u64 {
    effective(&fs::read_to_string("/proc/self/status").unwrap_or_default())
}

/// Whether this process is in the user namespace of the host, so that its capabilities are worth something there.
pub fn is_host_user() -> bool {
    // A kernel that has none but the host's may not name it.
    fs::metadata(USER_NAMESPACE).map_or(true, |found| found.ino() == HOST_USER)
}

fn rights() -> Result<()> {
    if !is_host_user() {
        return Err(Error::UserNamespace);
    }
    lacking().first().map_or(Ok(()), |name| Err(Error::Capability(name)))
}

fn release() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

fn numbers(release: &str) -> (u32, u32) {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

fn kernel(release: &str) -> Result<()> {
    if numbers(release) < OLDEST { Err(Error::OldKernel { found: release.to_owned() }) } else { Ok(()) }
}

/// Whether the kernel has a callback for the end of a pause alone, as since Linux 7.1; if so it does not call the one for
/// other events then.
pub(crate) fn tells_pauses_by_themselves() -> bool {
    numbers(&release()) >= TELLS_PAUSES
}

fn struct_ops(types: &[u8]) -> Result<()> {
    let found = types.windows(STRUCT_OPS.len()).any(|window| window == STRUCT_OPS.as_bytes());
    if found { Ok(()) } else { Err(Error::NoStructOps(STRUCT_OPS)) }
}

/// Bit of `CAP_SYS_ADMIN`, which stands for those that loading needs (`linux/capability.h`).
pub const SYS_ADMIN: u32 = 21;

/// Capabilities that loading needs, with their bits.
const NEEDED: [(&str, u32); 2] = [("CAP_BPF", 39), ("CAP_PERFMON", 38)];

fn effective(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0)
}

/// Those of the needed capabilities that are not among the `held` ones.
fn without(held: u64) -> Vec<&'static str> {
    let has = |bit: u32| held >> bit & 1 == 1 || held >> SYS_ADMIN & 1 == 1;
    NEEDED.iter().filter(|(_, bit)| !has(*bit)).map(|(name, _)| *name).collect()
}

/// Makes sure that `path` is in a BPF file system: mounts one at [`FILE_SYSTEM`], where every distribution has it, if
/// it is missing there.
///
/// # Errors
/// Another path that is in none, or no right to mount.
pub(crate) fn file_system(path: &Path) -> Result<()> {
    let standard = Path::new(FILE_SYSTEM);
    let within = path.starts_with(standard);
    // Whatever somebody else may have put there, a second one is not mounted over the first.
    let nearest = || path.ancestors().find(|ancestor| ancestor.is_dir()).unwrap_or(standard);
    let root = if within { standard } else { nearest() };
    if is_bpf(root) || (within && mount_once(standard)?) { Ok(()) } else { Err(Error::NoFileSystem(root.to_owned())) }
}

/// The same by several processes at once: files in the first of two that are mounted over each other are never seen again.
fn mount_once(path: &Path) -> Result<bool> {
    let _lock = Lock::take(path)?;
    Ok(is_bpf(path) || mount(path))
}

fn c_path(path: &Path) -> std::ffi::CString {
    std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}

fn is_bpf(path: &Path) -> bool {
    // SAFETY: the structure is plain and the path ends in a zero.
    unsafe {
        let mut found: libc::statfs = std::mem::zeroed();
        libc::statfs(c_path(path).as_ptr(), &raw mut found) == 0 && found.f_type as i64 == libc::BPF_FS_MAGIC
    }
}

/// Mounts a BPF file system that is its owner's alone. Returns whether that worked.
pub fn mount(path: &Path) -> bool {
    // SAFETY: all strings end in a zero.
    unsafe {
        libc::mount(
            c"bpf".as_ptr(),
            c_path(path).as_ptr(),
            c"bpf".as_ptr(),
            libc::MS_NOSUID | libc::MS_NODEV,
            c"mode=0700".as_ptr().cast(),
        ) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_kernels_are_named() {
        assert!(kernel("6.10.0-1-amd64").is_ok());
        assert!(kernel("7.0").is_ok());
        let error = kernel("6.9.12").unwrap_err().to_string();
        assert_eq!(error, "Linux 6.9.12: the controller needs 6.10 or newer");
        assert!(kernel("").is_err());
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let newer = |release| numbers(release) >= TELLS_PAUSES;
        assert_eq!(["7.1.0-rc1", "7.10", "8.0", "7.0.9", "6.18.5"].map(newer), [true, true, true, false, false]);
    }

    #[test]
    fn kernels_without_struct_ops_are_named() {
        assert!(struct_ops(b"xx bpf_struct_ops_tcp_congestion_ops xx").is_ok());
        assert!(struct_ops(b"nothing").unwrap_err().to_string().contains("no congestion controllers in BPF"));
    }

    #[test]
    fn the_missing_capability_is_named() {
        let missing = |bits: &str| without(effective(&format!("Name:\tx\nCapEff:\t{bits}\n")));
        assert_eq!(missing("0000000000000000"), ["CAP_BPF", "CAP_PERFMON"]);
        assert_eq!(missing("0000008000000000"), ["CAP_PERFMON"]);
        assert!(missing("000000c000000000").is_empty());
        assert!(missing("0000000000200000").is_empty(), "CAP_SYS_ADMIN is enough");
    }
}
