//! What a selector measures between two decisions.

use astraea_cc::{Ack, MSS, Nanos, Rtt};

use crate::Feature;

/// Which selector a policy is for: what it sees, what it was rewarded for, and how it changes its mind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Antelope (Zhou et al., ICNP 2021).
    Antelope,
    /// HACC (Peng et al.).
    Hacc,
}

/// Acknowledgements after which Antelope's interval ends (`staticCount`: more than twenty).
const ACKS: u32 = 21;

/// Least length of an interval of HACC's, which is a round trip otherwise; neither is published.
const LEAST: Nanos = 10_000_000;

/// Doublings after which the tolerance for delay stays (`countIndex < 9`).
const DOUBLINGS: u32 = 9;

/// What a lost packet costs in HACC's reward, in delivered ones (eta', not published; Orca's, of which the rest is).
const LOSS_WEIGHT: f64 = 5.0;

const RTT: Feature = Feature::log("rtt", "mean of the smoothed round-trip time in ms", 0.1, 1e4);
const MIN_RTT: Feature = Feature::log("min_rtt", "smallest round-trip time of the flow in ms", 0.1, 1e4);
const THROUGHPUT: Feature = Feature::log("throughput", "what was delivered in Mbit/s", 1e-2, 1e4);
const LOST: Feature = Feature::ratio("lost", "what was declared lost, in packets of 1448 bytes", 1e3);

/// What Antelope's models see, in the order of the authors' training data.
const ANTELOPE: [Feature; 7] = [
    MIN_RTT,
    Feature::log("deviation", "mean deviation of the round-trip time in ms", 0.1, 1e4),
    RTT,
    Feature::log("delay", "the delay that the reward counts, in ms", 0.1, 1e4),
    THROUGHPUT,
    LOST,
    Feature::log("pacing", "mean of the pacing rate in Mbit/s", 1e-2, 1e4),
];

/// What HACC's see (table 1).
const HACC: [Feature; 6] = [
    RTT,
    Feature::ratio("acks", "acknowledgements", 1e5),
    LOST,
    THROUGHPUT,
    MIN_RTT,
    Feature::log("pacing_max", "largest pacing rate of the flow so far in Mbit/s", 1e-2, 1e4),
];

/// Most features of a kind.
pub(super) const MOST_FEATURES: usize = 7;

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Antelope, Self::Hacc];

    /// Name of the scheme, of the form in a file, and how the name of the file ends.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Antelope => "antelope",
            Self::Hacc => "hacc",
        }
    }

    /// The kind of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// What its models see of an interval.
    pub const fn features(self) -> &'static [Feature] {
        match self {
            Self::Antelope => &ANTELOPE,
            Self::Hacc => &HACC,
        }
    }
}

/// What was measured over an interval. Rates are payload bit/s.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// Intervals of the flow before it.
    pub index: u32,
    /// Length in ns.
    pub length: Nanos,
    /// Acknowledgements that came.
    pub acks: u32,
    /// Payload bytes that they are the first to acknowledge.
    pub delivered: u64,
    /// Payload bytes declared lost.
    pub lost: u64,
    /// Mean of the smoothed round-trip time at each acknowledgement, in ns.
    pub rtt: f64,
    /// Smallest round-trip time of the flow in ns.
    pub min_rtt: f64,
    /// Mean deviation of the round-trip time at its end, in ns.
    pub deviation: f64,
    /// Mean of the pacing rate at each acknowledgement, …
    pub pacing: f64,
    /// … its largest, …
    pub pacing_peak: f64,
    /// … and the largest of the flow so far.
    pub pacing_max: f64,
}

impl Interval {
    /// Delivered bit/s.
    pub fn throughput(&self) -> f64 {
        self.rate(self.delivered)
    }

    fn rate(&self, bytes: u64) -> f64 {
        bytes as f64 * 8e9 / self.length.max(1) as f64
    }

    /// The delay that counts, in ns: as long as it is less than a multiple of the smallest, the smallest. The multiple doubles
    /// with each interval: a flow that has sent little wants low delay, one that goes on wants throughput.
    pub fn delay(&self, kind: Kind) -> f64 {
        let doubled = f64::from(1 << self.index.min(DOUBLINGS));
        let tolerated = match kind {
            Kind::Antelope => self.rtt < doubled * self.min_rtt,
            Kind::Hacc => self.rtt <= 2.0 * doubled * self.min_rtt,
        };
        if tolerated { self.min_rtt } else { self.rtt }
    }

