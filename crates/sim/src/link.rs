//! A link: random loss, a queue, a transmitter and what it adds to the delay.
//!
//! Two kinds of queue stand behind one interface. A drop-tail FIFO is *virtual*: since the rate is known in advance,
//! the departure time of a packet is certain on arrival, and only the occupancy has to be remembered. Disciplines that
//! decide at the head (`CoDel`, `FQ-CoDel`, `PIE`, `RED`) hold their packets and are served by events.

use std::collections::VecDeque;

use astraea_cc::Nanos;
use rand::RngExt;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::config::{DelayConfig, LinkConfig, ReorderConfig};
use crate::histogram::Histogram;
use crate::loss::LossModel;
use crate::queue::{AnyQueue, Discipline, Limit, Packet, QueueConfig, Verdict};
use crate::rate::Server;
use crate::record::{Ledger, SlotCursor};

/// Counters of a link over the whole simulation; sizes in wire bytes.
#[derive(Clone, Debug, Default)]
pub struct LinkStats {
    /// Packets that arrived.
    pub offered: u64,
    /// Packets lost at random.
    pub lost: u64,
    /// Packets dropped by the queue.
    pub dropped: u64,
    /// Packets that left with a congestion-experienced mark.
    pub marked: u64,
    /// Packets whose transmission has begun.
    pub served: u64,
    /// Their bytes.
    pub served_bytes: u64,
    /// Sum of their waiting times in ns.
    pub wait_sum: u64,
    /// Their waiting times.
    pub waits: Histogram,
}

/// What became of a packet that was offered to a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Offer<P> {
    /// It will have left the transmitter at that time.
    Departs(Nanos),
    /// Likewise; it has been through a managed queue, which may have marked it.
    Served(P, Nanos),
    /// It waits; [`Link::serve`] will hand it out.
    Queued,
    /// It was lost or dropped.
    Gone,
}

/// Occupancy of a virtual drop-tail queue. It may count packets that wait no longer: they are forgotten many at a time,
/// or when room is needed.
#[derive(Default)]
struct Fifo {
    waiting: VecDeque<Waiting>,
    bytes: u64,
}

impl Fifo {
    /// Packets that are forgotten together. How many transmissions have begun since the last arrival is hard for the
    /// processor to guess; that there are not yet so many is easy.
    const TOGETHER: usize = 64;

    #[inline]
    fn push(&mut self, packet: Waiting) {
        self.waiting.push_back(packet);
        self.bytes += u64::from(packet.size);
    }

    #[inline]
    fn has_room(&self, limit: Limit, size: u32) -> bool {
        limit.allows(self.waiting.len() + 1, self.bytes + u64::from(size))
    }

    /// Whether so many packets wait no longer.
    #[inline]
    fn is_overdue(&self, now: Nanos) -> bool {
        self.waiting.get(Self::TOGETHER - 1).is_some_and(|packet| packet.start <= now)
    }
}

#[derive(Clone, Copy)]
struct Waiting {
    start: Nanos,
    enqueued_at: Nanos,
    size: u32,
}

enum Buffer<P> {
    Virtual(Fifo),
    Managed {
        queue: Box<AnyQueue<P>>,
        /// Whether a service event is scheduled.
        scheduled: bool,
        /// Scratch space for what the discipline drops at the head.
        dropped: Vec<P>,
    },
}

/// One-way propagation delay over time.
struct Delay {
    steps: Vec<(Nanos, Nanos)>,
    current: usize,
}

impl Delay {
    fn new(config: &DelayConfig) -> Self {
        let steps = match config {
            DelayConfig::Constant(delay) => vec![(0, *delay)],
            DelayConfig::Schedule(steps) => steps.clone(),
        };
        Self { steps, current: 0 }
    }

    /// Delay at `time`; times may go back a little.
    #[inline]
    fn at(&mut self, time: Nanos) -> Nanos {
        while self.current + 1 < self.steps.len() && self.steps[self.current + 1].0 <= time {
            self.current += 1;
        }
        while self.steps[self.current].0 > time {
            self.current -= 1;
        }
        self.steps[self.current].1
    }
}

