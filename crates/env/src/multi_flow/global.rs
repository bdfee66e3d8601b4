//! The global state (Astraea table 2): what only a central critic sees.

use astraea_policy::Feature;

use super::observer::FlowStatistics;

/// The bottleneck as global state and reward see it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Link {
    /// Capacity in payload bit/s: what a saturated link delivers.
    pub capacity: f64,
    /// Buffer in payload bits.
    pub buffer: f64,
    /// Mean base round-trip time of the flows of the episode in s; stands in while no flow is active.
    pub rtt: f64,
}

/// The features, in the order of table 2.
///
/// `c` is the capacity in payload bit/s and `d0` the mean base round-trip time of the active flows. (The paper's table
/// says one-way delay, its reward compares round trips with the same symbol.)
pub const GLOBAL_FEATURES: [Feature; 12] = [
    Feature::ratio("ovr_thr", "sum of thr / c", 2.0),
    Feature::ratio("min_thr", "min thr / c", 2.0),
    Feature::ratio("max_thr", "max thr / c", 2.0),
    Feature::ratio("avg_lat", "mean lat / d0", 20.0),
    Feature::ratio("min_cwnd", "min cwnd / (c * d0)", 20.0),
    Feature::ratio("max_cwnd", "max cwnd / (c * d0)", 20.0),
    Feature::ratio("avg_cwnd", "mean cwnd / (c * d0)", 20.0),
    Feature::ratio("loss_ratio", "mean of loss / thr", 1.0),
    Feature::ratio("num_flow", "active flows / 10", 100.0),
    Feature::log("d0", "d0 in s", 1e-4, 1e1),
    Feature::log("buf", "buffer / (c * d0)", 1e-2, 1e2),
    Feature::log("c", "c in bit/s", 1e5, 1e10),
];

/// What follows [`GLOBAL_FEATURES`] for the critic in a domain with neighbours.
pub const NEIGHBOURS: Feature = Feature::ratio("neighbours", "active flows with schemes of their own / 10", 100.0);

/// Smallest, largest and mean of a quantity; zeros for none.
fn summary(values: impl Iterator<Item = f64>) -> (f64, f64, f64) {
    let (mut n, mut sum, mut low, mut high) = (0.0, 0.0, f64::INFINITY, 0.0_f64);
    for value in values {
        n += 1.0;
        sum += value;
        low = low.min(value);
        high = high.max(value);
    }
    if n == 0.0 { (0.0, 0.0, 0.0) } else { (low, high, sum / n) }
}

/// Mean base round-trip time of the flows in s, the link's if there is none.
pub(super) fn base_rtt<'a>(flows: impl Iterator<Item = &'a FlowStatistics>, link: &Link) -> f64 {
    let (_, _, mean) = summary(flows.map(|f| f.base_rtt));
    if mean > 0.0 { mean } else { link.rtt }
}

/// The global state of these active flows.
pub(super) fn encode<'a>(flows: impl Iterator<Item = &'a FlowStatistics> + Clone, link: &Link) -> [f32; 12] {
    let d0 = base_rtt(flows.clone(), link);
    let bdp = link.capacity * d0;
    let n = flows.clone().count() as f64;
    let (min_thr, max_thr, avg_thr) = summary(flows.clone().map(|f| f.throughput));
    let (_, _, avg_lat) = summary(flows.clone().map(|f| f.latency));
    let (min_cwnd, max_cwnd, avg_cwnd) = summary(flows.clone().map(|f| f.cwnd * 8.0));
    let (_, _, loss_ratio) = summary(flows.map(FlowStatistics::loss_ratio));
    let raw = [
        avg_thr * n / link.capacity,
        min_thr / link.capacity,
        max_thr / link.capacity,
        avg_lat / d0,
        min_cwnd / bdp,
        max_cwnd / bdp,
        avg_cwnd / bdp,
        loss_ratio,
        n / 10.0,
        d0,
        link.buffer / bdp,
        link.capacity,
    ];
    std::array::from_fn(|i| GLOBAL_FEATURES[i].encode(raw[i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_2_by_hand() {
        let link = Link { capacity: 1e8, buffer: 4e6, rtt: 0.5 };
        let flow = |throughput, latency, cwnd, loss, base_rtt| FlowStatistics {
            throughput,
            latency,
            loss,
            cwnd,
            base_rtt,
            ..FlowStatistics::default()
        };
        let flows = [flow(6e7, 0.05, 450_000.0, 6e5, 0.03), flow(2e7, 0.07, 150_000.0, 0.0, 0.05)];
        // d0 = 40 ms, c * d0 = 4 Mbit = 500 kB.
        let expected = [0.8, 0.2, 0.6, 1.5, 0.3, 0.9, 0.6, 0.005, 0.2, 0.520_412, 0.5, 0.6];
        for ((value, expected), feature) in encode(flows.iter(), &link).iter().zip(expected).zip(GLOBAL_FEATURES) {
            assert!((value - expected).abs() < 1e-6, "{}: {value} is not {expected}", feature.name);
        }
    }

    #[test]
    fn without_flows_only_the_link_shows() {
        let link = Link { capacity: 1e8, buffer: 1e6, rtt: 0.01 };
        let state = encode([].iter(), &link);
        assert!(state[..9].iter().all(|v| *v == 0.0));
        assert!((state[9] - 0.4).abs() < 1e-6 && (state[10] - 0.5).abs() < 1e-6);
    }
}
