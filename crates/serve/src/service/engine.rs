//! The service without sockets and clock: messages in, answers out.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use astraea_policy::{AgentConfig, Policy, Scratch, Signals};

use super::flows::Flows;
use super::loaded::Loaded;
use super::sessions::{Peer, Sessions};
use crate::auth::random;
use crate::wire::{Answer, Ask, Codec, Frame, Message, Reason, Refusal, Terms, WireError};
use crate::{Key, rule};

/// Bounds of what a service remembers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Most flows.
    pub flows: usize,
    /// Most flows of one peer, in all its sessions.
    pub flows_per_peer: usize,
    /// Most sessions.
    pub sessions: usize,
    /// Most connections. The system keeps up to 64 KiB of answers for each that does not take them.
    pub connections: usize,
    /// Most requests that wait; beyond, the oldest are given up.
    pub waiting: usize,
    /// Most states evaluated together.
    pub batch: usize,
    /// After so many s without a word a flow or session is forgotten.
    pub expiry: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            flows: 1 << 17,
            flows_per_peer: 1 << 17,
            sessions: 1 << 14,
            connections: 1 << 12,
            waiting: 1 << 14,
            batch: 256,
            expiry: 10,
        }
    }
}

/// Why a message had no effect, or a request no decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dropped {
    /// No message at all.
    Wire(WireError),
    /// A message that only services send.
    Direction,
    /// Its number has been seen in this session.
    Replayed,
    /// Its period is not newer than the flow's newest.
    Stale,
    /// A newer request of the same flow came before it was answered.
    Superseded,
    /// Too many requests waited, and this was the oldest.
    Shed,
    /// Refused: no such session.
    Session,
    /// Refused: no room.
    Full,
}

impl Dropped {
    /// Label in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Wire(error) => error.name(),
            Self::Direction => "direction",
            Self::Replayed => "replayed",
            Self::Stale => "stale",
            Self::Superseded => "superseded",
            Self::Shed => "shed",
            Self::Session => "session",
            Self::Full => "full",
        }
    }
}

/// A request that waits for its decision.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    peer: Peer,
    session: usize,
    number: u64,
    place: u32,
    flow: u64,
    period: u32,
    window: f64,
    signals: Signals,
    srtt: u64,
}

/// What a round of decisions did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Decisions made.
    pub decided: usize,
    /// Requests superseded.
    pub superseded: usize,
}

/// The service without sockets and clock.
#[derive(Debug)]
pub struct Engine {
    loaded: Loaded,
    config: AgentConfig,
    limits: Limits,
    plain: Codec,
    keyed: Codec,
    sessions: Sessions,
    flows: Flows,
    waiting: VecDeque<Waiting>,
    chosen: Vec<Waiting>,
    states: Vec<f32>,
    actions: Vec<f32>,
    scratch: Scratch,
    replies: Vec<(Peer, Range<usize>)>,
    bytes: Vec<u8>,
}

