//! What a `RemyCC` remembers of the acknowledgements that it has seen.

use crate::Nanos;

/// Gain of the moving averages, and of the slow one (`alpha`, `slow_alpha`).
const GAIN: f64 = 1.0 / 8.0;
const SLOW_GAIN: f64 = 1.0 / 256.0;

/// The quantities by which a table chooses its rule, in the order of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemyAxis {
    /// Moving average of the time between the packets acknowledged when they were sent, in ms.
    SendEwma,
    /// Moving average of the time between acknowledgements, in ms.
    ReceiveEwma,
    /// The newest round-trip time over the smallest.
    RttRatio,
    /// As `ReceiveEwma`, with a gain of 1/256.
    SlowReceiveEwma,
    /// The newest round-trip time less the smallest, in ms.
    RttDifference,
    /// `ReceiveEwma` times the packets that the acknowledgement covers, in ms.
    QueueingDelay,
}

impl RemyAxis {
    /// Every axis.
    pub const ALL: [Self; 6] = [
        Self::SendEwma,
        Self::ReceiveEwma,
        Self::RttRatio,
        Self::SlowReceiveEwma,
        Self::RttDifference,
        Self::QueueingDelay,
    ];
}

/// The memory of one connection. All quantities begin at 0, and the first acknowledgement only sets the clocks.
#[derive(Clone, Copy, Debug, Default)]
pub struct RemyMemory {
    axes: [f64; 6],
    last: Option<Last>,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    received_at: Nanos,
    sent_at: Nanos,
    min_rtt: Nanos,
}

impl RemyMemory {
    /// The quantities in the order of [`RemyAxis`].
    #[inline]
    pub fn axes(&self) -> [f64; 6] {
        self.axes
    }

    /// One acknowledgement of so many packets, of which the newest left at `sent_at`; false if it is older than the
    /// last one and changes nothing. Packets that are acknowledged together count as if they had come evenly spaced.
    #[inline]
    pub fn on_ack(&mut self, now: Nanos, sent_at: Nanos, rtt: Nanos, packets: u64) -> bool {
        let rtt = rtt.max(1);
        let packets = packets.max(1);
        let Some(last) = &mut self.last else {
            self.last = Some(Last { received_at: now, sent_at, min_rtt: rtt });
            return true;
        };
        if sent_at < last.sent_at {
            return false;
        }
        last.min_rtt = last.min_rtt.min(rtt);
        let gap = |from: Nanos, to: Nanos| (to - from) as f64 / 1e6 / packets as f64;
        let (sent, received) = (gap(last.sent_at, sent_at), gap(last.received_at, now));
        (last.sent_at, last.received_at) = (sent_at, now);
        let [send, receive, ratio, slow, difference, queueing] = &mut self.axes;
        for _ in 0..packets.min(256) {
            *send += GAIN * (sent - *send);
            *receive += GAIN * (received - *receive);
            *slow += SLOW_GAIN * (received - *slow);
        }
        *ratio = rtt as f64 / last.min_rtt as f64;
        *difference = (rtt - last.min_rtt) as f64 / 1e6;
        *queueing = *receive * packets as f64;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    /// Packets sent 8 ms apart arrive 16 ms apart: 8/8 = 1, then 1 + 7/8; 16/8 = 2, then 2 + 14/8.
    #[test]
    fn averages_by_hand() {
        let mut memory = RemyMemory::default();
        assert!(memory.on_ack(100 * MS, 50 * MS, 50 * MS, 1));
        assert_eq!(memory.axes(), [0.0; 6], "the first one only sets the clocks");
        memory.on_ack(116 * MS, 58 * MS, 58 * MS, 1);
        assert_eq!(memory.axes(), [1.0, 2.0, 1.16, 16.0 / 256.0, 8.0, 2.0]);
        memory.on_ack(132 * MS, 66 * MS, 66 * MS, 1);
        let slow = 0.0625 + (16.0 - 0.0625) / 256.0;
        assert_eq!(memory.axes(), [1.875, 3.75, 1.32, slow, 16.0, 3.75]);
        // A smaller round-trip time is the new measure.
        memory.on_ack(140 * MS, 100 * MS, 40 * MS, 1);
        assert_eq!((memory.axes()[2], memory.axes()[4]), (1.0, 0.0));
        assert!(!memory.on_ack(141 * MS, 99 * MS, 42 * MS, 1), "overtaken");
    }

    /// Two packets together, 32 ms after the last: as two of 16 ms.
    #[test]
    fn packets_acknowledged_together_are_spread() {
        let mut memory = RemyMemory::default();
        memory.on_ack(100 * MS, 50 * MS, 50 * MS, 1);
        memory.on_ack(132 * MS, 66 * MS, 66 * MS, 2);
        assert_eq!(memory.axes()[..2], [1.875, 3.75]);
        assert_eq!(memory.axes()[5], 7.5);
    }
}
