//! PCC Allegro (Dong, Li, Zarchy, Godfrey and Schapira, NSDI 2015), as in PCC-Uspace.

use crate::pcc::{Direction, Measured, Outcome, PAIRS, PROBE, Pair, Pcc, PccPhase, Rule, Step, controller};
use crate::{Ack, AnyController, Congestion, Controller, LostPacket, Nanos, Rtt, Scheme};

/// Loss rate that is tolerated (`kLossTolerance`).
const LOSS_TOLERANCE: f64 = 0.05;

/// Slope of the sigmoid in the loss rate (`kLossCoefficient`; the paper 100, PCC-Kernel 100).
const LOSS_SLOPE: f64 = 1000.0;

/// Slope of the sigmoid in the ratio of round-trip times (`kRTTCoefficient`).
const RTT_SLOPE: f64 = 200.0;

/// Deviation of that ratio from 1 that is ignored (`max_rtt_fluctuation_tolerance_ratio_in_decision_made`); in the
/// start any is (100).
const RTT_TOLERANCE: f64 = 1.0;

/// First step in the direction that the trials have shown, and by how much each further one is larger
/// (`kDecisionMadeStepSize`).
const STEP: f64 = 0.02;

/// Largest step (`kMaxDecisionMadeStepSize`).
const MAX_STEP: f64 = 0.1;

/// Allegro as a scheme.
pub(crate) const SCHEME: Scheme = Scheme {
    name: "allegro",
    title: "PCC Allegro",
    kind: "online-learning",
    year: 2015,
    reference: "Dong et al., NSDI 2015; PCC-Uspace",
    parameters: &[],
    build: |_, mss| AnyController::Allegro(Allegro::new(0, mss)),
};

/// PCC Allegro: tries rates 5 % above and below the present one in monitor intervals of a round trip, in random order,
/// and moves where all three pairs of trials had the larger utility, by 2 %, 4 % and so on up to 10 % per interval,
/// until the utility falls.
///
/// Pinned variant: PCC-Uspace master, utility "Allegro". With T and x the acknowledged and the lost rate, L the loss
/// rate and r the ratio of smoothed round-trip times before and after, the utility is
///
/// U = T S(1000, L − 0.05) S(200, 1 − r) − x, where S(a, y) = 1 − 1/(1 + exp(−a y)) falls from 1 to 0 around y = 0.
///
/// Above 5 % loss it collapses. r counts as 1 between 0 and 2 (`RTT_TOLERANCE`), so that in effect the round-trip time
/// has no part in it and the second factor is one half: half of T, and the full x. While the loss rate is 2 % on either
/// rate, a larger rate is still better.
///
/// * Start: doubles the rate while the utility grows, then halves it.
/// * While a result is on its way: half the rate (start), 5 % less (trials), the rate before the last step (steps
///   upwards) or the present one (downwards).
/// * No reaction to a loss as such, to marks or to a timeout.
///
/// The source has no smallest rate; here it is two packets per smoothed round-trip time, and trials there that do not
/// lead upwards start the sender anew. Nor has it a window; here that is four times the product of rate and smoothed
/// round-trip time, at least eight packets, and ten before the first sample. It takes effect when acknowledgements stay
/// away.
#[derive(Clone, Debug)]
pub struct Allegro {
    pcc: Pcc<Steps>,
}

impl Allegro {
    /// A connection that begins, with segments of `mss` payload bytes (at least 1). `seed` and the time decide the
    /// order of trials.
    pub fn new(seed: u64, mss: u32) -> Self {
        Self { pcc: Pcc::new(Steps::default(), seed, mss) }
    }

    /// What it is doing.
    pub fn phase(&self) -> PccPhase {
        self.pcc.phase()
    }

    /// Rate around which it tries others, in payload bit/s.
    pub fn rate(&self) -> f64 {
        self.pcc.rate()
    }
}

controller!(Allegro);

/// The utility and the steps.
#[derive(Clone, Debug, Default)]
struct Steps {
    /// Steps since the trials.
    count: u32,
}

impl Steps {
    fn size(&self) -> f64 {
        (f64::from(self.count) * STEP).min(MAX_STEP)
    }
}

/// 1 below zero, 0 above, and steeper with `slope`.
fn sigmoid(slope: f64, y: f64) -> f64 {
    1.0 - 1.0 / (1.0 + libm::exp(-slope * y))
}

