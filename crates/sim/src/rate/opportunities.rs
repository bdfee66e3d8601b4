//! A transmitter driven by a trace. As in Mahimahi an opportunity carries up to 1500 bytes of the packets that wait when
//! it comes: small packets share one, a large packet takes several, and what nobody waits for is lost.

use astraea_cc::Nanos;

use crate::trace::{OPPORTUNITY_BYTES, Position, Trace};

#[derive(Clone, Debug)]
pub(super) struct Opportunities {
    trace: Trace,
    position: Position,
    /// When the present opportunity comes, in ns, and the bytes it can still carry.
    at: Nanos,
    left: u32,
}

impl Opportunities {
    pub(super) fn new(trace: Trace) -> Self {
        let position = Position::default();
        Self { at: trace.time(position), position, trace, left: OPPORTUNITY_BYTES }
    }

    fn go_to(&mut self, position: Position) {
        self.position = position;
        self.at = self.trace.time(position);
        self.left = OPPORTUNITY_BYTES;
    }

    fn advance(&mut self) {
        self.go_to(self.trace.next(self.position));
    }

    pub(super) fn begin(&mut self, ready: Nanos) -> Nanos {
        if self.left == 0 || self.at < ready {
            self.advance();
        }
        // A busy link takes the next opportunity; one that was idle may have missed any number.
        if self.at < ready {
            self.go_to(self.trace.at_or_after(ready));
        }
        self.at
    }

    pub(super) fn finish(&mut self, start: Nanos, size: u32) -> Nanos {
        debug_assert_eq!(start, self.at, "the start of a packet comes from begin");
        let mut remaining = size;
        while remaining > self.left {
            remaining -= self.left;
            self.advance();
        }
        self.left -= remaining;
        self.at
    }

    pub(super) fn capacity_bytes(&self, from: Nanos, to: Nanos) -> f64 {
        self.trace.opportunities_between(from, to) as f64 * f64::from(OPPORTUNITY_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    fn link(milliseconds: &[u64]) -> Opportunities {
        Opportunities::new(Trace::from_millis(milliseconds.iter().copied()).unwrap())
    }

    /// When packets that are all ready at `ready` leave, in ms.
    fn departures(link: &mut Opportunities, ready: Nanos, sizes: &[u32]) -> Vec<u64> {
        let mut free = ready;
        let leave = |&size| {
            let start = link.begin(free);
            free = link.finish(start, size);
            free / MS
        };
        sizes.iter().map(leave).collect()
    }

    #[test]
    fn one_full_packet_an_opportunity() {
        assert_eq!(departures(&mut link(&[1, 4, 4, 10]), 0, &[1500; 6]), [1, 4, 4, 10, 11, 14]);
    }

    #[test]
    fn the_next_packet_is_taken_at_an_opportunity_that_has_room() {
        let mut link = link(&[1, 4, 10]);
        let start = link.begin(0);
        assert_eq!(link.finish(start, 1000), MS);
        assert_eq!(link.begin(MS), MS);
        assert_eq!(link.finish(MS, 500), MS);
        assert_eq!(link.begin(MS), 4 * MS);
    }

    #[test]
    fn small_packets_share_and_large_ones_accumulate() {
        assert_eq!(departures(&mut link(&[1, 2, 3, 4, 5]), 0, &[1000, 1000, 1000, 4000]), [1, 2, 2, 5]);
    }

    #[test]
    fn opportunities_that_nobody_waits_for_are_lost() {
        let mut link = link(&[1, 2, 3, 10]);
        assert_eq!(departures(&mut link, 2 * MS + 1, &[1500; 2]), [3, 10]);
        // What a small packet left of an opportunity is lost to one that comes later.
        assert_eq!(departures(&mut link, 10 * MS + 1, &[40]), [11]);
        assert_eq!(departures(&mut link, 11 * MS + 1, &[40]), [12]);
        // But not to one that comes at the same instant.
        assert_eq!(departures(&mut link, 12 * MS, &[1460, 1]), [12, 13]);
        // Long idle.
        assert_eq!(departures(&mut link, 5_000_005 * MS, &[1500]), [5_000_010]);
    }

    #[test]
    fn asking_again_does_no_harm() {
        let mut link = link(&[5, 10]);
        assert_eq!(
            [link.begin(0), link.begin(0), link.begin(5 * MS), link.begin(5 * MS + 1)],
            [5, 5, 5, 10].map(|t| t * MS)
        );
    }
}
