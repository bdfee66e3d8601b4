//! The law: how far a flow's own backlog is from what it should be, and the step that follows.
//!
//! FAST TCP's idea (Wei, Jin, Low and Hegde 2006) with a wanted backlog that grows with a power of the rate, so that the
//! queue of many slow flows stays short.

use super::guide::Ended;
use super::hurry::Hurry;
use super::rules::Rules;
use crate::backlog::Signals;

/// Losses of a round trip that count as a burst.
const BURST: f64 = 0.05;

/// An error above this says that there is hardly a queue.
const NO_QUEUE: f64 = 0.75;

/// Queueing delay in s below which levels are not told apart.
const SHORTEST: f64 = 1e-4;

/// Most that a flow's distance from the fair rate counts.
const UNFAIR: f64 = 1.0;

/// What a share of lost packets counts in the error.
fn losses(rules: &Rules, loss: f64) -> f64 {
    (rules.loss * loss).min(rules.loss_most)
}

/// How far the own backlog at a delay is below the wanted one, as a share of it, less what losses count.
///
/// It falls with the rate, the delay and what is lost, and contains no round-trip time: flows that share a queue agree at
/// equal rates.
fn error(rules: &Rules, signals: &Signals, delay: f64, lost: f64) -> f64 {
    1.0 - signals.rate * delay / rules.wanted(signals.rate) - lost
}

/// The same with the queue that is there instead of the one expected, and with the losses of the moment.
pub(super) fn error_now(rules: &Rules, signals: &Signals) -> f64 {
    error(rules, signals, signals.queue, losses(rules, signals.loss))
}

/// Whether the own backlog in the queue that is there is below the wanted one.
pub(super) fn wants_more(rules: &Rules, signals: &Signals) -> bool {
    error(rules, signals, signals.queue, 0.0) > 0.0
}

/// Queueing delay in s and share of lost packets, averaged while the law is followed.
#[derive(Clone, Copy, Debug)]
struct Level {
    queue: f64,
    loss: f64,
}

/// Whether there is hardly a queue at these signals: the one that is there, not the one expected.
pub(super) fn no_queue(rules: &Rules, signals: &Signals) -> bool {
    signals.rate * signals.queue < (1.0 - NO_QUEUE) * rules.wanted(signals.rate)
}

/// The law's memory: how long the path has shown no queue, and the level around which the queue moves.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Law {
    pub(super) hurry: Hurry,
    level: Option<Level>,
    /// What losses beyond the base loss add to the law's error.
    pub(super) excess: f64,
    /// How much the flow is one of a crowd (`crowd`), from 0: it wants the backlog over 1 and this.
    pub(super) crowding: f64,
    /// Share of packets that the path certainly loses by itself (`base_loss`): no part of a burst.
    pub(super) certain: f64,
}

impl Law {
    /// A period has ended in which the law was followed or not, and the window used.
    pub(super) fn end_period(&mut self, rules: &Rules, signals: &Signals, ended: &Ended, followed: bool) {
        let seconds = ended.length as f64 / 1e9;
        if followed {
            let Signals { queue, loss, .. } = *signals;
            let level = self.level.get_or_insert(Level { queue, loss });
            let share = (seconds / rules.level).min(1.0);
            level.queue += (queue - level.queue) * share;
            level.loss += (loss - level.loss) * share;
        }
        // Whether the window has outgrown the path is the question.
        let idle = no_queue(rules, signals) && self.burst(signals) < BURST && self.excess <= rules.losses.hurried;
        let rounds = ended.length as f64 / ended.srtt.max(1) as f64;
        self.hurry.end_period(rules, rounds, ended.window, idle, signals.loss > 0.0);
    }

    /// Share of a round trip's packets that was lost beyond what the path loses.
    fn burst(self, signals: &Signals) -> f64 {
        signals.burst - self.certain
    }

    /// What the wanted backlog is divided by.
    fn divisor(self) -> f64 {
        1.0 + self.crowding
    }

    /// What a share of lost packets counts, less in a crowd, or what is lost beyond the base loss if that is more.
    fn lost(self, rules: &Rules, loss: f64) -> f64 {
        (losses(rules, loss) / self.divisor()).max(self.excess)
    }

    /// The logarithm of the backlog that the law wants at this level over the own one, within one either way: who is far
    /// from the others' rate moves on, though the queue of the moment says the same to all.
    fn unfairness(self, rules: &Rules, rate: f64) -> f64 {
        let Some(Level { queue, loss }) = self.level else { return 0.0 };
        let wanted = (1.0 - self.lost(rules, loss)).max(0.0) * rules.wanted(rate) / self.divisor();
        libm::log(wanted / (rate * queue.max(SHORTEST)).max(1e-6)).clamp(-UNFAIR, UNFAIR)
    }

