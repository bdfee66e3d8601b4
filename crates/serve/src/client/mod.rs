//! A client: asks a service for any number of flows, and answers by the local rule when that does not.

mod exchange;
mod history;
#[cfg(test)]
mod tests;
pub(crate) mod transport;

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use astraea_policy::{AgentConfig, Policy};

use crate::auth::random;
use crate::wire::{Codec, Message, Terms};
use crate::{Address, Key, Report};
use history::History;
use transport::Transport;

/// Longest time between two attempts to find a service.
const RETRY: Duration = Duration::from_millis(50);

/// Who made a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The service, with this version of the policy.
    Service(u64),
    /// The local [rule](crate::rule).
    Rule,
}

/// What a flow is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decision {
    /// The flow.
    pub flow: u64,
    /// The number of its period, counted from 1.
    pub period: u32,
    /// The action for the flow's agent.
    pub action: f64,
    /// The window in bytes, for a sender without an agent; floor and cap are its own.
    pub window: f64,
    /// Who decided.
    pub origin: Origin,
}

/// Why there is no service. Displays as one line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum ClientError {
    #[error("{address}: no service: {reason}")]
    Connect { address: Address, reason: String },
    #[error("{address}: no answer within {seconds} s, expected a service of protocol version {version}", version = crate::wire::VERSION)]
    Silent { address: Address, seconds: f64 },
    #[error("{address}: can be on another host, and a service that others can reach needs a key: expected one")]
    NoKey { address: Address },
    #[error("{address}: the service is full")]
    Full { address: Address },
    #[error("{address}: the service speaks another version of the protocol, expected {version}", version = crate::wire::VERSION)]
    Version { address: Address },
    #[error("{address}: serves form {found}; expected {expected}")]
    Terms { address: Address, found: String, expected: String },
    #[error("{address}: serves policy {found:016x}; expected {expected:016x}, that of {scheme:?}")]
    Policy { address: Address, found: u64, expected: u64, scheme: String },
    #[error("{address}: the service has gone")]
    Gone { address: Address },
}

/// What a client has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Decisions of the service.
    pub answered: u64,
    /// Decisions of the rule.
    pub ruled: u64,
    /// Messages that came and answered nothing that was asked: late, repeated, foreign or damaged.
    pub ignored: u64,
    /// Sessions.
    pub sessions: u64,
}

/// A request without an answer.
#[derive(Clone, Copy, Debug)]
struct Asked {
    number: u64,
    period: u32,
}

/// A client.
///
/// [`ask`](Self::ask) and [`poll`](Self::poll) serve many flows at once, [`decide`](Self::decide) waits for one. A period
/// that is not answered in time is decided by the [rule](crate::rule); each later one is asked for again, so a flow is
/// back with the first answer. An answer counts only if it bears the session, the number and the period of what was asked.
#[derive(Debug)]
pub struct Client {
    address: Address,
    codec: Codec,
    timeout: Duration,
    config: AgentConfig,
    transport: Option<Transport>,
    session: Option<(u64, Terms)>,
    refused: Option<ClientError>,
    token: u64,
    number: u64,
    greet_at: Instant,
    flows: HashMap<u64, History>,
    asked: HashMap<u64, Asked>,
    deadlines: VecDeque<(Instant, u64, u32)>,
    decided: Vec<Decision>,
    counts: Counts,
    scratch: Vec<u8>,
}

impl Client {
    /// A client for agents that are driven as `config` says; whether there is a service turns out later. `timeout` is how
    /// long an answer may take: a monitoring period. The key is used where messages leave the host, and on loopback if
    /// one is given; never on a UNIX socket.
    pub fn new(address: Address, key: Option<Key>, timeout: Duration, config: AgentConfig) -> Self {
        let key = key.filter(|_| matches!(address, Address::Udp(_)));
        Self {
            address,
            codec: Codec::new(key),
            timeout,
            config,
            transport: None,
            session: None,
            refused: None,
            token: random(),
            number: 0,
            greet_at: Instant::now(),
            flows: HashMap::new(),
            asked: HashMap::new(),
            deadlines: VecDeque::new(),
            decided: Vec::new(),
            counts: Counts::default(),
            scratch: Vec::new(),
        }
    }

    /// A client of a service that is there, for agents as that service wants them ([`terms`](Self::terms)).
    ///
    /// # Errors
    /// No service, or none that answers within `patience`.
    pub fn connect(
        address: Address,
        key: Option<Key>,
        timeout: Duration,
        patience: Duration,
    ) -> Result<Self, ClientError> {
        let mut client = Self::new(address, key, timeout, AgentConfig::new(astraea_policy::Form::Guided));
        let terms = client.greet(patience, true)?;
        client.config = terms.agent();
        Ok(client)
    }

