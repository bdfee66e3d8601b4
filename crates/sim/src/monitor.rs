//! What a flow measured over one monitoring period.

use astraea_cc::Nanos;

/// Sums over one monitoring period of a flow; sizes in payload bytes, times in ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Interval {
    /// When the period began.
    pub start: Nanos,
    /// When it ends.
    pub end: Nanos,
    /// Bytes sent.
    pub sent: u64,
    /// Bytes acknowledged.
    pub acked: u64,
    /// Bytes declared lost.
    pub lost: u64,
    /// Sum of the round-trip samples.
    pub rtt_sum: u64,
    /// Number of round-trip samples.
    pub rtt_count: u32,
    /// Smallest round-trip sample, `Nanos::MAX` without one.
    pub rtt_min: Nanos,
}

impl Interval {
    /// An empty period.
    pub(crate) fn new(start: Nanos, end: Nanos) -> Self {
        Self { start, end, rtt_min: Nanos::MAX, ..Self::default() }
    }

    #[inline]
    pub(crate) fn on_ack(&mut self, acked: u64, rtt: Nanos) {
        self.acked += acked;
        self.rtt_sum += rtt;
        self.rtt_count += 1;
        self.rtt_min = self.rtt_min.min(rtt);
    }

    /// Length in ns.
    pub fn length(&self) -> Nanos {
        self.end - self.start
    }

    /// Acknowledged payload bit/s.
    pub fn throughput(&self) -> f64 {
        self.acked as f64 * 8e9 / self.length() as f64
    }

    /// Mean round-trip time in ns, `None` if nothing was acknowledged.
    pub fn rtt_mean(&self) -> Option<f64> {
        (self.rtt_count > 0).then(|| self.rtt_sum as f64 / f64::from(self.rtt_count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acknowledgements_are_counted() {
        let mut interval = Interval::new(0, 100);
        assert_eq!(interval.rtt_mean(), None);
        for rtt in [20, 30, 40, 60] {
            interval.on_ack(1000, rtt);
        }
        assert_eq!(interval.rtt_mean(), Some(37.5));
        assert_eq!(interval.rtt_min, 20);
        assert_eq!(interval.throughput(), 4000.0 * 8e9 / 100.0);
    }
}
