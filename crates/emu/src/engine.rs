//! The loop that moves packets: read what has arrived, let the model say when each packet is due, deliver what is.

use std::io::IoSlice;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use astraea_sim::mesh::{Mesh, Parcel};
use astraea_sim::{Histogram, Nanos};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};

use crate::clock::{monotonic, sleep_until, thread_cpu, timespec};
use crate::config::Routing;
use crate::device::Tun;
use crate::early::Early;
use crate::live::Live;
use crate::pace::Pace;
use crate::packet::{Egress, Headers, Outlet, Store};

/// Longest sleep in ns, after which the wish to stop is noticed.
const LONGEST_SLEEP: Nanos = 50_000_000;

/// Packets that are read between two deliveries.
const READS: usize = 64;

/// Time between two updates of the live figures in ns.
const PUBLISH: Nanos = 20_000_000;

/// The way from one device to the other, as one of an engine's inputs.
pub(crate) struct Direction {
    pub(crate) from: Arc<Tun>,
    pub(crate) to: Arc<Tun>,
    /// Whether these are packets from senders to receivers.
    pub(crate) forward: bool,
    /// Index of the first flow's path in the model.
    pub(crate) first_path: usize,
    /// Whether the device that packets come from was removed: nothing will come any more.
    pub(crate) gone: bool,
}

/// What an engine counts, beside the model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) lateness: Histogram,
    pub(crate) unrouted: u64,
    pub(crate) refused: u64,
    pub(crate) cpu_ns: Nanos,
    pub(crate) wakeups: u64,
    /// Whether the thread had real-time priority.
    pub(crate) realtime: bool,
}

/// One thread's share of an emulation.
pub(crate) struct Engine {
    pub(crate) mesh: Mesh,
    pub(crate) tally: Tally,
    directions: Vec<Direction>,
    egress: Vec<Egress>,
    early: Early,
    store: Store,
    flows: usize,
    routing: Routing,
    epoch: Nanos,
    pace: Pace,
    live: Arc<Live>,
    published: Nanos,
}

/// Writes to a device and keeps the account.
struct Writer<'a> {
    device: &'a Tun,
    refused: &'a mut u64,
}

impl Outlet for Writer<'_> {
    #[inline]
    fn write(&mut self, parts: &[IoSlice<'_>]) {
        // The kernel refuses packets only if the device is down or memory is short.
        if self.device.write(parts).is_err() {
            *self.refused += 1;
        }
    }
}

impl Engine {
    pub(crate) fn new(
        mesh: Mesh,
        directions: Vec<Direction>,
        flows: usize,
        routing: Routing,
        epoch: Nanos,
        pace: Pace,
        live: Arc<Live>,
    ) -> Self {
        let egress = directions.iter().map(|_| Egress::default()).collect();
        let (store, tally, early) = (Store::default(), Tally::default(), Early::default());
        Self { mesh, tally, directions, egress, early, store, flows, routing, epoch, pace, live, published: 0 }
    }

