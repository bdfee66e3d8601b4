//! The stack on sockets of tokio's, with a timer of its own.
//!
//! Tokio's timers, and the stack's use of them, count milliseconds: twelve packets at 150 Mbit/s, which would leave together
//! where a scheme wants them apart. Here an endpoint is woken when its time has come, by a timer of the kernel's.

use std::cell::Cell;
use std::io;
use std::net::UdpSocket;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::task::{Context, Poll};
use std::time::Duration;

use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use s2n_quic::provider::io as stack_io;
use s2n_quic_core::endpoint::{CloseError, Endpoint, Type};
use s2n_quic_core::inet::SocketAddress;
use s2n_quic_core::io::{rx, tx};
use s2n_quic_core::path::mtu;
use s2n_quic_core::time::{Clock, Timestamp};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::s2n::GRANULARITY;

/// Wakes are so far apart at least: at 240 Mbit/s a packet's time. What is due in between waits for the next one.
const RESOLUTION: Duration = Duration::from_micros(50);

/// Sockets for one endpoint.
pub(super) struct Provider(stack_io::tokio::Provider);

impl Provider {
    /// Sends from and receives at that socket, in IP packets of `mtu` bytes.
    pub(super) fn new(socket: UdpSocket, mtu: u16) -> io::Result<Self> {
        let builder = stack_io::tokio::Provider::builder().with_rx_socket(socket)?;
        Ok(Self(builder.with_max_mtu(mtu)?.with_initial_mtu(mtu)?.with_base_mtu(mtu)?.build()?))
    }
}

impl stack_io::Provider for Provider {
    type PathHandle = <stack_io::tokio::Provider as stack_io::Provider>::PathHandle;
    type Error = io::Error;

    fn start<E: Endpoint<PathHandle = Self::PathHandle>>(self, endpoint: E) -> io::Result<SocketAddress> {
        let timer = Timer::new()?;
        stack_io::Provider::start(self.0, Precise { endpoint, timer, now: None })
    }
}

/// A timer that tokio takes.
struct Source(TimerFd);

impl AsRawFd for Source {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

/// Wakes a task.
struct Timer {
    timer: AsyncFd<Source>,
    /// What it is set to.
    due: Cell<Option<Timestamp>>,
}

impl Timer {
    fn new() -> io::Result<Self> {
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        // SAFETY: the source keeps its descriptor for as long as it lives.
        let timer = unsafe { AsyncFd::register_with_interest(Source(timer), Interest::READABLE) }?;
        Ok(Self { timer, due: Cell::new(None) })
    }

    /// Sets it to a time, seen from now.
    fn set(&self, due: Timestamp, now: Timestamp) {
        if self.due.get() == Some(due) {
            return;
        }
        // A time of 0 would switch it off.
        let wait = due.saturating_duration_since(now).max(RESOLUTION);
        let set =
            self.timer.get_ref().0.set(Expiration::OneShot(TimeSpec::from_duration(wait)), TimerSetTimeFlags::empty());
        if set.is_ok() {
            self.due.set(Some(due));
        }
    }

    /// Whether it has gone off since the last call; otherwise it will wake the task.
    fn poll(&self, context: &mut Context<'_>) -> bool {
        while let Poll::Ready(Ok(mut ready)) = self.timer.poll_read_ready(context) {
            let mut ticks = [0; 8];
            if nix::unistd::read(self.timer.get_ref().0.as_fd(), &mut ticks).is_ok() {
                self.due.set(None);
                return true;
            }
            ready.clear_ready();
        }
        false
    }
}

/// An endpoint that is woken on time.
struct Precise<E> {
    endpoint: E,
    timer: Timer,
    /// When the endpoint was last at work.
    now: Option<Timestamp>,
}

impl<E: Endpoint> Endpoint for Precise<E> {
    type PathHandle = E::PathHandle;
    type Subscriber = E::Subscriber;

    const ENDPOINT_TYPE: Type = E::ENDPOINT_TYPE;

    fn receive<Rx: rx::Queue<Handle = Self::PathHandle>, C: Clock>(&mut self, rx: &mut Rx, clock: &C) {
        self.endpoint.receive(rx, clock);
    }

    fn transmit<Tx: tx::Queue<Handle = Self::PathHandle>, C: Clock>(&mut self, tx: &mut Tx, clock: &C) {
        self.endpoint.transmit(tx, clock);
        self.now = Some(clock.get_time());
    }

    fn poll_wakeups<C: Clock>(&mut self, context: &mut Context<'_>, clock: &C) -> Poll<Result<usize, CloseError>> {
        let timer = self.timer.poll(context);
        match self.endpoint.poll_wakeups(context, clock) {
            Poll::Pending if timer => Poll::Ready(Ok(0)),
            woken => woken,
        }
    }

    /// Sets the timer, and leaves nothing to that of the stack.
    fn timeout(&self) -> Option<Timestamp> {
        let (Some(due), Some(now)) = (self.endpoint.timeout(), self.now) else { return None };
        // The stack takes what is so near for the present.
        self.timer.set(due.checked_sub(GRANULARITY).unwrap_or(now), now);
        None
    }

    fn set_mtu_config(&mut self, config: mtu::Config) {
        self.endpoint.set_mtu_config(config);
    }

    fn subscriber(&mut self) -> &mut Self::Subscriber {
        self.endpoint.subscriber()
    }
}
