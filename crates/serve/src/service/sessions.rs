//! Sessions: who may speak for which flows.
//!
//! A session is a random number that the service gives out. It is what a replayed, spoofed or outdated message lacks:
//! after a restart none of the old ones is known, and a number is never given out twice.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, SocketAddr};

use slab::Slab;

use super::flows::Names;
use super::replay::Replay;

/// Where messages come from and answers go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// A connection, by a number that is not used again.
    Stream(u64),
    /// Two addresses, at the socket of that number.
    Datagram(u16, Route),
}

/// Where datagrams come from and where they were sent to. A client takes answers only from where it has sent to, and a socket
/// may stand for all addresses of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Route {
    /// The peer's address.
    pub peer: SocketAddr,
    /// The service's, if the system says it.
    pub local: Option<IpAddr>,
}

#[derive(Debug)]
pub(super) struct Session {
    pub(super) number: u64,
    pub(super) flows: Names,
    peer: Peer,
    token: u64,
    seen: u32,
    replay: Replay,
}

/// Sessions that a peer may have at the same time: it needs one, and one more for each time that it begins anew.
const OF_A_PEER: usize = 16;

/// All sessions, by number.
#[derive(Debug)]
pub(super) struct Sessions {
    most: usize,
    /// When there was last too little to forget, in s.
    crowded: Option<u32>,
    places: HashMap<u64, usize>,
    /// Those of each peer.
    peers: HashMap<Peer, Vec<usize>>,
    all: Slab<Session>,
}

impl Sessions {
    pub(super) fn new(most: usize) -> Self {
        Self { most, crowded: None, places: HashMap::new(), peers: HashMap::new(), all: Slab::new() }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut Session> {
        self.all.get_mut(place)
    }

    /// The session of a peer that greets with this token; `None` if there are too many. `draw` gives random numbers.
    ///
    /// A greeting that is repeated gives no second session. A peer that has as many as it may loses the one without a flow
    /// that has been silent for the longest time, and so does everybody where there are as many as there may be at all: who
    /// only greets, whether it stays connected or not, keeps nobody out.
    pub(super) fn greet(&mut self, peer: Peer, token: u64, now: u32, mut draw: impl FnMut() -> u64) -> Option<u64> {
        let own = self.peers.get(&peer).map_or(&[][..], Vec::as_slice);
        if let Some(&place) = own.iter().find(|place| self.all[**place].token == token) {
            self.all[place].seen = now;
            return Some(self.all[place].number);
        }
        if own.len() >= OF_A_PEER {
            let idle = own.iter().copied().filter(|place| self.all[*place].flows.is_empty());
            let oldest = idle.min_by_key(|place| self.all[*place].seen)?;
            self.end(oldest);
        }
        if self.all.len() >= self.most {
            self.make_room(now);
        }
        if self.all.len() >= self.most {
            return None;
        }
        let number = loop {
            let number = draw();
            if number != 0 && !self.places.contains_key(&number) {
                break number;
            }
        };
        let session = Session { number, flows: Names::new(), peer, token, seen: now, replay: Replay::default() };
        let place = self.all.insert(session);
        self.places.insert(number, place);
        self.peers.entry(peer).or_default().push(place);
        Some(number)
    }

    /// Forgets a share of the sessions without a flow, those that have been silent for the longest time. So many that not
    /// every greeting has to look for them; and where there are fewer, once a second will do.
    fn make_room(&mut self, now: u32) {
        if self.crowded == Some(now) {
            return;
        }
        let share = (self.most / 16).max(1);
        let idle = self.all.iter().filter(|(_, session)| session.flows.is_empty());
        let mut idle: Vec<(u32, usize)> = idle.map(|(place, session)| (session.seen, place)).collect();
        if idle.len() > share {
            idle.select_nth_unstable(share);
            idle.truncate(share);
        } else {
            self.crowded = Some(now);
        }
        for (_, place) in idle {
            self.end(place);
        }
    }

    /// Flows of a peer in all its sessions.
    pub(super) fn flows_of(&self, peer: &Peer) -> usize {
        self.peers.get(peer).into_iter().flatten().map(|place| self.all[*place].flows.len()).sum()
    }

    /// The place of the session with this number, if it is that peer's, and whether the message's number is new there.
    pub(super) fn enter(&mut self, peer: &Peer, number: u64, message: u64, now: u32) -> Option<(usize, bool)> {
        let place = *self.places.get(&number)?;
        let session = &mut self.all[place];
        if session.peer != *peer {
            return None;
        }
        session.seen = now;
        Some((place, session.replay.accept(message)))
    }

    /// Forgets a session. Returns its flows.
    pub(super) fn end(&mut self, place: usize) -> Names {
        let Some(session) = self.all.try_remove(place) else { return Names::new() };
        self.places.remove(&session.number);
        if let Entry::Occupied(mut own) = self.peers.entry(session.peer) {
            own.get_mut().retain(|other| *other != place);
            if own.get().is_empty() {
                own.remove();
            }
        }
        session.flows
    }

    /// The places of the sessions of a connection.
    pub(super) fn of_connection(&self, connection: u64) -> Vec<usize> {
        self.peers.get(&Peer::Stream(connection)).cloned().unwrap_or_default()
    }

    /// The places of the sessions without a connection or a flow that have been silent since `oldest` (in s).
    pub(super) fn silent(&self, oldest: u32) -> Vec<usize> {
        let silent = |session: &Session| {
            matches!(session.peer, Peer::Datagram(..)) && session.flows.is_empty() && session.seen < oldest
        };
        self.all.iter().filter(|(_, session)| silent(session)).map(|(place, _)| place).collect()
    }
}
