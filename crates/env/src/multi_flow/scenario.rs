//! Draws the link and the flows of an episode.

use astraea_cc::{MSS, Nanos, SCHEMES};
use astraea_sim::config::ReorderConfig;
use astraea_sim::queue::{CodelConfig, Limit, QueueConfig};
use astraea_sim::{AckConfig, Config, FlowConfig, LinkConfig, LossConfig, SourceConfig};
use rand::{Rng, RngExt};

use super::config::MultiFlowConfig;
use super::domain::ShortFlows;
use super::path::{Path, at, happens};
use crate::range::{Range, Spread};

/// Wire bytes of a full-sized packet of one segment.
const PACKET: f64 = (MSS + astraea_sim::HEADER) as f64;

/// Most segments of a packet: what fits into 64 kB.
const MOST_SEGMENTS: f64 = 45.0;

/// So many packets at least fit into the buffer, and into a flow's share of the path: with fewer it would be their size
/// that decides what a flow can do.
const LEAST_PACKETS: f64 = 16.0;

/// Shortest life of a flow in ns.
const SHORTEST: Nanos = 1_000_000;

/// A flow of an episode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowDraw {
    /// When it starts, in ns.
    pub start: Nanos,
    /// When it stops, in ns; `None`: not within the episode.
    pub stop: Option<Nanos>,
    /// Its base round-trip time in s at the beginning of the episode.
    pub rtt: f64,
    /// Payload bytes that it has to send; `None`: always more.
    pub bytes: Option<u64>,
    /// Scheme of a neighbour; `None`: the flow asks for actions.
    pub neighbour: Option<&'static str>,
}

/// What was drawn for an episode.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Rates and delays over time.
    pub path: Path,
    /// Buffer in wire bytes.
    pub buffer: u64,
    /// Segments of a full-sized packet, all behind one header.
    pub segments: u32,
    /// Whether `CoDel` manages the queue.
    pub codel: bool,
    /// Share of packets lost at random.
    pub loss: f64,
    /// Largest extra delay of a packet in ns.
    pub jitter: Nanos,
    /// Acknowledgements leave together, once in so many ns; 0: each at once.
    pub aggregation: Nanos,
    /// The flows: first those with no end of data, then short ones, then neighbours, each in the order of their starts.
    pub flows: Vec<FlowDraw>,
}

impl Default for Scenario {
    /// Nobody on no link.
    fn default() -> Self {
        Self {
            path: Path::default(),
            buffer: 0,
            segments: 1,
            codel: false,
            loss: 0.0,
            jitter: 0,
            aggregation: 0,
            flows: vec![],
        }
    }
}

impl Scenario {
    /// Draws an episode. Flows that would arrive after its end are left out.
    pub(crate) fn draw(config: &MultiFlowConfig, rng: &mut impl Rng) -> Self {
        // What the defaults do not have takes no random numbers, so that they draw the same with and without it.
        let bandwidth = config.bandwidth.draw(config.bandwidth_scale, rng);
        let common_rtt = config.rtt.draw(config.rtt_scale, rng);
        let heterogeneous = rng.random::<f64>() < config.heterogeneous;
        let buffer_bdp = config.buffer.log_uniform(rng);
        let loss = config.loss.uniform(rng);
        let count = config.flows.integer(config.flows_scale, rng);
        let fixed_rtt = (!heterogeneous).then_some(common_rtt);
        let flows = draw_flows(config, count, fixed_rtt, rng);
        let mut path = Path::constant(bandwidth);
        let rtts = || flows.iter().map(|f| f.rtt);
        path.draw_changes(config, (rtts().fold(f64::INFINITY, f64::min), rtts().fold(0.0, f64::max)), rng);
        let mean_rtt = path.typical_rtt(rtts().sum::<f64>() / flows.len() as f64);
        let buffer = (buffer_bdp * path.typical_bandwidth() * mean_rtt / 8.0).max(config.buffer_min_packets * PACKET);
        let now_and_then = |range: &Range, probability, rng: &mut _| {
            if happens(probability, rng) { nanos(range.log_uniform(rng)) } else { 0 }
        };
        Self {
            buffer: buffer as u64,
            segments: segments(config.offload, &path, buffer, &flows),
            codel: happens(config.codel, rng),
            loss: if happens(config.lossy, rng) { loss } else { 0.0 },
            jitter: now_and_then(&config.jitter, config.jittered, rng),
            aggregation: now_and_then(&config.aggregation, config.aggregated, rng),
            path,
            flows,
        }
    }