    fn error(self, rules: &Rules, signals: &Signals) -> f64 {
        error(rules, signals, signals.ahead * self.divisor(), self.lost(rules, signals.loss))
    }

    /// The step, as a relative change of the window (packets) per round trip.
    pub(super) fn step(self, rules: &Rules, signals: &Signals, window: f64) -> f64 {
        let mut step =
            (rules.gain(signals.rate, signals.loss) * self.error(rules, signals)).clamp(-rules.down, rules.up);
        step += rules.fair * self.unfairness(rules, signals.rate);
        if let Some(hurry) = self.hurry.step(rules, window) {
            step = hurry;
        }
        let burst = self.burst(signals);
        if burst > BURST {
            step += rules.burst * libm::log(1.0 - burst.min(0.95));
        }
        step
    }
}

#[cfg(test)]
mod tests {
    use super::super::base_loss::BaseLoss;
    use super::super::crowd::Crowd;
    use super::super::testing::ms;
    use super::*;

    fn signals(rate: f64, queue: f64) -> Signals {
        Signals { rate, queue, ahead: queue, ..Signals::default() }
    }

    /// A period of so many ms, which is a round trip, with a window of 100 packets.
    fn ended(length: f64) -> Ended {
        Ended { length: ms(length), srtt: ms(length), window: WINDOW, ..Ended::default() }
    }

    const WINDOW: f64 = 100.0;

    #[test]
    fn ten_packets_at_the_reference_rate_are_right() {
        let rules = Rules::default();
        let balanced = signals(Rules::REFERENCE, 10.0 / Rules::REFERENCE);
        assert!(Law::default().error(&rules, &balanced).abs() < 1e-12);
        // At a 256th of the rate an eighth as many: 32 times the delay.
        let slow = signals(Rules::REFERENCE / 256.0, 320.0 / Rules::REFERENCE);
        assert!(Law::default().error(&rules, &slow).abs() < 1e-12);
        let step = Law::default().step(&rules, &signals(Rules::REFERENCE, 15.0 / Rules::REFERENCE), WINDOW);
        assert!((step + 0.05).abs() < 1e-12, "half too much, times the gain");
    }

    #[test]
    fn no_step_is_larger_for_more_rate_or_delay() {
        let rules = Rules::default();
        let step = |rate: f64, queue: f64, loss: f64, average: f64| {
            let signals = Signals { loss, ..signals(rate, queue) };
            let excess = BaseLoss::of(average).excess(&rules.losses, rate);
            let crowding = Crowd::of(average).crowding(&rules.crowd, rate, 0.0);
            let mut law = Law { excess, crowding, ..Law::default() };
            law.end_period(&rules, &signals, &ended(30.0), true);
            law.step(&rules, &signals, WINDOW)
        };
        let rates: Vec<f64> = (0..100).map(|k| 10.0 * 1.1_f64.powi(k)).collect();
        let delays: Vec<f64> = (0..60).map(|k| 1e-4 * 1.2_f64.powi(k)).collect();
        for (loss, average) in [(0.0, 0.0), (0.004, 0.0), (0.02, 0.0), (0.0, 0.006), (0.02, 0.03), (0.1, 0.1)] {
            let step = |rate: f64, queue: f64| step(rate, queue, loss, average);
            for delay in &delays {
                assert!(rates.is_sorted_by(|a, b| step(*a, *delay) >= step(*b, *delay)), "{delay} {loss}");
            }
            for rate in &rates {
                assert!(delays.is_sorted_by(|a, b| step(*rate, *a) >= step(*rate, *b)), "{rate} {loss}");
            }
        }
    }

    #[test]
    fn losses_count_up_to_a_limit() {
        let rules = Rules::default();
        let lossy = |loss, excess, crowding| {
            let law = Law { excess, crowding, ..Law::default() };
            law.error(&rules, &Signals { loss, ..signals(1000.0, 0.0) })
        };
        assert!((lossy(0.01, 0.0, 0.0) - 0.7).abs() < 1e-12);
        assert!((lossy(0.5, 0.0, 0.0) - 0.4).abs() < 1e-12);
        assert!((lossy(0.01, 0.2, 0.0) - 0.7).abs() < 1e-12, "the larger of both");
        assert!((lossy(0.5, 1.0, 0.0) - 0.0).abs() < 1e-12, "and then up to all that is wanted");
        assert!((lossy(0.5, 0.0, 2.0) - 0.8).abs() < 1e-12, "less in a crowd");
        assert!((lossy(0.5, 0.5, 2.0) - 0.5).abs() < 1e-12, "but for what is lost beyond the base loss");
    }

