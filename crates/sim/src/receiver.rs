//! The receiving end of a flow: what is new, what is complete, and when to acknowledge.

use std::collections::VecDeque;

use astraea_cc::Nanos;

use crate::packet::Packet;
use crate::queue::Packet as _;

/// A message (or a whole sized flow) that the receiver has in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// When the application handed the message to the sender, in ns.
    pub start: Nanos,
    /// When its last byte reached the receiver, in ns.
    pub end: Nanos,
}

/// Whether number `a` comes before `b`, where numbers wrap (RFC 1982).
#[inline]
pub(crate) fn is_before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}

/// Puts segments in order and recognises duplicates. Indices of segments may wrap.
#[derive(Default)]
pub(crate) struct Reassembly {
    /// Index of the first segment not received.
    next: u32,
    /// Payload and arrival of the segments from `next` on; payload 0 where not received.
    waiting: VecDeque<(u16, Nanos)>,
    /// Payload bytes received in order.
    in_order: u64,
    /// When the last of them arrived.
    in_order_at: Nanos,
}

impl Reassembly {
    /// Takes a segment that arrives at `arrival`; true if it is new. With packets that are held back on the way, the
    /// order of the calls need not be that of the arrivals.
    #[inline]
    pub(crate) fn accept(&mut self, segment: u32, payload: u16, arrival: Nanos) -> bool {
        if segment == self.next && self.waiting.is_empty() {
            self.append(payload, arrival);
            return true;
        }
        self.accept_out_of_order(segment, payload, arrival)
    }

    #[inline]
    fn append(&mut self, payload: u16, arrival: Nanos) {
        self.next = self.next.wrapping_add(1);
        self.in_order += u64::from(payload);
        self.in_order_at = self.in_order_at.max(arrival);
    }

    fn accept_out_of_order(&mut self, segment: u32, payload: u16, arrival: Nanos) -> bool {
        if is_before(segment, self.next) {
            return false;
        }
        let offset = segment.wrapping_sub(self.next) as usize;
        if offset >= self.waiting.len() {
            self.waiting.resize(offset + 1, (0, 0));
        }
        if self.waiting[offset].0 != 0 {
            return false;
        }
        self.waiting[offset] = (payload, arrival);
        while let Some(&(payload, arrival)) = self.waiting.front() {
            if payload == 0 {
                break;
            }
            self.waiting.pop_front();
            self.append(payload, arrival);
        }
        true
    }

    /// Payload bytes received without a gap.
    #[inline]
    pub(crate) fn in_order(&self) -> u64 {
        self.in_order
    }

    /// When the last of them arrived.
    pub(crate) fn in_order_at(&self) -> Nanos {
        self.in_order_at
    }

    /// Whether segments are missing before others that have arrived.
    pub(crate) fn has_gap(&self) -> bool {
        !self.waiting.is_empty()
    }
}

/// An arrival that waits for its acknowledgement to reach the sender.
#[derive(Clone, Copy)]
pub(crate) struct Arrival {
    pub(crate) number: u32,
    pub(crate) marked: bool,
}

/// Decides when to acknowledge, and remembers what acknowledgements cover.
///
/// Arrivals are numbered. An acknowledgement carries the number of the newest one and covers all before it, so a lost
/// acknowledgement is made good by the next, as cumulative and selective acknowledgements do.
#[derive(Default)]
pub(crate) struct AckState {
    /// What has arrived by now; the flow's own account runs ahead of it, since it is kept where packets depart.
    reassembly: Reassembly,
    arrivals: VecDeque<Arrival>,
    arrived: u32,
    consumed: u32,
    unacknowledged: u32,
    /// Number that the next packet has if none is missing.
    expected: u32,
}

impl AckState {
    /// Takes an arrival; true if it must be acknowledged now: the `every`-th one, or one that is marked, out of order,
    /// above a gap or filling one (RFC 5681 §4.2), or nothing new (RFC 9293 §3.10.7.4): who sends again waits for an answer.
    pub(crate) fn on_arrival(&mut self, packet: &Packet, every: u32) -> bool {
        let had_gap = self.reassembly.has_gap();
        let is_new = self.reassembly.accept(packet.segment, packet.payload, 0);
        self.arrivals.push_back(Arrival { number: packet.number, marked: packet.is_marked() });
        self.arrived = self.arrived.wrapping_add(1);
        self.unacknowledged += 1;
        let out_of_order = packet.number != self.expected;
        if !is_before(packet.number, self.expected) {
            self.expected = packet.number.wrapping_add(1);
        }
        let hole = had_gap || self.reassembly.has_gap();
        self.unacknowledged >= every || !is_new || out_of_order || hole || packet.is_marked()
    }

