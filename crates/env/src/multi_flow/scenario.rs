//! Draws the link and the flows of an episode.

use astraea_cc::{MSS, Nanos};
use astraea_sim::config::{DelayConfig, ReorderConfig};
use astraea_sim::queue::{Limit, QueueConfig};
use astraea_sim::{AckConfig, Config, FlowConfig, LinkConfig, LossConfig, RateConfig, SourceConfig};
use rand::{Rng, RngExt};

use super::config::MultiFlowConfig;

/// Wire bytes of a full-sized packet.
const PACKET: f64 = (MSS + astraea_sim::HEADER) as f64;

/// Shortest life of a flow in ns.
const SHORTEST: Nanos = 1_000_000;

/// A flow of an episode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowDraw {
    /// When it starts, in ns.
    pub start: Nanos,
    /// When it stops, in ns; `None`: not within the episode.
    pub stop: Option<Nanos>,
    /// Its base round-trip time in s.
    pub rtt: f64,
}

/// What was drawn for an episode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scenario {
    /// Bottleneck rate in bit/s on the wire.
    pub bandwidth: f64,
    /// Buffer in wire bytes.
    pub buffer: u64,
    /// Share of packets lost at random.
    pub loss: f64,
    /// The flows in the order of their starts.
    pub flows: Vec<FlowDraw>,
}

impl Scenario {
    /// Draws an episode. Flows that would arrive after its end are left out.
    pub(crate) fn draw(config: &MultiFlowConfig, rng: &mut impl Rng) -> Self {
        let bandwidth = config.bandwidth.uniform(rng);
        let common_rtt = config.rtt.uniform(rng);
        let heterogeneous = rng.random::<f64>() < config.heterogeneous;
        let buffer_bdp = config.buffer.log_uniform(rng);
        let loss = config.loss.uniform(rng);
        let count = config.flows.integer(rng);
        let end = nanos(config.duration);
        let mut flows = Vec::with_capacity(count);
        let mut arrival = 0.0;
        for _ in 0..count {
            let start = nanos(arrival);
            if start >= end {
                break;
            }
            let stop = config
                .lifetime
                .map(|mean| start + nanos(exponential(mean, rng)).max(SHORTEST))
                .filter(|stop| *stop < end);
            let rtt = if heterogeneous { config.rtt.uniform(rng) } else { common_rtt };
            flows.push(FlowDraw { start, stop, rtt });
            arrival += exponential(config.arrival_gap, rng);
        }
        let mean_rtt = flows.iter().map(|f| f.rtt).sum::<f64>() / flows.len() as f64;
        let buffer = (buffer_bdp * bandwidth * mean_rtt / 8.0).max(PACKET) as u64;
        Self { bandwidth, buffer, loss, flows }
    }

    /// Capacity in payload bit/s.
    pub fn capacity(&self) -> f64 {
        self.bandwidth * f64::from(MSS) / PACKET
    }

    /// The simulation of this episode, which goes on for `duration` ns.
    pub(crate) fn simulation(&self, duration: Nanos, period: Nanos, aligned_periods: bool) -> Config {
        let one_way = |rtt: f64| nanos(rtt / 2.0);
        let link_delay = self.flows.iter().map(|f| one_way(f.rtt)).min().unwrap_or(0);
        let flows = self.flows.iter().map(|flow| FlowConfig {
            start_ns: flow.start,
            stop_ns: flow.stop,
            path: vec![0],
            return_path: vec![],
            extra_delay_ns: one_way(flow.rtt) - link_delay,
            source: SourceConfig::Bulk,
            ack: AckConfig::default(),
            ecn: false,
            period_ns: period,
            mss: MSS,
        });
        Config {
            duration_ns: duration,
            slot_ns: 0,
            aligned_periods,
            links: vec![LinkConfig {
                name: "bottleneck".into(),
                rate: RateConfig::Constant(self.bandwidth),
                delay: DelayConfig::Constant(link_delay),
                limit: Limit::Bytes(self.buffer),
                queue: QueueConfig::Droptail {},
                loss: if self.loss > 0.0 { LossConfig::Bernoulli(self.loss) } else { LossConfig::None },
                jitter_ns: 0,
                reorder: ReorderConfig::default(),
            }],
            flows: flows.collect(),
        }
    }
}

fn exponential(mean: f64, rng: &mut impl Rng) -> f64 {
    -mean * libm::log(1.0 - rng.random::<f64>())
}

pub(crate) fn nanos(seconds: f64) -> Nanos {
    (seconds * 1e9).round() as Nanos
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::range::Range;
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    fn draws(config: &MultiFlowConfig, n: usize) -> Vec<Scenario> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        (0..n).map(|_| Scenario::draw(config, &mut rng)).collect()
    }

    #[test]
    fn draws_cover_the_training_ranges() {
        let config = MultiFlowConfig::default();
        let scenarios = draws(&config, 2000);
        let mut counts = [0_usize; 6];
        let mut same = 0;
        for scenario in &scenarios {
            assert!((40e6..=160e6).contains(&scenario.bandwidth));
            let rtts: Vec<f64> = scenario.flows.iter().map(|f| f.rtt).collect();
            assert!(rtts.iter().all(|rtt| (0.010..=0.140).contains(rtt)));
            let mean = rtts.iter().sum::<f64>() / rtts.len() as f64;
            let bdp = scenario.buffer as f64 * 8.0 / (scenario.bandwidth * mean);
            assert!((0.099..=16.0).contains(&bdp), "{bdp}");
            assert_eq!(scenario.flows[0].start, 0);
            assert!(scenario.flows.is_sorted_by_key(|f| f.start));
            counts[rtts.len()] += 1;
            scenario.simulation(31_000_000_000, 30_000_000, false).validate().unwrap();
            same += usize::from(rtts.iter().all(|rtt| *rtt == rtts[0]));
        }
        // A quarter each, except that a few flows would have come too late; half with the same RTT for all.
        assert!(counts[2..].iter().all(|n| n.abs_diff(500) < 100), "{counts:?}");
        assert!(same.abs_diff(1000) < 100, "{same}");
    }

    #[test]
    fn arrivals_and_lives_have_their_means() {
        let wide = MultiFlowConfig {
            flows: Range::new(500.0, 500.0),
            duration: 1e5,
            lifetime: Some(20.0),
            ..MultiFlowConfig::default()
        };
        let scenario = &draws(&wide, 1)[0];
        let last = scenario.flows.last().unwrap().start as f64 / 1e9;
        // Means of 499 and 500 exponential draws have a deviation of 4.5 %.
        assert!((last / 499.0 / 4.0 - 1.0).abs() < 0.15, "{last}");
        let lives: f64 = scenario.flows.iter().map(|f| (f.stop.unwrap() - f.start) as f64 / 1e9).sum();
        assert!((lives / 500.0 / 20.0 - 1.0).abs() < 0.15, "{lives}");
    }

    #[test]
    fn delays_add_up_to_the_round_trip() {
        let scenario = Scenario {
            bandwidth: 1e8,
            buffer: 3000,
            loss: 0.0,
            flows: vec![FlowDraw { start: 0, stop: None, rtt: 0.05 }, FlowDraw { start: 5, stop: Some(9), rtt: 0.02 }],
        };
        let config = scenario.simulation(100, 30, true);
        config.validate().unwrap();
        assert_eq!(config.flows[0].extra_delay_ns, 15_000_000);
        assert_eq!(config.flows[1].extra_delay_ns, 0);
        assert!(matches!(config.links[0].delay, DelayConfig::Constant(10_000_000)));
        assert_eq!(scenario.capacity(), 1e8 * 1448.0 / 1500.0);
    }
}
