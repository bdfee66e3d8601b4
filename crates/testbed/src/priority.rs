//! Whoever sends and receives must not wait for other programs.

use nix::libc;

/// Lowest but one real-time priority.
const PRIORITY: i32 = 2;

/// Real-time priority for the calling thread, below that of the emulation, where that is permitted (`CAP_SYS_NICE`). A
/// high ordinary priority is not enough: Linux compares those within a session only (`sched_autogroup_enabled`), so that
/// a build in another window holds a flow up for tenths of a second.
pub(crate) fn promptly() {
    let parameter = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: the structure outlives the call. A refusal leaves the thread as it is.
    let _ = unsafe { libc::sched_setscheduler(0, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, &raw const parameter) };
}
