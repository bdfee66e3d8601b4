//! A peer that sends as fast as it can.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::Sub;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use astraea_serve::wire::{Ask, Codec, Frame, Message, Reports};
use astraea_serve::{Address, Key};
use clap::ValueEnum;

use super::load::{LOOK, Load, report};
use super::process;
use crate::failure::Failure;

/// What it sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// Requests, each as soon as an earlier one is answered.
    Answered,
    /// Requests without end; answers are not read (UDP).
    Requests,
    /// Datagrams that are no messages, without end (UDP).
    Garbage,
    /// Nothing, but it takes the same processor time: what the others are to be compared with.
    Busy,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) sent: u64,
    pub(super) answered: u64,
}

impl Sub for Count {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self { sent: self.sent - before.sent, answered: self.answered - before.answered }
    }
}

#[derive(Debug, Default)]
struct State {
    sent: AtomicU64,
    answered: AtomicU64,
    stop: AtomicBool,
}

impl State {
    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }
}

/// The peer at work; it ends when this is dropped.
pub(super) struct Flood {
    state: Arc<State>,
    thread: Option<thread::JoinHandle<()>>,
}

/// Requests that it keeps open, or flows that it asks for.
const OPEN: u64 = 2000;

impl Flood {
    pub(super) fn start(kind: Kind, load: &Load) -> Result<Self, Failure> {
        let state = Arc::new(State::default());
        let shared = state.clone();
        let work: Box<dyn FnOnce() + Send> = match kind {
            Kind::Answered => {
                let client = load.client()?;
                Box::new(move || answered(client, &shared))
            }
            Kind::Requests | Kind::Garbage => {
                let Address::Udp(address) = load.address else {
                    return Err("--flood requests and --flood garbage: expected a service on UDP (--udp)".into());
                };
                let sender = Sender::new(address, load.key.clone(), kind == Kind::Requests)?;
                Box::new(move || sender.run(&shared))
            }
            Kind::Busy => Box::new(move || {
                while shared.goes_on() {
                    std::hint::spin_loop();
                }
            }),
        };
        let thread = thread::Builder::new().name("flood".to_owned()).spawn(move || {
            process::yield_to_others();
            work();
        })?;
        Ok(Self { state, thread: Some(thread) })
    }

    pub(super) fn count(&self) -> Count {
        let [sent, answered] = [&self.state.sent, &self.state.answered].map(|count| count.load(Ordering::Relaxed));
        Count { sent, answered }
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn answered(mut client: astraea_serve::Client, state: &State) {
    let (report, mut decisions) = (report(), Vec::new());
    (0..OPEN).for_each(|flow| client.ask(flow, &report));
    while state.goes_on() {
        client.poll(LOOK, &mut decisions);
        state.sent.fetch_add(decisions.len() as u64, Ordering::Relaxed);
        state.answered.fetch_add(decisions.len() as u64, Ordering::Relaxed);
        decisions.drain(..).for_each(|decision| client.ask(decision.flow, &report));
    }
}

/// A socket that only sends.
struct Sender {
    socket: UdpSocket,
    codec: Codec,
    /// The session to ask in; none: garbage.
    session: Option<u64>,
}

impl Sender {
    fn new(to: SocketAddr, key: Option<Key>, asks: bool) -> Result<Self, Failure> {
        let any: SocketAddr =
            if to.is_ipv4() { (Ipv4Addr::LOCALHOST, 0).into() } else { (Ipv6Addr::LOCALHOST, 0).into() };
        let (socket, codec) = (UdpSocket::bind(any)?, Codec::new(key));
        socket.connect(to)?;
        let mut sender = Self { socket, codec, session: None };
        if asks {
            sender.socket.set_read_timeout(Some(Duration::from_secs(1)))?;
            let mut bytes = Vec::new();
            sender.codec.write(&Frame { session: 0, number: 1, message: Message::Hello { token: 1 } }, &mut bytes);
            sender.socket.send(&bytes)?;
            let mut welcome = [0; 1 << 11];
            let length = sender.socket.recv(&mut welcome)?;
            sender.session = sender.codec.read(&welcome[..length]).ok().map(|frame| frame.session);
        }
        Ok(sender)
    }

    fn run(&self, state: &State) {
        let reports = [report()];
        let mut bytes = vec![0x5a; 184];
        for number in 2_u64.. {
            if !state.goes_on() {
                return;
            }
            if let Some(session) = self.session {
                let ask =
                    Ask { flow: number % OPEN, period: (number / OPEN) as u32 + 1, reports: Reports::Given(&reports) };
                bytes.clear();
                self.codec.write(&Frame { session, number, message: Message::Ask(ask) }, &mut bytes);
            }
            // One that there is no room for counts as well as another.
            let _ = self.socket.send(&bytes);
            state.sent.fetch_add(1, Ordering::Relaxed);
        }
    }
}
