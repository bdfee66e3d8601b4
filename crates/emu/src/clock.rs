//! The monotonic clock, and the priority of a thread that has to keep time.

use std::time::Duration;

use astraea_sim::Nanos;
use nix::libc;
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};

/// Priority under `SCHED_FIFO` of the threads that keep time: above all ordinary threads, below what the kernel itself runs there.
pub const PRIORITY: libc::c_int = 10;

/// `CLOCK_MONOTONIC` in ns.
#[inline]
pub fn monotonic() -> Nanos {
    nanos(clock_gettime(ClockId::CLOCK_MONOTONIC))
}

/// CPU time of the calling thread in ns.
pub(crate) fn thread_cpu() -> Nanos {
    nanos(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID))
}

fn nanos(time: nix::Result<TimeSpec>) -> Nanos {
    // These clocks exist on every Linux.
    time.map_or(0, |time| time.tv_sec() as Nanos * 1_000_000_000 + time.tv_nsec() as Nanos)
}

pub(crate) fn timespec(time: Nanos) -> TimeSpec {
    TimeSpec::from(Duration::from_nanos(time))
}

/// Sleeps until `time` on the monotonic clock; a signal may end it early.
pub(crate) fn sleep_until(time: Nanos) {
    let _ = clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &timespec(time));
}

/// Lets the calling thread wake up on time: the finest timer slack, and real-time priority if that is permitted
/// (`CAP_SYS_NICE`). Returns whether it was.
pub(crate) fn keep_time() -> bool {
    let _ = nix::sys::prctl::set_timerslack(1);
    let parameter = libc::sched_param { sched_priority: PRIORITY };
    // SAFETY: the pointer is to a parameter that lives across the call; 0 is the calling thread. Children go back to
    // ordinary priority.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameter) == 0 }
}
