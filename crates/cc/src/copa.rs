//! Copa (Arun and Balakrishnan, NSDI 2018), as in genericCC.

mod competition;
mod delays;
mod velocity;

use crate::{Ack, AnyController, Congestion, Controller, INITIAL_WINDOW, Loss, Nanos, Parameter, Rtt, Scheme};
use competition::Competition;
use delays::Delays;
use velocity::Velocity;

/// Copa as a scheme: as in genericCC, unless set.
pub(crate) const SCHEME: Scheme = Scheme {
    name: "copa",
    title: "Copa",
    kind: "delay",
    year: 2018,
    reference: "Arun and Balakrishnan, NSDI 2018; genericCC",
    parameters: &[
        Parameter {
            name: "delta",
            default: 0.5,
            min: 0.001,
            max: 10.0,
            unit: "1/packets",
            doc: "inverse of the packets that a flow keeps in the queue",
        },
        Parameter::switch("competitive", true, "smaller delta beside schemes that fill the buffer"),
        Parameter {
            name: "patience",
            default: 1.0,
            min: 1.0,
            max: 100.0,
            unit: "round trips",
            doc: "in one direction before the velocity doubles: 1 in genericCC, 3 in the paper",
        },
    ],
    build: |values, mss| {
        let (delta, competitive) = (values.get("delta"), values.switch("competitive"));
        AnyController::Copa(Copa::new(delta, competitive, values.get("patience") as u32, mss))
    },
};

/// Copa: steers the window towards a rate of 1/(delta `d_q`) packets/s, where `d_q` is the queueing delay, so that each
/// flow keeps about 1/delta packets in the queue and all of them empty it every few round trips.
///
/// Pinned variant: `venkatarun95/genericCC` (the sender that Pantheon runs) with delta 0.5; Pantheon's own preset is
/// `delta` 0.1. Where the paper says otherwise it is noted. w is the window in packets.
///
/// * `RTT_standing`: smallest RTT of half a smoothed RTT (§2.1; smoothing gain 1/16, genericCC). `RTT_min`: smallest of
///   the last 10 s (§2.1) or 20 `RTT_min` if that is longer (genericCC). `d_q` is the difference.
/// * Target: w = `RTT_standing`/(delta `d_q`). Each packet acknowledged moves w by v/(delta w) towards it (§2.1), that
///   is v/delta packets per round trip. w is at least 2.
/// * Velocity v: once per latest RTT it doubles if most packets moved w the same way as in the RTT before, and is 1
///   otherwise. genericCC doubles after the first such RTT, the paper after the third: `patience` 1 or 3. v
///   is at most delta w, so that w at most doubles in a round trip (genericCC), but at least 1. With `patience` 1 the
///   window keeps swinging on long paths (from a few hundred packets on at delta 0.5), as that of genericCC does.
/// * Slow start: one packet per packet acknowledged until w reaches the target (§2.1).
/// * Start: 10 packets, and no change for the first 19 packets acknowledged (genericCC: two windows to learn
///   `RTT_min`).
/// * Pacing: 2 w/`RTT_standing` (§2.1), so that the window, not the pacer, decides; none before the first RTT sample.
/// * Modes and delta beside schemes that fill the buffer: §2.2, see `Competition` for the constants. delta is doubled
///   at most once per round trip (paper; in genericCC each acknowledgement that reveals a loss doubles it, since the
///   round trip is not handed to that call).
/// * Losses do not move w, unless more than 30 % of the packets of two round trips, and of more than 20 packets, were
///   lost: then w × 0.7 (genericCC; a comment there speaks of 10 %, the paper has no such rule).
///
/// Neither source says what follows a retransmission timeout: genericCC has none, but begins a new connection after 2 s
/// of silence. Here it is slow start from two packets; `RTT_min`, which has its own expiry, stays. A window that the
/// application did not use is not enlarged, nor does 1/delta grow in such a round trip, and after idleness the window is
/// kept, since it is paced.
#[derive(Clone, Debug)]
pub struct Copa {
    mss: f64,
    /// Window in packets.
    window: f64,
    slow_start: bool,
    /// Payload bytes that are still to be acknowledged before the window moves.
    probing: u64,
    velocity: Velocity,
    delays: Delays,
    competition: Competition,
    losses: LossShare,
}

impl Copa {
    /// Smallest window in packets.
    const MIN_WINDOW: f64 = 2.0;
    /// Part of the window that heavy loss leaves.
    const HEAVY_LOSS_FACTOR: f64 = 0.7;

    /// A connection that begins, with segments of `mss` payload bytes (at least 1). `delta` is in 1/packets and above
    /// 0; without `competitive` the mode is always the default one; `patience` is the number of round trips in one
    /// direction after which the velocity doubles.
    pub fn new(delta: f64, competitive: bool, patience: u32, mss: u32) -> Self {
        let mss = mss.max(1);
        Self {
            mss: f64::from(mss),
            window: f64::from(INITIAL_WINDOW),
            slow_start: true,
            probing: u64::from((2 * INITIAL_WINDOW - 1) * mss),
            velocity: Velocity::new(patience),
            delays: Delays::default(),
            competition: Competition::new(delta, competitive),
            losses: LossShare::default(),
        }
    }

