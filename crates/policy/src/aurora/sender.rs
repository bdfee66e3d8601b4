//! Aurora's sender: a rate that holds for a monitor interval.

use std::sync::Arc;

use astraea_cc::{Ack, Congestion, Controller, INITIAL_WINDOW, MILLISECOND, Nanos, Rtt};

use super::{AuroraPolicy, History, Interval};
use crate::{Scratch, action};

/// Length of the interval before the first that the policy sees, and of that one, in first round-trip times: as in
/// training, see `astraea/SingleFlow-v0`.
const WARM_UP: f64 = 1.5;

/// Shortest interval. Paths of less than 2 ms are outside of what Aurora was made for; deciding more often costs more than
/// it brings.
const SHORTEST: Nanos = MILLISECOND;

/// Window in products of rate and smoothed round-trip time. Aurora has no window: the rate decides. This one takes effect
/// when acknowledgements stay away, and bounds what is sent into an outage.
const WINDOW_PRODUCTS: f64 = 4.0;

/// Rates in payload bit/s, and how much an action changes one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AuroraConfig {
    /// At the start: 6 Mbit/s in the authors' sender.
    pub start: f64,
    /// Smallest: 0.5 Mbit/s there.
    pub least: f64,
    /// Largest, no less than the smallest: 300 Mbit/s there.
    pub most: f64,
    /// Change by an action of 1 ([`action::scaled`]).
    pub alpha: f64,
}

impl AuroraConfig {
    /// The authors' rates, with what the policy was trained with.
    pub fn of(policy: &AuroraPolicy) -> Self {
        Self { start: 6e6, least: 0.5e6, most: 300e6, alpha: policy.terms().alpha }
    }
}

/// A flow under a policy of Aurora's (Jay et al., ICML 2019).
///
/// Time is divided into monitor intervals of half the mean round-trip time of the one before. At the end of each the policy
/// sees the last ten, and changes the rate by its action. It has no other reaction: not to a loss, not to a timeout.
///
/// The paper, its authors' gym and their sender (`PCCproject/PCC-RL`, commit 64bea6e, and the plug-in for PCC-Uspace) differ
/// in details. Pinned here:
///
/// * Intervals, features and action are those of the environment that the policy was trained in
///   (`astraea/SingleFlow-v0`, which says where the gym differs): an interval counts what is sent and what is acknowledged
///   in it. The authors' sender counts by packet, from when an interval's were sent.
/// * First rate and limits are those of the authors' sender. The action scale is the paper's, .025; theirs has .05.
///
/// Neither says anything of what follows:
///
/// * Until the first round-trip time is known ten packets leave at once, as everywhere (RFC 6928), and no more.
/// * An action that raises the rate counts for nothing where the application has less to send than the rate.
/// * An interval in which nothing is sent and nothing acknowledged is none: idle times leave rate and history alone.
/// * Intervals last a millisecond at least.
/// * The window is four products of rate and smoothed round-trip time, for when acknowledgements stay away.
#[derive(Clone, Debug)]
pub struct Aurora {
    policy: Arc<AuroraPolicy>,
    config: AuroraConfig,
    mss: u64,
    rate: f64,
    history: History,
    scratch: Scratch,
    phase: Phase,
    /// Whether an acknowledgement of the interval shows that the application had nothing to send.
    app_limited: bool,
    smoothed: Nanos,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Nothing was sent yet, or for an interval.
    Idle,
    /// Since then no round-trip time is known.
    Unknown { since: Nanos },
    /// An interval that the policy does not see: what the rate has done shows a round trip later.
    Warming(Interval),
    /// An interval that the policy sees.
    Measuring(Interval),
}

impl Aurora {
    /// A connection that begins, with segments of `mss` payload bytes (at least 1).
    pub fn new(policy: Arc<AuroraPolicy>, config: AuroraConfig, mss: u32) -> Self {
        Self {
            mss: u64::from(mss.max(1)),
            rate: config.start.clamp(config.least, config.most),
            config,
            history: History::new(policy.history()),
            policy,
            scratch: Scratch::default(),
            phase: Phase::Idle,
            app_limited: false,
            smoothed: 0,
        }
    }

    /// The rate in payload bit/s.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// What the policy sees.
    pub fn observation(&self) -> &[f32] {
        self.history.values()
    }

    fn interval(&mut self) -> Option<&mut Interval> {
        match &mut self.phase {
            Phase::Warming(interval) | Phase::Measuring(interval) => Some(interval),
            Phase::Idle | Phase::Unknown { .. } => None,
        }
    }

