//! Vegas: a few packets in the queue, neither more nor fewer (Brakmo and Peterson 1995), as in Linux 6.1.

use crate::delay::{DelayRounds, RoundDelay};
use crate::{
    Ack, AnyController, Congestion, Connection, Controller, HandOver, Nanos, NewReno, Parameter, Rtt, Scheme, Successor,
};

/// Samples below which a round trip says too little and Reno decides (Linux: `cntRTT <= 2`). With an acknowledgement
/// for every packet this is a window of two.
const MIN_SAMPLES: u32 = 3;

/// Smallest window that Vegas sets, in segments (Linux).
const MIN_WINDOW: u64 = 2;

/// Constants of Vegas in packets of the flow's own that wait in the queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VegasConfig {
    /// With fewer, the window grows by a segment per round trip (α of the paper, `alpha` in Linux).
    pub alpha: f64,
    /// With more, it shrinks by one (β, `beta`).
    pub beta: f64,
    /// With more, slow start ends (γ, `gamma`).
    pub gamma: f64,
}

impl VegasConfig {
    /// Linux's values. The paper measures with (1, 3) and (2, 4) for α and β, and 1 for γ.
    pub const DEFAULT: Self = Self { alpha: 2.0, beta: 4.0, gamma: 1.0 };
}

impl Default for VegasConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Vegas as a scheme.
pub(crate) const SCHEME: Scheme = Scheme {
    name: "vegas",
    title: "Vegas",
    kind: "delay",
    year: 1995,
    reference: "Brakmo and Peterson 1995",
    parameters: &[
        Parameter::packets(
            "alpha",
            VegasConfig::DEFAULT.alpha,
            "own packets in the queue below which the window grows",
        ),
        Parameter::packets(
            "beta",
            VegasConfig::DEFAULT.beta,
            "own packets in the queue above which the window shrinks",
        ),
        Parameter::packets("gamma", VegasConfig::DEFAULT.gamma, "own packets in the queue above which slow start ends"),
    ],
    build: |values, mss| {
        let config = VegasConfig { alpha: values.get("alpha"), beta: values.get("beta"), gamma: values.get("gamma") };
        AnyController::Vegas(Vegas::new(config, mss))
    },
};

/// Vegas as in Linux 6.1 (`tcp_vegas.c`): once per round trip, `diff = w (RTT − base) / base` packets are compared with
/// α, β and γ, where `w` is the window in whole segments, RTT the smallest sample of the round trip and base the
/// smallest of all.
///
/// * Congestion avoidance: one segment more if `diff < α`, one less if `diff > β`, at least two segments.
/// * Slow start: doubles every round trip (the paper: every other one) until `diff > γ`, and then continues from
///   `min(w, w base / RTT + 1)`: what the path holds without a queue, and one.
/// * Fewer than three samples in a round trip: its last acknowledgement counts as in Reno.
/// * A loss, a mark, a timeout and what is acknowledged while a loss is repaired: [`NewReno`]. The paper's own rules of
///   retransmission belong to the transport; Linux does without them too.
/// * When a packet leaves and no other is in flight, after a pause however short or once all were lost, the base is
///   measured anew; a route that has become longer is not noticed otherwise. A pause halves the window with every
///   retransmission timeout that passes, down to the initial one, and leaves `ssthresh` at 3/4 of it, at least.
///
/// With `q` packets in the queue of a path that holds `P`, this `diff` is `q (1 + q / P)`: the same where `q` is small
/// against `P`. The paper and ns-3 (`w (RTT − base) / RTT`) have `q`.
///
/// Differences from Linux: `diff` is not truncated to an integer, so the window rests while 2 ≤ diff ≤ 4 as in the
/// paper, rather than 2 ≤ diff < 5, and slow start ends above 1 rather than at 2; and a round trip in which the window
/// never held the sender back does not let it grow.
#[derive(Clone, Debug)]
pub struct Vegas {
    config: VegasConfig,
    mss: u64,
    /// Window, and what it does where Vegas has nothing to say.
    reno: NewReno,
    rounds: DelayRounds,
}

impl Vegas {
    /// A connection that begins, with segments of `mss` payload bytes (at least 1).
    pub fn new(config: VegasConfig, mss: u32) -> Self {
        let rounds = DelayRounds::default();
        Self { config, mss: u64::from(mss.max(1)), reno: NewReno::new(mss), rounds }
    }

    /// Slow-start threshold in payload bytes, `u64::MAX` before slow start has ended.
    pub fn ssthresh(&self) -> u64 {
        self.reno.ssthresh()
    }

