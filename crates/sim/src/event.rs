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

/// Scheduled events, earliest first; among equal times, the one scheduled first, but that links take their next packets
/// before anything arrives at them.
///
/// Events have 128-bit keys: time (64 bits), whether it comes after services (1 bit), order of scheduling (39 bits), event
/// (24 bits). Those of the present two milliseconds and before are in a sorted list: most of the time there are few, and
/// less is compared and moved than in a heap. Later ones wait unsorted in a timing wheel with a slot for every two
/// milliseconds (hashed, as in Varghese and Lauck 1987), so that the deadlines of a thousand flows, most of which are put
/// off before they come, neither lengthen the list nor are sorted in vain.
pub(crate) struct EventQueue {
    /// The next events, the earliest last.
    next: Vec<u128>,
    wheel: Vec<Vec<u128>>,
    /// Events in the wheel.
    waiting: usize,
    /// Slots from time 0 on whose events have been moved to the list.
    opened: u64,
    scheduled: u64,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self { next: Vec::new(), wheel: vec![Vec::new(); Self::SLOTS], waiting: 0, opened: 0, scheduled: 0 }
    }
}

impl EventQueue {
    const EVENT_BITS: u32 = 24;
    /// Set in the order of what comes after services.
    const LATER: u64 = 1 << 63;
    /// Length of a slot as a power of two in ns: about two milliseconds.
    const SLOT_BITS: u32 = 21;
    /// Slots of the wheel; events further away than one turn stay in their slot for another.
    const SLOTS: usize = 512;

    /// Largest index that an [`Event`] can carry.
    pub(crate) const MAX_INDEX: usize = (1 << (Self::EVENT_BITS - Event::KIND_BITS)) - 1;

    #[inline]
    fn key(&mut self, time: Nanos, event: Event) -> u128 {
        self.scheduled += 1;
        let later = if let Event::Service(_) = event { 0 } else { Self::LATER };
        u128::from(time) << 64 | u128::from(later | self.scheduled << Self::EVENT_BITS | u64::from(event.encode()))
    }

    /// The slot of a key, counted from time 0.
    #[inline]
    fn slot(key: u128) -> u64 {
        (key >> (64 + Self::SLOT_BITS)) as u64
    }

    /// Schedules an event.
    #[inline]
    pub(crate) fn push(&mut self, time: Nanos, event: Event) {
        let key = self.key(time, event);
        if Self::slot(key) >= self.opened {
            self.wait(key);
        } else {
            self.insert(key);
        }
    }

    /// The earliest event, left in place.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<(Nanos, Event)> {
        if self.next.is_empty() {
            self.open();
        }
        let key = *self.next.last()?;
        Some(((key >> 64) as Nanos, Event::decode(key as u32 & ((1 << Self::EVENT_BITS) - 1))))
    }

    /// Removes the earliest event, which [`peek`](Self::peek) has returned.
    #[inline]
    pub(crate) fn pop(&mut self) {
        self.next.pop();
    }

    /// Replaces the earliest event, which [`peek`](Self::peek) has returned, by the same event at a later time.
    #[inline]
    pub(crate) fn postpone(&mut self, time: Nanos, event: Event) {
        let key = self.key(time, event);
        if Self::slot(key) >= self.opened {
            self.pop();
            self.wait(key);
        } else {
            self.settle(self.next.len() - 1, key);
        }
    }

    /// Puts a key into the wheel.
    #[inline]
    fn wait(&mut self, key: u128) {
        self.wheel[Self::slot(key) as usize % Self::SLOTS].push(key);
        self.waiting += 1;
    }

    /// Moves the events of the next slot that has any to the empty list.
    fn open(&mut self) {
        let mut turn = Self::SLOTS;
        while self.next.is_empty() && self.waiting > 0 {
            if turn == 0 {
                // Nothing for a whole turn: go straight to the earliest event.
                let earliest = self.wheel.iter().flatten().map(|key| Self::slot(*key)).min();
                self.opened = earliest.unwrap_or(self.opened);
                turn = Self::SLOTS;
            }
            turn -= 1;
            self.open_slot(self.opened as usize % Self::SLOTS);
            self.opened += 1;
        }
    }

    /// Moves the events of a slot to the empty list, but for those of later turns.
    #[inline]
    fn open_slot(&mut self, index: usize) {
        if self.wheel[index].is_empty() {
            return;
        }
        let present = |key: &mut u128| Self::slot(*key) == self.opened;
        self.next.extend(self.wheel[index].extract_if(.., present));
        self.waiting -= self.next.len();
        self.next.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Puts a key into the list.
    #[inline]
    fn insert(&mut self, key: u128) {
        self.next.push(key);
        self.settle(self.next.len() - 1, key);
    }

    /// Puts a key where it belongs in the list up to `hole`, whose content may be overwritten.
    #[inline]
    fn settle(&mut self, mut hole: usize, key: u128) {
        let list = &mut self.next[..=hole];
        while hole > 0 && list[hole - 1] < key {
            list[hole] = list[hole - 1];
            hole -= 1;
        }
        list[hole] = key;
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

    /// A packet that arrives when a transmitter is free again finds the queue without the packet that is sent next.
    #[test]
    fn among_equal_times_services_come_first() {
        let mut queue = EventQueue::default();
        for event in [Event::Pipe(0), Event::Service(1), Event::Pace(2), Event::Service(0)] {
            queue.push(7, event);
        }
        queue.push(6, Event::Period(0));
        for event in [Event::Period(0), Event::Service(1), Event::Service(0), Event::Pipe(0), Event::Pace(2)] {
            assert_eq!(queue.peek().map(|(_, event)| event), Some(event));
            queue.pop();
        }
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

    /// Within a slot, within a turn of the wheel, and beyond.
    fn delays() -> impl Strategy<Value = u64> {
        prop_oneof![0_u64..50, 0_u64..100_000_000, 0_u64..10_000_000_000]
    }

    proptest! {
        #[test]
        fn comes_out_sorted(operations in prop::collection::vec((delays(), 0_u8..3), 1..300)) {
            let mut queue = EventQueue::default();
            let mut model: Vec<(u64, u32)> = Vec::new();
            let mut now = 0;
            for (id, (time, operation)) in operations.into_iter().enumerate() {
                let id = id as u32;
                match operation {
                    0 if !model.is_empty() => {
                        model.sort_by_key(|e| e.0);
                        let (at, event) = queue.peek().unwrap();
                        prop_assert_eq!((at, event), (model[0].0, Event::Pipe(model[0].1)));
                        now = at;
                        let later = at + time;
                        queue.postpone(later, event);
                        let first = model.remove(0);
                        model.push((later, first.1));
                    }
                    1 if !model.is_empty() => {
                        model.sort_by_key(|e| e.0);
                        let first = model.remove(0);
                        prop_assert_eq!(queue.peek(), Some((first.0, Event::Pipe(first.1))));
                        now = first.0;
                        queue.pop();
                    }
                    _ => {
                        // Nothing is scheduled for the past.
                        let time = now + time;
                        queue.push(time, Event::Pipe(id));
                        model.push((time, id));
                    }
                }
            }
        }
    }
}
