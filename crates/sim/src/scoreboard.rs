//! What a sender knows about each packet that it sent.

use astraea_cc::SendStamp;

/// Fate of a packet, as far as the sender knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// Sent, nothing heard.
    InFlight,
    /// Acknowledged.
    #[default]
    Acked,
    /// Declared lost.
    Lost,
}

/// A packet that was sent; as long as a cache line, and in one.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
pub(crate) struct Sent {
    pub(crate) stamp: SendStamp,
    pub(crate) segment: u32,
    pub(crate) payload: u16,
    pub(crate) state: State,
    /// Whether another packet carried the same data, too.
    pub(crate) copied: bool,
}

/// Packets that a new scoreboard has room for: small, so that a thousand flows with small windows stay in the cache.
const INITIAL_SIZE: usize = 16;

/// Sent packets by number, in a ring that grows when more than its size are unresolved.
///
/// Entries below [`base`](Scoreboard::base) are resolved; they stay readable until the ring overwrites them, so that a
/// late acknowledgement of a packet declared lost is recognised. Numbers never repeat: 64 bits here, and their lower half
/// on the wire, as QUIC does it (RFC 9000 §17.1).
pub(crate) struct Scoreboard {
    ring: Vec<Sent>,
    base: u64,
    next: u64,
    /// The oldest packet that the ring had when it grew; of older ones nothing is known.
    oldest: u64,
}

impl Default for Scoreboard {
    fn default() -> Self {
        Self { ring: vec![Sent::default(); INITIAL_SIZE], base: 0, next: 0, oldest: 0 }
    }
}

impl Scoreboard {
    /// An empty scoreboard whose first packet gets that number.
    #[cfg(test)]
    pub(crate) fn starting_at(number: u64) -> Self {
        Self { base: number, next: number, oldest: number, ..Self::default() }
    }

    /// Number of the oldest packet that may still be in flight.
    #[inline]
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Number that the next packet gets.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// The number whose lower half came back from the wire: the newest one that fits.
    #[inline]
    pub(crate) fn expand(&self, wire: u32) -> u64 {
        self.next - u64::from((self.next as u32).wrapping_sub(wire))
    }

    /// Records a packet and returns its number.
    #[inline]
    pub(crate) fn push(&mut self, sent: Sent) -> u64 {
        if (self.next - self.base) as usize == self.ring.len() {
            self.grow();
        }
        let number = self.next;
        let slot = self.slot(number);
        self.ring[slot] = sent;
        self.next += 1;
        number
    }

    #[inline]
    fn slot(&self, number: u64) -> usize {
        number as usize & (self.ring.len() - 1)
    }

    /// The packet of that number, if it has not been overwritten.
    #[inline]
    pub(crate) fn get_mut(&mut self, number: u64) -> Option<&mut Sent> {
        if !self.remembers(number) {
            return None;
        }
        let slot = self.slot(number);
        Some(&mut self.ring[slot])
    }

    #[inline]
    fn remembers(&self, number: u64) -> bool {
        (self.oldest..self.next).contains(&number) && (self.next - number) as usize <= self.ring.len()
    }

    /// The packet of that number, which the caller knows to be unresolved or recent.
    #[inline]
    pub(crate) fn get(&self, number: u64) -> &Sent {
        &self.ring[self.slot(number)]
    }

    /// Moves the base past resolved packets.
    #[inline]
    pub(crate) fn advance(&mut self) {
        while self.base < self.next && self.get(self.base).state != State::InFlight {
            self.base += 1;
        }
    }

    /// Moves the base back to `number`, which has become unresolved again.
    pub(crate) fn reopen(&mut self, number: u64) {
        self.base = self.base.min(number);
    }

    #[cold]
    fn grow(&mut self) {
        let mut ring = vec![Sent::default(); self.ring.len() * 2];
        let mask = ring.len() - 1;
        self.oldest = self.oldest.max(self.next.saturating_sub(self.ring.len() as u64));
        for number in self.oldest..self.next {
            ring[number as usize & mask] = *self.get(number);
        }
        self.ring = ring;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(segment: u32) -> Sent {
        Sent { segment, state: State::InFlight, ..Sent::default() }
    }

    #[test]
    fn grows_without_losing_packets() {
        let mut board = Scoreboard::default();
        for number in 0..1000 {
            assert_eq!(board.push(sent(number)), u64::from(number));
        }
        for number in 0..1000 {
            assert_eq!(board.get_mut(u64::from(number)).unwrap().segment, number);
        }
        assert!(board.get_mut(1000).is_none());
    }

    #[test]
    fn resolved_packets_are_forgotten_when_the_ring_wraps() {
        let mut board = Scoreboard::default();
        for number in 0..200 {
            board.push(sent(number as u32));
            board.get_mut(number).unwrap().state = State::Lost;
            board.advance();
            assert_eq!(board.base(), number + 1);
        }
        let oldest = 200 - INITIAL_SIZE as u64;
        assert!(board.get_mut(oldest - 1).is_none());
        assert_eq!(board.get_mut(oldest).unwrap().segment, oldest as u32);
    }

    #[test]
    fn what_was_overwritten_stays_unknown_when_the_ring_grows() {
        let mut board = Scoreboard::default();
        for number in 0..4 {
            board.push(sent(number));
            board.get_mut(u64::from(number)).unwrap().state = State::Lost;
        }
        board.advance();
        // As many as the ring holds, which overwrites those, and then one more.
        for number in 4..=4 + INITIAL_SIZE as u32 {
            board.push(sent(number));
        }
        assert_eq!(board.ring.len(), 2 * INITIAL_SIZE);
        let state = |board: &mut Scoreboard, number| board.get_mut(number).map(|sent| (sent.segment, sent.state));
        // The ring had been overwritten up to 3.
        assert_eq!([3, 4].map(|number| state(&mut board, number)), [None, Some((4, State::InFlight))]);
    }

    #[test]
    fn numbers_outgrow_the_wire() {
        let wrap = 1 << 32;
        let mut board = Scoreboard::starting_at(wrap - 2);
        for segment in 0..4 {
            assert_eq!(board.push(sent(segment)), wrap - 2 + u64::from(segment));
        }
        let numbers = [u32::MAX - 1, u32::MAX, 0, 1].map(|wire| board.expand(wire));
        assert_eq!(numbers, [wrap - 2, wrap - 1, wrap, wrap + 1]);
    }
}
