//! Numbers worked out by hand, for segments of 1000 bytes on a path of 10 Mbit/s and 100 ms: 125 packets.

use super::*;
use crate::{RateSample, SECOND};

const MSS: u64 = 1000;
const RTT: Nanos = 100 * MILLISECOND;
const RATE: f64 = 10e6;
const BDP: u64 = 125 * MSS;

struct Path {
    bbr: Bbr3,
    rtt: Rtt,
    now: Nanos,
    delivered: u64,
}

impl Path {
    fn new() -> Self {
        Self { bbr: Bbr3::new(0, MSS as u32), rtt: Rtt::default(), now: SECOND, delivered: 0 }
    }

    /// An acknowledgement after `wait` that samples `rate` over a round trip, and ends a round.
    fn ack(&self, wait: Nanos, packets: u64, rate: f64, in_flight: u64) -> Ack {
        let now = self.now + wait;
        let rate = RateSample {
            delivered: (rate * 0.1 / 8.0) as u64,
            interval: RTT,
            prior_delivered: self.delivered,
            total_delivered: self.delivered + packets * MSS,
            sent_in_flight: in_flight * MSS,
            ..RateSample::default()
        };
        Ack {
            now,
            acked: packets * MSS,
            sent_at: now - RTT,
            rtt: Some(RTT),
            rate,
            in_flight: in_flight * MSS,
            ..Ack::default()
        }
    }

    fn feed(&mut self, ack: &Ack) {
        self.now = ack.now;
        self.delivered = ack.rate.total_delivered;
        self.rtt.update(RTT);
        self.bbr.on_ack(ack, &self.rtt);
    }

    fn round(&mut self, rate: f64, in_flight: u64) {
        let ack = self.ack(RTT, 125, rate, in_flight);
        self.feed(&ack);
    }

    /// One packet within a round.
    fn within_round(&mut self, wait: Nanos, in_flight: u64) {
        let mut ack = self.ack(wait, 1, RATE, in_flight);
        ack.rate.prior_delivered = 0;
        self.feed(&ack);
    }

    /// Rounds at the rate of the path until a state begins.
    fn until(&mut self, state: Bbr3State) {
        for _ in 0..100 {
            if self.bbr.state == state {
                return;
            }
            self.round(RATE, 120);
        }
        panic!("{:?} instead of {state:?}", self.bbr.state);
    }

    fn lose(&mut self, sent_in_flight: u64, lost_since: u64) {
        let packet = LostPacket {
            now: self.now,
            bytes: MSS,
            sent_at: self.now - RTT,
            sent_in_flight: sent_in_flight * MSS,
            lost_since: lost_since * MSS,
            app_limited: false,
        };
        self.bbr.on_packet_lost(&packet);
    }
}

fn close(got: f64, expected: f64) {
    assert!((got / expected - 1.0).abs() < 1e-9, "{got}, expected {expected}");
}

#[test]
fn startup_ends_on_a_plateau_and_drain_in_three_rounds_at_the_latest() {
    let mut path = Path::new();
    close(path.bbr.pacing_rate, 80e6 * 2.77 * 0.99);
    for (rate, state) in [
        (8e6, Bbr3State::Startup),
        (10e6, Bbr3State::Startup), // 1.25 times 8 Mbit/s
        (10e6, Bbr3State::Startup),
        (12.4e6, Bbr3State::Startup),
        (12.4e6, Bbr3State::Drain),
    ] {
        path.round(rate, 400);
        assert_eq!(path.bbr.state, state, "at {rate}");
    }
    close(path.bbr.pacing_rate, 12.4e6 * 0.5 * 0.99);
    for state in [Bbr3State::Drain, Bbr3State::Drain, Bbr3State::Drain, Bbr3State::Down] {
        path.round(10e6, 400);
        assert_eq!(path.bbr.state, state);
    }
}

#[test]
fn six_losses_of_a_round_above_two_percent_end_startup() {
    for (events, lost, ends) in [(6, 4, true), (6, 3, false), (5, 100, false)] {
        let mut path = Path::new();
        for rate in [1e6, 2e6, 4e6] {
            path.round(rate, 100);
        }
        for _ in 0..events {
            path.lose(150, 1);
            path.bbr.on_loss(&Loss { now: path.now, lost: MSS, in_flight: 0 });
        }
        path.bbr.on_congestion(&Congestion { now: path.now, signal: Signal::Loss, flight_size: 0, sent_at: 0 });
        let mut ack = path.ack(RTT, 50, 8e6, 150);
        (ack.in_recovery, ack.rate.lost) = (true, lost * MSS);
        path.feed(&ack);
        // 4 of 150 packets are 2.7 %, 3 are exactly 2 %.
        assert_eq!(path.bbr.state == Bbr3State::Drain, ends, "{events} events, {lost} packets");
        // 4 Mbit/s make 50 packets; the last round delivered 100.
        assert_eq!(path.bbr.inflight_bound(), ends.then_some(100 * MSS));
    }
}

#[test]
fn the_cycle_and_its_gains() {
    let mut path = Path::new();
    // With no more than the product in flight, Drain and the first DOWN end at once.
    path.until(Bbr3State::Cruise);
    close(path.bbr.pacing_rate, RATE * 0.99);
    let from = path.now;
    path.until(Bbr3State::Refill);
    let waited = path.now - from;
    assert!((SECOND..=3 * SECOND + RTT).contains(&waited), "{waited} ns");
    path.round(RATE, 120);
    assert_eq!(path.bbr.state, Bbr3State::Up);
    close(path.bbr.pacing_rate, RATE * 1.25 * 0.99);
    // Three rounds without a quarter more.
    for _ in 0..2 {
        path.round(RATE, 150);
        assert_eq!(path.bbr.state, Bbr3State::Up);
    }
    path.round(RATE, 150);
    assert_eq!(path.bbr.state, Bbr3State::Down);
    close(path.bbr.pacing_rate, RATE * 0.9 * 0.99);
}

