//! The reward (Astraea eq. 4 to 8), shared by all flows.

use serde::Deserialize;

use super::global::{Link, base_rtt};
use super::observer::FlowStatistics;
use crate::error::EnvError;

/// How unequal throughputs are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fairness {
    /// Eq. 6 to the letter: the standard deviation over the *sum* of the throughputs. 0.1 for two flows at 60 and 40.
    #[default]
    Paper,
    /// The standard deviation over the *mean*: n times as much, so that its weight does not fade with more flows. 0.2
    /// for two flows at 60 and 40, which is what the paper's figure 4 shows.
    Relative,
}

/// Coefficients of the reward; the defaults are those of table 4.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RewardConfig {
    /// Weight of the throughput, c0.
    pub throughput: f64,
    /// Weight of the latency, c1.
    pub latency: f64,
    /// Weight of the loss, c2.
    pub loss: f64,
    /// Weight of unfairness, c3.
    pub fairness: f64,
    /// Weight of instability, c4.
    pub stability: f64,
    /// Queueing delay that costs nothing, as a share of the base round-trip time (beta of eq. 5, not in the papers).
    pub tolerance: f64,
    /// The reward is clipped to plus or minus this.
    pub bound: f64,
    /// Measure of unfairness.
    pub fairness_measure: Fairness,
}

impl Default for RewardConfig {
    fn default() -> Self {
        Self {
            throughput: 0.1,
            latency: 0.02,
            loss: 1.0,
            fairness: 0.02,
            stability: 0.01,
            tolerance: 0.2,
            bound: 0.1,
            fairness_measure: Fairness::Paper,
        }
    }
}

impl RewardConfig {
    pub(crate) fn validate(&self) -> Result<(), EnvError> {
        for (name, weight) in [
            ("reward.throughput", self.throughput),
            ("reward.latency", self.latency),
            ("reward.loss", self.loss),
            ("reward.fairness", self.fairness),
            ("reward.stability", self.stability),
        ] {
            EnvError::unless_within(name, weight, -1e9, 1e9)?;
        }
        EnvError::unless_within("reward.tolerance", self.tolerance, 0.0, 1e9)?;
        EnvError::unless_within("reward.bound", self.bound, 1e-6, 1e9)
    }
}

/// The reward and what it is made of; all dimensionless.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RewardTerms {
    /// Sum of the throughputs over the capacity (eq. 4).
    pub throughput: f64,
    /// Mean round-trip time beyond the tolerated one in units of the base one, times the sum of the pacing rates over
    /// the capacity (eq. 5).
    pub latency: f64,
    /// Mean of the flows' loss over throughput (eq. 4).
    pub loss: f64,
    /// Unfairness (eq. 6).
    pub fairness: f64,
    /// Mean of the flows' standard deviation over mean of the throughput in time (eq. 6).
    pub stability: f64,
    /// The clipped weighted sum (eq. 8).
    pub total: f64,
}

impl RewardTerms {
    /// Works out the reward of these active flows; all zero if there is none.
    ///
    /// Beside neighbours (flows with schemes of their own), throughput and fairness are those of all flows, so that the
    /// best is to fill the link and to have the fair share of it, no less and no more; loss and stability are those of
    /// the flows that ask for actions; and latency costs nothing, because the queue is the neighbours'.
    pub fn new<'a>(
        config: &RewardConfig,
        flows: &(impl Iterator<Item = &'a FlowStatistics> + Clone),
        link: &Link,
    ) -> Self {
        let sums = flows.clone().fold(Sums::default(), Sums::add);
        if sums.flows == 0.0 {
            return Self::default();
        }
        let mean = sums.mean_throughput / sums.flows;
        let squares: f64 = flows.clone().map(|f| (f.mean_throughput - mean) * (f.mean_throughput - mean)).sum();
        let deviation = (squares / sums.flows).sqrt();
        let scale = match config.fairness_measure {
            Fairness::Paper => sums.mean_throughput,
            Fairness::Relative => mean,
        };
        let relative_latency = sums.latency / sums.flows / base_rtt(flows.clone(), link);
        let alone = sums.agents == sums.flows;
        let excess = if alone { (relative_latency - 1.0 - config.tolerance).max(0.0) } else { 0.0 };
        let mut terms = Self {
            throughput: sums.throughput / link.capacity,
            latency: excess * sums.pacing_rate / link.capacity,
            loss: sums.loss_ratio / sums.agents.max(1.0),
            fairness: if scale > 0.0 { deviation / scale } else { 0.0 },
            stability: sums.variation / sums.agents.max(1.0),
            total: 0.0,
        };
        let total = config.throughput * terms.throughput
            - config.latency * terms.latency
            - config.loss * terms.loss
            - config.fairness * terms.fairness
            - config.stability * terms.stability;
        terms.total = total.clamp(-config.bound, config.bound);
        terms
    }
}

/// Sums over the flows; the last two are over those that ask for actions, `agents` of them.
#[derive(Default)]
struct Sums {
    flows: f64,
    throughput: f64,
    mean_throughput: f64,
    latency: f64,
    pacing_rate: f64,
    agents: f64,
    loss_ratio: f64,
    variation: f64,
}

