//! Flows that ask, in one thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use astraea_serve::{Address, Client, Decision, Key, Origin, Report};
use hdrhistogram::Histogram;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;

use super::flood::{Count, Flood, Kind};
use super::process::{self, Usage};
use crate::failure::Failure;

/// Time before the measurement.
const WARM_UP: Duration = Duration::from_secs(1);

/// Patience with a service that starts.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time between two looks for answers that do not come.
pub(super) const LOOK: Duration = Duration::from_millis(5);

/// What to do.
pub(super) struct Load {
    pub(super) address: Address,
    pub(super) key: Option<Key>,
    pub(super) flows: usize,
    pub(super) connections: usize,
    pub(super) period: Duration,
    pub(super) duration: Duration,
    pub(super) flood: Option<Kind>,
    /// The service's process, if it is known.
    pub(super) process: Option<i32>,
    /// Set when there is no time for more.
    pub(super) ending: Arc<AtomicBool>,
}

/// What came of it.
pub(super) struct Measured {
    pub(super) seconds: f64,
    pub(super) answered: u64,
    pub(super) ruled: u64,
    /// Answers, those to the flood among them.
    pub(super) served: u64,
    /// What the flood sent and got.
    pub(super) flooded: Count,
    /// In ns.
    pub(super) latency: Histogram<u64>,
    /// Of the service, memory at the end.
    pub(super) usage: Option<Usage>,
}

/// The flows at work.
struct Work<'a> {
    load: &'a Load,
    clients: Vec<Client>,
    epoll: Epoll,
    /// When each flow asked last.
    asked: Vec<Instant>,
    report: Report,
    decisions: Vec<Decision>,
    answered: u64,
    ruled: u64,
    latency: Histogram<u64>,
}

impl Load {
    pub(super) fn run(&self) -> Result<Measured, Failure> {
        let mut work = Work::new(self)?;
        let flood = self.flood.map(|kind| Flood::start(kind, self)).transpose()?;
        let count = || flood.as_ref().map(Flood::count).unwrap_or_default();
        let usage = || self.process.and_then(process::usage);
        work.go(WARM_UP.min(self.duration));
        (work.answered, work.ruled) = (0, 0);
        work.latency.reset();
        let (before, flooded, start) = (usage(), count(), Instant::now());
        work.go(self.duration);
        let (seconds, after, flooded) = (start.elapsed().as_secs_f64(), usage(), count() - flooded);
        let usage = before.zip(after).map(|(before, after)| Usage { cpu: after.cpu - before.cpu, ..after });
        let (answered, ruled, latency) = (work.answered, work.ruled, work.latency);
        Ok(Measured { seconds, answered, ruled, served: answered + flooded.answered, flooded, latency, usage })
    }

    pub(super) fn client(&self) -> Result<Client, Failure> {
        let timeout = if self.period.is_zero() { Duration::from_secs(1) } else { self.period };
        Ok(Client::connect(self.address.clone(), self.key.clone(), timeout, PATIENCE)?)
    }
}

/// A period like many others.
pub(super) fn report() -> Report {
    let mut report = Report {
        throughput: 20e6,
        throughput_max: 25e6,
        latency: 0.045,
        latency_min: 0.04,
        in_flight: 1e5,
        window: 1.1e5,
        pacing_rate: 21e6,
        srtt: 0.045,
        ..Report::default()
    };
    report.signals.rate = 1700.0;
    (report.signals.queue, report.signals.ahead, report.signals.spread) = (0.004, 0.005, 0.001);
    report
}

impl<'a> Work<'a> {
    fn new(load: &'a Load) -> Result<Self, Failure> {
        let clients = (0..load.connections).map(|_| load.client()).collect::<Result<Vec<_>, _>>()?;
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        for (index, client) in clients.iter().enumerate() {
            let socket = client.socket().ok_or("the service has gone")?;
            epoll.add(socket, EpollEvent::new(EpollFlags::EPOLLIN, index as u64))?;
        }
        Ok(Self {
            load,
            clients,
            epoll,
            asked: vec![Instant::now(); load.flows],
            report: report(),
            decisions: Vec::new(),
            answered: 0,
            ruled: 0,
            latency: Histogram::new_with_bounds(1, 60_000_000_000, 3)?,
        })
    }

    fn ask(&mut self, flow: usize) {
        // No two periods are alike.
        self.report.signals.rate = 1000.0 + (self.answered % 1000) as f64;
        self.asked[flow] = Instant::now();
        let client = flow % self.clients.len();
        self.clients[client].ask(flow as u64, &self.report);
    }

    /// Takes the answers that a client has, and sends what it has to send.
    fn turn(&mut self, client: usize) {
        let mut decisions = std::mem::take(&mut self.decisions);
        self.clients[client].poll(Duration::ZERO, &mut decisions);
        for decision in decisions.drain(..) {
            match decision.origin {
                Origin::Service(_) => {
                    self.answered += 1;
                    let took = self.asked[decision.flow as usize].elapsed();
                    self.latency.saturating_record(took.as_nanos() as u64);
                }
                Origin::Rule => self.ruled += 1,
            }
            if self.load.period.is_zero() {
                self.ask(decision.flow as usize);
            }
        }
        self.decisions = decisions;
    }

    /// Puts a load on the service for so long.
    fn go(&mut self, duration: Duration) {
        let (start, period) = (Instant::now(), self.load.period);
        let mut due = self.dues();
        if period.is_zero() {
            (0..self.load.flows).for_each(|flow| self.ask(flow));
        }
        let (mut next, mut looked) = (0, start);
        let mut events = vec![EpollEvent::empty(); 1024];
        while start.elapsed() < duration && !self.load.ending.load(Ordering::Relaxed) {
            // Where this thread cannot keep up it must not go on for ever.
            while !period.is_zero() && start.elapsed() >= due[next].0 && start.elapsed() < duration {
                let flow = due[next].1;
                self.ask(flow);
                due[next].0 += period;
                next = (next + 1) % due.len();
                let client = flow % self.clients.len();
                if self.clients.len() > 1 || start.elapsed() < due[next].0 {
                    self.turn(client);
                }
            }
            let wait = if period.is_zero() { LOOK } else { due[next].0.saturating_sub(start.elapsed()).min(LOOK) };
            // Finer than epoll's milliseconds.
            let _ = ppoll(
                &mut [PollFd::new(std::os::fd::AsFd::as_fd(&self.epoll.0), PollFlags::POLLIN)],
                Some(TimeSpec::from_duration(wait)),
                None,
            );
            let ready = self.epoll.wait(&mut events, EpollTimeout::ZERO).unwrap_or(0);
            for event in &events[..ready] {
                self.turn(event.data() as usize);
            }
            if looked.elapsed() >= LOOK {
                looked = Instant::now();
                (0..self.clients.len()).for_each(|client| self.turn(client));
            }
            if period.is_zero() {
                // What was asked for while answers were taken.
                (0..self.clients.len()).for_each(|client| self.turn(client));
            }
        }
    }

    /// When each flow asks first, in order: anywhere in the period, as flows begin.
    fn dues(&self) -> Vec<(Duration, usize)> {
        let mut state = 1_u64;
        let mut random = || {
            // Knuth's multiplicative generator: good enough to spread things.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut due: Vec<_> = (0..self.load.flows).map(|flow| (self.load.period.mul_f64(random()), flow)).collect();
        due.sort_unstable();
        due
    }
}