/// A link whose packets are of type `P`: cheap handles, as they are copied on their way.
pub(crate) struct Link<P> {
    index: usize,
    server: Server,
    buffer: Buffer<P>,
    limit: Limit,
    delay: Delay,
    loss: LossModel,
    jitter: Nanos,
    reorder: ReorderConfig,
    rng: Xoshiro256PlusPlus,
    /// When the transmitter is free again.
    free_at: Nanos,
    starts: SlotCursor,
    pub(crate) departures: SlotCursor,
    pub(crate) stats: LinkStats,
}

impl<P: Packet + Copy> Link<P> {
    pub(crate) fn new(index: usize, config: &LinkConfig, server: Server, seed: u64) -> Self {
        let buffer = match config.queue {
            QueueConfig::Droptail {} => Buffer::Virtual(Fifo::default()),
            _ => Self::managed(config),
        };
        Self {
            index,
            server,
            buffer,
            limit: config.limit,
            delay: Delay::new(&config.delay),
            loss: config.loss.build(),
            jitter: config.jitter_ns,
            reorder: config.reorder,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            free_at: 0,
            starts: SlotCursor::default(),
            departures: SlotCursor::default(),
            stats: LinkStats::default(),
        }
    }

    fn managed(config: &LinkConfig) -> Buffer<P> {
        let queue = Box::new(config.queue.build(config.limit));
        Buffer::Managed { queue, scheduled: false, dropped: Vec::new() }
    }

    /// A packet arrives.
    #[inline]
    pub(crate) fn offer(&mut self, now: Nanos, packet: P, books: &mut impl Ledger<P>) -> Offer<P> {
        self.stats.offered += 1;
        if self.loss.lost(&mut self.rng) {
            self.stats.lost += 1;
            books.on_gone(packet);
            if let Some(recorder) = books.recorder() {
                recorder.link_now(self.index, now).lost += 1;
            }
            return Offer::Gone;
        }
        if let Buffer::Virtual(_) = self.buffer {
            self.offer_virtual(now, packet, books)
        } else {
            self.offer_managed(now, packet, books)
        }
    }

    #[inline]
    fn offer_virtual(&mut self, now: Nanos, packet: P, books: &mut impl Ledger<P>) -> Offer<P> {
        let size = packet.size();
        let start = self.server.begin(now.max(self.free_at));
        if start > now {
            let limit = self.limit;
            if self.fifo().is_overdue(now) || !self.fifo().has_room(limit, size) {
                self.release(now, books);
                if !self.fifo().has_room(limit, size) {
                    self.drop_one(now, packet, books);
                    return Offer::Gone;
                }
            }
            self.fifo().push(Waiting { start, enqueued_at: now, size });
        } else {
            self.release(now, books);
            self.count_service(start, 0, size, books);
        }
        self.free_at = self.server.finish(start, size);
        Offer::Departs(self.free_at)
    }

    #[inline]
    fn fifo(&mut self) -> &mut Fifo {
        let Buffer::Virtual(fifo) = &mut self.buffer else { unreachable!("checked by the caller") };
        fifo
    }

    /// Forgets the packets of a virtual queue whose transmission has begun by `now`.
    #[inline]
    pub(crate) fn release(&mut self, now: Nanos, books: &mut impl Ledger<P>) {
        while let Buffer::Virtual(fifo) = &mut self.buffer
            && let Some(&Waiting { start, enqueued_at, size }) = fifo.waiting.front()
            && start <= now
        {
            fifo.waiting.pop_front();
            fifo.bytes -= u64::from(size);
            self.count_service(start, start - enqueued_at, size, books);
        }
    }

    fn offer_managed(&mut self, now: Nanos, packet: P, books: &mut impl Ledger<P>) -> Offer<P> {
        let Buffer::Managed { queue, scheduled, .. } = &mut self.buffer else { unreachable!("checked by the caller") };
        // Nothing waits where no service is scheduled.
        let idle = !*scheduled && self.server.begin(now.max(self.free_at)) == now;
        match queue.enqueue(now, packet, &mut self.rng) {
            Verdict::Queued => {}
            Verdict::Dropped(packet) => {
                self.drop_one(now, packet, books);
                return Offer::Gone;
            }
            Verdict::Evicted(victims) => {
                for victim in victims {
                    self.drop_one(now, victim, books);
                }
            }
        }
        if idle { self.serve_at_once(now, books) } else { Offer::Queued }
    }

