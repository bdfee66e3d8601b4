//! The receiving end of a flow: what is new, what is complete, and when to acknowledge.

use std::collections::VecDeque;

use astraea_cc::Nanos;

/// A message (or a whole sized flow) that the receiver has in full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// When the application handed the message to the sender, in ns.
    pub start: Nanos,
    /// When its last byte reached the receiver, in ns.
    pub end: Nanos,
}

/// Puts segments in order and recognises duplicates.
#[derive(Default)]
pub(crate) struct Reassembly {
    /// Index of the first segment not received.
    next: u32,
    /// Payload of the segments from `next` on; 0 where not received.
    waiting: VecDeque<u16>,
    /// Payload bytes received in order.
    in_order: u64,
}

impl Reassembly {
    /// Takes a segment; true if it is new.
    #[inline]
    pub(crate) fn accept(&mut self, segment: u32, payload: u16) -> bool {
        if segment == self.next && self.waiting.is_empty() {
            self.next += 1;
            self.in_order += u64::from(payload);
            return true;
        }
        self.accept_out_of_order(segment, payload)
    }

    fn accept_out_of_order(&mut self, segment: u32, payload: u16) -> bool {
        let Some(offset) = segment.checked_sub(self.next) else { return false };
        let offset = offset as usize;
        if offset >= self.waiting.len() {
            self.waiting.resize(offset + 1, 0);
        }
        if self.waiting[offset] != 0 {
            return false;
        }
        self.waiting[offset] = payload;
        while let Some(&payload) = self.waiting.front() {
            if payload == 0 {
                break;
            }
            self.waiting.pop_front();
            self.next += 1;
            self.in_order += u64::from(payload);
        }
        true
    }

    /// Payload bytes received without a gap.
    #[inline]
    pub(crate) fn in_order(&self) -> u64 {
        self.in_order
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
    arrivals: VecDeque<Arrival>,
    arrived: u32,
    consumed: u32,
    unacknowledged: u32,
    largest: u32,
}

impl AckState {
    /// Takes an arrival; true if it must be acknowledged now: the `every`-th one, or out of order (RFC 5681 §4.2).
    pub(crate) fn on_arrival(&mut self, number: u32, marked: bool, has_gap: bool, every: u32) -> bool {
        self.arrivals.push_back(Arrival { number, marked });
        self.arrived += 1;
        self.unacknowledged += 1;
        let out_of_order = self.arrived > 1 && number != self.largest + 1;
        self.largest = self.largest.max(number);
        self.unacknowledged >= every || out_of_order || has_gap || marked
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
        // Wrapping-safe: an overtaken acknowledgement covers less than what has been consumed.
        if covers <= self.consumed {
            return None;
        }
        self.consumed += 1;
        self.arrivals.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_hole_holds_back_what_follows() {
        let mut reassembly = Reassembly::default();
        assert!(reassembly.accept(0, 10));
        assert!(reassembly.accept(2, 10));
        assert!(!reassembly.accept(2, 10), "a duplicate is not new");
        assert_eq!(reassembly.in_order(), 10);
        assert!(reassembly.has_gap());
        assert!(reassembly.accept(1, 5));
        assert_eq!(reassembly.in_order(), 25);
        assert!(!reassembly.has_gap());
        assert!(!reassembly.accept(0, 10), "an old segment is not new");
    }

    #[test]
    fn a_lost_acknowledgement_is_made_good_by_the_next() {
        let mut acks = AckState::default();
        assert!(!acks.on_arrival(0, false, false, 2));
        assert!(acks.on_arrival(1, false, false, 2));
        let _lost = acks.acknowledge();
        assert!(!acks.on_arrival(2, false, false, 2));
        let covers = acks.acknowledge();
        let numbers: Vec<_> = std::iter::from_fn(|| acks.consume(covers)).map(|a| a.number).collect();
        assert_eq!(numbers, [0, 1, 2]);
        assert!(acks.consume(2).is_none());
    }

    proptest! {
        /// Any order with duplicates: every segment is new exactly once, and all bytes end up in order.
        #[test]
        fn each_segment_is_new_once(order in prop::collection::vec(0_u32..40, 1..400)) {
            let mut reassembly = Reassembly::default();
            let mut seen = std::collections::HashSet::new();
            for segment in order.into_iter().chain(0..40) {
                prop_assert_eq!(reassembly.accept(segment, 7), seen.insert(segment));
            }
            prop_assert_eq!(reassembly.in_order(), 40 * 7);
        }
    }
}