    /// Waits until the service has agreed to serve these agents.
    ///
    /// # Errors
    /// No service, none that answers within `patience`, or one that serves something else.
    pub fn wait(&mut self, patience: Duration) -> Result<Terms, ClientError> {
        self.greet(patience, false)
    }

    fn greet(&mut self, patience: Duration, any: bool) -> Result<Terms, ClientError> {
        let (address, until) = (self.address.clone(), Instant::now() + patience);
        if address.is_remote() && !self.codec.has_key() {
            return Err(ClientError::NoKey { address });
        }
        loop {
            self.look(any);
            if let Some((_, terms)) = self.session {
                return Ok(terms);
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.refused.clone() {
                // It may be starting.
                Some(ClientError::Connect { .. }) if !left.is_zero() => {}
                Some(error) => return Err(error),
                None => {}
            }
            match &self.transport {
                _ if left.is_zero() => return Err(ClientError::Silent { address, seconds: patience.as_secs_f64() }),
                Some(transport) => transport.wait(left.min(self.timeout)),
                None => std::thread::sleep(left.min(self.timeout).min(Duration::from_millis(10))),
            }
        }
    }

    /// What the service serves, while there is a session.
    pub fn terms(&self) -> Option<Terms> {
        self.session.map(|(_, terms)| terms)
    }

    /// Fails unless the service serves this policy, that of a scheme that a user has named.
    ///
    /// # Errors
    /// It serves another one, or there is no session.
    pub fn check_policy(&self, scheme: &str, policy: &Policy) -> Result<(), ClientError> {
        let address = self.address.clone();
        let found = self.terms().ok_or_else(|| ClientError::Gone { address: address.clone() })?.version;
        let expected = crate::version(policy);
        if found == expected {
            return Ok(());
        }
        Err(ClientError::Policy { address, found, expected, scheme: scheme.to_owned() })
    }

    /// Sets how long an answer may take.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// What the client has seen so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The socket, to be waited on together with others; another one after the connection was lost.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.transport.as_ref().map(AsFd::as_fd)
    }

    /// Reports a period for which no decision is wanted.
    pub fn note(&mut self, flow: u64, report: &Report) {
        self.flows.entry(flow).or_default().push(*report);
    }

    /// Reports a period and asks for a decision, which [`poll`](Self::poll) brings. A request for the period before that is
    /// not answered yet is given up.
    pub fn ask(&mut self, flow: u64, report: &Report) {
        self.note(flow, report);
        let period = self.flows[&flow].period;
        self.asked.insert(flow, Asked { number: 0, period });
        self.deadlines.push_back((Instant::now() + self.timeout, flow, period));
        if self.session.is_some() {
            self.send_ask(flow);
        } else {
            self.look(false);
        }
    }

    /// Gives up the flow's request, if it has not been answered, and decides by the rule.
    pub fn give_up_on(&mut self, flow: u64) -> Option<Decision> {
        self.rule(flow);
        let found = self.decided.iter().rposition(|decision| decision.flow == flow)?;
        Some(self.decided.remove(found))
    }

    /// A flow has ended.
    pub fn end(&mut self, flow: u64) {
        self.asked.remove(&flow);
        if self.flows.remove(&flow).is_some() && self.session.is_some() {
            self.send(Message::End { flow });
            self.flush();
        }
    }

    /// Appends the decisions that have come or are due, waiting for the first at most so long.
    pub fn poll(&mut self, wait: Duration, decisions: &mut Vec<Decision>) {
        let until = Instant::now() + wait;
        loop {
            self.look(false);
            let now = Instant::now();
            self.give_up(now);
            if !self.decided.is_empty() || now >= until {
                decisions.append(&mut self.decided);
                return;
            }
            let next = self.deadlines.front().map_or(until, |deadline| deadline.0.min(until));
            let next = if self.session.is_some() { next } else { next.min(self.greet_at) };
            let time = next.saturating_duration_since(now);
            match &self.transport {
                Some(transport) => transport.wait(time),
                None => std::thread::sleep(time.max(Duration::from_micros(100))),
            }
        }
    }

    /// Reports a period and waits for the decision.
    pub fn decide(&mut self, flow: u64, report: &Report) -> Decision {
        self.ask(flow, report);
        let period = self.flows[&flow].period;
        let mut decisions = Vec::new();
        loop {
            self.poll(self.timeout, &mut decisions);
            let found = decisions.iter().position(|decision| decision.flow == flow && decision.period == period);
            if let Some(found) = found {
                let decision = decisions.swap_remove(found);
                self.decided.append(&mut decisions);
                return decision;
            }
        }
    }
}
