//! All flows of a trial, on one thread: connect, start, send, receive, sample, stop.
//!
//! A socket belongs to the network namespace in which it was made, whoever uses it, so one thread serves both ends. It
//! waits in `epoll` for sockets and for one timer, which stands at the next thing that is due.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use astraea_cc::Nanos;
use astraea_emu::monotonic;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use crate::flow::{Flow, FlowOutcome};
use crate::plan::Plan;
use crate::socket;

/// Switch of a network namespace that new connections look at.
const ECN_SWITCH: &str = "/proc/sys/net/ipv4/tcp_ecn";

/// Longest wait before the cancel flag is looked at.
const LOOK_EVERY_MS: u8 = 50;

/// The thread has real-time priority: after so much work in ns without a pause …
const MOST_WORK: Nanos = 9_000_000;
/// … the others have this long.
const PAUSE: Duration = Duration::from_millis(1);

/// A wait of this length in ns was a pause.
const REST: Nanos = 20_000;

/// What is due at a time; in this order if at the same one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Sample,
    Stop(usize),
    Connect(usize),
    Source(usize),
}

/// What an event of `epoll` belongs to, as its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Timer,
    Listener,
    Sender(usize),
    Receiver(usize),
}

impl Token {
    fn number(self) -> u64 {
        match self {
            Self::Timer => 0,
            Self::Listener => 1,
            Self::Sender(flow) => 2 * flow as u64 + 2,
            Self::Receiver(flow) => 2 * flow as u64 + 3,
        }
    }

    fn of(number: u64) -> Self {
        match number {
            0 => Self::Timer,
            1 => Self::Listener,
            n if n % 2 == 0 => Self::Sender((n / 2 - 1) as usize),
            n => Self::Receiver((n / 2 - 1) as usize),
        }
    }
}

/// Why the flows could not be run.
#[derive(Debug, thiserror::Error)]
#[error("{doing}: {error}")]
pub struct FlowsError {
    doing: &'static str,
    error: io::Error,
}

/// Names what was tried when an error came.
fn doing<E: Into<io::Error>>(doing: &'static str) -> impl Fn(E) -> FlowsError {
    move |error| FlowsError { doing, error: error.into() }
}

/// The flows of a trial, ready to run.
pub struct Flows {
    plan: Plan,
    each: Vec<Flow>,
    by_address: HashMap<Ipv4Addr, usize>,
    epoll: Epoll,
    timer: TimerFd,
    listener: OwnedFd,
    due: BinaryHeap<Reverse<(i128, Due)>>,
    /// Senders that were interrupted while both data and room were left.
    unfinished: Vec<usize>,
    room: Vec<u8>,
    /// Of the monotonic clock when the trial begins.
    zero: i128,
    /// Longest time for which nothing was looked after, in ns.
    held_up: i128,
}

/// What became of the flows.
pub struct Outcome {
    /// One for each flow.
    pub flows: Vec<FlowOutcome>,
    /// Longest time in ns for which they were not looked after, because the machine was busy with something else.
    pub held_up: Nanos,
}

