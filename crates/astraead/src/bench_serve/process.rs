//! What a process uses, as the system tells.

use std::fs;
use std::os::unix::net::UnixStream;

use astraea_serve::Address;
use nix::libc;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::Pid;

use crate::failure::Failure;

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

/// The calling thread gets what time the others leave, a scheduling class below theirs: whether a flood is in their way is
/// asked of the service, not of the scheduler, for which it would be one busy thread more on the processors of those that
/// measure.
pub(super) fn yield_to_others() {
    let parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: the structure outlives the call. A refusal leaves the thread as it is.
    let _ = unsafe {
        let class = match libc::sched_getscheduler(0) {
            libc::SCHED_FIFO | libc::SCHED_RR => libc::SCHED_OTHER,
            _ => libc::SCHED_IDLE,
        };
        libc::sched_setscheduler(0, class, &raw const parameter)
    };
}

/// Starts a process on the first of this thread's processors, and leaves the thread the others.
pub(super) fn apart<T>(start: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    let this = Pid::from_raw(0);
    let mut all = sched_getaffinity(this)?;
    let mut processors = (0..CpuSet::count()).filter(|&processor| all.is_set(processor).unwrap_or(false));
    let (Some(first), Some(_)) = (processors.next(), processors.next()) else {
        return Err("--apart: expected two processors or more".into());
    };
    let mut its = CpuSet::new();
    its.set(first)?;
    all.unset(first)?;
    sched_setaffinity(this, &its)?;
    let started = start();
    sched_setaffinity(this, &all)?;
    started
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
