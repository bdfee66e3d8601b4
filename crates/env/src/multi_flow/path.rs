//! The link of an episode over time: rates, delays, interruptions.

use astraea_cc::Nanos;
use astraea_sim::RateConfig;
use astraea_sim::config::DelayConfig;
use rand::{Rng, RngExt};

use super::config::MultiFlowConfig;
use super::scenario::nanos;

/// A value from a time (ns) on, until the next.
pub type Steps<T> = Vec<(Nanos, T)>;

/// The value at a time; steps begin at 0.
pub(super) fn at<T: Copy>(steps: &[(Nanos, T)], time: Nanos) -> T {
    let next = steps.partition_point(|(from, _)| *from <= time);
    steps[next.max(1) - 1].1
}

/// Rates and interruptions of a link. An interruption does not count as a change of capacity: nobody could use less, and
/// in units of no capacity every throughput would be infinite.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Path {
    /// Rate in bit/s on the wire.
    pub bandwidth: Steps<f64>,
    /// What the base round-trip time of each flow is above that at time 0, in s.
    pub rtt_excess: Steps<f64>,
    /// Interruptions: from and until, in ns.
    pub outages: Vec<(Nanos, Nanos)>,
}

impl Path {
    /// A path that stays as it is.
    pub(super) fn constant(bandwidth: f64) -> Self {
        Self { bandwidth: vec![(0, bandwidth)], rtt_excess: vec![(0, 0.0)], outages: vec![] }
    }

    /// Draws changes and interruptions, where the settings ask for them. `rtts` are the smallest and the largest base
    /// round-trip time of the flows at time 0, in s.
    pub(super) fn draw_changes(&mut self, config: &MultiFlowConfig, rtts: (f64, f64), rng: &mut impl Rng) {
        let end = nanos(config.duration);
        let changes = &config.changes;
        let bandwidth = happens(changes.bandwidth, rng);
        let rtt = happens(changes.rtt, rng);
        if bandwidth || rtt {
            // The flow that is farthest away stays within the range, too.
            let largest = (config.rtt.high - (rtts.1 - rtts.0)).max(config.rtt.low);
            let mut time = nanos(changes.every.uniform(rng));
            while time < end {
                if bandwidth {
                    self.bandwidth.push((time, config.bandwidth.draw(config.bandwidth_scale, rng)));
                }
                if rtt {
                    let nearest = config.rtt.draw(config.rtt_scale, rng).min(largest);
                    self.rtt_excess.push((time, nearest - rtts.0));
                }
                time += nanos(changes.every.uniform(rng)).max(1);
            }
        }
        if happens(config.outages.probability, rng) {
            let mut from = nanos(config.outages.every.uniform(rng));
            while from < end {
                let until = from + nanos(config.outages.length.log_uniform(rng)).max(1);
                self.outages.push((from, until));
                from = until + nanos(config.outages.every.uniform(rng)).max(1);
            }
        }
    }

    /// Times in ns at which something changes, in no order.
    pub(crate) fn changes(&self) -> Vec<Nanos> {
        let rates = self.bandwidth.iter().skip(1).map(|(time, _)| *time);
        let delays = self.rtt_excess.iter().skip(1).map(|(time, _)| *time);
        rates.chain(delays).chain(self.outages.iter().flat_map(|o| [o.0, o.1])).collect()
    }

    /// Geometric mean of the rates in bit/s on the wire.
    pub(super) fn typical_bandwidth(&self) -> f64 {
        typical(self.bandwidth.iter().map(|(_, rate)| *rate))
    }

    /// Lowest rate in bit/s on the wire, interruptions aside.
    pub(super) fn lowest_bandwidth(&self) -> f64 {
        self.bandwidth.iter().map(|(_, rate)| *rate).fold(f64::INFINITY, f64::min)
    }

    /// Geometric mean in s of a base round-trip time that is `rtt` at time 0.
    pub(super) fn typical_rtt(&self, rtt: f64) -> f64 {
        typical(self.rtt_excess.iter().map(|(_, excess)| rtt + excess))
    }

    /// Largest product of rate (bit/s) and base round-trip time (`rtt` at time 0, s) of any two moments, in wire bytes.
    pub(super) fn largest_bdp(&self, rtt: f64) -> f64 {
        let rate = self.bandwidth.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        let excess = self.rtt_excess.iter().map(|(_, excess)| *excess).fold(0.0, f64::max);
        rate * (rtt + excess) / 8.0
    }

    /// Smallest product of rate (bit/s) and base round-trip time (`rtt` at time 0, s) of any two moments, in wire bytes.
    pub(super) fn smallest_bdp(&self, rtt: f64) -> f64 {
        let excess = self.rtt_excess.iter().map(|(_, excess)| *excess).fold(f64::INFINITY, f64::min);
        self.lowest_bandwidth() * (rtt + excess) / 8.0
    }