    /// A round trip has ended; false if slow start goes on.
    fn adjust(&mut self, round: &RoundDelay) -> bool {
        let VegasConfig { alpha, beta, gamma } = self.config;
        let (base, rtt) = (round.base as f64, round.rtt as f64);
        let cwnd = self.reno.cwnd();
        let window = (cwnd / self.mss) as f64;
        let diff = window * (rtt - base) / base;
        let slow_start = self.reno.in_slow_start();
        let wanted = if slow_start {
            if diff <= gamma {
                return false;
            }
            cwnd.min(((window * base / rtt) as u64 + 1) * self.mss)
        } else if diff > beta {
            cwnd.saturating_sub(self.mss)
        } else if diff < alpha && round.cwnd_limited {
            cwnd + self.mss
        } else {
            cwnd
        };
        let wanted = wanted.max(MIN_WINDOW * self.mss);
        self.reno.set_window(wanted, self.reno.ssthresh().min(wanted));
        true
    }
}

impl Controller for Vegas {
    #[inline]
    fn on_sent(&mut self, _now: Nanos, bytes: u64, in_flight: u64) {
        // Nothing else is in flight: `CA_EVENT_TX_START`.
        if in_flight == bytes {
            self.rounds.reset_base(None);
        }
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        let vegas = match self.rounds.on_ack(ack) {
            Some(round) => round.samples >= MIN_SAMPLES && self.adjust(&round),
            None => !(self.reno.in_slow_start() || ack.in_recovery || ack.hole_open),
        };
        if vegas {
            self.reno.note(ack, rtt);
        } else {
            self.reno.on_ack(ack, rtt);
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        self.reno.on_congestion(event);
    }

    fn reduces_proportionally(&self) -> bool {
        true
    }

    fn on_timeout(&mut self, now: Nanos, flight_size: u64) {
        self.reno.on_timeout(now, flight_size);
    }

    fn on_spurious_congestion(&mut self, now: Nanos) {
        self.reno.on_spurious_congestion(now);
    }

    fn on_idle_restart(&mut self, _now: Nanos, idle: Nanos) {
        self.reno.restart_by_halves(idle);
    }

    #[inline]
    fn cwnd(&self) -> u64 {
        self.reno.cwnd()
    }
}

impl Successor for Vegas {
    fn hand_over(&self) -> HandOver {
        HandOver { cwnd: self.reno.cwnd(), ssthresh: self.reno.ssthresh() }
    }

