//! The process: what is ready is read, what is read is decided, what is decided is sent.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tracing::{info, warn};

use super::Config;
use super::connection::{Connection, SHARE};
use super::engine::{Dropped, Engine};
use super::error::ServiceError;
use super::gather::Gather;
use super::listen::Listener;
use super::loaded::Loaded;
use super::metrics::{self, Metrics};
use super::seldom::OneASecond;
use super::sessions::Peer;
use crate::Address;
use crate::auth::plain;
use crate::page::{Format, Page};

/// What belongs to the control; listeners come next, connections from [`CONNECTIONS`] on.
const CONTROL: u64 = 0;
pub(super) const CONNECTIONS: u64 = 1 << 16;

/// Time between two looks at what is old.
const TICK: Duration = Duration::from_millis(100);

/// Bytes of answers that are collected before they are sent, where a turn has more.
const AT_ONCE: usize = 1 << 20;

/// A peer that has not taken its answers for so long is given up.
const STALLED: Duration = Duration::from_secs(10);

/// Time for the last answers when the service ends.
const DRAIN: Duration = Duration::from_millis(500);

/// Tells a running service what to do, from another thread.
#[derive(Debug)]
pub struct Control(UnixStream);

impl Control {
    /// Reads the policy again.
    pub fn reload(&self) {
        self.say(b"r");
    }

    /// Answers what has come, and ends.
    pub fn stop(&self) {
        self.say(b"s");
    }

    fn say(&self, what: &[u8]) {
        // The service has ended, or hears of it anyway.
        let _ = (&self.0).write(what);
    }
}

/// A service that is bound.
#[derive(Debug)]
pub struct Service {
    pub(super) config: Config,
    pub(super) engine: Engine,
    pub(super) epoll: Epoll,
    pub(super) listeners: Vec<Listener>,
    /// Listeners that have run out of file descriptors, until the next tick.
    pub(super) paused: Vec<usize>,
    pub(super) connections: HashMap<u64, Connection>,
    /// Bytes of answers that wait for all of them.
    pub(super) unsent: usize,
    /// Whether connections without a flow have been looked for since the last tick.
    pub(super) made_room: bool,
    pub(super) next: u64,
    control: UnixStream,
    pub(super) metrics: Metrics,
    pub(super) refused: OneASecond,
    pub(super) malformed: OneASecond,
    pub(super) stalled: OneASecond,
    metrics_at: Option<SocketAddr>,
    gather: Gather,
    pub(super) began: Instant,
    pub(super) buffer: Vec<u8>,
    pub(super) touched: Vec<u64>,
    stop: bool,
}

fn system(error: impl std::fmt::Display) -> ServiceError {
    ServiceError::System(error.to_string())
}

impl Service {
    /// Loads the policy and binds every address.
    ///
    /// # Errors
    /// Whatever is wrong, before anything is served.
    pub fn bind(config: Config) -> Result<(Self, Control), ServiceError> {
        let loaded = config.policy.load()?;
        Self::bind_with(config, loaded)
    }

    /// Binds every address, with the policy as it was loaded before.
    ///
    /// # Errors
    /// Whatever else is wrong, before anything is served.
    pub fn bind_with(config: Config, loaded: Loaded) -> Result<(Self, Control), ServiceError> {
        let handed_over = Listener::handed_over()?;
        if config.listen.is_empty() && handed_over.is_empty() {
            return Err(ServiceError::Nowhere);
        }
        for (index, address) in config.listen.iter().enumerate() {
            if config.listen[..index].contains(address) {
                return Err(ServiceError::Twice(address.clone()));
            }
            if address.is_remote() && config.key.is_none() {
                return Err(ServiceError::NoKey(address.clone()));
            }
        }
        let mut listeners = Vec::new();
        for (listener, address, remote) in handed_over {
            if remote && config.key.is_none() {
                let reason = format!("{address} can be reached from other hosts: expected a key (--key)");
                return Err(ServiceError::Activation(reason));
            }
            info!(%address, "listening, on a socket of systemd's");
            listeners.push(listener);
        }
        for address in &config.listen {
            listeners.push(Listener::bind(address, config.mode)?);
            info!(%address, "listening");
        }
        if let Some(user) = config.users.iter().find(|user| !can_be_told(**user)) {
            return Err(ServiceError::User(*user));
        }
        let (metrics, registry) = Metrics::new();
        let metrics_at = match config.metrics {
            None => None,
            Some(address) => Some(
                Page::bind(address)
                    .and_then(|page| page.serve(Format::OpenMetrics, move || Ok(metrics::text(&registry))))
                    .map_err(|error| ServiceError::Metrics { address, reason: plain(&error) })?,
            ),
        };
        let (control, service_end) = UnixStream::pair().map_err(system)?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(system)?;
        service_end.set_nonblocking(true).map_err(system)?;
        control.set_nonblocking(true).map_err(system)?;
        epoll.add(&service_end, EpollEvent::new(EpollFlags::EPOLLIN, CONTROL)).map_err(system)?;
        for (index, listener) in listeners.iter().enumerate() {
            epoll.add(listener, readable(index)).map_err(system)?;
        }
        let service = Self {
            engine: Engine::new(loaded, config.limits, config.key.clone()),
            gather: Gather::new(config.max_wait),
            config,
            epoll,
            listeners,
            paused: Vec::new(),
            connections: HashMap::new(),
            unsent: 0,
            made_room: false,
            next: CONNECTIONS,
            control: service_end,
            metrics,
            refused: OneASecond::default(),
            malformed: OneASecond::default(),
            stalled: OneASecond::default(),
            metrics_at,
            began: Instant::now(),
            buffer: vec![0; SHARE],
            touched: Vec::new(),
            stop: false,
        };
        service.announce();
        Ok((service, Control(control)))
    }

