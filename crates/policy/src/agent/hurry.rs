//! Hurry: a path that keeps showing no queue is filled faster and faster.
//!
//! What a window meets is heard of a round trip later, when it has grown on. A buffer that holds less than that is empty and
//! overflows in turn, and drops the largest share of what the smallest windows send. So a flow remembers the window with which
//! it heard of a queue while packets were being lost, comes near it slowly, and leaves it slowly, as CUBIC does around the
//! window of its last loss (RFC 9438 §4.4 and §4.5).

use super::rules::Rules;

/// How long a path has shown no queue, and what is known of its end.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hurry {
    idle_rounds: f64,
    /// Window in packets at which hurry last ended while packets were lost; 0: not known.
    brink: f64,
}

impl Hurry {
    /// A period of this many round trips has ended, with this window in packets: whether there was no queue, and whether
    /// packets have been lost of late.
    pub(super) fn end_period(&mut self, rules: &Rules, rounds: f64, window: f64, idle: bool, lossy: bool) {
        if !idle && lossy && self.rounds(rules) > 0.0 {
            self.brink = window;
        }
        self.idle_rounds = if idle { self.idle_rounds + rounds } else { 0.0 };
    }

    /// A path without a queue was no sign that more would fit.
    pub(super) fn pause(&mut self) {
        self.idle_rounds = 0.0;
    }

    /// The path is longer than it was, or nothing is known of it any more.
    pub(super) fn forget(&mut self) {
        self.brink = 0.0;
    }

    /// The step at this window in packets, as a relative change per round trip, if it is time to hurry.
    pub(super) fn step(self, rules: &Rules, window: f64) -> Option<f64> {
        let rounds = self.rounds(rules);
        (rounds > 0.0).then(|| (rules.up * (1.0 + rounds)).min(self.most(rules, window)))
    }

    /// For how many round trips it has been time to hurry.
    fn rounds(self, rules: &Rules) -> f64 {
        self.idle_rounds - rules.hurry_after
    }

    /// The largest step at this window.
    fn most(self, rules: &Rules, window: f64) -> f64 {
        if self.brink == 0.0 {
            return rules.hurry;
        }
        (rules.up + rules.hurry_near * libm::log(window / self.brink).abs()).min(rules.hurry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps of a flow with this window over round trips without a queue.
    fn steps(hurry: &mut Hurry, rounds: usize, window: f64) -> Vec<f64> {
        let rules = Rules::default();
        let mut step = || {
            hurry.end_period(&rules, 1.0, window, true, true);
            hurry.step(&rules, window).unwrap_or(rules.up)
        };
        (0..rounds).map(|_| step()).collect()
    }

    #[test]
    fn an_idle_path_is_filled_faster_and_faster() {
        let rules = Rules::default();
        let mut hurry = Hurry::default();
        let steps = steps(&mut hurry, 30, 100.0);
        assert!(steps[..2].iter().all(|step| *step == rules.up));
        assert!(steps.is_sorted() && steps[19] < rules.hurry && steps[29] == rules.hurry, "{steps:?}");
        hurry.end_period(&rules, 1.0, 100.0, false, false);
        assert_eq!(hurry.step(&rules, 100.0), None, "a queue ends it");
    }

    #[test]
    fn a_window_that_lost_packets_is_approached_and_left_slowly() {
        let rules = Rules::default();
        let mut hurry = Hurry::default();
        steps(&mut hurry, 30, 100.0);
        hurry.end_period(&rules, 1.0, 200.0, false, true);
        let mut most = |window: f64| steps(&mut hurry, 30, window)[29];
        assert!((most(200.0) - rules.up).abs() < 1e-12, "no faster than the law there");
        let tenth = rules.hurry_near * 1.1_f64.ln();
        assert!((most(200.0 / 1.1) - rules.up - tenth).abs() < 1e-12);
        assert!((most(200.0 * 1.1) - rules.up - tenth).abs() < 1e-12);
        assert_eq!(most(20.0), rules.hurry, "far from it as ever");
        hurry.forget();
        assert_eq!(hurry.step(&rules, 200.0), Some(rules.hurry));
    }

    #[test]
    fn only_hurry_that_ends_with_losses_is_remembered() {
        let rules = Rules::default();
        for (rounds, lossy) in [(30, false), (2, true)] {
            let mut hurry = Hurry::default();
            steps(&mut hurry, rounds, 100.0);
            hurry.end_period(&rules, 1.0, 100.0, false, lossy);
            assert_eq!(steps(&mut hurry, 30, 100.0)[29], rules.hurry, "{rounds} {lossy}");
        }
    }
}
