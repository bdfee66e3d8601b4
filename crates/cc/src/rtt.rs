//! Round-trip time estimation (RFC 6298 §2, with the initial values of RFC 9002 §5).

use crate::{MILLISECOND, Nanos, SECOND};

/// What a retransmission timeout has beyond a round trip at least, as in Linux (`TCP_RTO_MIN`). RFC 6298 asks for 1 s, which
/// no deployed stack uses. See [`Rtt::retransmission_timeout`].
pub const MIN_RTO: Nanos = 200 * MILLISECOND;

/// Smoothed round-trip time and its variation.
#[derive(Clone, Copy, Debug)]
pub struct Rtt {
    latest: Nanos,
    min: Nanos,
    smoothed: Nanos,
    variation: Nanos,
}

impl Default for Rtt {
    fn default() -> Self {
        Self { latest: 0, min: Nanos::MAX, smoothed: 0, variation: 0 }
    }
}

impl Rtt {
    /// Timer granularity G of RFC 6298.
    const GRANULARITY: Nanos = MILLISECOND;

    /// Adds a sample.
    #[inline]
    pub fn update(&mut self, sample: Nanos) {
        self.latest = sample;
        if self.min == Nanos::MAX {
            self.min = sample;
            self.smoothed = sample;
            self.variation = sample / 2;
            return;
        }
        self.min = self.min.min(sample);
        self.variation = (3 * self.variation + self.smoothed.abs_diff(sample)) / 4;
        self.smoothed = (7 * self.smoothed + sample) / 8;
    }

    /// Whether a sample has been taken.
    #[inline]
    pub fn has_sample(&self) -> bool {
        self.min != Nanos::MAX
    }

    /// The newest sample, 0 before the first.
    #[inline]
    pub fn latest(&self) -> Nanos {
        self.latest
    }

    /// The smallest sample of the connection, or `None` before the first.
    #[inline]
    pub fn min(&self) -> Option<Nanos> {
        self.has_sample().then_some(self.min)
    }

    /// Smoothed round-trip time (gain 1/8), 0 before the first sample.
    #[inline]
    pub fn smoothed(&self) -> Nanos {
        self.smoothed
    }

    /// Mean deviation (gain 1/4).
    #[inline]
    pub fn variation(&self) -> Nanos {
        self.variation
    }

    /// Retransmission timeout without back-off: `srtt + max(G, 4 rttvar)`; 1 s before the first sample (RFC 6298 (2.1) to
    /// (2.3)). `least` is a floor under the second term, where Linux has it (`tcp_rto_min` in `tcp_rtt_estimator`), and not
    /// under the sum as in (2.4): a round trip longer than the floor leaves room for a delayed acknowledgement, too.
    pub fn retransmission_timeout(&self, least: Nanos) -> Nanos {
        if !self.has_sample() {
            return SECOND;
        }
        self.smoothed + (4 * self.variation).max(Self::GRANULARITY).max(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_sample_sets_everything() {
        let mut rtt = Rtt::default();
        assert_eq!(rtt.min(), None);
        assert_eq!(rtt.retransmission_timeout(0), SECOND);
        rtt.update(100);
        assert_eq!((rtt.smoothed(), rtt.variation(), rtt.min()), (100, 50, Some(100)));
    }

    #[test]
    fn gains_are_an_eighth_and_a_quarter() {
        let mut rtt = Rtt::default();
        rtt.update(80 * MILLISECOND);
        rtt.update(160 * MILLISECOND);
        // variation (3*40 + 80)/4 = 50, smoothed (7*80 + 160)/8 = 90
        assert_eq!(rtt.smoothed(), 90 * MILLISECOND);
        assert_eq!(rtt.variation(), 50 * MILLISECOND);
        assert_eq!(rtt.retransmission_timeout(200 * MILLISECOND), 290 * MILLISECOND);
        assert_eq!(rtt.min(), Some(80 * MILLISECOND));
    }

    #[test]
    fn a_timeout_is_later_than_the_round_trip_by_the_floor() {
        let mut rtt = Rtt::default();
        for _ in 0..100 {
            rtt.update(10 * MILLISECOND);
        }
        assert_eq!(rtt.retransmission_timeout(200 * MILLISECOND), 210 * MILLISECOND);
        assert_eq!(rtt.retransmission_timeout(0), 11 * MILLISECOND);
    }
}
