//! The clock that everything in a trial goes by.

use astraea_cc::Nanos;
use nix::time::{ClockId, clock_gettime};

/// The monotonic clock in ns.
pub fn now() -> Nanos {
    // Every Linux has this clock.
    clock_gettime(ClockId::CLOCK_MONOTONIC)
        .map_or(0, |time| time.tv_sec() as Nanos * 1_000_000_000 + time.tv_nsec() as Nanos)
}