    /// Whether the flow is in competitive mode.
    pub fn competitive(&self) -> bool {
        self.competition.competitive()
    }

    /// Present delta in 1/packets.
    pub fn delta(&self) -> f64 {
        self.competition.delta()
    }

    /// `RTT_standing`/(delta `d_q`) in packets: the window whose rate is the target.
    fn target(&self) -> f64 {
        match self.delays.queueing() {
            0 => f64::INFINITY,
            queueing => self.delays.standing().unwrap_or(0) as f64 / (queueing as f64 * self.delta()),
        }
    }

    fn steer(&mut self, ack: &Ack, used: bool) {
        let packets = ack.acked as f64 / self.mss;
        let target = self.target();
        if self.slow_start {
            if used {
                self.window += packets;
            }
            self.slow_start = self.window < target;
            return;
        }
        let below = self.window < target;
        let direction = if below { packets } else { -packets };
        let limit = self.delta() * self.window;
        let velocity = self.velocity.update(ack.now, self.delays.latest(), direction, limit);
        if used || !below {
            self.window = (self.window + velocity * direction / limit).max(Self::MIN_WINDOW);
        }
    }
}

impl Controller for Copa {
    fn on_ack(&mut self, ack: &Ack, _rtt: &Rtt) {
        if let Some(sample) = ack.rtt {
            self.delays.update(ack.now, sample);
        }
        if self.delays.standing().is_none() {
            return;
        }
        let used = ack.cwnd_limited || !ack.rate.app_limited;
        self.competition.on_ack(ack.now, &self.delays, used);
        if self.probing > 0 {
            self.probing = self.probing.saturating_sub(ack.acked);
        } else {
            self.steer(ack, used);
        }
        if self.losses.on_ack(ack.now, ack.acked as f64 / self.mss, self.delays.latest()) {
            self.window = (Self::HEAVY_LOSS_FACTOR * self.window).max(Self::MIN_WINDOW);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.losses.lost += loss.lost as f64 / self.mss;
    }

    fn on_congestion(&mut self, event: &Congestion) {
        self.competition.on_congestion(event.now);
    }

    fn on_timeout(&mut self, now: Nanos, _flight_size: u64) {
        self.competition.on_congestion(now);
        self.window = Self::MIN_WINDOW;
        self.slow_start = true;
        self.velocity = Velocity::new(self.velocity.patience);
        self.losses = LossShare { since: now, ..LossShare::default() };
    }

    #[inline]
    fn cwnd(&self) -> u64 {
        (self.window * self.mss) as u64
    }

    #[inline]
    fn pacing_rate(&self) -> Option<f64> {
        let standing = self.delays.standing()?.max(1);
        Some(2.0 * self.window * self.mss * 8e9 / standing as f64)
    }
}

/// Share of packets lost over two round trips.
#[derive(Clone, Debug, Default)]
struct LossShare {
    since: Nanos,
    acked: f64,
    lost: f64,
}

impl LossShare {
    const ROUND_TRIPS: u64 = 2;
    const MORE_THAN_PACKETS: f64 = 20.0;
    const HEAVY: f64 = 0.3;

    /// Counts acknowledged packets; true if a period ends in which too much was lost.
    fn on_ack(&mut self, now: Nanos, packets: f64, round_trip: Nanos) -> bool {
        self.acked += packets;
        let all = self.acked + self.lost;
        if now - self.since <= Self::ROUND_TRIPS * round_trip || all <= Self::MORE_THAN_PACKETS {
            return false;
        }
        let heavy = self.lost > Self::HEAVY * all;
        *self = Self { since: now, ..Self::default() };
        heavy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MILLISECOND, RateSample, SECOND};

    const MS: Nanos = MILLISECOND;

    /// Feeds acknowledgements of single packets, one each millisecond.
    struct Path {
        copa: Copa,
        now: Nanos,
    }

    impl Path {
        fn new() -> Self {
            Self { copa: Copa::new(0.5, true, 1, 1000), now: SECOND }
        }

        fn acks(&mut self, packets: u32, rtt: Nanos) {
            self.acks_of(packets, rtt, true);
        }

        /// `used`: the window, not the application, holds the sender back.
        fn acks_of(&mut self, packets: u32, rtt: Nanos, used: bool) {
            for _ in 0..packets {
                self.now += MS;
                let ack = Ack {
                    now: self.now,
                    acked: 1000,
                    sent_at: self.now - rtt,
                    rtt: Some(rtt),
                    rate: RateSample { app_limited: !used, ..RateSample::default() },
                    cwnd_limited: used,
                    ..Ack::default()
                };
                self.copa.on_ack(&ack, &Rtt::default());
            }
        }

