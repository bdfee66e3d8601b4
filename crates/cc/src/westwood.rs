//! Westwood+ (Grieco and Mascolo 2004): Reno, but after a loss the window is what the path was seen to carry.

use crate::{
    Ack, AnyController, Congestion, Connection, Controller, HandOver, MILLISECOND, Nanos, NewReno, Rtt, Scheme,
    Successor,
};

/// Shortest time over which a rate is measured (`TCP_WESTWOOD_RTT_MIN`).
const SHORTEST: Nanos = 50 * MILLISECOND;

/// Weight of the past in either filter.
const PAST: f64 = 7.0 / 8.0;

/// Smallest window after a loss, in segments (Linux).
const MIN_WINDOW: u64 = 2;

/// Westwood+ as a scheme.
pub(crate) const SCHEME: Scheme = Scheme {
    name: "westwood",
    title: "Westwood+",
    kind: "hybrid",
    year: 2004,
    reference: "Grieco and Mascolo 2004; Linux",
    parameters: &[],
    build: |_, mss| AnyController::Westwood(Westwood::new(mss)),
};

/// Westwood+ as in Linux (`tcp_westwood.c`): [`NewReno`], whose window after a loss is the estimated bandwidth times the
/// smallest round-trip time, in whole segments and at least two.
///
/// * A rate is measured over the newest sample of the round-trip time or 50 ms, whichever is longer: the bytes that have
///   been acknowledged in it, over its length, both without the acknowledgement that ends it. Bytes count once, when they
///   are first acknowledged, whether or not in order.
/// * The estimate is the rate after two low-pass filters in a row, each with 7/8 of what it was; the first rate fills both.
///   It lags behind slow start by some ten round trips.
/// * A loss or a mark halves the window at first, from the window rather than from the flight, and ends as Reno's does. With
///   the end of its repair window and threshold are set to the estimate, which may be more or less than half
///   (`CA_EVENT_COMPLETE_CWR`). Before there is one, in the first two round trips, that is two segments.
/// * A timeout leaves one segment and the estimate for a threshold, and the smallest round-trip time is looked for anew
///   (`CA_EVENT_LOSS`, `reset_rtt_min`): a route that has become longer is noticed then, and then only.
/// * A reduction that was unfounded is taken back as `tcp_reno_undo_cwnd` does: the window is not set to the estimate, and if
///   it has been, it returns to what it was where that was more. A pause halves the window with every retransmission
///   timeout that passes.
///
/// Differences from Linux: rates and times are real numbers and ns, there bytes per ms and ms. The newest sample is that of
/// the acknowledgement itself, as in Linux since 2025; before, that of the one before it. Linux makes an exception of the
/// timeout that comes while a loss is repaired and leaves its threshold; here only a second one in a row changes nothing.
/// A loss that begins another repair at the moment in which one ends halves the window of that one.
#[derive(Clone, Debug)]
pub struct Westwood {
    mss: u64,
    /// Holds the window.
    reno: NewReno,
    /// In bytes per ns, after the first filter (`bw_ns_est`) and after both (`bw_est`); 0 before the first rate.
    filtered: f64,
    bandwidth: f64,
    /// Beginning of the present measurement (`rtt_win_sx`) and the bytes acknowledged in it (`bk`).
    since: Option<Nanos>,
    acked: u64,
    /// Newest and smallest sample of the round-trip time.
    latest: Option<Nanos>,
    smallest: Nanos,
    /// The next sample is the smallest, whatever was before.
    anew: bool,
    /// A loss is being repaired, or a mark answered.
    repairing: bool,
}

impl Westwood {
    /// A connection that begins, with segments of `mss` payload bytes (at least 1).
    pub fn new(mss: u32) -> Self {
        Self {
            mss: u64::from(mss.max(1)),
            reno: NewReno::new(mss),
            filtered: 0.0,
            bandwidth: 0.0,
            since: None,
            acked: 0,
            latest: None,
            smallest: 0,
            anew: true,
            repairing: false,
        }
    }

    /// Estimated bandwidth in payload bit/s, 0 before the first measurement has ended.
    pub fn bandwidth(&self) -> f64 {
        self.bandwidth * 8e9
    }

    /// Slow-start threshold in payload bytes, `u64::MAX` before the first congestion.
    pub fn ssthresh(&self) -> u64 {
        self.reno.ssthresh()
    }

    /// What the path holds by the estimate, in payload bytes.
    fn product(&self) -> u64 {
        let segments = (self.bandwidth * self.smallest as f64 / self.mss as f64) as u64;
        segments.max(MIN_WINDOW).saturating_mul(self.mss)
    }

