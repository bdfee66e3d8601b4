//! A packet and a link for the tests of the disciplines.

use super::{Discipline, Packet, Verdict};
use astraea_cc::Nanos;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestPacket {
    pub(crate) id: u64,
    pub(crate) flow: u32,
    pub(crate) size: u32,
    pub(crate) ecn: bool,
    pub(crate) marked: bool,
    pub(crate) enqueued: Nanos,
}

impl TestPacket {
    pub(crate) fn new(id: u64, flow: u32, size: u32) -> Self {
        Self { id, flow, size, ecn: false, marked: false, enqueued: 0 }
    }

    pub(crate) fn capable(self) -> Self {
        Self { ecn: true, ..self }
    }
}

impl Packet for TestPacket {
    fn size(&self) -> u32 {
        self.size
    }
    fn flow(&self) -> u32 {
        self.flow
    }
    fn ecn_capable(&self) -> bool {
        self.ecn
    }
    fn mark_ce(&mut self) {
        assert!(self.ecn, "a packet that is not capable was marked");
        self.marked = true;
    }

    fn is_marked(&self) -> bool {
        self.marked
    }
    fn enqueued_at(&self) -> Nanos {
        self.enqueued
    }
    fn set_enqueued_at(&mut self, now: Nanos) {
        self.enqueued = now;
    }
}

pub(crate) fn rng() -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(1)
}

/// What a link with a queue in front of it did.
#[derive(Default)]
pub(crate) struct Outcome {
    /// Packets in the order of their transmission, with the time each one left the queue.
    pub(crate) sent: Vec<(Nanos, TestPacket)>,
    /// Packets dropped, with the time.
    pub(crate) dropped: Vec<(Nanos, TestPacket)>,
}

impl Outcome {
    /// Mean wait in seconds of the packets that left the queue from `since` on.
    pub(crate) fn mean_delay(&self, since: Nanos) -> f64 {
        let delays: Vec<_> =
            self.sent.iter().filter(|(at, _)| *at >= since).map(|(at, p)| (at - p.enqueued) as f64 * 1e-9).collect();
        delays.iter().sum::<f64>() / delays.len() as f64
    }
}

/// Feeds `arrivals` (in order of time) to `queue` in front of a link that needs `byte_time` ns for a byte, until all
/// have arrived.
pub(crate) fn drive(
    queue: &mut impl Discipline<TestPacket>,
    arrivals: impl IntoIterator<Item = (Nanos, TestPacket)>,
    byte_time: Nanos,
) -> Outcome {
    let (mut outcome, mut rng, mut free_at) = (Outcome::default(), rng(), 0);
    let mut heads = Vec::new();
    for (arrival, packet) in arrivals {
        while free_at <= arrival && !queue.is_empty() {
            let packet = queue.dequeue(free_at, &mut heads);
            outcome.dropped.extend(heads.drain(..).map(|p| (free_at, p)));
            if let Some(packet) = packet {
                let busy = u64::from(packet.size) * byte_time;
                outcome.sent.push((free_at, packet));
                free_at += busy;
            }
        }
        if queue.is_empty() {
            free_at = free_at.max(arrival);
        }
        match queue.enqueue(arrival, packet, &mut rng) {
            Verdict::Queued => {}
            Verdict::Dropped(packet) => outcome.dropped.push((arrival, packet)),
            Verdict::Evicted(packets) => outcome.dropped.extend(packets.into_iter().map(|p| (arrival, p))),
        }
    }
    outcome
}