impl Engine {
    /// An engine that serves a policy. With a key, datagrams are authenticated.
    pub fn new(loaded: Loaded, limits: Limits, key: Option<Key>) -> Self {
        let config = AgentConfig::of(loaded.policy.metadata());
        Self {
            config,
            limits,
            plain: Codec::default(),
            keyed: Codec::new(key),
            sessions: Sessions::new(limits.sessions),
            flows: Flows::new(config.form, limits.flows),
            loaded,
            waiting: VecDeque::new(),
            chosen: Vec::new(),
            states: Vec::new(),
            actions: Vec::new(),
            scratch: Scratch::default(),
            replies: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// What is served.
    pub fn terms(&self) -> Terms {
        let AgentConfig { form, alpha, period, .. } = self.config;
        Terms { form, definition: form.definition_hash(), alpha, period, version: self.loaded.version }
    }

    /// Serves another policy from the next batch on.
    ///
    /// # Errors
    /// A policy that senders would have to know of: of another form, action scale or period.
    pub fn replace(&mut self, loaded: Loaded) -> Result<(), String> {
        let config = AgentConfig::of(loaded.policy.metadata());
        let describe = |config: &AgentConfig| {
            let ms = config.period as f64 / 1e6;
            format!("form {}, alpha {}, period {ms} ms", config.form.name(), config.alpha)
        };
        if config != self.config {
            let (found, expected) = (describe(&config), describe(&self.config));
            return Err(format!("{found}; expected {expected}, as served: start a new service for another"));
        }
        self.loaded = loaded;
        Ok(())
    }

    /// Flows known.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Sessions known.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Whether a peer has a flow.
    pub(super) fn has_flows(&self, peer: &Peer) -> bool {
        self.sessions.flows_of(peer) > 0
    }

    /// Bytes of answers that [`replies`](Self::replies) has not taken.
    pub(super) fn unsent(&self) -> usize {
        self.bytes.len()
    }

    /// Requests that wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Takes a whole message from a peer at a time in s. Returns whether it is a request that now waits.
    ///
    /// # Errors
    /// Why it had no effect. [`Dropped::Shed`] is the exception: this request waits, and the oldest one that did is given up.
    pub fn receive(&mut self, peer: Peer, bytes: &[u8], now: u32) -> Result<bool, Dropped> {
        let frame = match self.codec(&peer).read(bytes) {
            Ok(frame) => frame,
            Err(error) => {
                // Who has no key is not answered: whose address it bears may know nothing of it.
                if error == WireError::Version && !self.codec(&peer).has_key() {
                    self.refuse(peer, 0, 0, (0, 0), Reason::Version);
                }
                return Err(Dropped::Wire(error));
            }
        };
        match frame.message {
            Message::Hello { token } => self.hello(peer, frame.number, token, now).map(|()| false),
            Message::Ask(ask) => self.ask(peer, &frame, &ask, now),
            Message::End { flow } => {
                let entered = self.sessions.enter(&peer, frame.session, frame.number, now);
                let (session, fresh) = entered.ok_or(Dropped::Session)?;
                if !fresh {
                    return Err(Dropped::Replayed);
                }
                if let Some(place) = self.sessions.get_mut(session).and_then(|session| session.flows.remove(&flow)) {
                    self.flows.end(place);
                }
                Ok(false)
            }
            Message::Welcome { .. } | Message::Answer(_) | Message::Refuse(_) => Err(Dropped::Direction),
        }
    }

    fn hello(&mut self, peer: Peer, number: u64, token: u64, now: u32) -> Result<(), Dropped> {
        let Some(session) = self.sessions.greet(peer, token, now, random) else {
            self.refuse(peer, 0, number, (0, 0), Reason::Full);
            return Err(Dropped::Full);
        };
        let message = Message::Welcome { token, terms: self.terms() };
        self.reply(peer, &Frame { session, number, message });
        Ok(())
    }

    fn ask(&mut self, peer: Peer, frame: &Frame<'_>, ask: &Ask<'_>, now: u32) -> Result<bool, Dropped> {
        let about = (ask.flow, ask.period);
        let Some((session, fresh)) = self.sessions.enter(&peer, frame.session, frame.number, now) else {
            self.refuse(peer, frame.session, frame.number, about, Reason::Session);
            return Err(Dropped::Session);
        };
        if !fresh {
            return Err(Dropped::Replayed);
        }
        let Some(place) = self.place(&peer, session, ask.flow, now) else {
            self.refuse(peer, frame.session, frame.number, about, Reason::Full);
            return Err(Dropped::Full);
        };
        if !self.flows.take(place, ask, now) {
            return Err(Dropped::Stale);
        }
        let newest = ask.reports.get(ask.reports.len() - 1).unwrap_or_default();
        self.waiting.push_back(Waiting {
            peer,
            session,
            number: frame.number,
            place,
            flow: ask.flow,
            period: ask.period,
            window: newest.window,
            signals: newest.signals,
            srtt: newest.srtt_ns(),
        });
        if self.waiting.len() > self.limits.waiting {
            self.waiting.pop_front();
            return Err(Dropped::Shed);
        }
        Ok(true)
    }

    /// The place of a flow of the peer's session at this place, which begins if it is new; `None` if there is no room.
    fn place(&mut self, peer: &Peer, session: usize, flow: u64, now: u32) -> Option<u32> {
        if let Some(&place) = self.sessions.get_mut(session)?.flows.get(&flow) {
            return Some(place);
        }
        if self.sessions.flows_of(peer) >= self.limits.flows_per_peer {
            return None;
        }
        let place = self.flows.begin(session, flow, now)?;
        self.sessions.get_mut(session)?.flows.insert(flow, place);
        Some(place)
    }

    /// Decides for up to a batch of the requests that wait, in their order.
    pub fn decide(&mut self) -> Round {
        let mut round = Round::default();
        self.chosen.clear();
        self.states.clear();
        while self.chosen.len() < self.limits.batch
            && let Some(waiting) = self.waiting.pop_front()
        {
            match self.flows.get(waiting.place, waiting.session, waiting.flow) {
                Some(flow) if flow.period == waiting.period => {
                    self.states.extend_from_slice(flow.state());
                    self.chosen.push(waiting);
                }
                _ => round.superseded += 1,
            }
        }
        self.actions.clear();
        self.actions.resize(self.chosen.len(), 0.0);
        let network = self.loaded.policy.network();
        network.forward_batch(&self.states, &mut self.actions, &mut self.scratch);
        round.decided = self.chosen.len();
        for index in 0..self.chosen.len() {
            let (waiting, action) = (self.chosen[index], f64::from(self.actions[index]));
            let Some(session) = self.sessions.get_mut(waiting.session) else { continue };
            let answer = Answer {
                flow: waiting.flow,
                period: waiting.period,
                action,
                window: rule::window(&self.config, &waiting.signals, action, waiting.window, waiting.srtt)
                    .min(f64::MAX),
                version: self.loaded.version,
            };
            let frame = Frame { session: session.number, number: waiting.number, message: Message::Answer(answer) };
            self.reply(waiting.peer, &frame);
        }
        round
    }

    /// Takes what is to be sent, in the order in which it came about.
    pub fn replies(&mut self, mut send: impl FnMut(Peer, &[u8])) {
        for (peer, range) in self.replies.drain(..) {
            send(peer, &self.bytes[range]);
        }
        self.bytes.clear();
    }

    /// A connection has ended, and with it its sessions and their flows.
    pub fn close(&mut self, connection: u64) {
        for place in self.sessions.of_connection(connection) {
            self.sessions.end(place).into_values().for_each(|flow| self.flows.end(flow));
        }
    }

    /// What a connection gets to hear that begins with a message of another version of the protocol.
    pub(super) fn other_version() -> Vec<u8> {
        let message = Message::Refuse(Refusal { flow: 0, period: 0, reason: Reason::Version });
        let mut bytes = Vec::new();
        Codec::default().write(&Frame { session: 0, number: 0, message }, &mut bytes);
        bytes
    }

    /// Forgets a part of what has been silent for too long, at a time in s: call it some times a second.
    pub fn sweep(&mut self, now: u32) {
        /// Flows that are looked at in one go: well below a millisecond.
        const STEPS: usize = 4096;
        let oldest = now.saturating_sub(self.limits.expiry);
        for (session, flow) in self.flows.sweep(STEPS, oldest) {
            if let Some(session) = self.sessions.get_mut(session) {
                session.flows.remove(&flow);
            }
        }
        for place in self.sessions.silent(oldest) {
            self.sessions.end(place);
        }
    }

    fn codec(&self, peer: &Peer) -> &Codec {
        match peer {
            Peer::Stream(_) => &self.plain,
            Peer::Datagram(..) => &self.keyed,
        }
    }

    fn refuse(&mut self, peer: Peer, session: u64, number: u64, (flow, period): (u64, u32), reason: Reason) {
        let message = Message::Refuse(Refusal { flow, period, reason });
        self.reply(peer, &Frame { session, number, message });
    }

    fn reply(&mut self, peer: Peer, frame: &Frame<'_>) {
        let codec = if matches!(peer, Peer::Stream(_)) { &self.plain } else { &self.keyed };
        let start = self.bytes.len();
        codec.write(frame, &mut self.bytes);
        self.replies.push((peer, start..self.bytes.len()));
    }

    /// The policy that is served.
    pub fn policy(&self) -> &Arc<Policy> {
        &self.loaded.policy
    }
}
