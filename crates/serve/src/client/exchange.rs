//! What a client says and hears.

use std::time::Instant;

use astraea_policy::AgentConfig;

use super::transport::Transport;
use super::{Client, ClientError, Decision, Origin, RETRY};
use crate::auth::plain;
use crate::rule;
use crate::wire::{Ask, Frame, Message, Reason, Reports, Terms};

impl Client {
    /// Connects and greets if that is due, sends what waits, takes what has come.
    pub(super) fn look(&mut self, any: bool) {
        let now = Instant::now();
        if self.session.is_none() && now >= self.greet_at {
            self.greet_at = now + (self.timeout / 2).min(RETRY);
            if self.transport.is_none() {
                match Transport::connect(&self.address) {
                    Ok(transport) => self.transport = Some(transport),
                    Err(error) => {
                        let (address, reason) = (self.address.clone(), plain(&error));
                        self.refused = Some(ClientError::Connect { address, reason });
                        return;
                    }
                }
            }
            self.refused = None;
            self.send(Message::Hello { token: self.token });
        }
        self.flush();
        let Some(mut transport) = self.transport.take() else { return };
        let received = transport.receive(|bytes| self.take(bytes, any));
        self.transport = Some(transport);
        if received.is_err() {
            self.lose();
        }
        self.flush();
    }

    fn lose(&mut self) {
        (self.transport, self.session) = (None, None);
    }

    pub(super) fn flush(&mut self) {
        if self.transport.as_mut().is_some_and(|transport| transport.flush().is_err()) {
            self.lose();
        }
    }

    pub(super) fn send(&mut self, message: Message<'_>) {
        self.number += 1;
        let session = self.session.map_or(0, |(session, _)| session);
        self.scratch.clear();
        self.codec.write(&Frame { session, number: self.number, message }, &mut self.scratch);
        if self.transport.as_mut().is_some_and(|transport| transport.send(&self.scratch).is_err()) {
            self.lose();
        }
    }

    pub(super) fn send_ask(&mut self, flow: u64) {
        let (Some(history), Some(asked), Some((session, _))) =
            (self.flows.get(&flow), self.asked.get_mut(&flow), self.session)
        else {
            return;
        };
        self.number += 1;
        asked.number = self.number;
        let reports = Reports::Given(history.unconfirmed());
        let message = Message::Ask(Ask { flow, period: asked.period, reports });
        self.scratch.clear();
        self.codec.write(&Frame { session, number: self.number, message }, &mut self.scratch);
        if self.transport.as_mut().is_some_and(|transport| transport.send(&self.scratch).is_err()) {
            self.lose();
        }
    }

    /// Takes a message.
    fn take(&mut self, bytes: &[u8], any: bool) {
        let Ok(frame) = self.codec.read(bytes) else {
            self.counts.ignored += 1;
            return;
        };
        let ours = self.session.is_some_and(|(session, _)| session == frame.session);
        match frame.message {
            Message::Welcome { token, terms } if token == self.token && self.session.is_none() => {
                self.welcome(frame.session, terms, any);
            }
            Message::Answer(answer) if ours && self.is_asked(answer.flow, answer.period, frame.number) => {
                self.asked.remove(&answer.flow);
                if let Some(history) = self.flows.get_mut(&answer.flow) {
                    history.confirmed = answer.period;
                }
                self.counts.answered += 1;
                self.decided.push(Decision {
                    flow: answer.flow,
                    period: answer.period,
                    action: answer.action,
                    window: answer.window,
                    origin: Origin::Service(answer.version),
                });
            }
            Message::Refuse(refusal) if refusal.reason == Reason::Version => {
                self.refused = Some(ClientError::Version { address: self.address.clone() });
            }
            Message::Refuse(refusal) if ours && refusal.reason == Reason::Session => {
                // It has forgotten us: greet at once, and ask again what is open.
                self.session = None;
                self.greet_at = Instant::now();
            }
            Message::Refuse(refusal) if ours && self.is_asked(refusal.flow, refusal.period, frame.number) => {
                self.rule(refusal.flow);
            }
            Message::Refuse(refusal) if self.session.is_none() && refusal.reason == Reason::Full => {
                self.refused = Some(ClientError::Full { address: self.address.clone() });
            }
            _ => self.counts.ignored += 1,
        }
    }

    fn welcome(&mut self, session: u64, terms: Terms, any: bool) {
        let expected = self.config;
        // The time of day is the host's, not the service's.
        let found = AgentConfig { clock: expected.clock, ..terms.agent() };
        if !any && (found != expected || terms.definition != expected.form.definition_hash()) {
            let describe = |form: &str, alpha: f64, period: u64, definition: u64| {
                format!("{form} ({definition:016x}), alpha {alpha}, period {} ms", period as f64 / 1e6)
            };
            self.refused = Some(ClientError::Terms {
                address: self.address.clone(),
                found: describe(terms.form.name(), terms.alpha, terms.period, terms.definition),
                expected: describe(
                    expected.form.name(),
                    expected.alpha,
                    expected.period,
                    expected.form.definition_hash(),
                ),
            });
            return;
        }
        self.session = Some((session, terms));
        self.counts.sessions += 1;
        // The service knows nothing of the flows.
        self.flows.values_mut().for_each(|history| history.confirmed = 0);
        let mut open: Vec<u64> = self.asked.keys().copied().collect();
        open.sort_unstable();
        for flow in open {
            self.send_ask(flow);
        }
    }

    fn is_asked(&self, flow: u64, period: u32, number: u64) -> bool {
        self.asked.get(&flow).is_some_and(|asked| asked.number == number && asked.period == period)
    }

    /// Decides by the rule for what has not been answered in time.
    pub(super) fn give_up(&mut self, now: Instant) {
        while let Some(&(deadline, flow, period)) = self.deadlines.front() {
            let open = self.asked.get(&flow).is_some_and(|asked| asked.period == period);
            if open && deadline > now {
                return;
            }
            self.deadlines.pop_front();
            if open {
                self.rule(flow);
            }
        }
    }

    pub(super) fn rule(&mut self, flow: u64) {
        let (Some(asked), Some(history)) = (self.asked.remove(&flow), self.flows.get(&flow)) else { return };
        let report = history.newest();
        let action = rule::action(&self.config, &report.signals);
        self.counts.ruled += 1;
        self.decided.push(Decision {
            flow,
            period: asked.period,
            action,
            window: rule::window(&self.config, &report.signals, action, report.window, report.srtt_ns()),
            origin: Origin::Rule,
        });
    }
}
