//! Turns for peers that share a socket, as connections have them: a peer that sends much waits for itself and not for the others.

use std::collections::{HashMap, VecDeque};

use super::sessions::Route;

/// Messages that are taken from a peer in one turn, about as many as from a connection.
pub(super) const SHARE: usize = 178;

/// Bytes of one peer that wait for their turn, their lengths included: a few requests of each of a thousand flows.
const PEER: usize = 1 << 19;

/// Bytes of all peers that wait.
const ALL: usize = 1 << 23;

/// Bytes that a message takes besides its own. Without them datagrams of no bytes would wait without bound.
const LENGTH: usize = size_of::<u16>();

/// What a peer has sent beyond its share.
#[derive(Debug, Default)]
struct Backlog {
    /// Messages taken in this turn.
    taken: usize,
    /// Lengths of what waits, and the bytes.
    lengths: VecDeque<u16>,
    bytes: VecDeque<u8>,
}

impl Backlog {
    /// Bytes that wait.
    fn size(&self) -> usize {
        self.bytes.len() + self.lengths.len() * LENGTH
    }
}

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is to be taken at once.
    Now,
    /// It waits for one of the next turns.
    Later,
    /// There is no room for it.
    Nowhere,
}

/// The shares of the peers of one socket.
#[derive(Debug, Default)]
pub(super) struct Shares {
    peers: HashMap<Route, Backlog>,
    waiting: usize,
}

impl Shares {
    /// Begins a turn: hands over what has waited, of each peer at most its share. Returns the messages.
    pub(super) fn begin(&mut self, message: &mut Vec<u8>, mut take: impl FnMut(Route, &[u8])) -> usize {
        let mut count = 0;
        let waiting = &mut self.waiting;
        self.peers.retain(|&peer, backlog| {
            backlog.taken = 0;
            while backlog.taken < SHARE
                && let Some(length) = backlog.lengths.pop_front()
            {
                message.clear();
                message.extend(backlog.bytes.drain(..usize::from(length)));
                *waiting -= message.len() + LENGTH;
                backlog.taken += 1;
                take(peer, message);
            }
            count += backlog.taken;
            backlog.taken > 0
        });
        count
    }

    /// Counts a message of a peer, which is kept if it has to wait.
    pub(super) fn place(&mut self, peer: Route, message: &[u8]) -> Place {
        let backlog = self.peers.entry(peer).or_default();
        if backlog.taken < SHARE && backlog.lengths.is_empty() {
            backlog.taken += 1;
            return Place::Now;
        }
        let size = message.len() + LENGTH;
        let room = backlog.size() + size <= PEER && self.waiting + size <= ALL;
        let Some(length) = u16::try_from(message.len()).ok().filter(|_| room) else { return Place::Nowhere };
        backlog.lengths.push_back(length);
        backlog.bytes.extend(message);
        self.waiting += size;
        Place::Later
    }

    /// Whether something waits.
    pub(super) fn is_behind(&self) -> bool {
        self.waiting > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOD: u16 = 1;
    const QUIET: u16 = 2;

    fn peer(port: u16) -> Route {
        Route { peer: ([192, 0, 2, 1], port).into(), local: None }
    }

    /// The numbers that a turn takes of what these peers send, in order.
    fn turn(shares: &mut Shares, sent: &[(u16, u32)]) -> Vec<(u16, u32)> {
        let number = |bytes: &[u8]| u32::from_le_bytes(bytes[..4].try_into().unwrap());
        let mut taken = Vec::new();
        shares.begin(&mut Vec::new(), |route, bytes| taken.push((route.peer.port(), number(bytes))));
        for &(port, value) in sent {
            // Of different lengths.
            let message = [&value.to_le_bytes()[..], &vec![7; value as usize % 5]].concat();
            if shares.place(peer(port), &message) == Place::Now {
                taken.push((port, value));
            }
        }
        taken
    }

    #[test]
    fn a_burst_is_taken_in_its_order_and_loses_nothing() {
        let mut shares = Shares::default();
        let burst: Vec<_> = (0..1000).map(|value| (FLOOD, value)).collect();
        let mut taken = turn(&mut shares, &burst);
        assert_eq!(taken.len(), SHARE);
        // What comes meanwhile is behind it.
        taken.extend(turn(&mut shares, &[(FLOOD, 1000)]));
        while shares.is_behind() {
            taken.extend(turn(&mut shares, &[]));
        }
        assert_eq!(taken, (0..=1000).map(|value| (FLOOD, value)).collect::<Vec<_>>());
        turn(&mut shares, &[]);
        assert!(shares.peers.is_empty(), "nothing is kept of peers that are done");
    }

    #[test]
    fn whoever_floods_is_in_nobodys_way() {
        let mut shares = Shares::default();
        for round in 0..200 {
            let mut sent = vec![(FLOOD, round); 2000];
            sent.insert(1500, (QUIET, round));
            let taken = turn(&mut shares, &sent);
            assert_eq!(taken.iter().filter(|(port, _)| *port == FLOOD).count(), SHARE);
            assert!(taken.contains(&(QUIET, round)), "in the turn in which it came");
            assert!(shares.waiting <= PEER);
        }
    }

    #[test]
    fn messages_of_no_bytes_wait_as_others_do() {
        let mut shares = Shares::default();
        let placed: Vec<_> = (0..PEER).map(|_| shares.place(peer(FLOOD), &[])).collect();
        assert_eq!(placed[SHARE], Place::Later);
        assert_eq!(placed[PEER - 1], Place::Nowhere);
        let kept = placed.iter().filter(|place| **place == Place::Later).count();
        assert_eq!((shares.waiting, shares.is_behind()), (kept * LENGTH, true));
        let mut taken = 0;
        while shares.is_behind() {
            taken += shares.begin(&mut Vec::new(), |_, message| assert!(message.is_empty()));
        }
        assert_eq!(taken, kept);
        assert_eq!(turn(&mut shares, &[(QUIET, 1)]), [(QUIET, 1)]);
        assert!(!shares.peers.contains_key(&peer(FLOOD)), "nothing is kept of peers that are done");
    }

    #[test]
    fn what_waits_is_bounded_over_all_peers() {
        let mut shares = Shares::default();
        for port in 1..=100 {
            for _ in 0..PEER / 500 {
                shares.place(peer(port), &[7; 600]);
            }
        }
        assert!(shares.waiting <= ALL && shares.waiting + 600 + LENGTH > ALL, "as much as there is room for");
        while shares.is_behind() {
            turn(&mut shares, &[]);
        }
        assert_eq!(turn(&mut shares, &[(QUIET, 1)]), [(QUIET, 1)]);
    }
}
