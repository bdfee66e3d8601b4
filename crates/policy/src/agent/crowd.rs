//! Losses of a crowd: of flows whose wanted backlogs do not fit into the buffer together.
//!
//! A full queue drops unevenly, so the losses of a round trip may take part of the law's error only, and all react alike;
//! what is left of it makes each flow go on wanting what does not fit, and a quarter of all packets may be lost for good. Over many
//! seconds all lose nearly the same share, more than a path of the domain loses at random: by that losses may take more.

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

    /// How much more than [`Rules::loss_most`] losses may add to the law's error at a rate in packets/s, where the path
    /// loses `base` whatever is sent.
    pub(super) fn more(self, rules: &CrowdRules, base: f64, rate: f64) -> f64 {
        let relative = (rate.max(1.0) / Rules::REFERENCE).min(1.0);
        let beyond = self.average - base.min(rules.base_most).max(rules.seen);
        rules.gain * relative.sqrt() * beyond.max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{close, ms};
    use super::*;

    #[test]
    fn what_is_lost_for_long_beyond_what_a_path_loses_counts_more() {
        let rules = Rules::default().crowd;
        let mut crowd = Crowd::default();
        crowd.end_period(&rules, ms(100.0), 0.5);
        close(crowd.average, 0.005);
        assert_eq!(crowd.more(&rules, 0.0, Rules::REFERENCE), 0.0, "less than 2 %");
        (0..4000).for_each(|_| crowd.end_period(&rules, ms(100.0), 0.08));
        close(crowd.more(&rules, 0.0, Rules::REFERENCE), 10.0 * 0.06);
        close(crowd.more(&rules, 0.03, Rules::REFERENCE), 10.0 * 0.05);
        close(crowd.more(&rules, 0.3, Rules::REFERENCE), 10.0 * 0.03); // a crowd is no path that loses as much
        close(crowd.more(&rules, 0.0, Rules::REFERENCE / 4.0), 5.0 * 0.06);
        close(crowd.more(&rules, 0.0, 100.0 * Rules::REFERENCE), 10.0 * 0.06);
        crowd.end_period(&rules, ms(20_000.0), 0.0);
        assert_eq!(crowd.average, 0.0, "a period longer than the average remembers");
    }
}
