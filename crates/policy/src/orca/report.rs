//! What Orca's policy sees: seven features of each of the last reports.

use astraea_cc::Nanos;

use crate::feature::{self, Feature};

/// What a lost bit costs, in delivered ones.
const LOSS_WEIGHT: f64 = 5.0;

/// Round-trip times up to so many times the smallest are as good as that one.
const DELAY_MARGIN: f64 = 1.25;

/// The features of a report, in order; those of the authors' `rl-module/envwrapper.py`, which clips the second alone.
pub const FEATURES: [Feature; 7] = [
    Feature::ratio("thr_ratio", "mean delivery rate / largest of any report", 1.0),
    Feature::ratio("pacing_ratio", "pacing rate / largest mean delivery rate of any report", 10.0),
    Feature::ratio("loss_ratio", "5 * rate of losses / largest mean delivery rate of any report", 10.0),
    Feature::ratio("samples_ratio", "round-trip times measured / window in packets", 10.0),
    Feature::ratio("interval", "time since the report before in s", 1.0),
    Feature::ratio("rtt_ratio", "smallest round-trip time of the flow / smoothed one", 1.0),
    Feature::ratio("delay_metric", "1.25 * rtt_ratio, at most 1", 1.0),
];

/// What a sender measured since the report before. Rates are payload bit/s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// Mean of the delivery-rate samples of the acknowledgements.
    pub throughput: f64,
    /// Pacing rate.
    pub pacing: f64,
    /// What was declared lost, over the time since the report before.
    pub loss: f64,
    /// Round-trip times that were measured.
    pub samples: u32,
    /// Window in packets.
    pub window: f64,
    /// Time since the report before, in ns.
    pub length: Nanos,
    /// Smallest round-trip time of the flow over the smoothed one.
    pub rtt_ratio: f64,
}

impl Report {
    /// 1 up to a round-trip time of 1.25 times the smallest, and less beyond.
    pub fn delay_metric(&self) -> f64 {
        (DELAY_MARGIN * self.rtt_ratio).min(1.0)
    }
}

/// Measurements between two reports.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// When it began.
    pub(super) since: Nanos,
    rates: f64,
    rate_samples: u32,
    /// Round-trip times measured.
    pub(super) samples: u32,
    /// Payload bytes declared lost.
    pub(super) lost: u64,
    /// An acknowledgement shows that the application had nothing to send.
    pub(super) app_limited: bool,
}

impl Tally {
    pub(super) fn since(now: Nanos) -> Self {
        Self { since: now, ..Self::default() }
    }

    /// Begins anew, but for the time and for what the application had to send.
    pub(super) fn forget(&mut self) {
        *self = Self { app_limited: self.app_limited, ..Self::since(self.since) };
    }

    #[inline]
    pub(super) fn on_rate(&mut self, rate: f64) {
        self.rates += rate;
        self.rate_samples += 1;
    }

    /// The report at `now`; the sender says the rest.
    pub(super) fn report(&self, now: Nanos) -> Report {
        let length = now - self.since;
        Report {
            throughput: self.rates / f64::from(self.rate_samples.max(1)),
            loss: self.lost as f64 * 8e9 / length.max(1) as f64,
            samples: self.samples,
            length,
            ..Report::default()
        }
    }
}

/// The last reports of a flow.
#[derive(Clone, Debug)]
pub struct History {
    values: Vec<f32>,
    /// Largest throughput of any report. It never decays.
    most: f64,
    newest: Report,
}

impl History {
    /// A flow without a report; `reports` of them make an observation. Those before the first show zeros.
    pub fn new(reports: usize) -> Self {
        Self { values: vec![0.0; reports * FEATURES.len()], most: 0.0, newest: Report::default() }
    }

    /// Adds a report.
    pub fn push(&mut self, report: &Report) {
        self.newest = *report;
        self.most = self.most.max(report.throughput);
        let raw = [
            self.of_most(report.throughput),
            self.of_most(report.pacing),
            self.of_most(LOSS_WEIGHT * report.loss),
            f64::from(report.samples) / report.window,
            report.length as f64 / 1e9,
            report.rtt_ratio,
            report.delay_metric(),
        ];
        feature::push(&mut self.values, &FEATURES, &raw);
    }

    /// The observation: report by report, oldest first.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Reward of the newest report: what was delivered less five times what was lost, both over the largest throughput of
    /// any report so far, times the delay metric; 0 before the first.
    pub fn reward(&self) -> f64 {
        let Report { throughput, loss, .. } = self.newest;
        self.of_most(throughput - LOSS_WEIGHT * loss) * self.newest.delay_metric()
    }

    /// The newest report; zeros before the first.
    pub fn newest(&self) -> &Report {
        &self.newest
    }

    fn of_most(&self, rate: f64) -> f64 {
        if self.most > 0.0 { rate / self.most } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_and_reward_by_hand() {
        let mut history = History::new(2);
        assert_eq!((history.values(), history.reward()), ([0.0; 14].as_slice(), 0.0));
        let first = Report {
            throughput: 8e6,
            pacing: 12e6,
            loss: 0.0,
            samples: 5,
            window: 20.0,
            length: 20_000_000,
            rtt_ratio: 0.9,
        };
        history.push(&first);
        assert_eq!(history.values()[7..], [1.0, 1.5, 0.0, 0.25, 0.02, 0.9, 1.0]);
        assert_eq!(history.reward(), 1.0);
        // Half of what was most; a tenth of that lost; twice the smallest round-trip time.
        let second = Report { throughput: 4e6, pacing: 1e9, loss: 0.4e6, rtt_ratio: 0.5, ..first };
        history.push(&second);
        assert_eq!(history.values()[..7], [1.0, 1.5, 0.0, 0.25, 0.02, 0.9, 1.0]);
        assert_eq!(history.values()[7..], [0.5, 10.0, 0.25, 0.25, 0.02, 0.5, 0.625]);
        assert_eq!(history.reward(), (4.0 - 5.0 * 0.4) / 8.0 * 0.625);
    }

    #[test]
    fn without_a_delivery_rate_there_is_nothing_to_compare_with() {
        let mut history = History::new(1);
        history.push(&Report { pacing: 1e6, loss: 1e6, samples: 1, window: 10.0, rtt_ratio: 1.0, ..Report::default() });
        assert_eq!(history.values(), [0.0, 0.0, 0.0, 0.1, 0.0, 1.0, 1.0]);
        assert_eq!(history.reward(), 0.0);
    }
}
