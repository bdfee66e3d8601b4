//! A crowd: flows whose wanted backlogs do not fit into the buffer together.
//!
//! A full queue drops unevenly, so the losses of a round trip may take part of the law's error only, and all react alike;
//! what is left of it makes each flow go on wanting what does not fit, and a quarter of all packets may be lost for good.
//! Over many seconds all lose nearly the same share, more than a path of the domain loses at random, or than this one has
//! certainly lost while all held back: the more that is, the less each wants. Wants that are divided still tell who has too
//! much by all of the distance; losses that are subtracted leave little of it.

use astraea_cc::Nanos;

use super::rules::{CrowdRules, Rules};

/// What one flow loses over a long time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crowd {
    /// Average share of lost packets.
    average: f64,
}

impl Crowd {
    /// That of a flow that loses this share on average.
    #[cfg(test)]
    pub(super) fn of(average: f64) -> Self {
        Self { average }
    }

    /// A period of so many ns has ended with this share of lost packets.
    pub(super) fn end_period(&mut self, rules: &CrowdRules, length: Nanos, loss: f64) {
        let share = (length as f64 / 1e9 / rules.average).min(1.0);
        self.average += (loss - self.average) * share;
    }

    /// Whether it loses packets all the time, so that it meets a full buffer, if not a lossy path.
    pub(super) fn loses(self, rules: &CrowdRules) -> bool {
        self.average > rules.steady
    }

    /// How much it is of a crowd at a rate in packets/s, from 0, on a path that certainly loses such a share by itself: the
    /// wanted backlog is divided by 1 and this.
    pub(super) fn crowding(self, rules: &CrowdRules, rate: f64, certain: f64) -> f64 {
        let relative = (rate.max(1.0) / Rules::REFERENCE).min(1.0);
        rules.gain * relative.sqrt() * (self.average - rules.seen.max(certain)).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, ms};
    use super::*;

    #[test]
    fn what_is_lost_for_long_beyond_what_a_path_loses_makes_a_crowd() {
        let rules = Rules::default().crowd;
        let crowding = |crowd: Crowd, rate: f64| crowd.crowding(&rules, rate, 0.0);
        let mut crowd = Crowd::default();
        crowd.end_period(&rules, ms(100.0), 0.5);
        close(crowd.average, 0.005);
        assert_eq!(crowding(crowd, Rules::REFERENCE), 0.0, "less than 2 %");
        (0..4000).for_each(|_| crowd.end_period(&rules, ms(100.0), 0.08));
        close(crowding(crowd, Rules::REFERENCE), 250.0 * 0.06);
        close(crowding(crowd, Rules::REFERENCE / 4.0), 125.0 * 0.06);
        close(crowding(crowd, 100.0 * Rules::REFERENCE), 250.0 * 0.06);
        let certain = |share: f64| crowd.crowding(&rules, Rules::REFERENCE, share);
        close(certain(0.01), 250.0 * 0.06);
        close(certain(0.05), 250.0 * 0.03);
        assert_eq!(certain(0.09), 0.0, "the path's own");
        assert!(crowd.loses(&rules));
        crowd.end_period(&rules, ms(20_000.0), 0.0);
        assert!(!crowd.loses(&rules));
        assert_eq!(crowd.average, 0.0, "a period longer than the average remembers");
    }
}
