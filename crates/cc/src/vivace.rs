//! PCC Vivace (Dong, Meng, Zarchy, Arslan, Gilad, Godfrey and Schapira, NSDI 2018), as in PCC-Uspace.

use crate::pcc::{Direction, Measured, Outcome, PAIRS, PROBE, Pair, Pcc, PccPhase, Rule, Step, Trend, controller};
use crate::{Ack, AnyController, Congestion, Controller, LostPacket, Nanos, Parameter, Rtt, Scheme};

/// Exponent of the rate in Mbit/s (`kSendingRateExponent`; t of the paper).
const EXPONENT: f64 = 0.9;

/// A megabit where utility becomes rate (`kMegabit`); the utility itself counts 10^6 bits.
const MEGABIT: f64 = 1_048_576.0;

/// Exponent of the amplification of steps (`kRateChangeAmplifyExponent`).
const AMPLIFY: f64 = 1.2;

/// Largest step relative to the rate (`kInitialMaxStepSize`), and by how much more each step that would have been
/// larger raises that bound (`kIncrementalStepSize`).
const MAX_STEP: f64 = 0.05;

/// Smallest step and smallest rate in bit/s (`kMinRateChange`, `kMinSendingRate`).
const SMALLEST: f64 = 500e3;

/// Constants of Vivace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VivaceConfig {
    /// What a unit of utility gradient changes, in Mbit/s: the initial conversion factor, θ₀ of the paper
    /// (`kUtilityGradientToRateChangeFactor`).
    pub factor: f64,
    /// Coefficient of the growth of the round-trip time, b of the paper (`kLatencyCoefficient`); 0: Vivace-Loss.
    pub latency: f64,
    /// Coefficient of the loss rate, c of the paper (`kVivaceLossCoefficient`).
    pub loss: f64,
}

impl VivaceConfig {
    /// The values of PCC-Uspace.
    pub const DEFAULT: Self = Self { factor: 1.0, latency: 900.0, loss: 11.35 };
}

impl Default for VivaceConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Vivace as a scheme.
pub(crate) const SCHEME: Scheme = Scheme {
    name: "vivace",
    title: "PCC Vivace",
    kind: "online-learning",
    year: 2018,
    reference: "Dong et al., NSDI 2018; PCC-Uspace",
    parameters: &[
        Parameter {
            name: "factor",
            default: VivaceConfig::DEFAULT.factor,
            min: 0.001,
            max: 1e6,
            unit: "1",
            doc: "initial conversion factor (theta_0): step for a gradient of the utility",
        },
        Parameter {
            name: "latency",
            default: VivaceConfig::DEFAULT.latency,
            min: 0.0,
            max: 1e6,
            unit: "1",
            doc: "coefficient of the growth of the round-trip time, 0 for Vivace-Loss",
        },
        Parameter {
            name: "loss",
            default: VivaceConfig::DEFAULT.loss,
            min: 0.0,
            max: 1e6,
            unit: "1",
            doc: "coefficient of the loss rate",
        },
    ],
    build: |values, mss| {
        let config =
            VivaceConfig { factor: values.get("factor"), latency: values.get("latency"), loss: values.get("loss") };
        AnyController::Vivace(Vivace::new(config, 0, mss))
    },
};

/// PCC Vivace: follows the gradient of a utility that it measures in trials 5 % above and below its rate.
///
/// Pinned variant: PCC-Uspace master, utility "Vivace": with the sending rate r in Mbit/s, the loss rate L and the
/// slope of the round-trip time over an interval,
///
/// U = r^0.9 − 900 r max(dRTT/dt, 0) − 11.35 r L.
///
/// * A monitor interval lasts one smallest round-trip time, and until four of its own packets are acknowledged.
/// * Three pairs of trials in random order. Up if two pairs say so, down only if all three do.
/// * A step: `factor` × utility difference per Mbit/s, × floor((n + 1)/2)^1.2 in the n-th interval in one direction; at
///   most 5 % of the rate, and 5 % more after each step that was cut; at least 0.5 Mbit/s. It goes on while the utility
///   says that the direction is right, and takes one step back when it does not.
/// * Slopes below the noise count as none: that is if the standard deviation of the samples relative to their mean is
///   not below the slope, unless their mean drifts over six intervals by more than usual. (The source measures
///   deviations from a line whose slope it takes in another unit, which is the deviation from the mean in effect.)
/// * Start: doubles the rate while the utility grows, then halves it; slopes of less than 1 ms over the interval count
///   as none.
/// * No reaction to a loss as such, to marks or to a timeout. Trials at the smallest rate of 0.5 Mbit/s that show no
///   direction start it anew; what it then has to exceed is the last utility that paid, as in the source. (There the
///   halved rate at the end of a start may be smaller than that.)
/// * Window: the source has none, the rate decides. Here it is four times the product of rate and smoothed round-trip
///   time, at least eight packets, and ten before the first sample. It takes effect when acknowledgements stay away.
#[derive(Clone, Debug)]
pub struct Vivace {
    pcc: Pcc<Gradient>,
}

