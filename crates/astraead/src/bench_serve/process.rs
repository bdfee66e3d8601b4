//! What a process uses, as the system tells.

use std::fs;
use std::os::unix::net::UnixStream;

use astraea_serve::Address;
use nix::libc;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};

/// What a process has used.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    /// CPU time in s.
    pub(super) cpu: f64,
    /// Memory in bytes …
    pub(super) memory: f64,
    /// … and the most that it ever was.
    pub(super) memory_peak: f64,
}

/// The calling thread gets what time the others leave: whether a flood is in their way is asked of the service, not of the
/// scheduler, for which it would be one busy thread more on the processors of those that measure.
pub(super) fn yield_to_others() {
    let parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: the structure outlives the call. A refusal leaves the thread as it is.
    let _ = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameter) };
}

/// The process that listens at a socket in the file system.
pub(super) fn listening(address: &Address) -> Option<i32> {
    let Address::Unix(path) = address else { return None };
    let stream = UnixStream::connect(path).ok()?;
    getsockopt(&stream, PeerCredentials).ok().map(|found| found.pid())
}

/// What a process has used until now.
pub(super) fn usage(process: i32) -> Option<Usage> {
    // The first number of a thread's schedstat is its time on a CPU in ns.
    let mut cpu = 0.0;
    for thread in fs::read_dir(format!("/proc/{process}/task")).ok()? {
        let text = fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
        cpu += text.split_whitespace().next()?.parse::<f64>().ok()? / 1e9;
    }
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let bytes = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|kib| kib * 1024.0)
    };
    Some(Usage { cpu, memory: bytes("VmRSS:")?, memory_peak: bytes("VmHWM:")? })
}