    #[test]
    fn one_of_a_crowd_wants_less_and_is_as_far_from_it_as_a_flow_alone() {
        let rules = Rules::default();
        let law = Law { crowding: 3.0, ..Law::default() };
        let error = |law: Law, backlog: f64| law.error(&rules, &signals(Rules::REFERENCE, backlog / Rules::REFERENCE));
        assert!(error(law, 2.5).abs() < 1e-12, "a quarter of ten packets");
        assert!((error(law, 5.0) - error(Law::default(), 20.0)).abs() < 1e-12);
    }

    #[test]
    fn a_flow_far_from_the_level_s_rate_moves_on() {
        let rules = Rules::default();
        // Where the law wants 10 packets: 3.6 ms at the reference rate.
        let queue = 10.0 / Rules::REFERENCE;
        let step = |rate: f64| {
            let mut law = Law::default();
            // The queue of the moment says 1 to everybody: it is hardly there.
            law.end_period(&rules, &signals(rate, queue), &ended(30.0), true);
            law.step(&rules, &signals(rate, 0.0), WINDOW)
        };
        assert!((step(Rules::REFERENCE) - rules.up).abs() < 1e-12, "at the fair rate: the law alone");
        // Five eighths of the logarithm of its distance.
        assert!((step(4.0 * Rules::REFERENCE) - (rules.up - rules.fair * 0.625 * 4.0_f64.ln())).abs() < 1e-12);
        assert!((step(Rules::REFERENCE / 4.0) - (rules.up + rules.fair * 0.625 * 4.0_f64.ln())).abs() < 1e-12);
        assert!((step(Rules::REFERENCE / 100.0) - (rules.up + rules.fair)).abs() < 1e-12, "and no more than this");
    }

    #[test]
    fn the_level_follows_soon_and_only_where_the_law_is_followed() {
        let rules = Rules::default();
        let mut law = Law::default();
        let queue = 10.0 / Rules::REFERENCE;
        let at = |queue: f64| signals(Rules::REFERENCE, queue);
        law.end_period(&rules, &at(queue), &ended(100.0), true);
        (0..100).for_each(|_| law.end_period(&rules, &at(2.0 * queue), &ended(100.0), false));
        assert!(law.unfairness(&rules, Rules::REFERENCE).abs() < 1e-12);
        law.end_period(&rules, &at(2.0 * queue), &ended(100.0), true);
        assert!((law.unfairness(&rules, Rules::REFERENCE) + 1.4_f64.ln()).abs() < 1e-9);
    }

    #[test]
    fn a_path_without_a_queue_is_one_to_hurry_on_and_losses_are_none() {
        let rules = Rules::default();
        let idle = signals(1000.0, 0.0);
        let after = |signals: &Signals, excess: f64| {
            let mut law = Law { excess, ..Law::default() };
            (0..10).for_each(|_| law.end_period(&rules, signals, &ended(30.0), false));
            law.step(&rules, &idle, WINDOW)
        };
        assert!(after(&idle, 0.0) > rules.up);
        assert_eq!(after(&signals(1000.0, 0.1), 0.0), rules.up, "a queue");
        assert_eq!(after(&Signals { burst: 0.05, ..idle }, 0.0), rules.up, "a burst of losses");
        assert_eq!(after(&idle, 0.51), rules.up, "what is lost beyond the base loss");
    }

    #[test]
    fn where_hurry_ended_with_losses_it_is_slow_the_next_time() {
        let rules = Rules::default();
        let idle = signals(1000.0, 0.0);
        let again = |loss: f64| {
            let mut law = Law::default();
            let queue = Signals { loss, ..signals(1000.0, 0.1) };
            for (periods, signals) in [(30, &idle), (1, &queue), (30, &idle)] {
                (0..periods).for_each(|_| law.end_period(&rules, signals, &ended(30.0), false));
            }
            law.step(&rules, &idle, WINDOW)
        };
        assert_eq!(again(0.0), rules.hurry);
        assert!((again(0.001) - rules.up).abs() < 1e-12);
    }

    #[test]
    fn a_burst_of_losses_is_followed() {
        let rules = Rules::default();
        let step = |burst: f64, certain: f64| {
            let law = Law { certain, ..Law::default() };
            law.step(&rules, &Signals { burst, ..signals(1000.0, 0.0) }, WINDOW) - rules.up
        };
        assert!((step(0.5, 0.0) - 0.5 * 0.5_f64.ln()).abs() < 1e-12);
        assert!((step(0.5, 0.1) - 0.5 * 0.6_f64.ln()).abs() < 1e-12, "but for what the path loses by itself");
        assert!(step(0.06, 0.0) < 0.0);
        assert_eq!(step(0.14, 0.1), 0.0, "no burst beside that");
    }
}