impl Flows {
    /// Listens for flows. The calling thread must be in the receiver's network namespace.
    ///
    /// # Errors
    /// If the receiver's address cannot be listened on.
    pub fn listen(plan: Plan) -> Result<Self, FlowsError> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(doing("epoll"))?;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)
            .map_err(doing("timer"))?;
        let listener = socket::listener(plan.receiver).map_err(doing("the receiver cannot listen"))?;
        let readable = |token: Token| EpollEvent::new(EpollFlags::EPOLLIN, token.number());
        epoll.add(&timer, readable(Token::Timer)).map_err(doing("epoll"))?;
        epoll.add(&listener, readable(Token::Listener)).map_err(doing("epoll"))?;
        let mut plan = plan;
        plan.receiver = socket::local_address(&listener).map_err(doing("the receiver cannot listen"))?;
        let flows = plan.flows.iter().enumerate();
        let flows: Vec<_> = flows.map(|(index, flow)| Flow::new(flow.clone(), index, plan.seed)).collect();
        let by_address = plan.flows.iter().enumerate().map(|(index, flow)| (flow.from, index)).collect();
        Ok(Self {
            each: flows,
            by_address,
            epoll,
            timer,
            listener,
            due: BinaryHeap::new(),
            unfinished: Vec::new(),
            room: vec![0; 1 << 20],
            zero: 0,
            held_up: 0,
            plan,
        })
    }

    /// Time between the earliest moment at which a flow connects and the beginning of the trial, in ns.
    pub fn lead(&self) -> Nanos {
        self.plan.flows.iter().map(|flow| flow.lead.saturating_sub(flow.start)).max().unwrap_or(0)
    }

    /// Runs the trial, which begins at `zero` ns of the monotonic clock, until its end or until `cancel` is set. The
    /// calling thread must be in the senders' network namespace.
    ///
    /// # Errors
    /// If the kernel refuses what a trial cannot do without. A flow that fails is not an error; its outcome says so.
    pub fn run(mut self, zero: Nanos, cancel: &AtomicBool) -> Result<Outcome, FlowsError> {
        self.zero = i128::from(zero);
        self.due.push(Reverse((i128::from(self.plan.slot), Due::Sample)));
        for (index, flow) in self.plan.flows.iter().enumerate() {
            let start = i128::from(flow.start);
            self.due.push(Reverse((start - i128::from(flow.lead), Due::Connect(index))));
            self.due.push(Reverse((start, Due::Source(index))));
            if let Some(stop) = flow.stop {
                self.due.push(Reverse((i128::from(stop), Due::Stop(index))));
            }
        }
        let end = i128::from(self.plan.duration);
        let mut events = vec![EpollEvent::empty(); 256];
        let mut rested = monotonic();
        while self.since() < end && !cancel.load(Ordering::Relaxed) {
            self.fire()?;
            self.arm(end)?;
            let patience = if self.unfinished.is_empty() { LOOK_EVERY_MS } else { 0 };
            let waiting = monotonic();
            let count = match self.epoll.wait(&mut events, EpollTimeout::from(patience)) {
                Ok(count) => count,
                Err(Errno::EINTR) => 0,
                Err(error) => return Err(doing("epoll")(error)),
            };
            let now = monotonic();
            if now - waiting > REST {
                rested = now;
            } else if now - rested > MOST_WORK {
                std::thread::sleep(PAUSE);
                rested = monotonic();
            }
            for event in &events[..count] {
                self.on_event(Token::of(event.data()))?;
            }
            for index in std::mem::take(&mut self.unfinished) {
                self.write(index);
            }
        }
        let slots = self.plan.duration.div_ceil(self.plan.slot) as usize;
        let now = self.now();
        for flow in &mut self.each {
            flow.sample(slots - 1);
            flow.abort();
        }
        let flows = self.each.into_iter().map(|flow| flow.outcome(now)).collect();
        Ok(Outcome { flows, held_up: Nanos::try_from(self.held_up).unwrap_or(0) })
    }

    /// Time since the trial began, negative before.
    fn since(&self) -> i128 {
        i128::from(monotonic()) - self.zero
    }

    /// The same, zero before.
    fn now(&self) -> Nanos {
        Nanos::try_from(self.since()).unwrap_or(0)
    }

    fn slot(&self) -> usize {
        let last = self.plan.duration.div_ceil(self.plan.slot) - 1;
        (self.now() / self.plan.slot).min(last) as usize
    }

    fn fire(&mut self) -> Result<(), FlowsError> {
        while let Some(&Reverse((at, due))) = self.due.peek()
            && at <= self.since()
        {
            self.due.pop();
            match due {
                Due::Sample => {
                    self.held_up = self.held_up.max(self.since() - at);
                    // Samples that are late belong to the slot in which they are taken.
                    let slot = self.slot().max(1) - 1;
                    for flow in self.each.iter_mut().filter(|flow| !flow.is_over()) {
                        flow.sample(slot);
                    }
                    let length = i128::from(self.plan.slot);
                    self.due.push(Reverse(((self.since() / length + 1) * length, Due::Sample)));
                }
                Due::Stop(index) => self.each[index].stop(self.plan.flows[index].stop.unwrap_or_default()),
                Due::Connect(index) => self.connect(index)?,
                Due::Source(index) => {
                    // A source keeps its own time, so that being called late does not delay what follows.
                    if let Some(next) = self.each[index].advance(Nanos::try_from(at).unwrap_or(0)) {
                        self.due.push(Reverse((i128::from(next), Due::Source(index))));
                    }
                    self.write(index);
                }
            }
        }
        Ok(())
    }

    /// Sets the timer to whatever is due next.
    fn arm(&self, end: i128) -> Result<(), FlowsError> {
        let next = self.due.peek().map_or(end, |Reverse((at, _))| *at).min(end);
        let at = Nanos::try_from(next + self.zero).unwrap_or(0).max(1);
        let expiration = Expiration::OneShot(TimeSpec::from_duration(Duration::from_nanos(at)));
        self.timer.set(expiration, TimerSetTimeFlags::TFD_TIMER_ABSTIME).map_err(doing("timer"))
    }

    fn connect(&mut self, index: usize) -> Result<(), FlowsError> {
        let plan = &self.plan.flows[index];
        let now = self.now();
        let switch = if plan.ecn { "1" } else { "2" };
        if plan.ecn || self.plan.flows.iter().any(|flow| flow.ecn) {
            fs::write(ECN_SWITCH, switch).map_err(doing(ECN_SWITCH))?;
        }
        let to = plan.to.unwrap_or(self.plan.receiver);
        match socket::connecting(plan.from, to, &plan.scheme.kernel, plan.rate) {
            Ok(socket) => {
                let flags = EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
                self.epoll
                    .add(&socket, EpollEvent::new(flags, Token::Sender(index).number()))
                    .map_err(doing("epoll"))?;
                self.each[index].sender = Some(socket);
            }
            Err(error) => self.each[index].fail(now, &error),
        }
        Ok(())
    }

    fn on_event(&mut self, token: Token) -> Result<(), FlowsError> {
        match token {
            Token::Timer => {
                // `fire` looks at the clock itself.
                let _ = self.timer.wait();
            }
            Token::Listener => self.accept()?,
            Token::Sender(index) => {
                let now = self.now();
                if self.each[index].on_sender(now) {
                    self.unfinished.push(index);
                }
            }
            Token::Receiver(index) => {
                let (now, slot) = (self.now(), self.slot());
                self.each[index].read(now, slot, &mut self.room);
            }
        }
        Ok(())
    }

    fn write(&mut self, index: usize) {
        let now = self.now();
        if self.each[index].write(now) {
            self.unfinished.push(index);
        }
    }

    fn accept(&mut self) -> Result<(), FlowsError> {
        while let Some((socket, peer)) = socket::accept(&self.listener).map_err(doing("accept"))? {
            // Nobody else is in the namespace; a stranger would be closed here.
            let Some(&index) = self.by_address.get(&peer) else { continue };
            let event = EpollEvent::new(EpollFlags::EPOLLIN, Token::Receiver(index).number());
            self.epoll.add(socket.as_fd(), event).map_err(doing("epoll"))?;
            self.each[index].receiver = Some(socket);
        }
        Ok(())
    }
}
