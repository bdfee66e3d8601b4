//! What tests of this module feed their subjects with.

use astraea_cc::{Ack, Congestion, MILLISECOND, Nanos, Signal};

use crate::backlog::Signals;

/// Payload bytes of a segment.
pub(super) const MSS: u32 = 1000;

/// Nanoseconds of so many milliseconds.
pub(super) fn ms(milliseconds: f64) -> Nanos {
    (milliseconds * MILLISECOND as f64).round() as Nanos
}

/// An acknowledgement of so many packets at `now`.
pub(super) fn ack(now: Nanos, packets: u64, rtt: Option<Nanos>) -> Ack {
    Ack { now, acked: packets * u64::from(MSS), rtt, cwnd_limited: true, ..Ack::default() }
}

/// A congestion event with 100 packets in flight.
pub(super) fn congestion(signal: Signal) -> Congestion {
    Congestion { now: 0, signal, flight_size: 100 * u64::from(MSS), sent_at: 0 }
}

/// The signals of a flow at rest, by its rate (packets/s) and the queueing delay (ms).
pub(super) fn signals(rate: f64, queue: f64) -> Signals {
    Signals { rate, queue: queue / 1e3, ahead: queue / 1e3, ..Signals::default() }
}

/// Asserts that two numbers are the same but for rounding.
#[track_caller]
pub(super) fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9 * expected.abs().max(1e-3), "{found} is not {expected}");
}
