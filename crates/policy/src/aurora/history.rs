//! What Aurora's policy sees: three features of each of the last intervals.

use astraea_policy::Feature;

use super::path::Report;

/// The features of an interval, in order (Aurora §2.2); the limits are those of its gym.
pub const FEATURES: [Feature; 3] = [
    Feature {
        name: "latency_gradient",
        meaning: "change of the mean round-trip time between the halves of the interval / interval",
        scale: astraea_policy::Scale::Linear,
        low: -1.0,
        high: 10.0,
    },
    Feature {
        name: "latency_ratio",
        meaning: "mean round-trip time / smallest such mean of any interval of the flow",
        scale: astraea_policy::Scale::Linear,
        low: 1.0,
        high: 10_000.0,
    },
    Feature::ratio("send_ratio", "packets sent / packets acknowledged", 1000.0),
];

/// What an interval shows when nothing happens: no gradient, no queue, everything acknowledged.
const NEUTRAL: [f32; 3] = [0.0, 1.0, 1.0];

/// The observation and what its features need to remember.
pub struct History {
    values: Vec<f32>,
    latency: f64,
    latency_min: f64,
}

impl History {
    /// A history of that many intervals.
    pub fn new(intervals: usize) -> Self {
        let mut history = Self { values: vec![0.0; 3 * intervals], latency: 0.0, latency_min: 0.0 };
        history.reset();
        history
    }

    /// Forgets everything: neutral values in all intervals.
    pub fn reset(&mut self) {
        self.values.as_chunks_mut::<3>().0.fill(NEUTRAL);
        self.latency = 0.0;
        self.latency_min = f64::INFINITY;
    }

    /// Adds an interval. Without an acknowledgement it repeats the latency of the last one that had some, and counts
    /// as one acknowledgement in the send ratio.
    pub fn push(&mut self, report: &Report) {
        if let Some(latency) = report.latency() {
            self.latency = latency;
            self.latency_min = self.latency_min.min(latency);
        }
        let raw = [
            report.latency_gradient(),
            if self.latency > 0.0 { self.latency / self.latency_min } else { 1.0 },
            f64::from(report.sent) / f64::from(report.acked.max(1)),
        ];
        self.values.copy_within(3.., 0);
        let newest = self.values.len() - 3;
        for ((value, feature), raw) in self.values[newest..].iter_mut().zip(&FEATURES).zip(raw) {
            *value = feature.encode(raw);
        }
    }

    /// The observation: interval by interval, oldest first.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Mean round-trip time in s of the newest interval with an acknowledgement; 0 before the first.
    pub fn latency(&self) -> f64 {
        self.latency
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(sent: u32, acked: u32, rtt: u64) -> Report {
        Report { start: 0, end: 1000, sent, acked, rtt_sum: rtt * u64::from(acked), ..Report::default() }
    }

    #[test]
    fn features_by_hand() {
        let mut history = History::new(2);
        assert_eq!(history.values(), [0.0, 1.0, 1.0, 0.0, 1.0, 1.0]);
        history.push(&report(12, 10, 200));
        assert_eq!(history.values(), [0.0, 1.0, 1.0, 0.0, 1.0, 1.2]);
        // Early mean 250 ns, late mean 350 ns, interval 1000 ns.
        let rising = Report { late_rtt_sum: 1750, late_acked: 5, ..report(10, 10, 300) };
        history.push(&rising);
        assert_eq!(history.values(), [0.0, 1.0, 1.2, 0.1, 1.5, 1.0]);
        // A silent interval repeats the latency.
        history.push(&report(7, 0, 0));
        assert_eq!(history.values(), [0.1, 1.5, 1.0, 0.0, 1.5, 7.0]);
        history.reset();
        assert_eq!(history.values(), [0.0, 1.0, 1.0, 0.0, 1.0, 1.0]);
    }
}
