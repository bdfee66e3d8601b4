//! Which round-trip samples say something about the queue: not those of acknowledgements that come in bursts.

use super::interval::Sample;
use crate::Nanos;

/// An acknowledgement interval that differs from its neighbour by this many times the usual ratio begins a burst.
const BURST: f64 = 50.0;

/// Weight of the newest ratio in its moving average.
const GAIN: f64 = 0.1;

/// Compares each interval between acknowledgements with the next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reliability {
    /// Length of the interval before the pending acknowledgement.
    interval: Nanos,
    usual: Option<f64>,
    burst: bool,
}

impl Reliability {
    /// Whether the pending sample counts, now that the next one is there.
    pub(super) fn judge(&mut self, pending: &Sample, next: &Sample) -> bool {
        let interval = next.now - pending.now;
        let before = std::mem::replace(&mut self.interval, interval);
        if before == 0 {
            return false;
        }
        let ratio = before as f64 / interval.max(1) as f64;
        let ratio = ratio.max(1.0 / ratio);
        let usual = self.usual.unwrap_or(ratio);
        let reliable = if ratio > BURST * usual {
            self.burst = true;
            false
        } else if self.burst {
            // A burst ends with a sample no larger than the average after which the queue does not shrink. (The source:
            // with a smaller one after which it grows, which never comes where delays are exact and a window begins
            // with a gap.)
            self.burst = next.rtt < pending.rtt || pending.rtt > pending.smoothed;
            false
        } else {
            true
        };
        self.usual = Some((1.0 - GAIN) * usual + GAIN * ratio);
        reliable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_lasts_until_the_queue_has_drained() {
        let mut reliability = Reliability::default();
        let mut last = Sample { smoothed: 1000, ..Sample::default() };
        let mut feed = |now: Nanos, rtt: Nanos| {
            let next = Sample { now, rtt, ..last };
            let reliable = reliability.judge(&last, &next);
            last = next;
            reliable
        };
        assert!(!feed(1_000_000, 1000), "nothing to compare with");
        assert!(feed(2_000_000, 1000));
        assert!(feed(3_000_000, 1000));
        // One nanosecond after a millisecond: a million to one.
        assert!(!feed(3_000_001, 1200));
        assert!(!feed(3_000_002, 900));
        // The pending sample of 900 is below the average of 1000, and 950 follows: the burst is over.
        assert!(!feed(3_000_003, 950));
        assert!(feed(3_000_004, 1000));
    }

    /// A small window on a long path: ten acknowledgements, a gap of 70 times theirs, ten more, and no queue anywhere.
    #[test]
    fn a_gap_does_not_last_for_ever_where_delays_are_exact() {
        let mut reliability = Reliability::default();
        let mut last = Sample { rtt: 1000, smoothed: 1000, ..Sample::default() };
        let reliable = (1..20_u64).map(|ack| {
            let next = Sample { now: 10 * ack + if ack < 10 { 0 } else { 700 }, ..last };
            let reliable = reliability.judge(&last, &next);
            last = next;
            reliable
        });
        assert_eq!(reliable.filter(|reliable| *reliable).count(), 16);
    }
}