impl Rule for Steps {
    /// In kilobytes per second.
    fn utility(&mut self, measured: &Measured) -> f64 {
        let tolerated = measured.starting || (measured.rtt_ratio - 1.0).abs() < RTT_TOLERANCE;
        let ratio = if tolerated { 1.0 } else { measured.rtt_ratio };
        let factors = sigmoid(LOSS_SLOPE, measured.loss - LOSS_TOLERANCE) * sigmoid(RTT_SLOPE, 1.0 - ratio);
        (measured.acked * factors - measured.lost) / 8e3
    }

    fn agree(pairs: &[Pair; PAIRS]) -> Option<Direction> {
        let direction = pairs[0].direction();
        pairs.iter().all(|pair| pair.direction() == direction).then_some(direction)
    }

    fn first_step(&mut self, rate: f64, direction: Direction, _pairs: &[Pair; PAIRS]) -> Step {
        self.count = 1;
        Step::On(rate * (1.0 + direction.sign() * PROBE) * (1.0 + direction.sign() * self.size()))
    }

    fn next_step(&mut self, rate: f64, direction: Direction, latest: Outcome, outcome: Outcome) -> Step {
        if outcome.utility <= latest.utility {
            return Step::Back(rate / (1.0 + direction.sign() * self.size()));
        }
        self.count += 1;
        Step::On(rate * (1.0 + direction.sign() * self.size()))
    }

    fn waiting_rate(&self, phase: PccPhase, rate: f64, direction: Direction) -> f64 {
        match (phase, direction) {
            (PccPhase::Starting, _) => 0.5 * rate,
            (PccPhase::Probing, _) => rate * (1.0 - PROBE),
            (PccPhase::Moving, Direction::Up) => rate / (1.0 + self.size()),
            (PccPhase::Moving, Direction::Down) => rate,
        }
    }

    fn floor(&self, two_packets: f64) -> f64 {
        two_packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utility(loss: f64, rtt_ratio: f64) -> f64 {
        let (acked, lost) = (8e6 * (1.0 - loss), 8e6 * loss);
        Steps::default().utility(&Measured { acked, lost, loss, rtt_ratio, ..Measured::default() })
    }

    /// 8 Mbit/s are 1000 kilobytes per second, of which the factor of the round-trip time leaves one half.
    #[test]
    fn the_utility_collapses_above_five_percent() {
        assert!((utility(0.0, 1.0) - 500.0).abs() < 1e-9);
        assert!((utility(0.04, 1.0) - (480.0 - 40.0)).abs() < 0.1);
        assert!((utility(0.05, 1.0) - (237.5 - 50.0)).abs() < 1e-9, "half of it at 5 %");
        assert!((utility(0.06, 1.0) + 60.0).abs() < 0.1);
        assert_eq!(utility(0.0, 0.1), utility(0.0, 1.9), "the round-trip time has no part");
    }

    fn pair(up: bool, first: bool) -> Pair {
        let high = Outcome { rate: 1.05, utility: if up { 2.0 } else { 1.0 } };
        let low = Outcome { rate: 0.95, utility: 1.5 };
        if first { Pair(high, low) } else { Pair(low, high) }
    }

    #[test]
    fn all_pairs_must_agree_whatever_their_order() {
        let up = [pair(true, true), pair(true, false), pair(true, true)];
        let down = [pair(false, false), pair(false, true), pair(false, true)];
        assert_eq!((Steps::agree(&up), Steps::agree(&down)), (Some(Direction::Up), Some(Direction::Down)));
        assert_eq!(Steps::agree(&[up[0], up[1], down[0]]), None);
    }

    #[test]
    fn steps_grow_to_ten_percent_and_the_last_is_taken_back() {
        let mut steps = Steps::default();
        let up = [pair(true, true), pair(true, false), pair(true, true)];
        assert_eq!(steps.first_step(100.0, Direction::Up, &up), Step::On(100.0 * 1.05 * 1.02));
        for (number, size) in [0.04, 0.06, 0.08, 0.1, 0.1].into_iter().enumerate() {
            let latest = Outcome { rate: 100.0, utility: 2.0 + number as f64 };
            let outcome = Outcome { rate: 100.0, utility: latest.utility + 1.0 };
            assert_eq!(steps.next_step(100.0, Direction::Up, latest, outcome), Step::On(100.0 * (1.0 + size)));
        }
        let outcome = Outcome { rate: 110.0, utility: 7.0 };
        assert_eq!(steps.next_step(110.0, Direction::Up, outcome, outcome), Step::Back(110.0 / 1.1));
    }
}