    fn next_interval(&self, now: Nanos, round_trips: f64) -> Interval {
        // Until an interval has had a round-trip time, the smoothed one stands for its mean.
        let assumed = || (round_trips * self.smoothed as f64) as Nanos;
        Interval::new(now, self.history.next_length(round_trips).unwrap_or_else(assumed).max(SHORTEST))
    }

    fn decide(&mut self) {
        let action = self.policy.act(self.history.values(), &mut self.scratch);
        if action <= 0.0 || !self.app_limited {
            let AuroraConfig { least, most, alpha, .. } = self.config;
            self.rate = action::scaled(self.rate, action, alpha).clamp(least, most);
        }
    }
}

impl Controller for Aurora {
    #[inline]
    fn on_sent(&mut self, now: Nanos, bytes: u64, _in_flight: u64) {
        if matches!(self.phase, Phase::Idle) {
            self.phase = if self.smoothed == 0 {
                Phase::Unknown { since: now }
            } else {
                Phase::Measuring(self.next_interval(now, self.policy.terms().interval))
            };
        }
        if let Some(interval) = self.interval() {
            interval.sent += bytes;
        }
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        self.smoothed = rtt.smoothed();
        self.app_limited |= ack.rate.app_limited;
        if let (Phase::Unknown { since }, Some(sample)) = (self.phase, ack.rtt) {
            let length = (WARM_UP * sample as f64) as Nanos;
            self.phase = Phase::Warming(Interval::new(since, length.max(ack.now - since).max(SHORTEST)));
        }
        if let Some(interval) = self.interval() {
            interval.acked += ack.acked;
            if let Some(sample) = ack.rtt {
                interval.on_rtt(ack.now, sample);
            }
        }
    }

    // The share of packets that are acknowledged is what the policy sees of losses.
    fn on_congestion(&mut self, _event: &Congestion) {}

    fn on_timeout(&mut self, _now: Nanos, _flight_size: u64) {}

    fn next_timer(&self) -> Option<Nanos> {
        match &self.phase {
            Phase::Warming(interval) | Phase::Measuring(interval) => Some(interval.end),
            Phase::Idle | Phase::Unknown { .. } => None,
        }
    }

    fn on_timer(&mut self, now: Nanos) {
        self.phase = match self.phase {
            Phase::Warming(interval) => Phase::Measuring(Interval::new(now, interval.end - interval.start)),
            Phase::Measuring(interval) if interval.sent == 0 && interval.acked == 0 => Phase::Idle,
            Phase::Measuring(interval) => {
                self.history.push(&interval, self.mss);
                self.decide();
                Phase::Measuring(self.next_interval(now, self.policy.terms().interval))
            }
            other => other,
        };
        self.app_limited = false;
    }

    #[inline]
    fn cwnd(&self) -> u64 {
        let initial = u64::from(INITIAL_WINDOW) * self.mss;
        if self.smoothed == 0 {
            return initial;
        }
        ((WINDOW_PRODUCTS * self.rate * self.smoothed as f64 / 8e9) as u64).max(initial)
    }

