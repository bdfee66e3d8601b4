//! Statistics of all flows, from which the global state and the reward are made.

use astraea_policy::Measurement;
use astraea_policy::state::PERIODS;

/// Statistics of a flow over its last monitoring periods; zeros before its first acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowStatistics {
    /// Delivered payload bit/s in the last period.
    pub throughput: f64,
    /// Mean throughput of the last periods, at most five (eq. 7).
    pub mean_throughput: f64,
    /// Standard deviation of the throughput over those periods.
    pub deviation: f64,
    /// Mean round-trip time in s of the last period with an acknowledgement.
    pub latency: f64,
    /// Payload bit/s declared lost in the last period.
    pub loss: f64,
    /// Window in payload bytes.
    pub cwnd: f64,
    /// Pacing rate in payload bit/s.
    pub pacing_rate: f64,
    /// Payload bytes in flight.
    pub in_flight: f64,
    /// Base round-trip time in s, as it was at the end of the last period.
    pub base_rtt: f64,
    /// Whether the flow has a scheme of its own and asks for no action.
    pub neighbour: bool,
}

impl FlowStatistics {
    /// Names of the [`values`](FlowStatistics::values).
    pub const NAMES: [&str; 9] = [
        "throughput",
        "mean_throughput",
        "deviation",
        "latency",
        "loss",
        "cwnd",
        "pacing_rate",
        "in_flight",
        "base_rtt",
    ];

    /// The numbers in the order of [`NAMES`](FlowStatistics::NAMES).
    pub fn values(&self) -> [f64; 9] {
        [
            self.throughput,
            self.mean_throughput,
            self.deviation,
            self.latency,
            self.loss,
            self.cwnd,
            self.pacing_rate,
            self.in_flight,
            self.base_rtt,
        ]
    }

    /// Lost bytes as a share of the delivered ones (eq. 4), at most 1.
    pub fn loss_ratio(&self) -> f64 {
        if self.loss > 0.0 { (self.loss / self.throughput).min(1.0) } else { 0.0 }
    }
}

/// Record of one flow.
#[derive(Clone, Debug, Default)]
struct Record {
    statistics: FlowStatistics,
    /// Throughput of the last periods in a ring.
    throughputs: [f64; PERIODS],
    periods: usize,
}

/// Keeps the statistics of each flow.
#[derive(Clone, Debug, Default)]
pub struct Observer {
    records: Vec<Record>,
    /// Indices of the active flows, in order.
    active: Vec<usize>,
}

impl Observer {
    /// Starts over with flows of these base round-trip times (s), none of which is active; `true` marks a neighbour.
    pub(crate) fn reset(&mut self, flows: impl Iterator<Item = (f64, bool)>) {
        self.active.clear();
        self.records.clear();
        self.records.extend(flows.map(|(base_rtt, neighbour)| Record {
            statistics: FlowStatistics { base_rtt, neighbour, ..FlowStatistics::default() },
            ..Record::default()
        }));
    }

    /// A monitoring period of a flow has ended, whose base round-trip time is `base_rtt` (s) now. A flow counts from its
    /// first acknowledgement on: before, within its first round trip, there is nothing to compare with the others.
    pub(crate) fn record(&mut self, flow: usize, period: &Measurement, base_rtt: f64) {
        let record = &mut self.records[flow];
        if record.periods == 0 && period.latency.is_none() {
            return;
        }
        if let Err(place) = self.active.binary_search(&flow) {
            self.active.insert(place, flow);
        }
        record.throughputs[record.periods % PERIODS] = period.throughput;
        record.periods += 1;
        let seen = &record.throughputs[..record.periods.min(PERIODS)];
        let mean = seen.iter().sum::<f64>() / seen.len() as f64;
        let variance = seen.iter().map(|t| (t - mean) * (t - mean)).sum::<f64>() / seen.len() as f64;
        let before = &record.statistics;
        record.statistics = FlowStatistics {
            // What was delivered: unlike its policy's state, a silent flow delivers nothing.
            throughput: period.throughput,
            mean_throughput: mean,
            deviation: variance.sqrt(),
            latency: period.latency.unwrap_or(before.latency),
            loss: period.loss,
            cwnd: period.cwnd,
            pacing_rate: period.pacing_rate,
            in_flight: period.in_flight,
            base_rtt,
            neighbour: before.neighbour,
        };
    }

