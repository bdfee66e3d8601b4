//! `CoDel` (RFC 8289): drops at the head once the wait of packets has stayed above a target for an interval, then ever
//! more often, by the inverse square root of the number of drops, until the wait falls below the target.

use super::fifo::Fifo;
use super::{Discipline, Limit, Packet, Verdict};
use astraea_cc::Nanos;
use rand::Rng;
use serde::{Deserialize, Serialize};

/// Parameters of `CoDel` (RFC 8289 section 4.2 and 4.3 for the defaults).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CodelConfig {
    /// Acceptable standing wait in ns. Default 5 ms.
    pub target_ns: Nanos,
    /// How long the wait must stay above the target, in ns: about a worst-case round-trip time. Default 100 ms.
    pub interval_ns: Nanos,
    /// Mark capable packets instead of dropping them. Default off.
    pub ecn: bool,
}

impl Default for CodelConfig {
    fn default() -> Self {
        Self { target_ns: 5_000_000, interval_ns: 100_000_000, ecn: false }
    }
}

impl CodelConfig {
    pub(super) fn validate(self) -> Result<(), String> {
        if self.target_ns == 0 || self.interval_ns == 0 {
            let (target, interval) = (self.target_ns, self.interval_ns);
            return Err(format!("expected a target_ns and an interval_ns above 0, got {target} and {interval}"));
        }
        Ok(())
    }
}

/// The state of the control law (RFC 8289 section 5.3): one per queue, so one per flow in FQ-CoDel.
#[derive(Clone, Debug, Default)]
pub(super) struct ControlLaw {
    /// When the wait will have been above the target for an interval; none while it is below.
    first_above: Option<Nanos>,
    dropping: bool,
    drop_next: Nanos,
    /// Drops since the dropping state was entered, and its value on entry.
    count: u32,
    last_count: u32,
}

impl ControlLaw {
    /// RFC 8289 section 5.5. A queue that holds no more than `largest` bytes (one packet) is never signalled to.
    pub(super) fn dequeue<P: Packet>(
        &mut self,
        config: &CodelConfig,
        now: Nanos,
        fifo: &mut Fifo<P>,
        largest: u32,
        dropped: &mut Vec<P>,
    ) -> Option<P> {
        let (mut packet, mut persistent) = self.take(config, now, fifo, largest);
        if self.dropping {
            self.dropping = persistent;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if mark(config, packet.as_mut()) {
                    self.drop_next = self.next_drop(config, self.drop_next);
                    break;
                }
                dropped.extend(packet);
                (packet, persistent) = self.take(config, now, fifo, largest);
                self.dropping = persistent;
                if persistent {
                    self.drop_next = self.next_drop(config, self.drop_next);
                }
            }
        } else if persistent {
            if !mark(config, packet.as_mut()) {
                dropped.extend(packet);
                (packet, _) = self.take(config, now, fifo, largest);
            }
            self.dropping = true;
            // Soon after the last time, start near the drop rate that controlled the queue then.
            let drops = self.count - self.last_count;
            let recent = now < self.drop_next.saturating_add(config.interval_ns.saturating_mul(16));
            self.count = if drops > 1 && recent { drops } else { 1 };
            self.last_count = self.count;
            self.drop_next = self.next_drop(config, now);
        }
        packet
    }

    /// The next packet, and whether the wait has been above the target for an interval (RFC 8289 section 5.4).
    fn take<P: Packet>(
        &mut self,
        config: &CodelConfig,
        now: Nanos,
        fifo: &mut Fifo<P>,
        largest: u32,
    ) -> (Option<P>, bool) {
        let Some(packet) = fifo.pop() else {
            self.first_above = None;
            return (None, false);
        };
        let wait = now.saturating_sub(packet.enqueued_at());
        if wait < config.target_ns || fifo.bytes() <= u64::from(largest) {
            self.first_above = None;
            return (Some(packet), false);
        }
        let due = *self.first_above.get_or_insert(now.saturating_add(config.interval_ns));
        (Some(packet), now >= due)
    }

    fn next_drop(&self, config: &CodelConfig, from: Nanos) -> Nanos {
        from.saturating_add((config.interval_ns as f64 / f64::from(self.count).sqrt()) as Nanos)
    }
}

/// Marks the packet if that is possible and wanted.
fn mark<P: Packet>(config: &CodelConfig, packet: Option<&mut P>) -> bool {
    match packet {
        Some(packet) if config.ecn && packet.ecn_capable() => {
            packet.mark_ce();
            true
        }
        _ => false,
    }
}

/// A FIFO under `CoDel`.
#[derive(Clone, Debug)]
pub struct Codel<P> {
    config: CodelConfig,
    limit: Limit,
    fifo: Fifo<P>,
    law: ControlLaw,
    /// Size of the largest packet seen so far in bytes.
    largest: u32,
}

impl<P> Codel<P> {
    /// An empty queue.
    pub fn new(config: CodelConfig, limit: Limit) -> Self {
        Self { config, limit, fifo: Fifo::new(), law: ControlLaw::default(), largest: 0 }
    }
}