#[test]
fn a_small_flight_probes_as_often_as_reno_would_fill_it() {
    let mut path = Path::new();
    path.until(Bbr3State::Cruise);
    // Ten packets: at most ten rounds, of 1 ms each here.
    path.bbr.cwnd = 10 * MSS;
    path.bbr.cycle.rounds_since_up = 0;
    for round in 1..=10 {
        assert_eq!(path.bbr.state, Bbr3State::Cruise, "round {round}");
        let mut ack = path.ack(MILLISECOND, 1, RATE, 5);
        ack.acked = 0;
        path.bbr.cwnd = 10 * MSS;
        ack.acked += u64::from(round == 10) * MSS;
        path.feed(&ack);
    }
    assert_eq!(path.bbr.state, Bbr3State::Refill);
}

/// 150 packets in flight, of which 4 are lost: before the fourth there were 149 with 3 lost, which is over 2 % already.
#[test]
fn a_lossy_probe_sets_the_bound_and_cruise_leaves_headroom() {
    let mut path = Path::new();
    path.until(Bbr3State::Up);
    for lost in 1..=3 {
        path.lose(150, lost);
        assert_eq!((path.bbr.state, path.bbr.inflight_bound()), (Bbr3State::Up, None), "3 of 150 are 2 %");
    }
    path.lose(150, 4);
    assert_eq!((path.bbr.state, path.bbr.inflight_bound()), (Bbr3State::Down, Some(149 * MSS)));
    path.lose(100, 50);
    assert_eq!(path.bbr.inflight_bound(), Some(149 * MSS), "once per probe");
    // 15 % of 149 packets: 126.65 remain, and CRUISE begins when no more than the product of 125 is in flight.
    path.within_round(0, 126);
    assert_eq!(path.bbr.state, Bbr3State::Down);
    path.within_round(0, 125);
    assert_eq!(path.bbr.state, Bbr3State::Cruise);
    assert!(path.bbr.cwnd <= 126_650, "{}", path.bbr.cwnd);
}

#[test]
fn the_bound_is_at_least_seven_tenths_of_the_target() {
    let mut path = Path::new();
    path.until(Bbr3State::Up);
    path.lose(10, 5);
    assert_eq!(path.bbr.inflight_bound(), Some(BDP / 10 * 7));
}

#[test]
fn rounds_with_losses_lower_the_short_term_bounds_until_the_next_probe() {
    let mut path = Path::new();
    path.until(Bbr3State::Cruise);
    let cwnd = path.bbr.cwnd;
    path.round(6e6, 100);
    path.lose(120, 1);
    path.round(6e6, 100);
    // What was delivered, 6 Mbit/s, is below 0.7 of 10 Mbit/s.
    close(path.bbr.short_term.bandwidth, 7e6);
    close(path.bbr.pacing_rate, 7e6 * 0.99);
    assert_eq!(path.bbr.short_term.inflight, (0.7 * cwnd as f64) as u64);
    path.lose(120, 1);
    path.round(6e6, 100);
    close(path.bbr.short_term.bandwidth, 6e6);
    path.until(Bbr3State::Refill);
    assert!(path.bbr.short_term.bandwidth.is_infinite());
    path.round(6e6, 100);
    close(path.bbr.bandwidth, RATE);
}

#[test]
fn probe_rtt_every_five_seconds_at_half_a_product() {
    let mut path = Path::new();
    path.until(Bbr3State::Cruise);
    let before = path.bbr.cwnd;
    path.bbr.min_rtt = MinRtt::default();
    path.within_round(0, 120);
    path.within_round(5 * SECOND, 120);
    assert_ne!(path.bbr.state, Bbr3State::ProbeRtt);
    path.within_round(1, 120);
    assert_eq!((path.bbr.state, path.bbr.cwnd), (Bbr3State::ProbeRtt, BDP / 2));
    path.within_round(RTT, 63);
    path.within_round(10, 62);
    let from = path.now;
    for (ms, state) in [(150, Bbr3State::ProbeRtt), (200, Bbr3State::ProbeRtt), (201, Bbr3State::Cruise)] {
        let ack = path.ack(from + ms * MILLISECOND - path.now, 1, 0.5 * RATE, 60);
        path.feed(&ack);
        assert_eq!(path.bbr.state, state, "after {ms} ms");
    }
    assert!(path.bbr.cwnd >= before.min(2 * BDP), "{} of {before}", path.bbr.cwnd);
    close(path.bbr.max_bandwidth(), RATE);
}

#[test]
fn a_spurious_loss_gives_the_bounds_back() {
    let mut path = Path::new();
    path.until(Bbr3State::Up);
    for lost in 1..=4 {
        path.lose(150, lost);
    }
    assert_eq!(path.bbr.state, Bbr3State::Down);
    path.bbr.on_spurious_congestion(path.now);
    assert_eq!((path.bbr.state, path.bbr.inflight_bound()), (Bbr3State::Refill, None));
}

#[test]
fn the_window_comes_back_after_a_timeout() {
    let mut path = Path::new();
    path.until(Bbr3State::Cruise);
    let before = path.bbr.cwnd;
    path.bbr.on_timeout(path.now, 20 * MSS);
    assert_eq!(path.bbr.cwnd, MSS);
    path.within_round(RTT, 0);
    assert_eq!(path.bbr.cwnd, 4 * MSS, "never less than four");
    for _ in 0..20 {
        path.within_round(0, 1);
    }
    assert!(path.bbr.cwnd >= (0.7 * before as f64) as u64, "{} of {before}", path.bbr.cwnd);
}
