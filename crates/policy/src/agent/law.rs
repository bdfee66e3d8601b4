//! The law: how far a flow's own backlog is from what it should be, and the step that follows.
//!
//! FAST TCP's idea (Wei, Jin, Low and Hegde 2006) with a wanted backlog that grows with the root of the rate, so that the
//! queue of many slow flows stays short.

use super::rules::Rules;
use crate::backlog::Signals;

/// Losses of a round trip that count as a burst.
const BURST: f64 = 0.05;

/// An error above this says that there is hardly a queue.
const NO_QUEUE: f64 = 0.75;

/// How far the own backlog is below the wanted one, as a share of it, less what losses count.
///
/// It falls with the rate, the delay and the loss, and contains no round-trip time: flows that share a queue agree at
/// equal rates.
pub(super) fn error(rules: &Rules, signals: &Signals) -> f64 {
    let loss = (rules.loss * signals.loss).min(rules.loss_most);
    1.0 - signals.backlog() / rules.wanted(signals.rate) - loss
}

/// The law's memory: round trips without a queue.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Law {
    idle_rounds: f64,
}

impl Law {
    /// A period of this many round trips has ended.
    pub(super) fn end_period(&mut self, rules: &Rules, signals: &Signals, rounds: f64) {
        // The queue that is there, not the one expected: whether the window has outgrown the path is the question.
        let idle =
            signals.rate * signals.queue < (1.0 - NO_QUEUE) * rules.wanted(signals.rate) && signals.burst < BURST;
        self.idle_rounds = if idle { self.idle_rounds + rounds } else { 0.0 };
    }

    /// The step, as a relative change of the window per round trip.
    pub(super) fn step(self, rules: &Rules, signals: &Signals) -> f64 {
        let mut step = (rules.gain * error(rules, signals)).clamp(-rules.down, rules.up);
        let hurry = self.idle_rounds - rules.hurry_after;
        if hurry > 0.0 {
            step = (rules.up * (1.0 + hurry)).min(rules.hurry);
        }
        if signals.burst > BURST {
            step += rules.burst * libm::log(1.0 - signals.burst.min(0.95));
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signals(rate: f64, queue: f64) -> Signals {
        Signals { rate, queue, ahead: queue, ..Signals::default() }
    }

    #[test]
    fn ten_packets_at_the_reference_rate_are_right() {
        let rules = Rules::default();
        let balanced = signals(Rules::REFERENCE, 10.0 / Rules::REFERENCE);
        assert!(error(&rules, &balanced).abs() < 1e-12);
        // At a quarter of the rate half as many: twice the delay.
        let slow = signals(Rules::REFERENCE / 4.0, 20.0 / Rules::REFERENCE);
        assert!(error(&rules, &slow).abs() < 1e-12);
        let step = Law::default().step(&rules, &signals(Rules::REFERENCE, 15.0 / Rules::REFERENCE));
        assert!((step + 0.05).abs() < 1e-12, "half too much, times the gain");
    }

    #[test]
    fn losses_count_up_to_a_limit() {
        let rules = Rules::default();
        let lossy = |loss| error(&rules, &Signals { loss, ..signals(1000.0, 0.0) });
        assert!((lossy(0.01) - 0.7).abs() < 1e-12);
        assert!((lossy(0.5) - 0.4).abs() < 1e-12);
    }

    #[test]
    fn an_idle_path_is_filled_faster_and_faster() {
        let rules = Rules::default();
        let idle = signals(1000.0, 0.0);
        let mut law = Law::default();
        let mut steps = Vec::new();
        for _ in 0..30 {
            law.end_period(&rules, &idle, 1.0);
            steps.push(law.step(&rules, &idle));
        }
        assert!(steps[..2].iter().all(|step| *step == rules.up));
        assert!(steps.is_sorted() && steps[19] < rules.hurry && steps[29] == rules.hurry, "{steps:?}");
        law.end_period(&rules, &signals(1000.0, 0.1), 1.0);
        assert!(law.step(&rules, &idle) == rules.up, "a queue ends it");
    }

    #[test]
    fn a_burst_of_losses_is_followed() {
        let rules = Rules::default();
        let step = Law::default().step(&rules, &Signals { burst: 0.5, ..signals(1000.0, 0.0) });
        assert!((step - (rules.up + 0.5 * 0.5_f64.ln())).abs() < 1e-12);
    }
}