    /// Forgets the active flows that have left.
    pub(crate) fn retain(&mut self, is_there: impl Fn(usize) -> bool) {
        self.active.retain(|flow| is_there(*flow));
    }

    /// Number of flows, active or not.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are no flows at all.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Whether a flow has had an acknowledgement and not left.
    pub fn is_active(&self, flow: usize) -> bool {
        self.active.binary_search(&flow).is_ok()
    }

    /// Statistics of a flow.
    pub fn statistics(&self, flow: usize) -> &FlowStatistics {
        &self.records[flow].statistics
    }

    /// Indices of the active flows, in order.
    pub fn active_flows(&self) -> &[usize] {
        &self.active
    }

    /// Statistics of the active flows.
    pub fn active(&self) -> impl Iterator<Item = &FlowStatistics> + Clone {
        self.active.iter().map(|flow| &self.records[*flow].statistics)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn period(throughput: f64) -> Measurement {
        let latency = (throughput > 0.0).then_some(0.05);
        Measurement { throughput, latency, latency_min: 0.04, cwnd: 10_000.0, ..Measurement::default() }
    }

    #[test]
    fn means_are_over_the_last_five_periods() {
        let mut observer = Observer::default();
        observer.reset([(0.03, false), (0.05, true)].into_iter());
        observer.record(1, &period(0.0), 0.04);
        assert_eq!(observer.active().count(), 0, "nothing has come back yet");
        observer.record(1, &period(4e6), 0.04);
        let statistics = observer.statistics(1);
        assert_eq!((statistics.mean_throughput, statistics.deviation), (4e6, 0.0));
        assert_eq!((statistics.base_rtt, statistics.neighbour), (0.04, true));
        for throughput in [100e6, 2e6, 4e6, 4e6, 4e6, 6e6] {
            observer.record(1, &period(throughput), 0.04);
        }
        // 2 4 4 4 6: mean 4, variance 8/5.
        let statistics = observer.statistics(1);
        assert_eq!(statistics.mean_throughput, 4e6);
        assert!((statistics.deviation - 1e6 * 1.6_f64.sqrt()).abs() < 1e-3);
        assert_eq!(observer.active().count(), 1);
        assert_eq!(observer.active_flows(), [1]);
        observer.record(0, &period(4e6), 0.03);
        assert_eq!(observer.active_flows(), [0, 1]);
        observer.retain(|flow| flow != 1);
        assert!(observer.is_active(0) && !observer.is_active(1));
        assert_eq!(observer.active().count(), 1);
    }

    #[test]
    fn a_silent_period_delivers_nothing() {
        let mut observer = Observer::default();
        observer.reset(std::iter::once((0.03, false)));
        observer.record(0, &period(4e6), 0.04);
        observer.record(0, &period(0.0), 0.04);
        assert_eq!(observer.statistics(0).throughput, 0.0);
        assert_eq!(observer.statistics(0).latency, 0.05);
    }

    #[test]
    fn loss_ratio_is_bounded() {
        let ratio = |loss, throughput| FlowStatistics { throughput, loss, ..FlowStatistics::default() }.loss_ratio();
        assert_eq!(ratio(0.0, 0.0), 0.0);
        assert_eq!(ratio(1e5, 1e7), 0.01);
        assert_eq!(ratio(1e5, 0.0), 1.0);
        assert_eq!(ratio(3e5, 1e5), 1.0);
    }
}
