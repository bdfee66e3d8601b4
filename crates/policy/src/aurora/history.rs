//! What Aurora's policy sees: three features of each of the last intervals.

use astraea_cc::{Nanos, SECOND};

use super::Interval;
use crate::feature::{self, Feature, Scale};

/// The features of an interval, in order (Aurora §2.2); the limits are those of its gym.
pub const FEATURES: [Feature; 3] = [
    Feature {
        name: "latency_gradient",
        meaning: "change of the mean round-trip time between the halves of the interval / interval",
        scale: Scale::Linear,
        low: -1.0,
        high: 10.0,
    },
    Feature {
        name: "latency_ratio",
        meaning: "mean round-trip time / smallest such mean of any interval of the flow",
        scale: Scale::Linear,
        low: 1.0,
        high: 10_000.0,
    },
    Feature::ratio("send_ratio", "packets sent / packets acknowledged", 1000.0),
];

/// What an interval shows when nothing happens: no gradient, no queue, everything acknowledged.
const NEUTRAL: [f32; 3] = [0.0, 1.0, 1.0];

/// The observation and what its features need to remember.
#[derive(Clone, Debug)]
pub struct History {
    values: Vec<f32>,
    latency: f64,
    latency_min: f64,
}

impl History {
    /// A history of that many intervals.
    pub fn new(intervals: usize) -> Self {
        let mut history = Self { values: vec![0.0; FEATURES.len() * intervals], latency: 0.0, latency_min: 0.0 };
        history.reset();
        history
    }

    /// Forgets everything: neutral values in all intervals.
    pub fn reset(&mut self) {
        self.values.as_chunks_mut::<3>().0.fill(NEUTRAL);
        self.latency = 0.0;
        self.latency_min = f64::INFINITY;
    }

    /// Adds an interval, which counts in units of which `packet` are a packet. Without an acknowledgement it repeats the
    /// latency of the last one that had some, and counts as one acknowledged packet in the send ratio.
    pub fn push(&mut self, interval: &Interval, packet: u64) {
        if let Some(latency) = interval.latency() {
            self.latency = latency;
            self.latency_min = self.latency_min.min(latency);
        }
        let raw = [
            interval.latency_gradient(),
            if self.latency > 0.0 { self.latency / self.latency_min } else { 1.0 },
            interval.send_ratio(packet),
        ];
        feature::push(&mut self.values, &FEATURES, &raw);
    }

    /// The observation: interval by interval, oldest first.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Mean round-trip time in s of the newest interval with an acknowledgement; 0 before the first.
    pub fn latency(&self) -> f64 {
        self.latency
    }

    /// Length in ns of the interval that follows: `round_trips` times the mean round-trip time of the newest one with an
    /// acknowledgement, or `None` before the first.
    pub fn next_length(&self, round_trips: f64) -> Option<Nanos> {
        (self.latency > 0.0).then(|| ((round_trips * self.latency * SECOND as f64).round() as Nanos).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(sent: u64, acked: u64, early: Nanos, late: Nanos) -> Interval {
        let mut interval = Interval::new(0, 1000);
        (interval.sent, interval.acked) = (sent, acked);
        if acked > 0 {
            interval.on_rtt(100, early);
            interval.on_rtt(900, late);
        }
        interval
    }

    #[test]
    fn features_by_hand() {
        let mut history = History::new(2);
        assert_eq!(history.values(), [0.0, 1.0, 1.0, 0.0, 1.0, 1.0]);
        assert_eq!(history.next_length(0.5), None);
        history.push(&interval(12, 10, 200, 200), 1);
        assert_eq!(history.values(), [0.0, 1.0, 1.0, 0.0, 1.0, 1.2]);
        // Early mean 250 ns, late mean 350 ns, interval 1000 ns.
        history.push(&interval(10, 10, 250, 350), 1);
        assert_eq!(history.values(), [0.0, 1.0, 1.2, 0.1, 1.5, 1.0]);
        assert_eq!(history.next_length(0.5), Some(150));
        // A silent interval repeats the latency.
        history.push(&interval(7, 0, 0, 0), 1);
        assert_eq!(history.values(), [0.1, 1.5, 1.0, 0.0, 1.5, 7.0]);
        history.reset();
        assert_eq!(history.values(), [0.0, 1.0, 1.0, 0.0, 1.0, 1.0]);
    }
}
