//! Losses of a crowd: of flows whose wanted backlogs do not fit into the buffer together.
//!
//! A full queue drops unevenly, so the losses of a round trip may take part of the law's error only, and all react alike;
//! what is left of it makes each flow go on wanting what does not fit, and a quarter of all packets may be lost for good.
//! Over many seconds all lose nearly the same share, more than a path of the domain loses at random: by that losses may
//! take more.

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

    /// How much more than [`Rules::loss_most`] losses may add to the law's error at a rate in packets/s and a window in
    /// packets, where the path loses `base` whatever is sent.
    pub(super) fn more(self, rules: &CrowdRules, base: f64, rate: f64, window: f64) -> f64 {
        let relative = (rate.max(1.0) / Rules::REFERENCE).min(1.0);
        let beyond = self.average - base.min(rules.base_most).max(rules.seen);
        rules.gain * rules.few / (rules.few + window) * relative.sqrt() * beyond.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, ms};
    use super::*;

    #[test]
    fn what_is_lost_for_long_beyond_what_a_path_loses_counts_more() {
        let rules = Rules::default().crowd;
        let more = |crowd: Crowd, base: f64, rate: f64| crowd.more(&rules, base, rate, 0.0);
        let mut crowd = Crowd::default();
        crowd.end_period(&rules, ms(100.0), 0.5);
        close(crowd.average, 0.005);
        assert_eq!(more(crowd, 0.0, Rules::REFERENCE), 0.0, "less than 3 %");
        (0..4000).for_each(|_| crowd.end_period(&rules, ms(100.0), 0.08));
        close(more(crowd, 0.0, Rules::REFERENCE), 20.0 * 0.05);
        close(more(crowd, 0.04, Rules::REFERENCE), 20.0 * 0.04);
        close(more(crowd, 0.3, Rules::REFERENCE), 20.0 * 0.03); // a crowd is no path that loses as much
        close(more(crowd, 0.0, Rules::REFERENCE / 4.0), 10.0 * 0.05);
        close(more(crowd, 0.0, 100.0 * Rules::REFERENCE), 20.0 * 0.05);
        close(crowd.more(&rules, 0.0, Rules::REFERENCE, 30.0), 5.0 * 0.05);
        assert!(crowd.loses(&rules));
        crowd.end_period(&rules, ms(20_000.0), 0.0);
        assert!(!crowd.loses(&rules));
        assert_eq!(crowd.average, 0.0, "a period longer than the average remembers");
    }
}