impl<P: Packet> Discipline<P> for Codel<P> {
    fn enqueue(&mut self, now: Nanos, packet: P, _rng: &mut impl Rng) -> Verdict<P> {
        if !self.fifo.has_room(self.limit, &packet) {
            return Verdict::Dropped(packet);
        }
        self.largest = self.largest.max(packet.size());
        self.fifo.push(now, packet);
        Verdict::Queued
    }

    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<P>) -> Option<P> {
        self.law.dequeue(&self.config, now, &mut self.fifo, self.largest, dropped)
    }

    fn len(&self) -> usize {
        self.fifo.len()
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{TestPacket, rng};
    use super::*;

    const MS: Nanos = 1_000_000;

    /// A queue of `packets` full-sized packets that all arrived at time zero.
    fn standing_queue(config: CodelConfig, packets: u64, capable: bool) -> Codel<TestPacket> {
        let mut queue = Codel::new(config, Limit::Infinite);
        for id in 0..packets {
            let packet = TestPacket::new(id, 0, 1500);
            let _ = queue.enqueue(0, if capable { packet.capable() } else { packet }, &mut rng());
        }
        queue
    }

    /// The milliseconds in which packets were dropped or marked when one is taken every millisecond.
    fn signals(queue: &mut Codel<TestPacket>, milliseconds: std::ops::Range<u64>) -> Vec<u64> {
        let mut dropped = Vec::new();
        let mut times = Vec::new();
        for ms in milliseconds {
            let packet = queue.dequeue(ms * MS, &mut dropped).expect("the queue does not run empty");
            times.extend(std::iter::repeat_n(ms, dropped.len() + usize::from(packet.marked)));
            dropped.clear();
        }
        times
    }

    /// First above target at 5 ms, so the first drop is at 105; then by the law t + 100 ms / sqrt(count), each drop at
    /// the next whole millisecond: 205, 275.71, 333.45, 383.45, 428.17, 468.99, 506.79.
    const BY_THE_LAW: [u64; 8] = [105, 205, 276, 334, 384, 429, 469, 507];

    #[test]
    fn drops_follow_the_control_law() {
        let mut queue = standing_queue(CodelConfig::default(), 2000, false);
        assert_eq!(signals(&mut queue, 0..540), BY_THE_LAW);
    }

    #[test]
    fn marks_instead_of_dropping_at_the_same_times() {
        let config = CodelConfig { ecn: true, ..CodelConfig::default() };
        let mut queue = standing_queue(config, 2000, true);
        assert_eq!(signals(&mut queue, 0..540), BY_THE_LAW);
        assert_eq!(queue.len(), 2000 - 540, "no packet was dropped");
        let mut queue = standing_queue(config, 2000, false);
        assert_eq!(signals(&mut queue, 0..540), BY_THE_LAW);
        assert_eq!(queue.len(), 2000 - 540 - 8, "packets that are not capable are dropped");
    }

    #[test]
    fn a_short_queue_is_left_alone() {
        // Two packets wait at each departure and each one waits 4 ms: below target, whatever the time.
        let mut queue = Codel::new(CodelConfig::default(), Limit::Infinite);
        let mut dropped = Vec::new();
        for id in 0..1000 {
            let _ = queue.enqueue(id * 2 * MS, TestPacket::new(id, 0, 1500), &mut rng());
            if id >= 2 {
                assert!(queue.dequeue(id * 2 * MS, &mut dropped).is_some());
            }
        }
        assert!(dropped.is_empty());
    }

    #[test]
    fn the_last_packet_is_never_dropped_however_long_it_waited() {
        let mut queue = Codel::new(CodelConfig::default(), Limit::Infinite);
        let mut dropped = Vec::new();
        for id in 0..100 {
            // Each packet finds one other that is 50 ms old.
            let _ = queue.enqueue(id * 50 * MS, TestPacket::new(id, 0, 1500), &mut rng());
            if id >= 1 {
                assert!(queue.dequeue(id * 50 * MS, &mut dropped).is_some());
            }
        }
        assert!(dropped.is_empty());
    }

    #[test]
    fn returns_near_the_last_drop_rate_when_congestion_comes_back_soon() {
        // After eight drops the queue drains at 540 ms; the next drop was due at 542 ms.
        let return_at = |again: u64| {
            let mut queue = standing_queue(CodelConfig::default(), 2000, false);
            assert_eq!(signals(&mut queue, 0..540).len(), 8);
            while queue.dequeue(540 * MS, &mut Vec::new()).is_some() {}
            for id in 0..2000 {
                let _ = queue.enqueue(again * MS, TestPacket::new(id, 0, 1500), &mut rng());
            }
            signals(&mut queue, again..again + 210)
        };
        // Above target at 605, so dropping from 705 on; the count resumes at 8 - 1 = 7: 100 ms / sqrt(7) = 37.8 ms.
        assert_eq!(return_at(600)[..2], [705, 743]);
        // 16 intervals after the drop that was due it starts afresh.
        assert_eq!(return_at(2030)[..2], [2135, 2173]);
        assert_eq!(return_at(2040)[..2], [2145, 2245]);
    }
}