    #[inline]
    fn measure(&mut self, ack: &Ack) {
        let since = *self.since.get_or_insert(ack.now);
        self.latest = ack.rtt.or(self.latest);
        if let Some(latest) = self.latest {
            let length = ack.now.saturating_sub(since);
            if length > latest.max(SHORTEST) {
                self.filter(self.acked as f64 / length as f64);
                (self.since, self.acked) = (Some(ack.now), 0);
            }
            self.smallest = if self.anew { latest } else { self.smallest.min(latest) };
            self.anew = false;
        }
        self.acked += ack.acked;
    }

    fn filter(&mut self, rate: f64) {
        if self.filtered == 0.0 && self.bandwidth == 0.0 {
            (self.filtered, self.bandwidth) = (rate, rate);
        } else {
            self.filtered = PAST * self.filtered + (1.0 - PAST) * rate;
            self.bandwidth = PAST * self.bandwidth + (1.0 - PAST) * self.filtered;
        }
    }
}

impl Controller for Westwood {
    #[inline]
    fn on_sent(&mut self, now: Nanos, _bytes: u64, _in_flight: u64) {
        // Linux begins when the connection is established, and so with its first packet.
        self.since.get_or_insert(now);
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        self.measure(ack);
        if self.repairing && !ack.in_recovery {
            self.repairing = false;
            let product = self.product();
            self.reno.set_window(product, product);
        }
        self.reno.on_ack(ack, rtt);
    }

    fn on_congestion(&mut self, event: &Congestion) {
        self.reno.on_congestion(&Congestion { flight_size: u64::MAX, ..*event });
        // Also where nothing else is in flight: the repair then ends with the next acknowledgement.
        self.repairing = true;
    }

    fn reduces_proportionally(&self) -> bool {
        true
    }

    fn on_timeout(&mut self, now: Nanos, _flight_size: u64) {
        let first = !self.reno.has_timed_out();
        self.reno.on_timeout(now, u64::MAX);
        if first {
            self.reno.set_window(self.reno.cwnd(), self.product());
            self.anew = true;
        }
        self.repairing = false;
    }

    fn on_spurious_congestion(&mut self, _now: Nanos) {
        self.reno.undo_to_the_larger();
        self.repairing = false;
    }

    fn on_idle_restart(&mut self, _now: Nanos, idle: Nanos) {
        self.reno.restart_by_halves(idle);
    }

    #[inline]
    fn cwnd(&self) -> u64 {
        self.reno.cwnd()
    }
}

impl Successor for Westwood {
    fn hand_over(&self) -> HandOver {
        HandOver { cwnd: self.reno.cwnd(), ssthresh: self.reno.ssthresh() }
    }

    /// Window and threshold are there, the estimate is not (`tcp_westwood_init`): a repair that ends soon leaves two segments,
    /// also one that goes on.
    fn take_over(&mut self, from: HandOver, connection: &Connection) {
        self.reno.resume(from, connection);
        self.since = Some(connection.now);
        self.repairing = connection.in_recovery;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SECOND, Signal};

    const MSS: u64 = 1000;
    const MS: Nanos = MILLISECOND;

    /// Acknowledges packets; times in ms.
    struct Hand {
        westwood: Westwood,
        in_recovery: bool,
    }

    impl Hand {
        /// Congestion avoidance with so many packets, the first of which leaves at 0.
        fn new(packets: u64) -> Self {
            let mut westwood = Westwood::new(MSS as u32);
            westwood.reno.set_window(packets * MSS, packets * MSS);
            westwood.on_sent(0, MSS, MSS);
            Self { westwood, in_recovery: false }
        }

        fn ack(&mut self, now: u64, packets: u64, rtt: u64) {
            let ack = Ack {
                now: now * MS,
                acked: packets * MSS,
                rtt: Some(rtt * MS),
                // The window rests, unless a repair ends.
                in_recovery: self.in_recovery,
                hole_open: true,
                ..Ack::default()
            };
            self.westwood.on_ack(&ack, &Rtt::default());
        }

        fn congestion(&mut self, signal: Signal) {
            self.westwood.on_congestion(&Congestion { now: SECOND, signal, flight_size: 0, sent_at: 0 });
        }

        /// Window and threshold in packets.
        fn windows(&self) -> (u64, u64) {
            (self.westwood.cwnd() / MSS, self.westwood.ssthresh() / MSS)
        }

        /// In packets per s.
        fn bandwidth(&self) -> f64 {
            self.westwood.bandwidth() / 8.0 / MSS as f64
        }
    }