    #[inline]
    fn pacing_rate(&self) -> Option<f64> {
        Some(self.rate)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::AuroraTerms;
    use super::*;
    use crate::Layer;
    use astraea_cc::RateSample;

    const MSS: u64 = 1000;

    /// A policy of one interval whose action is `bias`, less `weight` for each unit of the send ratio.
    fn policy(weight: f32, bias: f32) -> Arc<AuroraPolicy> {
        let layer = Layer { inputs: 3, weights: vec![0.0, 0.0, -weight], bias: vec![bias] };
        let terms = AuroraTerms { alpha: 0.025, limit: 10.0, interval: 0.5, notes: BTreeMap::new() };
        Arc::new(AuroraPolicy::new(vec![layer], terms).unwrap())
    }

    struct Flow {
        sender: Aurora,
        rtt: Rtt,
    }

    impl Flow {
        fn new(policy: Arc<AuroraPolicy>) -> Self {
            let config = AuroraConfig::of(&policy);
            Self { sender: Aurora::new(policy, config, MSS as u32), rtt: Rtt::default() }
        }

        fn send(&mut self, at: f64) {
            self.sender.on_sent(ms(at), MSS, MSS);
        }

        /// An acknowledgement of one packet after `rtt` ms.
        fn ack(&mut self, at: f64, rtt: f64, app_limited: bool) {
            self.rtt.update(ms(rtt));
            let ack = Ack {
                now: ms(at),
                acked: MSS,
                sent_at: ms(at - rtt),
                rtt: Some(ms(rtt)),
                rate: RateSample { app_limited, ..RateSample::default() },
                ..Ack::default()
            };
            self.sender.on_ack(&ack, &self.rtt);
        }

        /// Ends the interval under way, which must be at `at` ms.
        fn end(&mut self, at: f64) {
            assert_eq!(self.sender.next_timer(), Some(ms(at)));
            self.sender.on_timer(ms(at));
        }
    }

    fn ms(milliseconds: f64) -> Nanos {
        (milliseconds * MILLISECOND as f64) as Nanos
    }

    /// A flow that has seen round trips of 40 ms, at the beginning of its second interval, which is at 120 ms.
    fn under_way(policy: Arc<AuroraPolicy>) -> Flow {
        let mut flow = Flow::new(policy);
        flow.send(0.0);
        assert_eq!((flow.sender.next_timer(), flow.sender.cwnd()), (None, 10 * MSS));
        flow.ack(40.0, 40.0, false);
        flow.end(60.0);
        flow.send(61.0);
        flow.ack(101.0, 40.0, false);
        flow.end(120.0);
        flow
    }

    #[test]
    fn intervals_by_hand() {
        let mut flow = under_way(policy(1.0, 2.0));
        // One sent, one acknowledged: an action of 2 - 1, and the next interval lasts half of 40 ms.
        assert_eq!(flow.sender.observation(), [0.0, 1.0, 1.0]);
        assert_eq!(flow.sender.rate(), 6e6 * 1.025);
        for at in [121.0, 124.0, 128.0] {
            flow.send(at);
        }
        // The second half begins at 130 ms; the mean is 50 ms, and grows by 20 ms in 20.
        flow.ack(129.0, 40.0, false);
        flow.ack(130.0, 60.0, false);
        flow.end(140.0);
        assert_eq!(flow.sender.observation(), [1.0, 1.25, 1.5]);
        assert_eq!(flow.sender.rate(), 6e6 * 1.025 * (1.0 + 0.025 * 0.5));
        // Nothing comes back of two: an action of 2 - 2 leaves the rate alone, and so does a timeout.
        flow.send(141.0);
        flow.send(142.0);
        flow.sender.on_timeout(ms(150.0), 2 * MSS);
        let rate = flow.sender.rate();
        flow.end(165.0);
        assert_eq!((flow.sender.observation(), flow.sender.rate()), ([0.0, 1.25, 2.0].as_slice(), rate));
    }

    #[test]
    fn without_an_acknowledgement_at_first_intervals_have_their_length() {
        let mut flow = Flow::new(policy(0.0, 0.0));
        flow.send(0.0);
        flow.ack(40.0, 40.0, false);
        flow.end(60.0);
        // Nothing comes back in the first interval that counts: the next lasts half of the 40 ms that are known.
        flow.send(61.0);
        flow.end(120.0);
        flow.send(121.0);
        flow.end(140.0);
        assert_eq!(flow.sender.observation(), [0.0, 1.0, 1.0]);
    }

    #[test]
    fn the_rate_stays_within_its_limits() {
        let mut up = Flow::new(policy(0.0, 10.0));
        up.send(0.0);
        let mut down = Flow::new(policy(0.0, -10.0));
        down.send(0.0);
        for flow in [&mut up, &mut down] {
            flow.ack(40.0, 40.0, false);
            for _ in 0..50 {
                flow.send(41.0);
                let end = flow.sender.next_timer().unwrap();
                flow.sender.on_timer(end);
            }
        }
        assert_eq!((up.sender.rate(), down.sender.rate()), (300e6, 0.5e6));
        assert_eq!(down.sender.cwnd(), 4 * 500_000 * 40 / 8_000 / MSS * MSS);
    }

    #[test]
    fn an_application_that_pauses_raises_no_rate() {
        let mut flow = under_way(policy(0.0, 1.0));
        let rate = flow.sender.rate();
        flow.send(121.0);
        flow.ack(130.0, 40.0, true);
        flow.end(140.0);
        assert_eq!(flow.sender.rate(), rate);
        // Nothing sent, nothing acknowledged: no interval, until something is sent.
        let seen = flow.sender.observation().to_vec();
        flow.end(160.0);
        assert_eq!((flow.sender.next_timer(), flow.sender.observation()), (None, seen.as_slice()));
        flow.send(5000.0);
        flow.ack(5010.0, 40.0, false);
        flow.end(5020.0);
        assert_eq!(flow.sender.rate(), rate * 1.025);
        // A lower rate is taken even so.
        let mut flow = under_way(policy(0.0, -1.0));
        flow.send(121.0);
        flow.ack(130.0, 40.0, true);
        flow.end(140.0);
        assert_eq!(flow.sender.rate(), 6e6 / 1.025 / 1.025);
    }
}
