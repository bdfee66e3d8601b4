//! Queue disciplines of a link, without a clock and without randomness of their own.
//!
//! The owner of the link (the simulator, or the emulator over a real clock) passes the time and a random generator to
//! [`Discipline::enqueue`] when a packet arrives and calls [`Discipline::dequeue`] when the transmitter is free. The
//! packet in transmission has left the queue: it counts neither for the limit nor for the average.
//!
//! Disciplines: [`DropTail`], [`Codel`] (RFC 8289), [`FqCodel`] (RFC 8290), [`Pie`] (RFC 8033) and [`Red`] (Floyd and
//! Jacobson 1993). With ECN switched on, a capable packet is marked where the discipline would have dropped it as a
//! signal; a packet that does not fit is dropped either way.

mod codel;
mod config;
mod droptail;
mod fifo;
mod fq_codel;
mod pie;
mod red;
#[cfg(test)]
mod testing;

pub use codel::{Codel, CodelConfig};
pub use config::QueueConfig;
pub use droptail::DropTail;
pub use fq_codel::{FqCodel, FqCodelConfig};
pub use pie::{Pie, PieConfig};
pub use red::{Red, RedConfig};

use astraea_cc::Nanos;
use rand::Rng;
use serde::{Deserialize, Serialize};

/// A full-sized packet on the wire in bytes.
pub(crate) const MTU: u32 = 1500;

/// What a queue needs to know of a packet.
pub trait Packet {
    /// Bytes on the wire.
    fn size(&self) -> u32;
    /// The flow the packet belongs to.
    fn flow(&self) -> u32;
    /// Whether the packet may be marked instead of dropped (ECT of RFC 3168).
    fn ecn_capable(&self) -> bool;
    /// Sets "congestion experienced"; called for capable packets only.
    fn mark_ce(&mut self);
    /// Whether "congestion experienced" is set.
    fn is_marked(&self) -> bool;
    /// When the packet entered the queue it is in.
    fn enqueued_at(&self) -> Nanos;
    /// Stamps the packet on entry.
    fn set_enqueued_at(&mut self, now: Nanos);
}

/// What became of an arriving packet.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "dropped packets have to be accounted for"]
pub enum Verdict<P> {
    /// It is in the queue.
    Queued,
    /// It was dropped.
    Dropped(P),
    /// It was accepted, and packets were thrown out to make room (FQ-CoDel only). Never empty; the arriving packet may
    /// be among them.
    Evicted(Vec<P>),
}

/// A queue discipline. Time never runs backwards between calls.
pub trait Discipline<P: Packet> {
    /// Offers a packet that arrives at `now`.
    fn enqueue(&mut self, now: Nanos, packet: P, rng: &mut impl Rng) -> Verdict<P>;
    /// The next packet to transmit, if any; packets that the discipline drops at the head are appended to `dropped`.
    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<P>) -> Option<P>;
    /// Packets waiting.
    fn len(&self) -> usize;
    /// Bytes waiting.
    fn bytes(&self) -> u64;
    /// Whether nothing waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How much may wait, not counting the packet in transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Wire bytes.
    Bytes(u64),
    /// Packets of any size.
    Packets(u64),
    /// No limit.
    Infinite,
}

impl Limit {
    /// Whether a queue of this many packets and bytes is within the limit.
    pub fn allows(self, packets: usize, bytes: u64) -> bool {
        match self {
            Self::Bytes(most) => bytes <= most,
            Self::Packets(most) => packets as u64 <= most,
            Self::Infinite => true,
        }
    }

    /// Checks that at least one full-sized packet fits.
    ///
    /// # Errors
    ///
    /// One line that says what was expected.
    pub fn validate(self) -> Result<(), String> {
        match self {
            Self::Bytes(most) if most < u64::from(MTU) => {
                Err(format!("limit: expected room for a {MTU}-byte packet or more, got {most} bytes"))
            }
            Self::Packets(0) => Err("limit: expected room for 1 packet or more, got 0".to_owned()),
            _ => Ok(()),
        }
    }
}

/// Any of the disciplines, chosen at run time without a virtual call.
#[derive(Clone, Debug)]
pub enum AnyQueue<P> {
    /// Drop-tail FIFO.
    DropTail(DropTail<P>),
    /// RFC 8289.
    Codel(Codel<P>),
    /// RFC 8290.
    FqCodel(FqCodel<P>),
    /// RFC 8033.
    Pie(Pie<P>),
    /// Floyd and Jacobson 1993.
    Red(Red<P>),
}

macro_rules! each {
    ($self:ident, $queue:ident => $call:expr) => {
        match $self {
            AnyQueue::DropTail($queue) => $call,
            AnyQueue::Codel($queue) => $call,
            AnyQueue::FqCodel($queue) => $call,
            AnyQueue::Pie($queue) => $call,
            AnyQueue::Red($queue) => $call,
        }
    };
}

impl<P: Packet> Discipline<P> for AnyQueue<P> {
    fn enqueue(&mut self, now: Nanos, packet: P, rng: &mut impl Rng) -> Verdict<P> {
        each!(self, queue => queue.enqueue(now, packet, rng))
    }

    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<P>) -> Option<P> {
        each!(self, queue => queue.dequeue(now, dropped))
    }

    fn len(&self) -> usize {
        each!(self, queue => queue.len())
    }

    fn bytes(&self) -> u64 {
        each!(self, queue => queue.bytes())
    }
}