    /// 30 packets in 150 ms are 200 a second, which fill the filters; 6 in 120 ms are 50, and the filters go to
    /// 200 - 150 / 8 = 181.25 and 200 - 18.75 / 8 = 197.65625. The packets that end a measurement are in the next.
    #[test]
    fn two_filters_of_the_acknowledged_rate() {
        let mut hand = Hand::new(100);
        hand.ack(100, 30, 100);
        assert_eq!(hand.bandwidth(), 0.0, "not longer than a round trip");
        hand.ack(150, 2, 100);
        assert!((hand.bandwidth() - 200.0).abs() < 1e-9, "{}", hand.bandwidth());
        hand.ack(200, 4, 110);
        hand.ack(260, 9, 110);
        assert!((hand.bandwidth() - 200.0).abs() < 1e-9, "110 ms are not longer than 110 ms");
        let mut hand = Hand::new(100);
        hand.ack(100, 30, 100);
        hand.ack(150, 2, 100);
        hand.ack(200, 4, 110);
        hand.ack(270, 9, 110);
        assert!((hand.bandwidth() - 197.656_25).abs() < 1e-9, "{}", hand.bandwidth());
    }

    #[test]
    fn a_measurement_takes_more_than_50_ms() {
        let mut hand = Hand::new(100);
        hand.ack(10, 8, 10);
        hand.ack(50, 2, 10);
        assert_eq!(hand.bandwidth(), 0.0);
        hand.ack(80, 7, 10);
        assert!((hand.bandwidth() - 125.0).abs() < 1e-9, "{}", hand.bandwidth());
    }

    /// 200 packets a second, and 100 ms at least: 20 packets. With 199 it would be 19.
    fn measured(packets: u64) -> Hand {
        let mut hand = Hand::new(packets);
        hand.ack(100, 30, 100);
        hand.ack(150, 0, 120);
        assert_eq!(hand.windows(), (packets, packets));
        hand
    }

    #[test]
    fn half_while_a_loss_is_repaired_and_then_the_estimate() {
        for signal in [Signal::Loss, Signal::Ecn] {
            for packets in [10, 24, 100] {
                let mut hand = measured(packets);
                hand.congestion(signal);
                hand.in_recovery = true;
                hand.ack(151, 1, 120);
                assert_eq!(hand.windows(), (packets / 2, packets / 2));
                hand.in_recovery = false;
                hand.ack(152, 1, 120);
                assert_eq!(hand.windows(), (20, 20), "from {packets}, {signal:?}");
                hand.ack(153, 1, 120);
                assert_eq!(hand.windows(), (20, 20));
            }
        }
    }

    /// The loss is found by time, nothing else is in flight, and the first acknowledgement is that of the repair.
    #[test]
    fn a_repair_may_be_over_with_its_first_acknowledgement() {
        let mut hand = measured(30);
        hand.congestion(Signal::Loss);
        hand.ack(155, 1, 120);
        assert_eq!(hand.windows(), (20, 20));
    }

    #[test]
    fn without_an_estimate_two_packets() {
        let mut hand = Hand::new(30);
        hand.ack(100, 1, 100);
        hand.congestion(Signal::Loss);
        hand.ack(101, 1, 100);
        assert_eq!(hand.windows(), (2, 2));
    }

    #[test]
    fn a_loss_taken_back_leaves_the_window() {
        let mut hand = measured(30);
        hand.congestion(Signal::Loss);
        hand.westwood.on_spurious_congestion(SECOND);
        hand.ack(155, 1, 120);
        assert_eq!(hand.windows(), (30, 30));
        // After its repair, too, but never to less than there is.
        for (packets, undone) in [(30, 30), (12, 20)] {
            let mut hand = measured(packets);
            hand.congestion(Signal::Loss);
            hand.ack(155, 1, 120);
            hand.westwood.on_spurious_congestion(SECOND);
            assert_eq!(hand.windows().0, undone);
        }
    }

    /// The threshold is the estimate, and the smallest round-trip time the next one: 150 ms and 30 packets.
    #[test]
    fn a_timeout_looks_for_the_smallest_round_trip_anew() {
        let mut hand = measured(60);
        hand.congestion(Signal::Loss);
        hand.westwood.on_timeout(SECOND, 0);
        assert_eq!(hand.windows(), (1, 20));
        hand.ack(151, 0, 150);
        assert_eq!(hand.windows(), (1, 20), "it is not the end of the repair before");
        hand.westwood.on_timeout(3 * SECOND, 0);
        assert_eq!(hand.windows(), (1, 20), "a second one in a row");
        hand.ack(152, 1, 160);
        hand.westwood.on_timeout(5 * SECOND, 0);
        assert_eq!(hand.windows(), (1, 30));
    }

    /// The timeout is 1 s.
    #[test]
    fn a_pause_halves_the_window_with_every_timeout() {
        let mut hand = measured(80);
        hand.westwood.on_idle_restart(9 * SECOND, 2 * SECOND);
        assert_eq!(hand.windows(), (40, 80));
    }
}