    /// What the interval was worth: 1 at most, which is delivery at the pacing rate and without delay. (Of a small window that
    /// comes in bursts, 21 acknowledgements may show a higher rate, at which nobody sends.)
    ///
    /// Antelope's (`calReward`): delivered packets a second, less the packets lost in the interval, over the largest pacing rate
    /// of the interval, times smallest over counted delay. HACC's (equation 1, without the price of a decision): delivered less
    /// five times lost over the largest pacing rate of the flow, times the same.
    pub fn reward(&self, kind: Kind) -> f64 {
        let (worth, most) = match kind {
            Kind::Antelope => (self.throughput() - self.lost as f64 * 8.0, self.pacing_peak),
            Kind::Hacc => (self.throughput() - LOSS_WEIGHT * self.rate(self.lost), self.pacing_max),
        };
        (worth / most.max(f64::from(8 * MSS)) * self.min_rtt / self.delay(kind)).min(1.0)
    }

    /// Writes what the models of a kind see.
    pub fn observe(&self, kind: Kind, values: &mut [f32]) {
        let (ms, mbit) = (1e6, 1e6);
        let lost = self.lost as f64 / f64::from(MSS);
        let (rtt, min_rtt) = (self.rtt / ms, self.min_rtt / ms);
        let throughput = self.throughput() / mbit;
        let raw = match kind {
            Kind::Antelope => {
                let (deviation, delay) = (self.deviation / ms, self.delay(kind) / ms);
                [min_rtt, deviation, rtt, delay, throughput, lost, self.pacing / mbit]
            }
            Kind::Hacc => [rtt, f64::from(self.acks), lost, throughput, min_rtt, self.pacing_max / mbit, 0.0],
        };
        for ((value, feature), raw) in values.iter_mut().zip(kind.features()).zip(raw) {
            *value = feature.encode(raw);
        }
    }
}

/// An interval that goes on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    index: u32,
    since: Option<Nanos>,
    acks: u32,
    delivered: u64,
    lost: u64,
    rtt: f64,
    pacing: f64,
    pacing_peak: f64,
    pacing_max: f64,
}

