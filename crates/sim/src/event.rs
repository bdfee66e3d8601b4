//! The event queue: what happens next, and to whom.

use astraea_cc::Nanos;

/// What an event is about. `u32` is the index of a pipe, link or flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The head of a delay line arrives.
    Pipe(u32),
    /// A link can take its next packet from the queue.
    Service(u32),
    /// A held-back packet arrives.
    Stray,
    /// A flow starts.
    Start(u32),
    /// A flow stops.
    Stop(u32),
    /// Pacing lets a flow send again.
    Pace(u32),
    /// A loss-detection or retransmission deadline of a flow may have come.
    Deadline(u32),
    /// The controller of a flow asked to be called.
    Controller(u32),
    /// The application of a flow produces data or changes state.
    Source(u32),
    /// The receiver of a flow has delayed an acknowledgement long enough.
    DelayedAck(u32),
    /// A monitoring period of a flow ends.
    Period(u32),
}

impl Event {
    const KIND_BITS: u32 = 4;

    #[inline]
    fn encode(self) -> u32 {
        let (kind, index) = match self {
            Event::Pipe(i) => (0, i),
            Event::Service(i) => (1, i),
            Event::Stray => (2, 0),
            Event::Start(i) => (3, i),
            Event::Stop(i) => (4, i),
            Event::Pace(i) => (5, i),
            Event::Deadline(i) => (6, i),
            Event::Controller(i) => (7, i),
            Event::Source(i) => (8, i),
            Event::DelayedAck(i) => (9, i),
            Event::Period(i) => (10, i),
        };
        index << Self::KIND_BITS | kind
    }

    #[inline]
    fn decode(code: u32) -> Self {
        let index = code >> Self::KIND_BITS;
        match code & ((1 << Self::KIND_BITS) - 1) {
            0 => Event::Pipe(index),
            1 => Event::Service(index),
            2 => Event::Stray,
            3 => Event::Start(index),
            4 => Event::Stop(index),
            5 => Event::Pace(index),
            6 => Event::Deadline(index),
            7 => Event::Controller(index),
            8 => Event::Source(index),
            9 => Event::DelayedAck(index),
            _ => Event::Period(index),
        }
    }
}

/// Scheduled events, earliest first; among equal times, the one scheduled first.
///
/// A four-ary heap of 128-bit keys: time (64 bits), order of scheduling (40 bits), event (24 bits).
#[derive(Default)]
pub(crate) struct EventQueue {
    heap: Vec<u128>,
    scheduled: u64,
}

impl EventQueue {
    const EVENT_BITS: u32 = 24;
    const ARITY: usize = 4;

    /// Largest index that an [`Event`] can carry.
    pub(crate) const MAX_INDEX: usize = (1 << (Self::EVENT_BITS - Event::KIND_BITS)) - 1;

    #[inline]
    fn key(&mut self, time: Nanos, event: Event) -> u128 {
        self.scheduled += 1;
        u128::from(time) << 64 | u128::from(self.scheduled << Self::EVENT_BITS | u64::from(event.encode()))
    }

    /// Schedules an event.
    #[inline]
    pub(crate) fn push(&mut self, time: Nanos, event: Event) {
        let key = self.key(time, event);
        self.heap.push(key);
        self.sift_up(self.heap.len() - 1, key);
    }

    /// The earliest event, left in place.
    #[inline]
    pub(crate) fn peek(&self) -> Option<(Nanos, Event)> {
        let key = *self.heap.first()?;
        Some(((key >> 64) as Nanos, Event::decode(key as u32 & ((1 << Self::EVENT_BITS) - 1))))
    }

    /// Removes the earliest event.
    #[inline]
    pub(crate) fn pop(&mut self) {
        if let Some(last) = self.heap.pop()
            && !self.heap.is_empty()
        {
            self.sift_down(last);
        }
    }

    /// Replaces the earliest event by the same event at a later time.
    #[inline]
    pub(crate) fn postpone(&mut self, time: Nanos, event: Event) {
        let key = self.key(time, event);
        self.sift_down(key);
    }

    #[inline]
    fn sift_up(&mut self, mut hole: usize, key: u128) {
        while hole > 0 {
            let parent = (hole - 1) / Self::ARITY;
            if self.heap[parent] <= key {
                break;
            }
            self.heap[hole] = self.heap[parent];
            hole = parent;
        }
        self.heap[hole] = key;
    }

    /// Lets `key` sink from the root, which it replaces.
    #[inline]
    fn sift_down(&mut self, key: u128) {
        let heap = &mut self.heap[..];
        let mut hole = 0;
        loop {
            let first = hole * Self::ARITY + 1;
            if first >= heap.len() {
                break;
            }
            let end = (first + Self::ARITY).min(heap.len());
            let mut child = first;
            let mut smallest = heap[first];
            for (i, &candidate) in heap[first + 1..end].iter().enumerate() {
                if candidate < smallest {
                    child = first + 1 + i;
                    smallest = candidate;
                }
            }
            if key <= smallest {
                break;
            }
            heap[hole] = smallest;
            hole = child;
        }
        heap[hole] = key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_times_keep_the_order_of_scheduling() {
        let mut queue = EventQueue::default();
        for flow in 0..20 {
            queue.push(7, Event::Pace(flow));
        }
        for flow in 0..20 {
            assert_eq!(queue.peek(), Some((7, Event::Pace(flow))));
            queue.pop();
        }
        assert_eq!(queue.peek(), None);
    }

    #[test]
    fn events_survive_encoding() {
        let index = EventQueue::MAX_INDEX as u32;
        for event in [
            Event::Pipe(index),
            Event::Service(1),
            Event::Stray,
            Event::Start(2),
            Event::Stop(3),
            Event::Pace(index),
            Event::Deadline(4),
            Event::Controller(5),
            Event::Source(6),
            Event::DelayedAck(7),
            Event::Period(index),
        ] {
            let mut queue = EventQueue::default();
            queue.push(Nanos::MAX, event);
            assert_eq!(queue.peek(), Some((Nanos::MAX, event)));
        }
    }

    proptest! {
        #[test]
        fn comes_out_sorted(operations in prop::collection::vec((0_u64..50, 0_u8..3), 1..300)) {
            let mut queue = EventQueue::default();
            let mut model: Vec<(u64, u32)> = Vec::new();
            for (id, (time, operation)) in operations.into_iter().enumerate() {
                let id = id as u32;
                match operation {
                    0 if !model.is_empty() => {
                        model.sort_by_key(|e| e.0);
                        let (_, event) = queue.peek().unwrap();
                        let later = model[0].0 + time;
                        queue.postpone(later, event);
                        let first = model.remove(0);
                        model.push((later, first.1));
                    }
                    1 if !model.is_empty() => {
                        model.sort_by_key(|e| e.0);
                        let first = model.remove(0);
                        prop_assert_eq!(queue.peek(), Some((first.0, Event::Pipe(first.1))));
                        queue.pop();
                    }
                    _ => {
                        queue.push(time, Event::Pipe(id));
                        model.push((time, id));
                    }
                }
            }
        }
    }
}
