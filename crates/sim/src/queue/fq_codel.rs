//! FQ-CoDel (RFC 8290): flows are hashed into queues, served by deficit round robin with a first turn for queues that
//! have just become active, each queue under its own `CoDel`.

use std::collections::VecDeque;

use super::codel::ControlLaw;
use super::fifo::Fifo;
use super::{CodelConfig, Discipline, Limit, Packet, Verdict};
use astraea_cc::Nanos;
use rand::Rng;
use serde::{Deserialize, Serialize};

/// At most so many packets are thrown out at once (RFC 8290 section 4.1).
const BATCH: usize = 64;

/// Parameters of FQ-CoDel (RFC 8290 section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FqCodelConfig {
    /// As for `CoDel`, in ns. Default 5 ms.
    pub target_ns: Nanos,
    /// As for `CoDel`, in ns. Default 100 ms.
    pub interval_ns: Nanos,
    /// Mark capable packets instead of dropping them. Default off.
    pub ecn: bool,
    /// Queues that flows are hashed into. Default 1024.
    pub flows: u32,
    /// Bytes that a queue may send in a turn. Default 1514.
    pub quantum: u32,
}

impl Default for FqCodelConfig {
    fn default() -> Self {
        let CodelConfig { target_ns, interval_ns, ecn } = CodelConfig::default();
        Self { target_ns, interval_ns, ecn, flows: 1024, quantum: 1514 }
    }
}

impl FqCodelConfig {
    fn codel(self) -> CodelConfig {
        CodelConfig { target_ns: self.target_ns, interval_ns: self.interval_ns, ecn: self.ecn }
    }