    /// Rate of the transmitter, with the interruptions.
    pub(super) fn rate(&self) -> RateConfig {
        if let ([(_, rate)], []) = (&self.bandwidth[..], &self.outages[..]) {
            return RateConfig::Constant(*rate);
        }
        let dark = |time: Nanos| self.outages.iter().any(|(from, until)| (*from..*until).contains(&time));
        let changes = self.bandwidth.iter().map(|(time, _)| *time);
        let mut times: Vec<Nanos> = changes.chain(self.outages.iter().flat_map(|o| [o.0, o.1])).collect();
        times.sort_unstable();
        times.dedup();
        let piece = |time: Nanos| (time, if dark(time) { 0.0 } else { at(&self.bandwidth, time) });
        RateConfig::Schedule { pieces: times.into_iter().map(piece).collect(), repeat_ns: 0 }
    }

    /// One-way delay, which is `delay` (ns) at time 0.
    pub(super) fn delay(&self, delay: Nanos) -> DelayConfig {
        if self.rtt_excess.len() == 1 {
            return DelayConfig::Constant(delay);
        }
        let later = |excess: f64| (delay as f64 + excess * 0.5e9).round().max(0.0) as Nanos;
        DelayConfig::Schedule(self.rtt_excess.iter().map(|(time, excess)| (*time, later(*excess))).collect())
    }
}

/// Whether something of this probability happens; what cannot happen takes no random number.
pub(super) fn happens(probability: f64, rng: &mut impl Rng) -> bool {
    probability > 0.0 && (probability >= 1.0 || rng.random::<f64>() < probability)
}

fn typical(values: impl Iterator<Item = f64>) -> f64 {
    let (n, sum) = values.fold((0.0, 0.0), |(n, sum), value| (n + 1.0, sum + libm::log(value)));
    libm::exp(sum / n)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multi_flow::{Changes, Outages};
    use crate::range::Range;
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    const SECOND: Nanos = 1_000_000_000;

    #[test]
    fn steps_hold_until_the_next() {
        let steps = [(0, 'a'), (5, 'b'), (9, 'c')];
        let seen: String = [0, 4, 5, 8, 9, 100].iter().map(|time| at(&steps, *time)).collect();
        assert_eq!(seen, "aabbcc");
    }

    #[test]
    fn interruptions_cut_the_rate_and_nothing_else() {
        let path = Path {
            bandwidth: vec![(0, 1e7), (4 * SECOND, 2e7)],
            rtt_excess: vec![(0, 0.0), (4 * SECOND, -0.01)],
            outages: vec![(3 * SECOND, 5 * SECOND)],
        };
        let pieces = vec![(0, 1e7), (3 * SECOND, 0.0), (4 * SECOND, 0.0), (5 * SECOND, 2e7)];
        assert_eq!(path.rate(), RateConfig::Schedule { pieces, repeat_ns: 0 });
        let DelayConfig::Schedule(delays) = path.delay(20_000_000) else { panic!("a schedule") };
        assert_eq!(delays, [(0, 20_000_000), (4 * SECOND, 15_000_000)]);
        assert!((path.largest_bdp(0.04) - 2e7 * 0.04 / 8.0).abs() < 1e-6);
        assert!((path.typical_bandwidth() / 2e14_f64.sqrt() - 1.0).abs() < 1e-12);
        assert!((path.typical_rtt(0.04) - (0.04_f64 * 0.03).sqrt()).abs() < 1e-12);
        assert!(matches!(Path::constant(1e7).rate(), RateConfig::Constant(rate) if rate == 1e7));
        assert!(matches!(Path::constant(1e7).delay(7), DelayConfig::Constant(7)));
    }

    #[test]
    fn drawn_changes_stay_within_the_ranges() {
        let config = MultiFlowConfig {
            changes: Changes { bandwidth: 1.0, rtt: 0.5, every: Range::new(2.0, 4.0) },
            outages: Outages { probability: 0.5, every: Range::new(3.0, 5.0), length: Range::new(0.5, 2.0) },
            ..MultiFlowConfig::default()
        };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let (mut moved, mut dark) = (0_usize, 0_usize);
        for _ in 0..200 {
            let mut path = Path::constant(1e8);
            path.draw_changes(&config, (0.02, 0.12), &mut rng);
            // 30 s of gaps of 2 to 4 s.
            assert!((8..=15).contains(&path.bandwidth.len()), "{path:?}");
            assert!(path.bandwidth.iter().all(|(_, rate)| (40e6..=160e6).contains(rate)));
            assert!(path.bandwidth.windows(2).all(|w| (2 * SECOND..=4 * SECOND).contains(&(w[1].0 - w[0].0))));
            assert!(path.rtt_excess.iter().all(|(_, excess)| (0.00999..0.04001).contains(&(0.02 + excess))));
            if path.rtt_excess.len() > 1 {
                moved += 1;
                assert!(path.rtt_excess.iter().map(|s| s.0).eq(path.bandwidth.iter().map(|s| s.0)), "together");
            }
            dark += usize::from(!path.outages.is_empty());
            assert!(path.outages.iter().all(|(from, until)| until - from <= 2 * SECOND));
            path.rate().build().expect("a rate that the simulator accepts");
        }
        // Half of 200; a deviation is 7.
        assert!(moved.abs_diff(100) < 30 && dark.abs_diff(100) < 30, "{moved} {dark}");
    }
}
