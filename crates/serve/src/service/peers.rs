//! What a turn does with each socket that is ready.

use std::io::ErrorKind;
use std::time::Instant;

use nix::sys::epoll::{EpollEvent, EpollFlags};
use tracing::{debug, warn};

use super::connection::{Connection, Ended};
use super::engine::{Dropped, Engine};
use super::listen::Listener;
use super::metrics::Metrics;
use super::run::{CONNECTIONS, Service};
use super::sessions::Peer;
use crate::wire::WireError;

impl Service {
    pub(super) fn accept(&mut self, index: usize) -> bool {
        let Listener::Unix(listener, _) = &self.listeners[index] else { return false };
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    let connection = Connection::new(stream);
                    let (user, process) = connection.credentials().unwrap_or((u32::MAX, 0));
                    let allowed = self.config.users.is_empty() || self.config.users.contains(&user);
                    if !allowed || self.connections.len() >= self.config.limits.sessions {
                        let reason = if allowed { "full" } else { "user" };
                        self.metrics.drop(reason, 1);
                        if let Some(untold) = self.refused.tell(Instant::now()) {
                            warn!(user, process, reason, untold, "connection refused");
                        }
                        continue;
                    }
                    let number = self.next;
                    let event = EpollEvent::new(EpollFlags::EPOLLIN, number);
                    let ready = connection.prepare().and_then(|()| Ok(self.epoll.add(&connection, event)?));
                    if let Err(error) = ready {
                        warn!(%error, "connection lost");
                        continue;
                    }
                    debug!(connection = number - CONNECTIONS, user, process, "connected");
                    self.next += 1;
                    self.connections.insert(number, connection);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(error) => {
                    // No file descriptors: the socket stays ready, so look away for a moment.
                    warn!(%error, "cannot accept connections");
                    let _ = self.epoll.delete(&self.listeners[index]);
                    self.paused.push(index);
                    return false;
                }
            }
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
            if matches!(ended, Ended::Wire(WireError::Version)) {
                connection.push(&Engine::other_version());
                let _ = connection.flush(Instant::now());
            }
            let _ = self.epoll.delete(&connection);
        }
        self.engine.close(number);
    }

    pub(super) fn flush(&mut self) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.dedup();
        let now = Instant::now();
        for number in touched.drain(..) {
            let Some(connection) = self.connections.get_mut(&number) else { continue };
            let was_blocked = connection.blocked().is_some();
            if let Err(ended) = connection.flush(now) {
                self.end(number, &ended);
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