    /// Number of arrivals that have not been acknowledged.
    pub(crate) fn unacknowledged(&self) -> u32 {
        self.unacknowledged
    }

    /// An acknowledgement leaves; returns what it covers.
    pub(crate) fn acknowledge(&mut self) -> u32 {
        self.unacknowledged = 0;
        self.arrived
    }

    /// The sender got an acknowledgement that covers `covers` arrivals: the next one that is new to it.
    pub(crate) fn consume(&mut self, covers: u32) -> Option<Arrival> {
        // An overtaken acknowledgement covers less than what has been consumed.
        if !is_before(self.consumed, covers) {
            return None;
        }
        self.consumed = self.consumed.wrapping_add(1);
        self.arrivals.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_hole_holds_back_what_follows() {
        let mut reassembly = Reassembly { next: u32::MAX, ..Reassembly::default() };
        assert!(reassembly.accept(u32::MAX, 10, 7));
        assert!(reassembly.accept(1, 10, 9));
        assert!(!reassembly.accept(1, 10, 11), "a duplicate is not new");
        assert_eq!((reassembly.in_order(), reassembly.in_order_at()), (10, 7));
        assert!(reassembly.has_gap());
        assert!(reassembly.accept(0, 5, 8));
        assert_eq!((reassembly.in_order(), reassembly.in_order_at()), (25, 9));
        assert!(!reassembly.has_gap());
        assert!(!reassembly.accept(u32::MAX, 10, 12), "an old segment is not new");
    }

    /// The `number`-th packet, with segment `segment`.
    fn packet(number: u32, segment: u32) -> Packet {
        Packet::data(0, number, segment, 10, false)
    }

    #[test]
    fn a_lost_acknowledgement_is_made_good_by_the_next() {
        let start = u32::MAX - 1;
        let mut acks = AckState { arrived: start, consumed: start, ..AckState::default() };
        assert!(!acks.on_arrival(&packet(0, 0), 2));
        assert!(acks.on_arrival(&packet(1, 1), 2));
        let _lost = acks.acknowledge();
        assert!(!acks.on_arrival(&packet(2, 2), 2));
        let covers = acks.acknowledge();
        let numbers: Vec<_> = std::iter::from_fn(|| acks.consume(covers)).map(|a| a.number).collect();
        assert_eq!(numbers, [0, 1, 2]);
        assert!(acks.consume(covers.wrapping_sub(1)).is_none());
    }

    #[test]
    fn a_hole_and_its_filling_are_acknowledged_at_once() {
        let mut acks = AckState::default();
        let mut at_once = |number, segment| {
            let now = acks.on_arrival(&packet(number, segment), 100);
            acks.acknowledge();
            now
        };
        // Packet 2 with segment 2 is missing; packet 5 brings the segment.
        let arrivals = [(0, 0), (1, 1), (3, 3), (4, 4), (5, 2), (6, 5)];
        assert_eq!(arrivals.map(|(n, s)| at_once(n, s)), [false, false, true, true, true, false]);
    }

    #[test]
    fn what_was_sent_again_for_nothing_is_acknowledged_at_once() {
        let mut acks = AckState::default();
        assert!(!acks.on_arrival(&packet(0, 0), 100));
        let _lost = acks.acknowledge();
        assert!(acks.on_arrival(&packet(1, 0), 100));
        assert!(!acks.on_arrival(&packet(2, 1), 100), "what is new may wait again");
    }

    proptest! {
        /// Any order with duplicates: every segment is new exactly once, and all bytes end up in order.
        #[test]
        fn each_segment_is_new_once(order in prop::collection::vec(0_u32..40, 1..400)) {
            let mut reassembly = Reassembly::default();
            let mut seen = std::collections::HashSet::new();
            for segment in order.into_iter().chain(0..40) {
                prop_assert_eq!(reassembly.accept(segment, 7, 0), seen.insert(segment));
            }
            prop_assert_eq!(reassembly.in_order(), 40 * 7);
        }
    }
}