impl Tally {
    pub(super) fn on_loss(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    /// Takes an acknowledgement, at a pacing rate. Returns the interval if it ends it; the next one begins there.
    #[inline]
    pub(super) fn on_ack(&mut self, kind: Kind, ack: &Ack, rtt: &Rtt, pacing: f64) -> Option<Interval> {
        // Of the first one of the flow only the time counts: 21 acknowledgements have 20 gaps.
        self.delivered += if self.since.is_some() { ack.acked } else { 0 };
        let since = *self.since.get_or_insert(ack.now);
        self.acks += 1;
        self.rtt += rtt.smoothed() as f64;
        self.pacing += pacing;
        self.pacing_peak = self.pacing_peak.max(pacing);
        self.pacing_max = self.pacing_max.max(pacing);
        let length = ack.now - since;
        let over = match kind {
            Kind::Antelope => self.acks >= ACKS,
            Kind::Hacc => length >= rtt.smoothed().max(LEAST),
        };
        (over && rtt.has_sample()).then(|| self.end(ack.now, length, rtt))
    }

    fn end(&mut self, now: Nanos, length: Nanos, rtt: &Rtt) -> Interval {
        let acks = f64::from(self.acks);
        let interval = Interval {
            index: self.index,
            length,
            acks: self.acks,
            delivered: self.delivered,
            lost: self.lost,
            rtt: self.rtt / acks,
            min_rtt: rtt.min().unwrap_or(0) as f64,
            deviation: rtt.variation() as f64,
            pacing: self.pacing / acks,
            pacing_peak: self.pacing_peak,
            pacing_max: self.pacing_max,
        };
        let index = self.index.saturating_add(1);
        *self = Self { index, since: Some(now), pacing_max: self.pacing_max, ..Self::default() };
        interval
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(index: u32) -> Interval {
        Interval {
            index,
            length: 1_000_000_000,
            acks: 21,
            delivered: 125_000,
            lost: 5 * 1448,
            rtt: 60e6,
            min_rtt: 20e6,
            deviation: 4e6,
            pacing: 1.2e6,
            pacing_peak: 2e6,
            pacing_max: 4e6,
        }
    }

    #[test]
    fn low_delay_counts_at_first_and_throughput_later() {
        // Three times the smallest: more than 1 and 2 times, less than 4.
        let delays = |kind| [0, 1, 2, 3].map(|index| interval(index).delay(kind));
        assert_eq!(delays(Kind::Antelope), [60e6, 60e6, 20e6, 20e6]);
        assert_eq!(delays(Kind::Hacc), [60e6, 20e6, 20e6, 20e6]);
        let long = Interval { rtt: 512.5 * 20e6, ..interval(1000) };
        assert_eq!((long.delay(Kind::Antelope), long.delay(Kind::Hacc)), (long.rtt, 20e6), "2^9 and 2^10 at most");
        let exact = Interval { rtt: 20e6, ..interval(0) };
        assert_eq!(exact.delay(Kind::Antelope), 20e6);
    }

    #[test]
    fn rewards_by_hand() {
        // 1 Mbit/s delivered. Antelope: five packets less, as if they were packets a second, of the peak of 2 Mbit/s.
        let packets = 5.0 * 1448.0 * 8.0;
        assert!((interval(5).reward(Kind::Antelope) - (1e6 - packets) / 2e6).abs() < 1e-12);
        assert!((interval(0).reward(Kind::Antelope) - (1e6 - packets) / 2e6 / 3.0).abs() < 1e-12);
        // HACC: five times what was lost, of the largest rate of the flow.
        assert!((interval(5).reward(Kind::Hacc) - (1e6 - 5.0 * packets) / 4e6).abs() < 1e-12);
        // Half as long: twice the rates, but as many packets lost.
        let half = Interval { length: 500_000_000, ..interval(5) };
        assert!((half.reward(Kind::Antelope) - (2e6 - packets) / 2e6).abs() < 1e-12);
        assert_eq!(Interval { length: 100_000_000, ..interval(5) }.reward(Kind::Antelope), 1.0);
        assert!((half.reward(Kind::Hacc) - (2e6 - 10.0 * packets) / 4e6).abs() < 1e-12);
    }

    #[test]
    fn what_the_models_see_by_hand() {
        let mut seen = [0.0; MOST_FEATURES];
        interval(5).observe(Kind::Antelope, &mut seen);
        let encoded = |feature: &Feature, raw| feature.encode(raw);
        let raw = [20.0, 4.0, 60.0, 20.0, 1.0, 5.0, 1.2];
        let expected: Vec<_> = ANTELOPE.iter().zip(raw).map(|(feature, raw)| encoded(feature, raw)).collect();
        assert_eq!(seen.as_slice(), expected);
        interval(5).observe(Kind::Hacc, &mut seen[..6]);
        let raw = [60.0, 21.0, 5.0, 1.0, 20.0, 4.0];
        let expected: Vec<_> = HACC.iter().zip(raw).map(|(feature, raw)| encoded(feature, raw)).collect();
        assert_eq!(seen[..6], expected);
    }

    /// Acknowledgements of a packet each, every 2 ms from 100 ms on; which intervals they end.
    fn tallied(kind: Kind, acks: u32) -> Vec<Interval> {
        let (mut tally, mut rtt, mut ended) = (Tally::default(), Rtt::default(), vec![]);
        for index in 0..acks {
            rtt.update(40_000_000);
            let ack = Ack {
                now: 100_000_000 + u64::from(index) * 2_000_000,
                acked: 1448,
                rtt: Some(40_000_000),
                cwnd_limited: true,
                ..Ack::default()
            };
            tally.on_loss(if index == 3 { 2896 } else { 0 });
            ended.extend(tally.on_ack(kind, &ack, &rtt, f64::from(index)));
        }
        ended
    }

    #[test]
    fn antelope_counts_acknowledgements() {
        let ended = tallied(Kind::Antelope, 45);
        let seen: Vec<_> = ended.iter().map(|i| (i.index, i.acks, i.length, i.delivered, i.lost)).collect();
        // The first is as long as from its first to its last acknowledgement, the second from the end of the first.
        assert_eq!(seen, [(0, 21, 40_000_000, 20 * 1448, 2896), (1, 21, 42_000_000, 21 * 1448, 0)]);
        assert_eq!((ended[1].pacing, ended[1].pacing_peak, ended[1].pacing_max), (31.0, 41.0, 41.0));
        assert_eq!((ended[1].rtt, ended[1].min_rtt), (40e6, 40e6));
    }

    #[test]
    fn hacc_counts_round_trips() {
        let seen: Vec<_> = tallied(Kind::Hacc, 45).iter().map(|i| (i.index, i.acks, i.length)).collect();
        assert_eq!(seen, [(0, 21, 40_000_000), (1, 20, 40_000_000)]);
    }
}