    /// Window and threshold are there, the base round-trip time is not (`tcp_vegas_init`).
    fn take_over(&mut self, from: HandOver, connection: &Connection) {
        self.reno.resume(from, connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MILLISECOND, SECOND, Signal};

    const MSS: u64 = 1000;
    const BASE: Nanos = 100 * MILLISECOND;

    /// Plays round trips by hand: packets are sent when the previous round trip ends.
    struct Hand {
        vegas: Vegas,
        now: Nanos,
        limited: bool,
        in_recovery: bool,
    }

    impl Hand {
        fn new() -> Self {
            let vegas = Vegas::new(VegasConfig::default(), MSS as u32);
            Self { vegas, now: SECOND, limited: true, in_recovery: false }
        }

        fn ack(&mut self, sent_at: Nanos, rtt: Nanos) {
            let ack = Ack {
                now: self.now,
                acked: MSS,
                sent_at,
                rtt: Some(rtt),
                cwnd_limited: self.limited,
                in_recovery: self.in_recovery,
                ..Ack::default()
            };
            self.vegas.on_ack(&ack, &Rtt::default());
        }

        /// `acks` samples of `rtt`, the last of which ends the round trip; returns the window in segments.
        fn round(&mut self, acks: u32, rtt: Nanos) -> u64 {
            let sent_at = self.now;
            self.now += rtt;
            for _ in 1..acks {
                self.ack(sent_at - 1, rtt);
            }
            self.ack(sent_at, rtt);
            self.vegas.cwnd() / MSS
        }
    }

    /// In congestion avoidance with 20 segments and a base of 100 ms.
    fn avoiding() -> Hand {
        let mut hand = Hand::new();
        hand.round(30, BASE);
        assert_eq!(hand.vegas.cwnd(), 40 * MSS);
        let event = Congestion { now: hand.now, signal: Signal::Loss, flight_size: 40 * MSS, sent_at: 0 };
        hand.vegas.on_congestion(&event);
        hand.in_recovery = true;
        assert_eq!(hand.round(20, BASE), 20, "no growth while a loss is repaired");
        hand.in_recovery = false;
        hand
    }

    /// 20 packets at 110 ms: diff 2 and not below α. 21 at 119 ms: 3.99. 20 at 121 ms: 4.2.
    #[test]
    fn the_window_rests_between_alpha_and_beta() {
        for (ms, window) in [(100, 21), (109, 21), (110, 20), (115, 20), (120, 20), (121, 19), (200, 19)] {
            assert_eq!(avoiding().round(20, ms * MILLISECOND), window, "{ms} ms");
        }
    }

    #[test]
    fn one_segment_per_round_trip_on_its_smallest_sample() {
        let mut hand = avoiding();
        assert_eq!(hand.round(20, BASE), 21);
        // One sample of a short queue among long ones.
        let sent_at = hand.now;
        hand.now += 2 * BASE;
        for _ in 0..19 {
            hand.ack(sent_at - 1, 2 * BASE);
        }
        hand.ack(sent_at - 1, BASE);
        hand.ack(sent_at, 2 * BASE);
        assert_eq!(hand.vegas.cwnd(), 22 * MSS);
        // 22 segments at 130 ms: diff 6.6.
        assert_eq!([(); 3].map(|()| hand.round(20, 130 * MILLISECOND)), [21, 20, 19]);
    }

    #[test]
    fn the_window_does_not_grow_unused_and_shrinks_to_two_segments() {
        let mut hand = avoiding();
        hand.limited = false;
        assert_eq!(hand.round(20, BASE), 20);
        for _ in 0..30 {
            hand.round(20, 10 * BASE);
        }
        assert_eq!(hand.vegas.cwnd(), 2 * MSS);
    }

    /// 19 segments at 110 ms when the round trip ends: diff 1.9, so min(19, 19 / 1.1 + 1) = 18.
    #[test]
    fn slow_start_ends_when_more_than_gamma_wait() {
        let begun = || {
            let mut hand = Hand::new();
            assert_eq!(hand.round(1, BASE), 11, "too few samples: as Reno");
            assert_eq!(hand.round(4, BASE), 15, "no queue");
            assert_eq!(hand.vegas.ssthresh(), u64::MAX);
            hand
        };
        let mut hand = begun();
        assert_eq!(hand.round(5, 110 * MILLISECOND), 18);
        assert_eq!(hand.vegas.ssthresh(), 18 * MSS);
        // 18 segments at 105 ms: diff 0.9, below α.
        assert_eq!(hand.round(18, 105 * MILLISECOND), 19);
        // A queue of at most γ does not end it: 19 segments at 105 ms make 0.95.
        let mut hand = begun();
        assert_eq!(hand.round(5, 105 * MILLISECOND), 20);
        assert_eq!(hand.vegas.ssthresh(), u64::MAX);
    }

    /// One acknowledgement per round trip in congestion avoidance: 20 of them make up a window of 20.
    #[test]
    fn with_too_few_samples_the_last_acknowledgement_counts_as_in_reno() {
        let mut hand = avoiding();
        for _ in 0..19 {
            assert_eq!(hand.round(2, 2 * BASE), 20);
        }
        assert_eq!(hand.round(2, 2 * BASE), 21);
        assert_eq!(hand.round(3, 2 * BASE), 20, "three are enough");
    }

    #[test]
    fn the_base_is_measured_anew_when_nothing_else_is_in_flight() {
        let after = |in_flight: u64| {
            let mut hand = avoiding();
            hand.vegas.on_sent(hand.now, MSS, in_flight);
            hand.round(20, 2 * BASE)
        };
        assert_eq!(after(2 * MSS), 19, "twenty packets in the queue");
        assert_eq!(after(MSS), 21, "none: twice the round trip is the new base");
    }

    /// The timeout is 1 s.
    #[test]
    fn an_idle_time_halves_the_window_with_every_timeout() {
        for (idle, window) in [(SECOND, 32), (SECOND + 1, 16), (2 * SECOND, 16), (2 * SECOND + 1, 10)] {
            let mut hand = avoiding();
            for _ in 0..12 {
                hand.round(20, BASE);
            }
            hand.vegas.on_idle_restart(hand.now, idle);
            assert_eq!((hand.vegas.cwnd(), hand.vegas.ssthresh()), (window * MSS, 24 * MSS), "{idle}");
        }
        let mut small = Hand::new();
        small.vegas.on_timeout(small.now, 10 * MSS);
        small.vegas.on_idle_restart(small.now, 10 * SECOND);
        assert_eq!(small.vegas.cwnd(), MSS, "no pause makes it larger");
    }

    #[test]
    fn an_idle_time_keeps_three_quarters() {
        let mut hand = avoiding();
        for _ in 0..12 {
            hand.round(20, BASE);
        }
        assert_eq!((hand.vegas.cwnd(), hand.vegas.ssthresh()), (32 * MSS, 20 * MSS));
        hand.vegas.on_idle_restart(hand.now, 10 * SECOND);
        assert_eq!((hand.vegas.cwnd(), hand.vegas.ssthresh()), (10 * MSS, 24 * MSS));
        hand.vegas.on_sent(hand.now, MSS, MSS);
        // Twice the round trip, but it is the new base.
        assert_eq!(hand.round(10, 2 * BASE), 20);
    }
}
