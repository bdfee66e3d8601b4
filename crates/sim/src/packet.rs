//! What travels through the network.

use astraea_cc::{MILLISECOND, Nanos};

use crate::queue;

/// Bytes of IPv4 and TCP headers with the timestamp option: wire size = payload + `HEADER`.
pub const HEADER: u32 = 52;

/// Time stamps tick in milliseconds, as Linux's do.
const TICK: Nanos = MILLISECOND;

fn ticks(now: Nanos) -> u32 {
    (now / TICK) as u32
}

fn shown(ticks: u32) -> Nanos {
    Nanos::from(ticks) * TICK
}

/// What a time stamp says that is made `now`, in ns.
#[inline]
pub(crate) fn time_stamp(now: Nanos) -> Nanos {
    shown(ticks(now))
}

/// A data packet or an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// When it entered the queue that it waits in; of an echo on its way back, how much of that way varies, in ns.
    pub(crate) enqueued_at: Nanos,
    /// Index of its flow.
    pub(crate) flow: u32,
    /// Data: packet number, unique per transmission. Acknowledgement: how many arrivals it covers.
    pub(crate) number: u32,
    /// Data: index of the segment of the byte stream that it carries. Acknowledgement: its time stamp in ticks.
    pub(crate) segment: u32,
    /// Payload bytes.
    pub(crate) payload: u16,
    /// Position on its path: index of the link that it is at or travels to.
    pub(crate) hop: u8,
    flags: u8,
}

impl Packet {
    const ACK: u8 = 1;
    const ECN_CAPABLE: u8 = 2;
    const CONGESTION_EXPERIENCED: u8 = 4;

    /// A data packet.
    #[inline]
    pub(crate) fn data(flow: u32, number: u32, segment: u32, payload: u16, ecn: bool) -> Self {
        let flags = if ecn { Self::ECN_CAPABLE } else { 0 };
        Self { enqueued_at: 0, flow, number, segment, payload, hop: 0, flags }
    }

    /// An acknowledgement of everything up to the `covers`-th arrival at the receiver, which sends it `now`.
    #[inline]
    pub(crate) fn ack(flow: u32, covers: u32, now: Nanos) -> Self {
        Self { enqueued_at: 0, flow, number: covers, segment: ticks(now), payload: 0, hop: 0, flags: Self::ACK }
    }

    /// When the receiver sent this acknowledgement, in ns, as its clock shows it.
    #[inline]
    pub(crate) fn stamped(&self) -> Nanos {
        shown(self.segment)
    }

    /// Whether this is an acknowledgement.
    #[inline]
    pub(crate) fn is_ack(&self) -> bool {
        self.flags & Self::ACK != 0
    }
}

impl queue::Packet for Packet {
    #[inline]
    fn size(&self) -> u32 {
        u32::from(self.payload) + HEADER
    }

    #[inline]
    fn flow(&self) -> u32 {
        // An acknowledgement and the data of the same flow are different flows to a fair queue.
        self.flow << 1 | u32::from(self.is_ack())
    }

    #[inline]
    fn ecn_capable(&self) -> bool {
        self.flags & Self::ECN_CAPABLE != 0
    }

    #[inline]
    fn mark_ce(&mut self) {
        self.flags |= Self::CONGESTION_EXPERIENCED;
    }

    #[inline]
    fn is_marked(&self) -> bool {
        self.flags & Self::CONGESTION_EXPERIENCED != 0
    }

    #[inline]
    fn enqueued_at(&self) -> Nanos {
        self.enqueued_at
    }

    #[inline]
    fn set_enqueued_at(&mut self, now: Nanos) {
        self.enqueued_at = now;
    }
}
