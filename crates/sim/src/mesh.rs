//! The simulator's links for somebody else's packets and clock: what an emulator needs of a network.
//!
//! Nothing here waits or asks for the time. The owner offers packets as they arrive, asks when something happens next,
//! and lets time pass with [`Mesh::advance`], in steps of any length: late steps change neither what is dropped nor
//! when a packet is due.

use astraea_cc::Nanos;

use crate::config::{ConfigError, LinkConfig};
use crate::event::Event;
use crate::link::{LinkStats, Offer};
use crate::network::{Network, Origin, PipeEnd};
use crate::queue;
use crate::record::{Ledger, Recorder};

/// A packet on its way, as a handle: `id` is the owner's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// Whatever tells the owner which packet it is.
    pub id: u32,
    /// Index of its path.
    pub path: u32,
    /// Fair queues tell flows apart by this.
    pub flow: u32,
    /// Bytes on the wire.
    pub size: u32,
    /// Those of them that are payload, for the time series.
    pub payload: u32,
    /// Whether a queue may mark it instead of dropping it (RFC 3168).
    pub ecn_capable: bool,
    /// Whether it carries a congestion-experienced mark.
    pub marked: bool,
    hop: u8,
    arrived_at: Nanos,
}

impl Parcel {
    /// A packet without payload that is not ECN-capable.
    pub fn new(id: u32, path: u32, size: u32) -> Self {
        Self { id, path, flow: path, size, payload: 0, ecn_capable: false, marked: false, hop: 0, arrived_at: 0 }
    }
}

impl queue::Packet for Parcel {
    #[inline]
    fn size(&self) -> u32 {
        self.size
    }

    #[inline]
    fn flow(&self) -> u32 {
        self.flow
    }

    #[inline]
    fn ecn_capable(&self) -> bool {
        self.ecn_capable
    }

    #[inline]
    fn mark_ce(&mut self) {
        self.marked = true;
    }

    #[inline]
    fn is_marked(&self) -> bool {
        self.marked
    }

    #[inline]
    fn enqueued_at(&self) -> Nanos {
        self.arrived_at
    }

    #[inline]
    fn set_enqueued_at(&mut self, now: Nanos) {
        self.arrived_at = now;
    }
}

/// The way of packets through the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path {
    /// Indices of the links that are crossed, in order.
    pub links: Vec<usize>,
    /// Indices of links whose propagation delay is added at the end, without their queues: an uncongested way back has
    /// the delays of the way out.
    pub delay_of: Vec<usize>,
    /// Further delay at the end in ns.
    pub extra_ns: Nanos,
}

/// Counters of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathStats {
    /// Packets offered to it.
    pub offered: u64,
    /// Packets lost at random or dropped by a queue.
    pub gone: u64,
    /// Packets that left its last link, and the payload in them.
    pub departed: u64,
    /// Payload bytes in those.
    pub departed_bytes: u64,
}

/// What happened to a packet at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incident {
    /// It arrived.
    Arrival,
    /// It was lost or dropped.
    Gone,
    /// It left the transmitter, so long in ns after its arrival.
    Departure(Nanos),
}

/// A line of a link's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passage {
    /// When, in ns; a departure is known, and written, ahead of its time.
    pub at: Nanos,
    /// Index of the link.
    pub link: usize,
    /// Bytes on the wire.
    pub size: u32,
    /// What happened.
    pub incident: Incident,
}

/// Account of the network's packets.
struct Account {
    recorder: Option<Recorder>,
    gone: Vec<Parcel>,
}

impl Ledger<Parcel> for Account {
    #[inline]
    fn on_gone(&mut self, packet: Parcel) {
        self.gone.push(packet);
    }

    #[inline]
    fn recorder(&mut self) -> Option<&mut Recorder> {
        self.recorder.as_mut()
    }
}

/// One link of a path, and the delay line behind it.
struct Step {
    link: u32,
    pipe: u32,
}

struct Route {
    steps: Vec<Step>,
    delay_of: Vec<usize>,
    extra: Nanos,
    /// The delay line of a path without links.
    bypass: u32,
    stats: PathStats,
}

/// Links and paths through them.
pub struct Mesh {
    network: Network<Parcel, Account>,
    routes: Vec<Route>,
    log: Option<Vec<Passage>>,
}