    /// Payload of what the link carries when all packets are full-sized.
    pub(crate) fn payload(&self, wire: f64) -> f64 {
        let mss = f64::from(self.mss());
        wire * mss / (mss + f64::from(astraea_sim::HEADER))
    }

    /// Payload bytes of a full-sized packet.
    fn mss(&self) -> u32 {
        self.segments * MSS
    }

    /// Capacity at a time (ns) in payload bit/s.
    pub fn capacity(&self, time: Nanos) -> f64 {
        self.payload(at(&self.path.bandwidth, time))
    }

    /// Base round-trip time of a flow at a time (ns), in s.
    pub fn rtt(&self, flow: usize, time: Nanos) -> f64 {
        self.flows[flow].rtt + at(&self.path.rtt_excess, time)
    }

    /// Mean base round-trip time of the flows at a time (ns), in s.
    pub fn mean_rtt(&self, time: Nanos) -> f64 {
        self.flows.iter().map(|f| f.rtt).sum::<f64>() / self.flows.len() as f64 + at(&self.path.rtt_excess, time)
    }

    /// Buffer in payload bits.
    pub(super) fn buffer_bits(&self) -> f64 {
        self.payload(self.buffer as f64 * 8.0)
    }

    /// Largest bandwidth-delay product of a flow that has the path for itself, in payload bytes.
    pub(crate) fn largest_bdp(&self, flow: usize) -> f64 {
        self.payload(self.path.largest_bdp(self.flows[flow].rtt))
    }

    /// About how many decisions the flows ask for in an episode of `duration` with such a `period` (both ns).
    pub(crate) fn decisions(&self, duration: Nanos, period: Nanos) -> usize {
        let asking = self.flows.iter().filter(|f| f.neighbour.is_none() && f.bytes.is_none());
        asking.map(|f| ((f.stop.unwrap_or(duration) - f.start) / period + 2) as usize).sum()
    }

    /// The simulation of this episode, which goes on for `duration` ns and records in slots of `slot` ns (0: nothing).
    pub(crate) fn simulation(&self, duration: Nanos, period: Nanos, aligned_periods: bool, slot: Nanos) -> Config {
        let one_way = |rtt: f64| nanos(rtt / 2.0);
        let link_delay = self.flows.iter().map(|f| one_way(f.rtt)).min().unwrap_or(0);
        let flows = self.flows.iter().map(|flow| FlowConfig {
            start_ns: flow.start,
            stop_ns: flow.stop,
            path: vec![0],
            return_path: vec![],
            extra_delay_ns: one_way(flow.rtt) - link_delay,
            source: flow.bytes.map_or(SourceConfig::Bulk, SourceConfig::Sized),
            ack: AckConfig { aggregate_ns: self.aggregation, ..AckConfig::default() },
            ecn: false,
            burst_ns: 0,
            period_ns: period,
            mss: self.mss(),
        });
        Config {
            duration_ns: duration,
            slot_ns: slot,
            aligned_periods,
            links: vec![LinkConfig {
                name: "bottleneck".into(),
                rate: self.path.rate(),
                delay: self.path.delay(link_delay),
                limit: Limit::Bytes(self.buffer),
                queue: if self.codel { QueueConfig::Codel(CodelConfig::default()) } else { QueueConfig::Droptail {} },
                loss: if self.loss > 0.0 { LossConfig::Bernoulli(self.loss) } else { LossConfig::None },
                jitter_ns: self.jitter,
                reorder: ReorderConfig::default(),
            }],
            flows: flows.collect(),
        }
    }
}

/// Segments of a packet that takes `offload` s of the link, where it is slowest, with a buffer of so many wire bytes.
fn segments(offload: f64, path: &Path, buffer: f64, flows: &[FlowDraw]) -> u32 {
    let bulk = flows.iter().filter(|f| f.bytes.is_none());
    let nearest = flows.iter().map(|f| f.rtt).fold(f64::INFINITY, f64::min);
    let share = path.smallest_bdp(nearest) / bulk.count() as f64;
    let bytes = (offload * path.lowest_bandwidth() / 8.0).min(buffer.min(share) / LEAST_PACKETS);
    (bytes / PACKET).clamp(1.0, MOST_SEGMENTS) as u32
}