impl Sums {
    fn add(mut self, flow: &FlowStatistics) -> Self {
        self.flows += 1.0;
        self.throughput += flow.throughput;
        self.mean_throughput += flow.mean_throughput;
        self.latency += flow.latency;
        self.pacing_rate += flow.pacing_rate;
        if !flow.neighbour {
            self.agents += 1.0;
            self.loss_ratio += flow.loss_ratio();
            self.variation += if flow.mean_throughput > 0.0 { flow.deviation / flow.mean_throughput } else { 0.0 };
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: Link = Link { capacity: 1e8, buffer: 3e6, rtt: 0.03 };

    fn flow(throughput: f64, latency: f64) -> FlowStatistics {
        FlowStatistics {
            throughput,
            mean_throughput: throughput,
            latency,
            pacing_rate: throughput,
            base_rtt: 0.03,
            ..FlowStatistics::default()
        }
    }

    fn terms(config: &RewardConfig, flows: &[FlowStatistics]) -> RewardTerms {
        RewardTerms::new(config, &flows.iter(), &LINK)
    }

    fn near(value: f64, expected: f64) -> bool {
        (value - expected).abs() < 1e-12
    }

    #[test]
    fn a_fair_full_link_without_queue_is_perfect() {
        let terms = terms(&RewardConfig::default(), &[flow(5e7, 0.03), flow(5e7, 0.03)]);
        assert_eq!(terms, RewardTerms { throughput: 1.0, total: 0.1, ..RewardTerms::default() });
    }

    /// Environment design: two flows at 60 and 40 of the capacity give 0.1 by eq. 6.
    #[test]
    fn unfairness_of_60_to_40() {
        let flows = [flow(6e7, 0.03), flow(4e7, 0.03)];
        let paper = terms(&RewardConfig::default(), &flows);
        assert!(near(paper.fairness, 0.1));
        // 0.1 * 1 - 0.02 * 0.1
        assert!(near(paper.total, 0.098));
        let relative = RewardConfig { fairness_measure: Fairness::Relative, ..RewardConfig::default() };
        assert!(near(terms(&relative, &flows).fairness, 0.2));
    }

    #[test]
    fn every_term_by_hand() {
        let mut first = flow(6e7, 0.042);
        first.pacing_rate = 8e7;
        first.loss = 6e5;
        first.mean_throughput = 5e7;
        first.deviation = 5e6;
        let mut second = flow(2e7, 0.048);
        second.pacing_rate = 4e7;
        second.mean_throughput = 3e7;
        second.deviation = 6e6;
        let terms = terms(&RewardConfig::default(), &[first, second]);
        assert!(near(terms.throughput, 0.8));
        // Mean round trip 45 ms = 1.5 times the base, 0.3 beyond the tolerance; pacing 1.2 times the capacity.
        assert!(near(terms.latency, 0.36));
        // 1 % and none.
        assert!(near(terms.loss, 0.005));
        // Mean 40, deviations 10, sum 80.
        assert!(near(terms.fairness, 0.125));
        // 0.1 and 0.2.
        assert!(near(terms.stability, 0.15));
        // 0.08 - 0.0072 - 0.005 - 0.0025 - 0.0015
        assert!(near(terms.total, 0.0638));
    }

    #[test]
    fn a_neighbour_counts_for_fairness_and_not_for_loss() {
        let mut own = flow(2e7, 0.06);
        (own.loss, own.deviation) = (4e5, 2e6);
        let mut neighbour = flow(8e7, 0.06);
        (neighbour.loss, neighbour.deviation, neighbour.neighbour) = (8e6, 4e7, true);
        let terms = terms(&RewardConfig::default(), &[own, neighbour]);
        assert!(near(terms.throughput, 1.0));
        assert_eq!(terms.latency, 0.0, "twice the base round trip, but not by the own flow");
        assert!(near(terms.loss, 0.02));
        assert!(near(terms.stability, 0.1));
        // Mean 50, deviations 30, sum 100.
        assert!(near(terms.fairness, 0.3));
        // 0.1 - 0.02 - 0.006 - 0.001
        assert!(near(terms.total, 0.073));
        let terms = super::RewardTerms::new(&RewardConfig::default(), &[neighbour].iter(), &LINK);
        assert_eq!((terms.loss, terms.stability), (0.0, 0.0), "no own flow");
    }

    #[test]
    fn the_reward_is_clipped() {
        let mut lossy = flow(1e7, 0.03);
        lossy.loss = 5e6;
        assert_eq!(terms(&RewardConfig::default(), &[lossy]).total, -0.1);
        let generous = RewardConfig { throughput: 7.0, ..RewardConfig::default() };
        assert_eq!(terms(&generous, &[flow(9e7, 0.03)]).total, 0.1);
    }

    #[test]
    fn silent_flows_and_no_flows_are_defined() {
        assert_eq!(terms(&RewardConfig::default(), &[]), RewardTerms::default());
        let mut silent = flow(0.0, 0.03);
        silent.loss = 1e6;
        let silent = terms(&RewardConfig::default(), &[silent]);
        assert_eq!((silent.loss, silent.fairness, silent.stability, silent.total), (1.0, 0.0, 0.0, -0.1));
    }
}