impl Mesh {
    /// A network at rest at time 0. `slot_ns` and `duration_ns` are those of the time series; a slot of 0 records none.
    ///
    /// # Errors
    /// If a link is inconsistent, a trace cannot be read, or a path names a link that does not exist.
    pub fn new(
        links: &[LinkConfig],
        paths: &[Path],
        slot_ns: Nanos,
        duration_ns: Nanos,
        seed: u64,
    ) -> Result<Self, ConfigError> {
        for link in links {
            link.validate().map_err(|problem| ConfigError::new(format!("link {}", link.name), problem))?;
        }
        for (index, path) in paths.iter().enumerate() {
            if let Some(unknown) = path.links.iter().chain(&path.delay_of).find(|link| **link >= links.len()) {
                let problem = format!("names link {unknown}, but there are {} links", links.len());
                return Err(ConfigError::new(format!("paths[{index}]"), problem));
            }
            if path.links.len() > usize::from(u8::MAX) {
                return Err(ConfigError::new(format!("paths[{index}]"), "more than 255 links"));
            }
        }
        let recorder = Recorder::new(slot_ns, duration_ns, paths.len(), links.len());
        let mut network = Network::new(links, seed, Account { recorder, gone: Vec::new() })?;
        let routes = paths.iter().map(|path| Route::new(path, &mut network)).collect();
        network.check()?;
        Ok(Self { network, routes, log: None })
    }

    /// From now on every arrival, departure and loss at a link is kept for [`Mesh::take_log`].
    pub fn keep_log(&mut self) {
        self.log.get_or_insert_default();
    }

    /// A packet sets out on its path at `now`. Everything that happens until then must have happened: call
    /// [`Mesh::advance`] first.
    #[inline]
    pub fn offer(&mut self, now: Nanos, parcel: Parcel) {
        self.network.now = self.network.now.max(now);
        let route = &mut self.routes[parcel.path as usize];
        route.stats.offered += 1;
        if route.steps.is_empty() {
            let now = self.network.now;
            let arrival = now + route.extra + self.propagation(parcel.path, now);
            let bypass = self.routes[parcel.path as usize].bypass;
            self.network.push(bypass, arrival, parcel);
        } else {
            self.forward(parcel);
        }
    }

    /// When something happens next, in ns.
    #[inline]
    pub fn next_event(&mut self) -> Option<Nanos> {
        self.network.events.peek().map(|(at, _)| at)
    }

    /// Lets time pass until `now`; `deliver` gets every packet that reached its end, and when, in that order.
    #[inline]
    pub fn advance(&mut self, now: Nanos, mut deliver: impl FnMut(Nanos, Parcel)) {
        while let Some((at, event)) = self.network.events.peek() {
            if at > now {
                break;
            }
            self.network.now = at;
            let (end, parcel) = match event {
                Event::Pipe(pipe) => self.network.arrive(pipe),
                Event::Stray => self.network.arrive_stray(),
                Event::Service(link) => {
                    self.network.events.pop();
                    self.serve(link);
                    continue;
                }
                _ => unreachable!("a network without senders has no other events"),
            };
            if end == PipeEnd::Link {
                self.forward(parcel);
            } else {
                deliver(at, parcel);
            }
        }
        self.network.now = self.network.now.max(now);
    }

    /// Puts a packet on the link of its present hop.
    fn forward(&mut self, mut parcel: Parcel) {
        let link = self.routes[parcel.path as usize].steps[usize::from(parcel.hop)].link;
        let now = self.network.now;
        parcel.arrived_at = now;
        let gone = self.network.books.gone.len();
        self.note(now, link, parcel.size, Incident::Arrival);
        let offer = self.network.offer(link, parcel);
        self.count_gone(link, gone);
        match offer {
            Offer::Departs(departure) => self.depart(parcel, departure),
            Offer::Served(parcel, departure) => self.depart(parcel, departure),
            Offer::Queued | Offer::Gone => {}
        }
    }

    fn serve(&mut self, link: u32) {
        let network = &mut self.network;
        let gone = network.books.gone.len();
        let served = network.links[link as usize].serve(network.now, &mut network.books);
        self.count_gone(link, gone);
        if let Some((parcel, departure)) = served {
            self.depart(parcel, departure);
        }
        self.network.schedule_service(link);
    }