        /// In slow start at 40 packets with an empty path of 100 ms, then past the target.
        fn after_slow_start() -> Self {
            let mut path = Self::new();
            path.acks(19 + 30, 100 * MS);
            assert_eq!(path.copa.cwnd(), 40_000);
            path.now += 60 * MS;
            // Target 110/(0.5 * 10) = 22 packets.
            path.acks(1, 110 * MS);
            assert_eq!(path.copa.cwnd(), 41_000);
            path
        }
    }

    #[test]
    fn nineteen_packets_probe_and_then_each_adds_one() {
        let mut path = Path::new();
        assert_eq!((path.copa.cwnd(), path.copa.pacing_rate()), (10_000, None));
        path.acks(19, 100 * MS);
        // Two windows per round trip: 2 * 10 * 8000 bit / 0.1 s.
        assert_eq!((path.copa.cwnd(), path.copa.pacing_rate()), (10_000, Some(1.6e6)));
        path.acks(5, 100 * MS);
        assert_eq!(path.copa.cwnd(), 15_000);
    }

    #[test]
    fn above_the_target_a_packet_takes_v_over_delta_w() {
        let mut path = Path::after_slow_start();
        // Slow start counts as a round trip upwards: v = 2 until the next one shows where the window goes now.
        path.acks(1, 110 * MS);
        assert!((path.copa.window - (41.0 - 2.0 / (0.5 * 41.0))).abs() < 1e-9);
        path.now += 111 * MS;
        let before = path.copa.window;
        // The other direction: v = 1.
        path.acks(1, 110 * MS);
        assert!((path.copa.window - (before - 1.0 / (0.5 * before))).abs() < 1e-9);
    }

    #[test]
    fn heavy_loss_takes_three_tenths() {
        for (lost, factor) in [(9, 1.0), (10, 0.7)] {
            let mut path = Path::new();
            path.acks(19, 100 * MS);
            path.copa.losses = LossShare { since: path.now, ..LossShare::default() };
            path.copa.on_loss(&Loss { now: path.now, lost: lost * 1000, in_flight: 0 });
            path.copa.probing = 22_000;
            path.acks(21, 100 * MS);
            assert_eq!(path.copa.cwnd(), 10_000);
            path.now += 200 * MS;
            // 9 of 31 packets are 29 %, 10 of 32 are 31 %.
            path.acks(1, 100 * MS);
            assert_eq!(path.copa.cwnd(), (factor * 10_000.0) as u64);
        }
    }

    #[test]
    fn beside_a_full_buffer_delta_is_aimd() {
        let mut path = Path::after_slow_start();
        // No round trip below 200 ms for four smoothed ones, in a queue that was at 100 ms when it was empty.
        path.acks(2000, 200 * MS);
        assert!(path.copa.competitive());
        let packets = 1.0 / path.copa.delta();
        path.acks(201, 200 * MS);
        assert!((1.0 / path.copa.delta() - (packets + 1.0)).abs() < 1e-9);
        let event = Congestion { now: path.now, signal: crate::Signal::Loss, flight_size: 0, sent_at: 0 };
        path.copa.on_congestion(&event);
        assert!((1.0 / path.copa.delta() - f64::midpoint(packets, 1.0)).abs() < 1e-9);
        for _ in 0..5 {
            path.copa.on_congestion(&event);
        }
        assert_eq!(path.copa.delta(), 0.5);
        path.acks(500, 200 * MS);
        assert!(path.copa.delta() < 0.5);
        path.acks(1, 100 * MS);
        assert_eq!((path.copa.competitive(), path.copa.delta()), (false, 0.5));
    }

    #[test]
    fn delta_stands_still_while_the_window_is_not_used() {
        let mut path = Path::after_slow_start();
        path.acks(2000, 200 * MS);
        assert!(path.copa.competitive());
        // The first may end a round trip in which the window was used.
        path.acks_of(201, 200 * MS, false);
        let delta = path.copa.delta();
        path.acks_of(6000, 200 * MS, false);
        assert_eq!(path.copa.delta(), delta, "thirty round trips");
        // Used again, the window grows by at most one packet for each acknowledged, and 1/delta by one in a round trip.
        let window = path.copa.window;
        path.acks(201, 200 * MS);
        assert!(path.copa.window <= window + 201.0, "{} after {window}", path.copa.window);
        assert!((1.0 / path.copa.delta() - (1.0 / delta + 1.0)).abs() < 1e-9);
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut path = Path::new();
        path.acks(19, 100 * MS);
        path.acks_of(1, 100 * MS, false);
        assert_eq!(path.copa.cwnd(), 10_000);
        path.copa.on_timeout(path.now, 0);
        assert_eq!(path.copa.cwnd(), 2000);
        path.acks(3, 100 * MS);
        assert_eq!(path.copa.cwnd(), 5000);
    }
}