/// Draws the flows: `count` of them, and what the settings add.
fn draw_flows(config: &MultiFlowConfig, count: usize, fixed_rtt: Option<f64>, rng: &mut impl Rng) -> Vec<FlowDraw> {
    let end = nanos(config.duration);
    let mean = |range: &Range, rng: &mut _| {
        let drawn = |rng| if range.low > 0.0 { range.log_uniform(rng) } else { range.uniform(rng) };
        range.point().unwrap_or_else(|| drawn(rng))
    };
    let gap = mean(&config.arrival_gap, rng);
    let lifetime = config.lifetime.map(|lifetime| mean(&lifetime, rng));
    let foreign = &config.neighbours;
    let mut others = if happens(foreign.probability, rng) { foreign.flows.integer(Spread::Uniform, rng) } else { 0 };
    let mut flows = Vec::with_capacity(count);
    let mut neighbours = Vec::with_capacity(others);
    let mut arrival = 0.0;
    for left in (1..=count + others).rev() {
        let start = nanos(arrival);
        if start >= end {
            break;
        }
        let stop = lifetime.map(|mean| start + nanos(exponential(mean, rng)).max(SHORTEST)).filter(|stop| *stop < end);
        let rtt = fixed_rtt.unwrap_or_else(|| config.rtt.draw(config.rtt_scale, rng));
        // Any of those still to come may be the next.
        if others > 0 && rng.random_range(0..left) < others {
            others -= 1;
            let name = &foreign.schemes[rng.random_range(0..foreign.schemes.len())];
            let neighbour = SCHEMES.iter().map(|scheme| scheme.name).find(|known| known == name);
            neighbours.push(FlowDraw { start, stop, rtt, bytes: None, neighbour });
        } else {
            flows.push(FlowDraw { start, stop, rtt, bytes: None, neighbour: None });
        }
        arrival += exponential(gap, rng);
    }
    if flows.is_empty() {
        // Only neighbours came in time: somebody has to ask.
        flows.push(FlowDraw { neighbour: None, ..neighbours.remove(0) });
    }
    if happens(config.short_flows.probability, rng) {
        let every = config.short_flows.every.log_uniform(rng);
        let mut arrival = exponential(every, rng);
        for _ in 0..ShortFlows::MOST {
            let start = nanos(arrival);
            if start >= end {
                break;
            }
            let bytes = Some(config.short_flows.bytes.log_uniform(rng) as u64);
            let rtt = fixed_rtt.unwrap_or_else(|| config.rtt.draw(config.rtt_scale, rng));
            flows.push(FlowDraw { start, stop: None, rtt, bytes, neighbour: None });
            arrival += exponential(every, rng);
        }
    }
    flows.append(&mut neighbours);
    flows
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
    use crate::multi_flow::{Changes, Neighbours, Outages};
    use astraea_sim::config::DelayConfig;
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    fn draws_are(share: f64, of: impl Fn(&Scenario) -> bool, scenarios: &[Scenario]) {
        let n = scenarios.len() as f64;
        let found = scenarios.iter().filter(|s| of(s)).count() as f64 / n;
        // Five deviations.
        let margin = 5.0 * (share * (1.0 - share) / n).sqrt();
        assert!((found - share).abs() <= margin, "{found} is not {share}");
    }

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
            let bandwidth = scenario.path.bandwidth[0].1;
            assert!((40e6..=160e6).contains(&bandwidth));
            let rtts: Vec<f64> = scenario.flows.iter().map(|f| f.rtt).collect();
            assert!(rtts.iter().all(|rtt| (0.010..=0.140).contains(rtt)));
            let mean = rtts.iter().sum::<f64>() / rtts.len() as f64;
            let bdp = scenario.buffer as f64 * 8.0 / (bandwidth * mean);
            assert!((0.099..=16.0).contains(&bdp), "{bdp}");
            assert_eq!(scenario.flows[0].start, 0);
            assert!(scenario.flows.is_sorted_by_key(|f| f.start));
            counts[rtts.len()] += 1;
            scenario.simulation(31_000_000_000, 30_000_000, false, 0).validate().unwrap();
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
            lifetime: Some(Range::new(20.0, 20.0)),
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
    fn a_wide_domain_is_drawn_as_told() {
        let wide = MultiFlowConfig {
            bandwidth: Range::new(5e6, 1e9),
            bandwidth_scale: Spread::Log,
            rtt: Range::new(0.005, 0.3),
            rtt_scale: Spread::Log,
            buffer_min_packets: 5.0,
            codel: 0.2,
            loss: Range::new(0.0, 0.02),
            lossy: 0.3,
            jittered: 0.4,
            aggregated: 0.1,
            flows: Range::new(1.0, 50.0),
            flows_scale: Spread::Log,
            arrival_gap: Range::new(0.01, 10.0),
            lifetime: Some(Range::new(5.0, 100.0)),
            short_flows: ShortFlows { probability: 0.2, ..ShortFlows::default() },
            neighbours: Neighbours { probability: 0.5, ..Neighbours::default() },
            changes: Changes { bandwidth: 0.3, rtt: 0.3, ..Changes::default() },
            outages: Outages { probability: 0.1, ..Outages::default() },
            ..MultiFlowConfig::default()
        };
        wide.validate().unwrap();
        let scenarios = draws(&wide, 2000);
        for scenario in &scenarios {
            assert!(scenario.buffer >= 7500);
            assert!(scenario.flows.iter().all(|f| (0.005..=0.3).contains(&f.rtt)));
            let kind = |f: &FlowDraw| (f.neighbour.is_some(), f.bytes.is_some(), f.start);
            assert!(scenario.flows.is_sorted_by_key(kind), "agents, short ones, neighbours");
            assert!(scenario.flows[0].neighbour.is_none(), "somebody asks");
            scenario.simulation(31_000_000_000, 30_000_000, false, 0).validate().unwrap();
        }
        let logarithm = |low: f64, high: f64, at: f64| (at / low).ln() / (high / low).ln();
        draws_are(logarithm(5.0, 1000.0, 40.0), |s| s.path.bandwidth[0].1 < 40e6, &scenarios);
        draws_are(0.2, |s| s.codel, &scenarios);
        draws_are(0.3, |s| s.loss > 0.0, &scenarios);
        draws_are(0.4, |s| s.jitter > 0, &scenarios);
        draws_are(0.1, |s| s.aggregation > 0, &scenarios);
        draws_are(0.2, |s| s.flows.iter().any(|f| f.bytes.is_some()), &scenarios);
        for scheme in ["cubic", "bbr"] {
            assert!(scenarios.iter().any(|s| s.flows.iter().any(|f| f.neighbour == Some(scheme))));
        }
        assert!(scenarios.iter().all(|s| s.flows.iter().any(|f| f.start == 0)));
    }

    #[test]
    fn packets_grow_with_the_link_within_buffer_and_share() {
        let segments = |offload, bandwidth, rtt, buffer, flows: f64| {
            let config = MultiFlowConfig {
                bandwidth: Range::new(bandwidth, bandwidth),
                rtt: Range::new(rtt, rtt),
                buffer: Range::new(buffer, buffer),
                flows: Range::new(flows, flows),
                arrival_gap: Range::new(0.0, 0.0),
                offload,
                ..MultiFlowConfig::default()
            };
            let scenario = draws(&config, 1).remove(0);
            let simulation = scenario.simulation(31_000_000_000, 30_000_000, false, 0);
            simulation.validate().unwrap();
            assert!(simulation.flows.iter().all(|f| f.mss == scenario.segments * MSS));
            let mss = f64::from(simulation.flows[0].mss);
            assert_eq!(scenario.capacity(0), bandwidth * mss / (mss + f64::from(astraea_sim::HEADER)));
            scenario.segments
        };
        assert_eq!(segments(0.0, 1e9, 0.1, 1.0, 2.0), 1);
        // 4.17 segments of 1500 bytes in half a millisecond at 100 Mbit/s; 41.7 at 1 Gbit/s, and never over 64 kB.
        assert_eq!(segments(5e-4, 1e8, 0.1, 1.0, 2.0), 4);
        assert_eq!(segments(5e-4, 1e9, 0.1, 1.0, 2.0), 41);
        assert_eq!(segments(5e-3, 1e9, 0.1, 1.0, 2.0), 45);
        // The product is 833 of them. Sixteen packets in a tenth of it, or in a flow's twentieth.
        assert_eq!(segments(5e-3, 1e8, 0.1, 0.1, 2.0), 5);
        assert_eq!(segments(5e-3, 1e8, 0.1, 1.0, 20.0), 2);
        assert_eq!(segments(5e-3, 1e6, 0.01, 0.1, 2.0), 1);
    }

    #[test]
    fn delays_add_up_to_the_round_trip() {
        let far = FlowDraw { start: 0, stop: None, rtt: 0.05, bytes: None, neighbour: None };
        let near = FlowDraw { start: 5, stop: Some(9), rtt: 0.02, ..far };
        let path = Path::constant(1e8);
        let scenario = Scenario { path, buffer: 3000, flows: vec![far, near], ..Scenario::default() };
        let config = scenario.simulation(100, 30, true, 0);
        config.validate().unwrap();
        assert_eq!(config.flows[0].extra_delay_ns, 15_000_000);
        assert_eq!(config.flows[1].extra_delay_ns, 0);
        assert!(matches!(config.links[0].delay, DelayConfig::Constant(10_000_000)));
        assert_eq!(scenario.capacity(50), 1e8 * 1448.0 / 1500.0);
    }
}
