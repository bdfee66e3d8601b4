//! Drop-tail: first in, first out; what does not fit is dropped.

use super::fifo::Fifo;
use super::{Discipline, Limit, Packet, Verdict};
use astraea_cc::Nanos;
use rand::Rng;

/// A plain FIFO with a limit.
#[derive(Clone, Debug)]
pub struct DropTail<P> {
    limit: Limit,
    fifo: Fifo<P>,
}

impl<P> DropTail<P> {
    /// An empty queue.
    pub fn new(limit: Limit) -> Self {
        Self { limit, fifo: Fifo::new() }
    }
}

impl<P: Packet> Discipline<P> for DropTail<P> {
    #[inline]
    fn enqueue(&mut self, now: Nanos, packet: P, _rng: &mut impl Rng) -> Verdict<P> {
        if !self.fifo.has_room(self.limit, &packet) {
            return Verdict::Dropped(packet);
        }
        self.fifo.push(now, packet);
        Verdict::Queued
    }

    #[inline]
    fn dequeue(&mut self, _now: Nanos, _dropped: &mut Vec<P>) -> Option<P> {
        self.fifo.pop()
    }

    fn len(&self) -> usize {
        self.fifo.len()
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{TestPacket, rng};
    use super::*;

    #[test]
    fn a_byte_limit_counts_bytes_and_lets_a_small_packet_into_the_gap() {
        let mut queue = DropTail::new(Limit::Bytes(3500));
        for id in 0..2 {
            assert_eq!(queue.enqueue(0, TestPacket::new(id, 0, 1500), &mut rng()), Verdict::Queued);
        }
        assert!(matches!(queue.enqueue(0, TestPacket::new(2, 0, 1500), &mut rng()), Verdict::Dropped(p) if p.id == 2));
        assert_eq!(queue.enqueue(7, TestPacket::new(3, 0, 500), &mut rng()), Verdict::Queued);
        assert_eq!((queue.len(), queue.bytes()), (3, 3500));
        let order: Vec<_> =
            std::iter::from_fn(|| queue.dequeue(9, &mut Vec::new())).map(|p| (p.id, p.enqueued)).collect();
        assert_eq!(order, [(0, 0), (1, 0), (3, 7)]);
        assert_eq!((queue.len(), queue.bytes()), (0, 0));
    }

    #[test]
    fn a_packet_limit_counts_packets_of_any_size() {
        let mut queue = DropTail::new(Limit::Packets(2));
        assert_eq!(queue.enqueue(0, TestPacket::new(0, 0, 1), &mut rng()), Verdict::Queued);
        assert_eq!(queue.enqueue(0, TestPacket::new(1, 0, 9000), &mut rng()), Verdict::Queued);
        assert!(matches!(queue.enqueue(0, TestPacket::new(2, 0, 1), &mut rng()), Verdict::Dropped(_)));
    }
}
