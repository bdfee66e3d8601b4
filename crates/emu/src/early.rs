//! Packets that arrive before the links' time has begun: they find idle links of unlimited rate.
//!
//! So connections can be set up, over the path's true propagation delay, by the time at which an experiment begins.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use astraea_sim::Nanos;

/// A packet on its way, as a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Waiting {
    /// When it is due on the monotonic clock, in ns.
    pub(crate) due: Nanos,
    order: u64,
    /// Index of the direction that it travels in.
    pub(crate) direction: usize,
    pub(crate) id: u32,
    pub(crate) marked: bool,
}

/// The packets on their way that set out early.
#[derive(Debug, Default)]
pub(crate) struct Early {
    waiting: BinaryHeap<Reverse<Waiting>>,
    pushed: u64,
}

impl Early {
    pub(crate) fn push(&mut self, due: Nanos, direction: usize, id: u32, marked: bool) {
        self.waiting.push(Reverse(Waiting { due, order: self.pushed, direction, id, marked }));
        self.pushed += 1;
    }

    /// When the next is due.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.waiting.peek().map(|Reverse(next)| next.due)
    }

    /// The next one, if it is due.
    pub(crate) fn pop(&mut self, now: Nanos) -> Option<Waiting> {
        if self.next()? > now {
            return None;
        }
        self.waiting.pop().map(|Reverse(next)| next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_when_due_and_in_the_order_of_their_arrival() {
        let mut early = Early::default();
        early.push(20, 0, 1, false);
        early.push(10, 1, 2, true);
        early.push(10, 1, 3, false);
        assert_eq!(early.next(), Some(10));
        assert_eq!(early.pop(9), None);
        let ids: Vec<_> = std::iter::from_fn(|| early.pop(20)).map(|packet| packet.id).collect();
        assert_eq!(ids, [2, 3, 1]);
        assert_eq!(early.next(), None);
    }
}