    /// Where metrics are shown.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_at
    }

    /// The addresses of the UDP sockets, whose ports the system may have chosen.
    pub fn udp_addresses(&self) -> Vec<Address> {
        let udp = |listener: &Listener| match listener {
            Listener::Udp(datagrams) => datagrams.address().ok().map(Address::Udp),
            Listener::Unix(..) => None,
        };
        self.listeners.iter().filter_map(udp).collect()
    }

    fn announce(&self) {
        let terms = self.engine.terms();
        let name = self.config.policy.to_string();
        let shape = self.engine.policy().network().shape();
        let version = format!("{:016x}", terms.version);
        info!(policy = name, form = terms.form.name(), shape, version, "serving");
        self.metrics.serve(&name, terms.form.name(), terms.version);
    }

    /// Serves until told to stop.
    ///
    /// # Errors
    /// Those of the system.
    pub fn run(mut self) -> Result<(), ServiceError> {
        // As many connections as the system lets us have.
        if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
            let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
        }
        // Where nobody waits for it this goes nowhere.
        let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
        let mut events = vec![EpollEvent::empty(); 1024];
        let (mut ticked, mut more) = (Instant::now(), false);
        let mut last = Instant::now();
        while !self.stop {
            let timeout = if more { EpollTimeout::ZERO } else { EpollTimeout::from(TICK.as_millis() as u16) };
            let ready = self.wait(&mut events, timeout)?;
            let start = Instant::now();
            more = self.read(&events[..ready]);
            if self.engine.waiting() > 0 && !more {
                let (have, wait) = (self.engine.waiting(), self.gather.wait(self.engine.waiting()));
                if !wait.is_zero() {
                    std::thread::sleep(wait);
                    let ready = self.wait(&mut events, EpollTimeout::ZERO)?;
                    more = self.read(&events[..ready]);
                    self.gather.waited(self.engine.waiting().saturating_sub(have));
                }
            }
            let requests = self.engine.waiting();
            if requests > 0 {
                self.gather.turn(requests, start - last);
                last = start;
            }
            self.decide(start);
            if ticked.elapsed() >= TICK {
                ticked = Instant::now();
                self.tick();
            }
        }
        self.drain(&mut events)
    }

    fn wait(&self, events: &mut [EpollEvent], timeout: EpollTimeout) -> Result<usize, ServiceError> {
        match self.epoll.wait(events, timeout) {
            Ok(ready) => Ok(ready),
            Err(nix::errno::Errno::EINTR) => Ok(0),
            Err(error) => Err(system(error)),
        }
    }

    /// Reads what is ready. Returns whether something may be left.
    fn read(&mut self, events: &[EpollEvent]) -> bool {
        let mut more = events.len() >= 1024;
        // What waits for its turn makes no socket ready.
        for index in 0..self.listeners.len() {
            let is_behind = matches!(&self.listeners[index], Listener::Udp(datagrams) if datagrams.is_behind());
            if is_behind && !events.iter().any(|event| event.data() == index as u64 + 1) {
                more |= self.read_datagrams(index);
            }
        }
        for event in events {
            more |= match event.data() {
                CONTROL => self.obey(),
                connection if connection >= CONNECTIONS => self.read_connection(connection, event.events()),
                listener => match self.listeners[listener as usize - 1] {
                    Listener::Unix(..) => self.accept(listener as usize - 1),
                    Listener::Udp(..) => self.read_datagrams(listener as usize - 1),
                },
            };
            // Greetings and refusals do not wait, so there may be any number of them in a turn.
            if self.engine.unsent() > AT_ONCE {
                self.send();
            }
        }
        more
    }

    fn obey(&mut self) -> bool {
        let mut said = [0; 64];
        let read = self.control.read(&mut said).unwrap_or(0);
        if said[..read].contains(&b'r') {
            self.reload();
        }
        self.stop |= said[..read].contains(&b's');
        false
    }

    fn reload(&mut self) {
        let _ = sd_notify::notify(&[sd_notify::NotifyState::Reloading]);
        let loaded = self.config.policy.reload().map_err(|error| error.to_string());
        match loaded.and_then(|loaded| self.engine.replace(loaded)) {
            Ok(()) => {
                self.metrics.reload("done");
                self.announce();
            }
            Err(reason) => {
                self.metrics.reload("refused");
                warn!(reason, "the policy stays as it is: the new one cannot be served");
            }
        }
        let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    }

    /// Decides for all that waits and sends the answers.
    fn decide(&mut self, start: Instant) {
        let mut decided = 0;
        while self.engine.waiting() > 0 {
            let round = self.engine.decide();
            decided += round.decided;
            self.metrics.batch.observe(round.decided as f64);
            if round.superseded > 0 {
                self.metrics.drop(Dropped::Superseded.name(), round.superseded as u64);
            }
        }
        self.send();
        if decided > 0 {
            self.metrics.decisions.inc_by(decided as u64);
            let latency = start.elapsed().as_secs_f64();
            (0..decided).for_each(|_| self.metrics.latency.observe(latency));
            self.metrics.busy.inc_by(latency);
        }
    }

    /// Sends the answers there are.
    fn send(&mut self) {
        let (connections, listeners, touched) = (&mut self.connections, &mut self.listeners, &mut self.touched);
        let (mut lost, unsent) = (0, &mut self.unsent);
        self.engine.replies(|peer, bytes| match peer {
            Peer::Stream(number) => {
                if let Some(connection) = connections.get_mut(&number) {
                    connection.push(bytes);
                    *unsent += bytes.len();
                    touched.push(number);
                }
            }
            Peer::Datagram(index, to) => {
                if let Listener::Udp(datagrams) = &mut listeners[index as usize] {
                    lost += datagrams.push(to, bytes);
                }
            }
        });
        for listener in listeners {
            if let Listener::Udp(datagrams) = listener {
                lost += datagrams.flush();
            }
        }
        if lost > 0 {
            self.metrics.drop("unsent", lost);
        }
        self.flush();
    }

    /// Looks at what is old, and at the gauges.
    fn tick(&mut self) {
        self.engine.sweep(self.began.elapsed().as_secs() as u32);
        let now = Instant::now();
        let stalled = |connection: &Connection| {
            connection.blocked().is_some_and(|since| now.saturating_duration_since(since) > STALLED)
        };
        let numbers = self.connections.iter().filter(|(_, connection)| stalled(connection));
        for number in numbers.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.stall(number);
        }
        self.made_room = false;
        for index in std::mem::take(&mut self.paused) {
            let _ = self.epoll.add(&self.listeners[index], readable(index));
        }
        for index in 0..self.listeners.len() {
            if self.listeners[index].is_lost() {
                self.restore(index);
            }
        }
        self.metrics.know(self.engine.flows(), self.engine.sessions(), self.connections.len());
    }

    fn restore(&mut self, index: usize) {
        // The socket that nobody can name any more closes with its replacement, and leaves the epoll by that.
        if self.listeners[index].restore().is_ok() && self.epoll.add(&self.listeners[index], readable(index)).is_ok() {
            warn!("the socket was removed: it is there again");
        }
    }

    /// Answers what has come, and ends.
    fn drain(mut self, events: &mut [EpollEvent]) -> Result<(), ServiceError> {
        info!("stopping: no new connections");
        let _ = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
        for listener in self.listeners.iter().filter(|listener| matches!(listener, Listener::Unix(..))) {
            let _ = self.epoll.delete(listener);
        }
        let start = Instant::now();
        let ready = self.wait(events, EpollTimeout::ZERO)?;
        self.read(&events[..ready]);
        self.decide(start);
        while start.elapsed() < DRAIN && self.connections.values().any(|connection| connection.blocked().is_some()) {
            let ready = self.wait(events, EpollTimeout::from(10_u8))?;
            let waiting = events[..ready].iter().filter(|event| event.events().contains(EpollFlags::EPOLLOUT));
            self.touched.extend(waiting.map(EpollEvent::data));
            self.flush();
        }
        info!("stopped");
        Ok(())
    }
}

/// Whether the system tells a user from others. In a user namespace it does so only for those that have a number there.
fn can_be_told(user: u32) -> bool {
    let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
    map.is_empty() || is_mapped(&map, user)
}

/// Whether a map of user numbers, lines of `inside outside count`, has one for this user.
fn is_mapped(map: &str, user: u32) -> bool {
    map.lines().any(|line| {
        let numbers: Vec<u64> = line.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        matches!(numbers[..], [first, _, count] if (first..first + count).contains(&u64::from(user)))
    })
}

fn readable(listener: usize) -> EpollEvent {
    EpollEvent::new(EpollFlags::EPOLLIN, listener as u64 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_of_a_namespace_are_those_with_a_number() {
        assert!(is_mapped("         0          0 4294967295\n", 1000), "that of the host");
        // As PrivateUsers= of systemd has it.
        let private = "0 0 1\n61184 61184 1\n";
        assert_eq!([0, 61184, 1000, 65534].map(|user| is_mapped(private, user)), [true, true, false, false]);
    }
}
