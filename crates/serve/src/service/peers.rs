//! What a turn does with each socket that is ready.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use nix::sys::epoll::{EpollEvent, EpollFlags};
use tracing::{debug, warn};

use super::connection::{Connection, Ended, credentials};
use super::engine::{Dropped, Engine};
use super::listen::Listener;
use super::metrics::Metrics;
use super::run::{CONNECTIONS, Service};
use super::sessions::Peer;
use crate::wire::WireError;

/// Connections that are accepted in one turn: who connects without end waits for itself.
const ACCEPTED: usize = 64;

/// Bytes of answers that may wait for all connections together. Beyond, who does not take its answers is given up at once.
const UNSENT: usize = 32 << 20;

impl Service {
    /// Takes a share of the connections that wait at a listener. Returns whether there may be more.
    pub(super) fn accept(&mut self, index: usize) -> bool {
        for _ in 0..ACCEPTED {
            let Listener::Unix(listener, _) = &self.listeners[index] else { return false };
            match listener.accept() {
                Ok((stream, _)) => self.admit(stream),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(error) => {
                    // No file descriptors: the socket stays ready, so look away for a moment.
                    warn!(%error, "cannot accept connections");
                    let _ = self.epoll.delete(&self.listeners[index]);
                    self.paused.push(index);
                    self.make_room();
                    return false;
                }
            }
        }
        true
    }

    /// Makes a connection one of ours, unless its user may not connect or there are too many.
    fn admit(&mut self, stream: UnixStream) {
        let (user, process) = credentials(&stream).unwrap_or((u32::MAX, 0));
        let allowed = self.config.users.is_empty() || self.config.users.contains(&user);
        let most = self.config.limits.connections;
        if allowed && self.connections.len() >= most {
            self.make_room();
        }
        if !allowed || self.connections.len() >= most {
            let reason = if allowed { "full" } else { "user" };
            self.metrics.drop(reason, 1);
            if let Some(untold) = self.refused.tell(Instant::now()) {
                warn!(user, process, reason, untold, "connection refused");
            }
            return;
        }
        let number = self.next;
        let connection = Connection::new(stream, user, Instant::now());
        let event = EpollEvent::new(EpollFlags::EPOLLIN, number);
        let ready = connection.prepare().and_then(|()| Ok(self.epoll.add(&connection, event)?));
        if let Err(error) = ready {
            warn!(%error, "connection lost");
            return;
        }
        debug!(connection = number - CONNECTIONS, user, process, "connected");
        self.next += 1;
        self.connections.insert(number, connection);
    }

    /// Closes a share of the connections without a flow, so that nobody is kept out by those who do nothing: of the user who
    /// has most of them those that have been silent for the longest time. Looks once in a tick at most, as it looks at all.
    fn make_room(&mut self) {
        if std::mem::replace(&mut self.made_room, true) {
            return;
        }
        let engine = &self.engine;
        let idle = self.connections.iter().filter(|(number, _)| !engine.has_flows(&Peer::Stream(**number)));
        let mut of_users: HashMap<u32, Vec<(Instant, u64)>> = HashMap::new();
        for (number, connection) in idle {
            of_users.entry(connection.user).or_default().push((connection.heard, *number));
        }
        let Some(mut idle) = of_users.into_values().max_by_key(Vec::len) else { return };
        let share = (self.config.limits.connections / 16).max(1);
        if idle.len() > share {
            idle.select_nth_unstable(share);
            idle.truncate(share);
        }
        self.metrics.drop("idle", idle.len() as u64);
        for (_, number) in idle {
            self.end(number, &Ended::Gone);
        }
    }

    pub(super) fn read_connection(&mut self, number: u64, ready: EpollFlags) -> bool {
        let Some(connection) = self.connections.get_mut(&number) else { return false };
        if ready.contains(EpollFlags::EPOLLOUT) {
            self.touched.push(number);
            return false;
        }
        let (engine, metrics, now) = (&mut self.engine, &self.metrics, self.began.elapsed().as_secs() as u32);
        let mut messages = 0;
        connection.heard = Instant::now();
        let read = connection.read(&mut self.buffer, |message| {
            messages += 1;
            note(metrics, engine.receive(Peer::Stream(number), message, now));
        });
        metrics.messages(false, messages);
        match read {
            Ok(more) => more,
            Err(ended) => {
                // What it asked for in its last breath is answered to nobody.
                self.end(number, &ended);
                false
            }
        }
    }

    pub(super) fn read_datagrams(&mut self, index: usize) -> bool {
        let Listener::Udp(datagrams) = &mut self.listeners[index] else { return false };
        let (engine, metrics, now) = (&mut self.engine, &self.metrics, self.began.elapsed().as_secs() as u32);
        let received = datagrams.receive(|from, message| {
            note(metrics, engine.receive(Peer::Datagram(index as u16, from), message, now));
        });
        if received.flooded > 0 {
            self.metrics.drop("flood", received.flooded);
        }
        self.metrics.messages(true, received.messages + received.flooded);
        received.more
    }

    pub(super) fn end(&mut self, number: u64, ended: &Ended) {
        if let Ended::Wire(error) = ended {
            self.metrics.drop(error.name(), 1);
            if let Some(untold) = self.malformed.tell(Instant::now()) {
                let (connection, reason) = (number - CONNECTIONS, error.name());
                warn!(connection, reason, untold, "not a message: connection closed");
            }
        }
        if let Some(mut connection) = self.connections.remove(&number) {
            self.unsent -= connection.unsent();
            if matches!(ended, Ended::Wire(WireError::Version)) {
                connection.push(&Engine::other_version());
                let _ = connection.flush(Instant::now());
            }
            let _ = self.epoll.delete(&connection);
        }
        self.engine.close(number);
    }

    /// Closes a connection whose peer does not take its answers.
    pub(super) fn stall(&mut self, number: u64) {
        self.metrics.drop("stalled", 1);
        if let Some(untold) = self.stalled.tell(Instant::now()) {
            let connection = number - CONNECTIONS;
            warn!(connection, untold, "does not take its answers: connection closed");
        }
        self.end(number, &Ended::Gone);
    }

    pub(super) fn flush(&mut self) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.dedup();
        let now = Instant::now();
        for number in touched.drain(..) {
            let Some(connection) = self.connections.get_mut(&number) else { continue };
            let (was_blocked, before) = (connection.blocked().is_some(), connection.unsent());
            let flushed = connection.flush(now);
            self.unsent -= before - connection.unsent();
            if let Err(ended) = flushed {
                self.end(number, &ended);
            } else if connection.blocked().is_some() && self.unsent > UNSENT {
                self.stall(number);
            } else if connection.blocked().is_some() != was_blocked {
                let flags = if was_blocked { EpollFlags::EPOLLIN } else { EpollFlags::EPOLLOUT };
                let _ = self.epoll.modify(&*connection, &mut EpollEvent::new(flags, number));
            }
        }
        self.touched = touched;
    }
}

fn note(metrics: &Metrics, received: Result<bool, Dropped>) {
    if let Err(dropped) = received {
        metrics.drop(dropped.name(), 1);
    }
}
