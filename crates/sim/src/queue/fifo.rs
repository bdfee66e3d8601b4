//! The store that the disciplines share: packets in order of arrival, with their bytes counted.

use std::collections::VecDeque;

use super::{Limit, Packet};
use astraea_cc::Nanos;

#[derive(Clone, Debug)]
pub(crate) struct Fifo<P> {
    packets: VecDeque<P>,
    bytes: u64,
}

impl<P> Fifo<P> {
    pub(crate) const fn new() -> Self {
        Self { packets: VecDeque::new(), bytes: 0 }
    }
}

impl<P: Packet> Fifo<P> {
    /// Whether `packet` can be added within `limit`.
    pub(crate) fn has_room(&self, limit: Limit, packet: &P) -> bool {
        limit.allows(self.len() + 1, self.bytes + u64::from(packet.size()))
    }

    /// Appends `packet`, stamped with the time of its arrival.
    pub(crate) fn push(&mut self, now: Nanos, mut packet: P) {
        packet.set_enqueued_at(now);
        self.bytes += u64::from(packet.size());
        self.packets.push_back(packet);
    }

    pub(crate) fn pop(&mut self) -> Option<P> {
        let packet = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.size());
        Some(packet)
    }

    /// How long the oldest packet has waited; zero when none does.
    pub(crate) fn head_delay(&self, now: Nanos) -> Nanos {
        self.packets.front().map_or(0, |packet| now.saturating_sub(packet.enqueued_at()))
    }

    pub(crate) fn len(&self) -> usize {
        self.packets.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}
