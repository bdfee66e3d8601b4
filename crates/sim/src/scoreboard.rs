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

/// A packet that was sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) stamp: SendStamp,
    pub(crate) segment: u32,
    pub(crate) payload: u16,
    pub(crate) state: State,
}

/// Packets that a new scoreboard has room for: small, so that a thousand flows with small windows stay in the cache.
const INITIAL_SIZE: usize = 16;

/// Sent packets by number, in a ring that grows when more than its size are unresolved.
///
/// Entries below [`base`](Scoreboard::base) are resolved; they stay readable until the ring overwrites them, so that a
/// late acknowledgement of a packet declared lost is recognised.
pub(crate) struct Scoreboard {
    ring: Vec<Sent>,
    base: u32,
    next: u32,
}

impl Default for Scoreboard {
    fn default() -> Self {
        Self { ring: vec![Sent::default(); INITIAL_SIZE], base: 0, next: 0 }
    }
}

impl Scoreboard {
    /// Number of the oldest packet that may still be in flight.
    #[inline]
    pub(crate) fn base(&self) -> u32 {
        self.base
    }

    /// Number that the next packet gets.
    #[inline]
    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    /// Records a packet and returns its number.
    #[inline]
    pub(crate) fn push(&mut self, sent: Sent) -> u32 {
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
    fn slot(&self, number: u32) -> usize {
        number as usize & (self.ring.len() - 1)
    }

    /// The packet of that number, if it has not been overwritten.
    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Sent> {
        if number >= self.next || (self.next - number) as usize > self.ring.len() {
            return None;
        }
        let slot = self.slot(number);
        Some(&mut self.ring[slot])
    }

    /// The packet of that number, which the caller knows to be unresolved or recent.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> &Sent {
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
    pub(crate) fn reopen(&mut self, number: u32) {
        self.base = self.base.min(number);
    }

    #[cold]
    fn grow(&mut self) {
        let mut ring = vec![Sent::default(); self.ring.len() * 2];
        let mask = ring.len() - 1;
        for number in self.base..self.next {
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
            assert_eq!(board.push(sent(number)), number);
        }
        for number in 0..1000 {
            assert_eq!(board.get_mut(number).unwrap().segment, number);
        }
        assert!(board.get_mut(1000).is_none());
    }

    #[test]
    fn resolved_packets_are_forgotten_when_the_ring_wraps() {
        let mut board = Scoreboard::default();
        for number in 0..200 {
            board.push(sent(number));
            board.get_mut(number).unwrap().state = State::Lost;
            board.advance();
            assert_eq!(board.base(), number + 1);
        }
        assert!(board.get_mut(199 - INITIAL_SIZE as u32).is_none());
        assert_eq!(board.get_mut(200 - INITIAL_SIZE as u32).unwrap().segment, 200 - INITIAL_SIZE as u32);
    }
}
