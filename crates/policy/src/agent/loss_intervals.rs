//! How often a flow loses: whether those it shares a full queue with yield to losses as it does.

/// Packets between round trips with losses, on average over the last eight such intervals.
///
/// As in TFRC (RFC 5348, section 5.4) a round trip counts once however much of it was lost, since a queue that is full
/// drops bursts, and the interval that is not over counts as soon as it makes the average longer. Weights are equal.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossIntervals {
    /// Average of those that are over.
    mean: f64,
    /// How many those are.
    count: u32,
    /// Packets since the last of them.
    open: f64,
}

impl LossIntervals {
    /// Intervals that the average covers.
    const MOST: u32 = 8;
    /// Intervals that it takes at least.
    const LEAST: u32 = 2;

    /// So many more packets were delivered.
    pub(super) fn deliver(&mut self, packets: f64) {
        self.open += packets;
    }

    /// A round trip with losses begins.
    pub(super) fn lose(&mut self) {
        self.count += 1;
        self.mean += (self.open - self.mean) / f64::from(self.count.min(Self::MOST));
        self.open = 0.0;
    }

    /// The average in packets, once there is one.
    pub(super) fn mean(&self) -> Option<f64> {
        let longer = (self.open - self.mean).max(0.0) / f64::from((self.count + 1).min(Self::MOST));
        (self.count >= Self::LEAST).then_some(self.mean + longer)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::close;
    use super::*;

    /// After intervals of so many packets.
    fn after(packets: &[f64]) -> LossIntervals {
        let mut intervals = LossIntervals::default();
        for packets in packets {
            intervals.deliver(*packets);
            intervals.lose();
        }
        intervals
    }

    #[test]
    fn one_interval_is_no_average() {
        assert_eq!(LossIntervals::default().mean(), None);
        assert_eq!(after(&[100.0]).mean(), None);
        close(after(&[100.0, 300.0]).mean().unwrap(), 200.0);
    }

    #[test]
    fn old_intervals_are_forgotten() {
        let mut intervals = after(&[800.0; 8]);
        close(intervals.mean().unwrap(), 800.0);
        intervals.lose();
        close(intervals.mean().unwrap(), 700.0);
        intervals.lose();
        close(intervals.mean().unwrap(), 612.5);
    }

    #[test]
    fn an_interval_that_is_not_over_counts_where_it_is_long() {
        let mut intervals = after(&[200.0, 200.0]);
        intervals.deliver(150.0);
        close(intervals.mean().unwrap(), 200.0);
        intervals.deliver(350.0);
        close(intervals.mean().unwrap(), 300.0);
    }
}