impl Vivace {
    /// A connection that begins, with segments of `mss` payload bytes (at least 1). `seed` and the time decide the
    /// order of trials.
    pub fn new(config: VivaceConfig, seed: u64, mss: u32) -> Self {
        let rule = Gradient { config, trend: Trend::default(), count: 0, allowance: 0 };
        Self { pcc: Pcc::new(rule, seed, mss) }
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

controller!(Vivace);

/// The utility and the steps along its gradient.
#[derive(Clone, Debug)]
struct Gradient {
    config: VivaceConfig,
    trend: Trend,
    /// Steps in one direction.
    count: u32,
    /// Steps in a row that were cut.
    allowance: u32,
}

impl Gradient {
    /// Size of a step in bit/s for a difference of utilities over one of rates.
    fn step(&mut self, rate: f64, utility: f64, rates: f64, amplification: f64) -> f64 {
        let gradient = if rates > 0.0 { utility / (rates / MEGABIT) } else { 0.0 };
        let wanted = gradient * self.config.factor * MEGABIT * amplification;
        let most = rate * MAX_STEP * (1.0 + f64::from(self.allowance));
        if wanted > most {
            self.allowance += 1;
        } else {
            self.allowance = self.allowance.saturating_sub(1);
        }
        wanted.min(most).max(SMALLEST)
    }

    fn on(&mut self, rate: f64) -> Step {
        if rate < SMALLEST {
            self.allowance = 0;
            return Step::Floor;
        }
        Step::On(rate)
    }
}

impl Rule for Gradient {
    fn utility(&mut self, measured: &Measured) -> f64 {
        let noise = measured.deviation >= measured.gradient.abs();
        let rising = measured.rtt.is_some_and(|rtt| self.trend.is_rising(rtt));
        let small = measured.starting && measured.gradient.abs() < 1e-3 / measured.length;
        let gradient = if noise && !rising || small { 0.0 } else { measured.gradient.max(0.0) };
        let rate = measured.sent / 1e6;
        libm::pow(rate, EXPONENT) - self.config.latency * rate * gradient - self.config.loss * rate * measured.loss
    }

    fn agree(pairs: &[Pair; PAIRS]) -> Option<Direction> {
        match pairs.iter().filter(|pair| pair.direction() == Direction::Up).count() {
            0 => Some(Direction::Down),
            up if up > PAIRS / 2 => Some(Direction::Up),
            _ => None,
        }
    }

    fn first_step(&mut self, rate: f64, direction: Direction, pairs: &[Pair; PAIRS]) -> Step {
        (self.count, self.allowance) = (1, 0);
        let rate = rate * (1.0 + direction.sign() * PROBE);
        let mut utility = 0.0;
        for pair in pairs.iter().filter(|pair| pair.direction() == direction) {
            utility += pair.gain() / PAIRS as f64;
        }
        let rates = (pairs[0].0.rate - pairs[0].1.rate).abs();
        let step = self.step(rate, utility, rates, 1.0);
        self.on(rate + direction.sign() * step)
    }

    fn next_step(&mut self, rate: f64, direction: Direction, latest: Outcome, outcome: Outcome) -> Step {
        let (utility, rates) = (outcome.utility - latest.utility, outcome.rate - latest.rate);
        let right = utility != 0.0 && rates != 0.0 && (utility > 0.0) == (rates * direction.sign() > 0.0);
        if !right {
            self.count = 1;
            let step = self.step(rate, utility.abs(), rates.abs(), 1.0);
            return Step::Back(rate - direction.sign() * step);
        }
        self.count += 1;
        let amplification = libm::pow(f64::from(self.count.div_ceil(2)), AMPLIFY);
        let step = self.step(rate, utility.abs(), rates.abs(), amplification);
        self.on(rate + direction.sign() * step)
    }

    fn waiting_rate(&self, _phase: PccPhase, rate: f64, _direction: Direction) -> f64 {
        rate
    }

    fn floor(&self, _two_packets: f64) -> f64 {
        SMALLEST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(factor: f64) -> Gradient {
        let config = VivaceConfig { factor, ..VivaceConfig::default() };
        Gradient { config, trend: Trend::default(), count: 0, allowance: 0 }
    }

    fn utility(sent: f64, loss: f64, gradient: f64) -> f64 {
        rule(1.0).utility(&Measured { sent, loss, gradient, length: 1.0, ..Measured::default() })
    }

    fn near(got: f64, expected: f64) {
        assert!((got / expected - 1.0).abs() < 1e-9, "{got}, expected {expected}");
    }

    /// 100^0.9 = 63.096.
    #[test]
    fn the_utility_by_hand() {
        let power = 63.095_734_448_019_33;
        near(utility(100e6, 0.0, 0.0), power);
        near(utility(100e6, 0.02, 0.0), power - 22.7);
        near(utility(100e6, 0.0, 0.01), power - 900.0);
        near(utility(100e6, 0.0, -0.01), power);
        let noisy = Measured { sent: 100e6, gradient: 0.01, deviation: 0.01, length: 1.0, ..Measured::default() };
        near(rule(1.0).utility(&noisy), power);
        // In the start 1 ms over the interval is nothing.
        let start = Measured { sent: 100e6, gradient: 0.01, length: 0.09, starting: true, ..Measured::default() };
        near(rule(1.0).utility(&start), power);
    }

    /// Where the slope of the utility is zero: (0.9 / (11.35 L))^10.
    #[test]
    fn the_best_rate_under_random_loss() {
        for (loss, best) in [(0.05, 100.6), (0.06, 16.26)] {
            let at = |factor: f64| utility(best * factor * 1e6, loss, 0.0);
            assert!(at(1.0) > at(0.9) && at(1.0) > at(1.1), "{loss}");
        }
    }

    fn pairs(rate: f64, ups: usize) -> [Pair; PAIRS] {
        std::array::from_fn(|i| {
            let high = Outcome { rate: rate * 1.05, utility: if i < ups { 10.568 } else { 9.0 } };
            Pair(Outcome { rate: rate * 0.95, utility: 10.0 }, high)
        })
    }

    #[test]
    fn two_pairs_lead_up_and_only_three_lead_down() {
        let ways = [0, 1, 2, 3].map(|ups| Gradient::agree(&pairs(1e8, ups)));
        assert_eq!(ways, [Some(Direction::Down), None, Some(Direction::Up), Some(Direction::Up)]);
    }

    /// 0.568 over 10 Mbit/s: a gradient of 0.0596 per 2^20 bit/s, 62 kbit/s, which is raised to 500; of 100 times that,
    /// the bound of 5 % cuts 6.2 Mbit/s to 5.25.
    #[test]
    fn the_first_step() {
        assert_eq!(rule(1.0).first_step(1e8, Direction::Up, &pairs(1e8, 3)), Step::On(1.05e8 + 5e5));
        let mut enlarged = rule(100.0);
        assert_eq!(enlarged.first_step(1e8, Direction::Up, &pairs(1e8, 3)), Step::On(1.05e8 + 5.25e6));
        assert_eq!(enlarged.allowance, 1);
        // One pair of three says otherwise: two thirds of it.
        let Step::On(rate) = rule(100.0).first_step(1e8, Direction::Up, &pairs(1e8, 2)) else { panic!() };
        near(rate, 1.05e8 + 200.0 / 3.0 * 0.568 / 10e6 * MEGABIT * MEGABIT);
    }

    #[test]
    fn steps_are_amplified_and_one_is_taken_back() {
        let mut rule = rule(1.0);
        let mut latest = Outcome { rate: 1e7, utility: 7.0 };
        rule.count = 1;
        // One unit for one megabit: 1.0995 Mbit/s in the second step, 2^1.2 times in the third, which is cut to 10 %.
        let outcome = Outcome { rate: 1.1e7, utility: 8.0 };
        rule.allowance = 10;
        let Step::On(rate) = rule.next_step(1.1e7, Direction::Up, latest, outcome) else { panic!() };
        near(rate, 1.1e7 + MEGABIT * MEGABIT / 1e6);
        latest = outcome;
        let outcome = Outcome { rate, utility: 9.0 };
        let amplified = MEGABIT * MEGABIT / (rate - 1.1e7) * libm::pow(2.0, 1.2);
        assert_eq!(rule.next_step(rate, Direction::Up, latest, outcome), Step::On(rate + amplified));
        latest = outcome;
        // Less utility at more: back by the plain step, at least half a megabit.
        let outcome = Outcome { rate: 1.5e7, utility: 8.9 };
        assert_eq!(rule.next_step(1.5e7, Direction::Up, latest, outcome), Step::Back(1.45e7));
        // Downwards, less utility at less is wrong as well.
        let outcome = Outcome { rate: 0.9e7, utility: 8.0 };
        assert!(matches!(rule.next_step(0.9e7, Direction::Down, latest, outcome), Step::Back(rate) if rate > 0.9e7));
        let outcome = Outcome { rate: 0.6e6, utility: 20.0 };
        assert_eq!(rule.next_step(0.6e6, Direction::Down, latest, outcome), Step::Floor);
    }
}