    /// Takes the packet that an idle link was offered from its queue before another one arrives at the same instant.
    #[inline(never)]
    fn serve_at_once(&mut self, now: Nanos, books: &mut impl Ledger<P>) -> Offer<P> {
        match self.serve(now, books) {
            Some((packet, departure)) => Offer::Served(packet, departure),
            None => Offer::Gone,
        }
    }

    /// When the link wants [`serve`](Link::serve) to be called, if that has not been scheduled yet.
    pub(crate) fn schedule_service(&mut self, now: Nanos) -> Option<Nanos> {
        let Buffer::Managed { queue, scheduled, .. } = &mut self.buffer else { return None };
        if *scheduled || queue.is_empty() {
            return None;
        }
        *scheduled = true;
        Some(self.server.begin(now.max(self.free_at)))
    }

    /// Takes the next packet from a managed queue; returns it with the time at which it will have left.
    #[inline]
    pub(crate) fn serve(&mut self, now: Nanos, books: &mut impl Ledger<P>) -> Option<(P, Nanos)> {
        let Buffer::Managed { queue, scheduled, dropped } = &mut self.buffer else { return None };
        *scheduled = false;
        let packet = queue.dequeue(now, dropped);
        let victims = std::mem::take(dropped);
        for victim in &victims {
            self.drop_one(now, *victim, books);
        }
        self.keep_scratch(victims);
        let packet = packet?;
        self.stats.marked += u64::from(packet.is_marked());
        self.count_service(now, now - packet.enqueued_at(), packet.size(), books);
        self.free_at = self.server.finish(now, packet.size());
        Some((packet, self.free_at))
    }

    /// Gives the scratch space back, so that dropping at the head does not allocate.
    fn keep_scratch(&mut self, mut victims: Vec<P>) {
        victims.clear();
        if let Buffer::Managed { dropped, .. } = &mut self.buffer {
            *dropped = victims;
        }
    }

    #[inline]
    fn count_service(&mut self, start: Nanos, wait: Nanos, size: u32, books: &mut impl Ledger<P>) {
        self.stats.served += 1;
        self.stats.served_bytes += u64::from(size);
        self.stats.wait_sum += wait;
        self.stats.waits.add(wait);
        if let Some(recorder) = books.recorder() {
            recorder.service(&mut self.starts, self.index, start, wait, size);
        }
    }

    #[inline]
    fn drop_one(&mut self, now: Nanos, packet: P, books: &mut impl Ledger<P>) {
        self.stats.dropped += 1;
        books.on_gone(packet);
        if let Some(recorder) = books.recorder() {
            recorder.link_now(self.index, now).dropped += 1;
        }
    }

    /// Propagation delay of a packet that leaves at `departure`, without jitter.
    #[inline]
    pub(crate) fn delay(&mut self, departure: Nanos) -> Nanos {
        self.delay.at(departure)
    }

    /// A draw of the jitter.
    #[inline]
    pub(crate) fn jitter(&mut self) -> Nanos {
        if self.jitter == 0 { 0 } else { self.rng.random_range(0..=self.jitter) }
    }

    /// Whether, and for how long, the next packet is held back to be overtaken.
    #[inline]
    pub(crate) fn held_back(&mut self) -> Option<Nanos> {
        (self.reorder.probability > 0.0 && self.rng.random::<f64>() < self.reorder.probability)
            .then_some(self.reorder.delay_ns)
    }

    /// Packets that wait (a virtual queue must have been released up to now).
    pub(crate) fn waiting(&self) -> usize {
        match &self.buffer {
            Buffer::Virtual(fifo) => fifo.waiting.len(),
            Buffer::Managed { queue, .. } => queue.len(),
        }
    }

    /// Whether packets in the queue are also on the delay line already.
    pub(crate) fn is_virtual(&self) -> bool {
        matches!(self.buffer, Buffer::Virtual(_))
    }

    /// Wire bytes that the link could carry between two times.
    pub(crate) fn capacity_bytes(&self, from: Nanos, to: Nanos) -> f64 {
        self.server.capacity_bytes(from, to)
    }
}