    pub(super) fn validate(self) -> Result<(), String> {
        self.codel().validate()?;
        if !(1..=65_536).contains(&self.flows) {
            return Err(format!("expected flows between 1 and 65536, got {}", self.flows));
        }
        if self.quantum == 0 {
            return Err("expected a quantum of 1 byte or more, got 0".to_owned());
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
struct Flow<P> {
    fifo: Fifo<P>,
    law: ControlLaw,
    /// Bytes that the queue may still send in this turn.
    credits: i64,
    /// Whether the queue is on one of the two lists.
    listed: bool,
}

/// Many queues, one link.
#[derive(Clone, Debug)]
pub struct FqCodel<P> {
    codel: CodelConfig,
    quantum: i64,
    limit: Limit,
    flows: Vec<Flow<P>>,
    /// Queues that became active since they were last served; they go first (RFC 8290 section 4.2).
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    len: usize,
    bytes: u64,
    /// Size of the largest packet seen so far in bytes.
    largest: u32,
}

impl<P> FqCodel<P> {
    /// Empty queues.
    pub fn new(config: FqCodelConfig, limit: Limit) -> Self {
        let flow = |_| Flow { fifo: Fifo::new(), law: ControlLaw::default(), credits: 0, listed: false };
        Self {
            codel: config.codel(),
            quantum: i64::from(config.quantum),
            limit,
            flows: (0..config.flows).map(flow).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            len: 0,
            bytes: 0,
            largest: 0,
        }
    }

    /// The queue of a flow. Flows can collide, as they do in a router.
    fn bucket(&self, flow: u32) -> u32 {
        // The finaliser of MurmurHash3, then the range reduced without a division.
        let mut hash = flow;
        hash = (hash ^ (hash >> 16)).wrapping_mul(0x85eb_ca6b);
        hash = (hash ^ (hash >> 13)).wrapping_mul(0xc2b2_ae35);
        hash ^= hash >> 16;
        ((u64::from(hash) * self.flows.len() as u64) >> 32) as u32
    }
}

impl<P: Packet> FqCodel<P> {
    /// Throws out half of the longest queue (in bytes) from its head, up to a batch (RFC 8290 section 4.1). Halving
    /// spreads the cost of the search over many packets.
    fn evict(&mut self, evicted: &mut Vec<P>) {
        let active = self.new.iter().chain(&self.old);
        let Some(&fattest) = active.max_by_key(|&&index| self.flows[index as usize].fifo.bytes()) else {
            return;
        };
        let fifo = &mut self.flows[fattest as usize].fifo;
        let enough = fifo.bytes() / 2;
        for _ in 0..BATCH {
            let Some(packet) = fifo.pop() else { break };
            self.len -= 1;
            self.bytes -= u64::from(packet.size());
            evicted.push(packet);
            if fifo.bytes() <= enough {
                break;
            }
        }
    }
}

impl<P: Packet> Discipline<P> for FqCodel<P> {
    fn enqueue(&mut self, now: Nanos, packet: P, _rng: &mut impl Rng) -> Verdict<P> {
        let size = packet.size();
        if !self.limit.allows(1, u64::from(size)) {
            return Verdict::Dropped(packet);
        }
        self.largest = self.largest.max(size);
        self.len += 1;
        self.bytes += u64::from(size);
        let index = self.bucket(packet.flow());
        let flow = &mut self.flows[index as usize];
        flow.fifo.push(now, packet);
        if !flow.listed {
            flow.listed = true;
            flow.credits = self.quantum;
            self.new.push_back(index);
        }
        if self.limit.allows(self.len, self.bytes) {
            return Verdict::Queued;
        }
        let mut evicted = Vec::new();
        while !self.limit.allows(self.len, self.bytes) {
            self.evict(&mut evicted);
        }
        Verdict::Evicted(evicted)
    }

    /// RFC 8290 section 4.2.
    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<P>) -> Option<P> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let &index = list.front()?;
            let flow = &mut self.flows[index as usize];
            if flow.credits <= 0 {
                flow.credits += self.quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let (length, bytes, first) = (flow.fifo.len(), flow.fifo.bytes(), dropped.len());
            let packet = flow.law.dequeue(&self.codel, now, &mut flow.fifo, self.largest, dropped);
            self.len -= length - flow.fifo.len();
            self.bytes -= bytes - flow.fifo.bytes();
            debug_assert_eq!(length - flow.fifo.len(), dropped.len() - first + usize::from(packet.is_some()));
            if let Some(packet) = packet {
                flow.credits -= i64::from(packet.size());
                return Some(packet);
            }
            list.pop_front();
            // A new queue that ran empty waits its turn among the old ones, or it could always go first by pausing.
            if is_new {
                self.old.push_back(index);
            } else {
                flow.listed = false;
            }
        }
    }

    fn len(&self) -> usize {
        self.len
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{TestPacket, drive, rng};
    use super::*;

    const MS: Nanos = 1_000_000;

    /// Arrivals of one flow: a packet of `size` bytes every `every` ns until `end`.
    fn stream(flow: u32, size: u32, every: Nanos, end: Nanos) -> impl Iterator<Item = (Nanos, TestPacket)> {
        (0..end / every).map(move |id| (id * every, TestPacket::new(id, flow, size)))
    }

    fn merged(streams: impl IntoIterator<Item = (Nanos, TestPacket)>) -> Vec<(Nanos, TestPacket)> {
        let mut all: Vec<_> = streams.into_iter().collect();
        all.sort_by_key(|(at, _)| *at);
        all
    }

    /// Flow and number of the packets that are sent one after the other.
    fn order(queue: &mut FqCodel<TestPacket>) -> impl Iterator<Item = (u32, u64)> {
        std::iter::from_fn(|| queue.dequeue(0, &mut Vec::new())).map(|p| (p.flow, p.id))
    }

    #[test]
    fn a_sparse_flow_does_not_wait_behind_a_flood() {
        // A flood of twice the capacity (12 Mbit/s: 1 ms for a packet) and a small packet every 20 ms.
        let mut queue = FqCodel::new(FqCodelConfig::default(), Limit::Packets(1000));
        let arrivals = merged(stream(1, 1500, MS / 2, 5000 * MS).chain(stream(2, 200, 20 * MS, 5000 * MS)));
        let outcome = drive(&mut queue, arrivals, 667);
        let waits: Vec<_> = outcome.sent.iter().filter(|(_, p)| p.flow == 2).map(|(at, p)| at - p.enqueued).collect();
        assert_eq!(waits.len(), 250, "none of the sparse flow's packets is lost");
        // At most the rest of the packet in transmission; the very first one meets a flood that is new itself.
        assert!(waits[1..].iter().all(|&wait| wait <= 1500 * 667), "longest wait {:?} ns", waits.iter().max());
    }

    #[test]
    fn bytes_and_not_packets_are_shared_equally() {
        let mut queue = FqCodel::new(FqCodelConfig::default(), Limit::Packets(10_000));
        let end = 10_000 * MS;
        let outcome = drive(&mut queue, merged(stream(1, 1500, MS, end).chain(stream(2, 300, MS / 5, end))), 667);
        let sent =
            |flow| -> u64 { outcome.sent.iter().filter(|(_, p)| p.flow == flow).map(|(_, p)| u64::from(p.size)).sum() };
        let ratio = sent(1) as f64 / sent(2) as f64;
        assert!((0.98..1.02).contains(&ratio), "large : small packets = {ratio}");
    }

    /// Turns of 1000 bytes and packets of 400; flow 1 has sent four of its ten and has credits of 400 bytes left as an
    /// old queue.
    fn flow_1_in_its_turn(flow_2_before: bool) -> FqCodel<TestPacket> {
        let config = FqCodelConfig { quantum: 1000, ..FqCodelConfig::default() };
        let mut queue = FqCodel::new(config, Limit::Infinite);
        put(&mut queue, 1, 0..10);
        if flow_2_before {
            put(&mut queue, 2, 0..1);
        }
        let sent: Vec<_> = order(&mut queue).take(if flow_2_before { 5 } else { 4 }).collect();
        assert_eq!(sent[..3], [(1, 0), (1, 1), (1, 2)], "1000, 600, 200 bytes of credit");
        assert_eq!(sent[3..], [(2, 0), (1, 3)][usize::from(!flow_2_before)..]);
        queue
    }

    fn put(queue: &mut FqCodel<TestPacket>, flow: u32, ids: std::ops::Range<u64>) {
        for id in ids {
            assert_eq!(queue.enqueue(0, TestPacket::new(id, flow, 400), &mut rng()), Verdict::Queued);
        }
    }

    #[test]
    fn a_queue_that_becomes_active_goes_first_and_only_for_a_turn() {
        let mut queue = flow_1_in_its_turn(false);
        put(&mut queue, 2, 0..5);
        let sent: Vec<_> = order(&mut queue).take(7).collect();
        assert_eq!(sent, [(2, 0), (2, 1), (2, 2), (1, 4), (2, 3), (2, 4), (1, 5)]);
    }

    #[test]
    fn an_empty_new_queue_does_not_regain_priority_by_pausing() {
        // Flow 2's queue has been found empty and is now an old one behind flow 1's.
        let mut queue = flow_1_in_its_turn(true);
        put(&mut queue, 2, 1..2);
        assert_eq!(order(&mut queue).take(2).collect::<Vec<_>>(), [(1, 4), (2, 1)]);
    }

    #[test]
    fn the_last_packet_of_a_flow_is_never_dropped_however_long_it_waited() {
        let mut queue = FqCodel::new(FqCodelConfig::default(), Limit::Infinite);
        let mut dropped = Vec::new();
        for id in 0..100 {
            let _ = queue.enqueue(id * 50 * MS, TestPacket::new(id, 0, 1500), &mut rng());
            if id >= 1 {
                assert!(queue.dequeue(id * 50 * MS, &mut dropped).is_some());
            }
        }
        assert!(dropped.is_empty());
    }

    #[test]
    fn over_the_limit_half_of_the_fattest_queue_goes_from_its_head() {
        let mut queue = FqCodel::new(FqCodelConfig::default(), Limit::Bytes(15_000));
        for id in 0..8 {
            assert_eq!(queue.enqueue(0, TestPacket::new(id, 1, 1500), &mut rng()), Verdict::Queued);
        }
        for id in 0..2 {
            assert_eq!(queue.enqueue(0, TestPacket::new(id, 2, 1500), &mut rng()), Verdict::Queued);
        }
        let Verdict::Evicted(evicted) = queue.enqueue(0, TestPacket::new(2, 2, 100), &mut rng()) else {
            panic!("the queue is over its limit")
        };
        assert_eq!(evicted.iter().map(|p| (p.flow, p.id)).collect::<Vec<_>>(), [(1, 0), (1, 1), (1, 2), (1, 3)]);
        assert_eq!((queue.len(), queue.bytes()), (7, 6 * 1500 + 100));
    }

    #[test]
    fn no_more_than_a_batch_is_thrown_out_at_once() {
        let mut queue = FqCodel::new(FqCodelConfig::default(), Limit::Packets(500));
        for id in 0..500 {
            let _ = queue.enqueue(0, TestPacket::new(id, 1, 1500), &mut rng());
        }
        let verdict = queue.enqueue(0, TestPacket::new(500, 1, 1500), &mut rng());
        assert!(matches!(verdict, Verdict::Evicted(packets) if packets.len() == BATCH));
    }

    #[test]
    fn each_queue_has_its_own_control_law() {
        let config = FqCodelConfig { ecn: true, ..FqCodelConfig::default() };
        let mut queue = FqCodel::new(config, Limit::Infinite);
        let end = 3000 * MS;
        // Flow 1 takes 0.9 of what flow 2 leaves of it; only flow 2, far above its share, builds a queue.
        let mild = stream(1, 1500, 5 * MS, end).map(|(at, p)| (at, p.capable()));
        let flood = stream(2, 1500, MS, end).map(|(at, p)| (at, p.capable()));
        let outcome = drive(&mut queue, merged(mild.chain(flood)), 667);
        let marks = |flow| outcome.sent.iter().filter(|(_, p)| p.flow == flow && p.marked).count();
        assert_eq!(marks(1), 0);
        assert!(marks(2) > 20, "{} marks", marks(2));
        assert!(outcome.dropped.is_empty());
    }
}
