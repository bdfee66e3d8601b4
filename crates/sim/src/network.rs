//! Everything between senders and receivers: links, delay lines and the event queue.

use std::collections::{BTreeMap, VecDeque};

use astraea_cc::Nanos;

use crate::config::{ConfigError, LinkConfig};
use crate::event::{Event, EventQueue};
use crate::link::{Link, Offer};
use crate::packet::Packet;
use crate::queue;
use crate::record::{Books, Ledger};

/// What a packet meets at the end of a delay line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PipeEnd {
    /// The next link of its path.
    Link,
    /// The receiver.
    Receiver,
    /// The sender, as an acknowledgement.
    Sender,
    /// The sender, as the echo of a data packet that the receiver acknowledged at once.
    Echo,
}

/// A FIFO delay line.
struct Pipe<P> {
    end: PipeEnd,
    packets: VecDeque<(Nanos, P)>,
    last_arrival: Nanos,
}

/// Where a delay line begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    Link(usize),
    /// Receivers that release acknowledgements at multiples of `aggregate` ns.
    Receiver {
        aggregate: Nanos,
    },
}

/// Identifies packets that keep each other's order on a delay line: same end, same origin, same delay (the last two:
/// the constant part in ns, and the links whose varying delay is added).
pub(crate) type PipeKey = (PipeEnd, Origin, Nanos, Vec<usize>);

/// Links and delay lines for packets of type `P`, with `B` keeping account of them.
pub(crate) struct Network<P = Packet, B = Books> {
    pub(crate) now: Nanos,
    pub(crate) events: EventQueue,
    pub(crate) links: Vec<Link<P>>,
    pub(crate) books: B,
    pipes: Vec<Pipe<P>>,
    pipe_of: BTreeMap<PipeKey, u32>,
    /// Packets that were held back behind a link, by their arrival and the order in which they were.
    strays: BTreeMap<(Nanos, u64), (PipeEnd, P)>,
    /// How many packets have been held back.
    held_back: u64,
}

impl<P: queue::Packet + Copy, B: Ledger<P>> Network<P, B> {
    pub(crate) fn new(links: &[LinkConfig], seed: u64, books: B) -> Result<Self, ConfigError> {
        let links = links
            .iter()
            .enumerate()
            .map(|(index, link)| {
                let server =
                    link.rate.build().map_err(|problem| ConfigError::new(format!("link {}", link.name), problem))?;
                Ok(Link::new(index, link, server, stream_seed(seed, 2 * index as u64)))
            })
            .collect::<Result<_, ConfigError>>()?;
        Ok(Self {
            now: 0,
            events: EventQueue::default(),
            links,
            books,
            pipes: Vec::new(),
            pipe_of: BTreeMap::new(),
            strays: BTreeMap::new(),
            held_back: 0,
        })
    }

    /// The delay line for that key, made if it is new.
    pub(crate) fn pipe(&mut self, key: PipeKey) -> u32 {
        let end = key.0;
        *self.pipe_of.entry(key).or_insert_with(|| {
            self.pipes.push(Pipe { end, packets: VecDeque::new(), last_arrival: 0 });
            self.pipes.len() as u32 - 1
        })
    }

    /// Checks that there are not more delay lines than events can tell apart.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let most = EventQueue::MAX_INDEX;
        if self.pipes.len() > most {
            let problem = format!("{} different delays, expected at most {most}", self.pipes.len());
            return Err(ConfigError::new("flows", problem));
        }
        Ok(())
    }

    /// Puts a packet on a delay line; it arrives at `arrival`, or with its predecessor if that is later. Returns when.
    #[inline]
    pub(crate) fn push(&mut self, pipe: u32, arrival: Nanos, packet: P) -> Nanos {
        let line = &mut self.pipes[pipe as usize];
        let arrival = arrival.max(line.last_arrival);
        line.last_arrival = arrival;
        if line.packets.is_empty() {
            self.events.push(arrival, Event::Pipe(pipe));
        }
        line.packets.push_back((arrival, packet));
        arrival
    }

    /// Takes the packet at the head of a delay line, whose event is the present one, and schedules the next.
    #[inline]
    pub(crate) fn arrive(&mut self, pipe: u32) -> (PipeEnd, P) {
        let line = &mut self.pipes[pipe as usize];
        let (_, packet) = line.packets.pop_front().expect("a scheduled delay line is not empty");
        match line.packets.front() {
            Some(&(next, _)) => self.events.postpone(next, Event::Pipe(pipe)),
            None => self.events.pop(),
        }
        (line.end, packet)
    }

    /// Holds a packet back for `hold` after it would have arrived on the delay line, so that others can overtake it: they
    /// come no sooner than without it. Returns when it arrives.
    pub(crate) fn push_stray(&mut self, pipe: u32, arrival: Nanos, hold: Nanos, packet: P) -> Nanos {
        let line = &mut self.pipes[pipe as usize];
        line.last_arrival = line.last_arrival.max(arrival);
        let (end, arrival) = (line.end, line.last_arrival + hold);
        self.strays.insert((arrival, self.held_back), (end, packet));
        self.held_back += 1;
        self.events.push(arrival, Event::Stray);
        arrival
    }

    /// Takes the held-back packet whose event is the present one.
    pub(crate) fn arrive_stray(&mut self) -> (PipeEnd, P) {
        self.events.pop();
        self.strays.pop_first().expect("a stray event has its packet").1
    }

    /// Offers a packet to a link.
    #[inline]
    pub(crate) fn offer(&mut self, link: u32, packet: P) -> Offer<P> {
        let now = self.now;
        let link_ref = &mut self.links[link as usize];
        let offer = link_ref.offer(now, packet, &mut self.books);
        if let Offer::Queued = offer {
            self.schedule_service(link);
        }
        offer
    }

    /// Schedules the next service of a link with a managed queue.
    pub(crate) fn schedule_service(&mut self, link: u32) {
        if let Some(time) = self.links[link as usize].schedule_service(self.now) {
            self.events.push(time, Event::Service(link));
        }
    }

    /// Brings the counters of virtual queues up to the present.
    pub(crate) fn settle(&mut self) {
        for link in &mut self.links {
            link.release(self.now, &mut self.books);
        }
    }
}

impl Network {
    /// Data packets between senders and receivers: on delay lines (which include those in virtual queues), held back,
    /// or in managed queues (which must not hold acknowledgements).
    pub(crate) fn data_packets(&self) -> usize {
        let lines = self.pipes.iter().flat_map(|p| &p.packets).filter(|(_, packet)| !packet.is_ack()).count();
        let strays = self.strays.values().filter(|(_, packet)| !packet.is_ack()).count();
        let managed: usize = self.links.iter().filter(|l| !l.is_virtual()).map(Link::waiting).sum();
        lines + strays + managed
    }
}

/// Seed of an independent random stream.
pub(crate) fn stream_seed(seed: u64, stream: u64) -> u64 {
    // The generators' own seeding (SplitMix64) decorrelates neighbouring values.
    seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ stream.wrapping_mul(0xD1B5_4A32_D192_ED03)
}