    /// Works until `stop` is set.
    pub(crate) fn run(&mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let woken = monotonic();
            self.tally.wakeups += 1;
            let delivered = self.advance(woken);
            // The kernel answers a delivery before the write returns, so acknowledgements are among what waits now.
            let reads = self.read();
            if delivered || reads > 0 {
                self.pace.worked(woken);
            }
            self.publish(woken);
            let done = monotonic();
            let earliest = self.pace.earliest(woken, done);
            if earliest > done {
                sleep_until(earliest);
            } else if reads < READS {
                self.wait(done);
            }
        }
        self.tally.cpu_ns = thread_cpu();
    }

    /// Sleeps until a packet arrives or is due.
    fn wait(&mut self, now: Nanos) {
        let due = self.mesh.next_event().map_or(Nanos::MAX, |at| at + self.epoch);
        let due = self.early.next().map_or(due, |early| early.min(due));
        if due <= now {
            return;
        }
        let early = self.pace.early(now);
        let timeout = timespec((due - now).saturating_sub(early).min(LONGEST_SLEEP));
        // One that was removed would wake the thread at once, and for ever.
        let there = self.directions.iter().filter(|direction| !direction.gone);
        let mut inputs: Vec<PollFd<'_>> = there.map(|d| PollFd::new(d.from.as_fd(), PollFlags::POLLIN)).collect();
        let timed_out = ppoll(&mut inputs, Some(timeout), None) == Ok(0);
        let woken = monotonic();
        if timed_out && due - now < LONGEST_SLEEP {
            self.pace.woken(due - early.min(due - now), woken);
        }
        // Woken a little early, as timers are late: the rest is waited out.
        if timed_out && due.saturating_sub(woken) <= early {
            while monotonic() < due {
                std::hint::spin_loop();
            }
        }
    }

    /// Takes what has arrived, up to a limit; returns how many packets, or super-packets, that was.
    fn read(&mut self) -> usize {
        let mut reads = 0;
        for index in 0..self.directions.len() {
            for _ in 0..READS {
                match self.directions[index].from.read(self.store.read_buffer()) {
                    Ok(length) => self.arrive(index, length),
                    // "Invalid" is a packet that no virtio header can describe; the kernel has dropped it.
                    Err(Errno::EINTR | Errno::EINVAL) => {}
                    Err(Errno::EAGAIN) => break,
                    Err(_) => {
                        self.directions[index].gone = true;
                        break;
                    }
                }
                reads += 1;
            }
        }
        reads
    }

    /// Sends a packet that was read on its way, segment by segment.
    fn arrive(&mut self, index: usize, length: usize) {
        let Some(arrival) = self.store.accept(length) else {
            self.tally.unrouted += 1;
            return;
        };
        let now = monotonic();
        self.advance(now);
        let direction = &self.directions[index];
        let path = self.route(direction, &arrival.headers).map(|flow| direction.first_path + flow);
        for segment in 0..arrival.segments {
            let (id, size, payload) = self.store.segment(&arrival, segment);
            let Some(path) = path else {
                self.store.discard(id);
                self.tally.unrouted += u64::from(segment == 0);
                continue;
            };
            if now < self.epoch {
                let due = now + self.mesh.idle_delay(path);
                self.early.push(due, index, id, arrival.headers.marked);
                continue;
            }
            let mut parcel = Parcel::new(id, path as u32, size);
            parcel.flow = arrival.headers.flow;
            parcel.payload = payload;
            parcel.ecn_capable = arrival.headers.ecn_capable;
            parcel.marked = arrival.headers.marked;
            self.mesh.offer(now - self.epoch, parcel);
        }
        for gone in self.mesh.take_gone() {
            self.store.discard(gone.id);
        }
    }

    /// The flow of a packet.
    fn route(&self, direction: &Direction, headers: &Headers) -> Option<usize> {
        if self.routing == Routing::Single {
            return Some(0);
        }
        let sender = if direction.forward { headers.source } else { headers.destination };
        let flow = usize::from(sender as u16).checked_sub(1)?;
        (flow < self.flows).then_some(flow)
    }

    /// Lets the model's time pass until `now` on the monotonic clock, and delivers what is due; returns whether anything
    /// was.
    fn advance(&mut self, now: Nanos) -> bool {
        let Self { mesh, tally, directions, egress, early, store, flows, epoch, .. } = self;
        let mut delivered = false;
        while let Some(packet) = early.pop(now) {
            delivered = true;
            let mut writer = Writer { device: &directions[packet.direction].to, refused: &mut tally.refused };
            let segment = store.take(packet.id);
            tally.lateness.add(monotonic().saturating_sub(packet.due));
            egress[packet.direction].push(store, segment, packet.marked, &mut writer);
        }
        mesh.advance(now.saturating_sub(*epoch), |due, parcel| {
            delivered = true;
            let flows = *flows;
            let index = directions
                .iter()
                .position(|d| (d.first_path..d.first_path + flows).contains(&(parcel.path as usize)))
                .expect("every path belongs to a direction");
            let mut writer = Writer { device: &directions[index].to, refused: &mut tally.refused };
            let segment = store.take(parcel.id);
            tally.lateness.add((monotonic() - *epoch).saturating_sub(due));
            egress[index].push(store, segment, parcel.marked, &mut writer);
        });
        if delivered {
            for (egress, direction) in egress.iter_mut().zip(directions) {
                egress.flush(store, &mut Writer { device: &direction.to, refused: &mut tally.refused });
            }
        }
        for gone in mesh.take_gone() {
            store.discard(gone.id);
        }
        delivered
    }

    /// Makes the present figures visible to other threads, now and then.
    fn publish(&mut self, now: Nanos) {
        if now < self.published + PUBLISH {
            return;
        }
        self.published = now;
        self.live.publish(&mut self.mesh);
    }

    /// Names of the devices that were removed.
    pub(crate) fn gone(&self) -> impl Iterator<Item = &str> {
        self.directions.iter().filter(|direction| direction.gone).map(|direction| direction.from.name())
    }

    /// Packets that are still on their way.
    pub(crate) fn on_the_way(&self) -> usize {
        self.store.len()
    }
}