    /// A packet will have left the transmitter of its present hop at `departure`.
    fn depart(&mut self, mut parcel: Parcel, departure: Nanos) {
        let route = &mut self.routes[parcel.path as usize];
        let hop = usize::from(parcel.hop);
        let Step { link, pipe } = route.steps[hop];
        let mut behind = 0;
        if hop + 1 == route.steps.len() {
            behind = route.extra;
            route.stats.departed += 1;
            route.stats.departed_bytes += u64::from(parcel.payload);
            if let Some(recorder) = &mut self.network.books.recorder {
                let cursor = &mut self.network.links[link as usize].departures;
                recorder.delivery(cursor, parcel.path, departure, parcel.payload);
            }
            behind += self.propagation(parcel.path, departure);
        }
        self.note(departure, link, parcel.size, Incident::Departure(departure - parcel.arrived_at));
        let link = &mut self.network.links[link as usize];
        let arrival = departure + link.delay(departure) + behind + link.jitter();
        parcel.hop += 1;
        match link.held_back() {
            None => self.network.push(pipe, arrival, parcel),
            Some(hold) => self.network.push_stray(pipe, arrival, hold, parcel),
        };
    }

    /// How long a packet travels at time 0 if no link has to transmit it, in ns.
    pub fn idle_delay(&mut self, path: usize) -> Nanos {
        let Route { steps, extra, .. } = &self.routes[path];
        let links = &mut self.network.links;
        let crossed: Nanos = steps.iter().map(|step| links[step.link as usize].delay(0)).sum();
        crossed + *extra + self.propagation(path as u32, 0)
    }

    /// Delays of links that are not crossed.
    fn propagation(&mut self, path: u32, at: Nanos) -> Nanos {
        let links = &mut self.network.links;
        self.routes[path as usize].delay_of.iter().map(|link| links[*link].delay(at)).sum()
    }

    fn count_gone(&mut self, link: u32, from: usize) {
        for index in from..self.network.books.gone.len() {
            let parcel = self.network.books.gone[index];
            self.routes[parcel.path as usize].stats.gone += 1;
            self.note(self.network.now, link, parcel.size, Incident::Gone);
        }
    }

    #[inline]
    fn note(&mut self, at: Nanos, link: u32, size: u32, incident: Incident) {
        if let Some(log) = &mut self.log {
            log.push(Passage { at, link: link as usize, size, incident });
        }
    }

    /// The packets that were lost or dropped since the last call.
    #[inline]
    pub fn take_gone(&mut self) -> impl Iterator<Item = Parcel> + '_ {
        self.network.books.gone.drain(..)
    }

    /// What was logged since the last call, if a log is kept.
    pub fn take_log(&mut self) -> impl Iterator<Item = Passage> + '_ {
        self.log.iter_mut().flat_map(|log| log.drain(..))
    }

    /// Counters of a link, brought up to the present.
    pub fn link_stats(&mut self, link: usize) -> &LinkStats {
        self.network.settle();
        &self.network.links[link].stats
    }

    /// Packets waiting at a link.
    pub fn queue_length(&mut self, link: usize) -> usize {
        self.network.settle();
        self.network.links[link].waiting()
    }

    /// Wire bytes that a link could carry between two times.
    pub fn capacity_bytes(&self, link: usize, from: Nanos, to: Nanos) -> f64 {
        self.network.links[link].capacity_bytes(from, to)
    }

    /// Counters of a path.
    pub fn path_stats(&self, path: usize) -> PathStats {
        self.routes[path].stats
    }

    /// The time series, if there are any: those of the links, and of the paths (in place of flows) what they delivered.
    pub fn recorder(&mut self) -> Option<&Recorder> {
        self.network.settle();
        self.network.books.recorder.as_ref()
    }
}

impl Route {
    fn new(path: &Path, network: &mut Network<Parcel, Account>) -> Self {
        let last = path.links.len().saturating_sub(1);
        let steps = path.links.iter().enumerate().map(|(hop, link)| {
            let from = Origin::Link(*link);
            let key = if hop < last {
                (PipeEnd::Link, from, 0, vec![])
            } else {
                (PipeEnd::Receiver, from, path.extra_ns, path.delay_of.clone())
            };
            Step { link: *link as u32, pipe: network.pipe(key) }
        });
        let steps = steps.collect();
        let origin = Origin::Receiver { aggregate: 0 };
        let bypass = network.pipe((PipeEnd::Receiver, origin, path.extra_ns, path.delay_of.clone()));
        let (delay_of, extra) = (path.delay_of.clone(), path.extra_ns);
        Self { steps, delay_of, extra, bypass, stats: PathStats::default() }
    }
}

#[cfg(test)]
mod tests;
