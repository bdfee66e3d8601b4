//! Numbers worked out by hand, for segments of 1000 bytes.

use super::*;
use crate::{RateSample, SECOND};

const MSS: u64 = 1000;
const RTT: Nanos = 100 * MILLISECOND;
/// 125 packets in 100 ms.
const RATE: f64 = 10e6;

struct Path {
    bbr: Bbr,
    rtt: Rtt,
    now: Nanos,
    delivered: u64,
}

impl Path {
    fn new() -> Self {
        Self { bbr: Bbr::new(0, MSS as u32), rtt: Rtt::default(), now: SECOND, delivered: 0 }
    }

    /// An acknowledgement after `wait` that samples `rate`, of a packet sent a round trip before.
    fn ack(&self, wait: Nanos, packets: u64, rate: f64, in_flight: u64) -> Ack {
        let now = self.now + wait;
        let interval = (1e6 * 8e9 / rate) as Nanos;
        let sample = RateSample {
            delivered: 1_000_000,
            interval,
            prior_delivered: self.delivered,
            total_delivered: self.delivered + packets * MSS,
            ..RateSample::default()
        };
        Ack {
            now,
            acked: packets * MSS,
            sent_at: now - RTT,
            rtt: Some(RTT),
            rate: sample,
            in_flight: in_flight * MSS,
            cwnd_limited: true,
            ..Ack::default()
        }
    }

    fn feed(&mut self, ack: &Ack) {
        self.now = ack.now;
        self.delivered = ack.rate.total_delivered;
        self.rtt.update(RTT);
        self.bbr.on_ack(ack, &self.rtt);
    }

    /// One acknowledgement for a whole round.
    fn round(&mut self, rate: f64, in_flight: u64) {
        let ack = self.ack(RTT, 125, rate, in_flight);
        self.feed(&ack);
    }

    /// An acknowledgement of one packet within a round.
    fn within_round(&mut self, wait: Nanos, in_flight: u64) {
        let mut ack = self.ack(wait, 1, RATE, in_flight);
        ack.rate.prior_delivered = 0;
        self.feed(&ack);
    }

    /// In `PROBE_BW` with a full window.
    fn cruising() -> Self {
        let mut path = Self::new();
        for _ in 0..6 {
            path.round(RATE, 125);
        }
        while path.bbr.pacing_gain != 1.0 || path.bbr.cwnd < 250 * MSS {
            path.now += 1;
            path.round(RATE, 200);
        }
        path
    }

    fn lose(&mut self, packets: u64, flight: u64) {
        let (now, lost) = (self.now, packets * MSS);
        self.bbr.on_loss(&Loss { now, lost, in_flight: flight * MSS - lost });
        let event = Congestion { now, signal: Signal::Loss, flight_size: flight * MSS, sent_at: now - RTT };
        self.bbr.on_congestion(&event);
    }
}

fn close(got: f64, expected: f64) {
    assert!((got / expected - 1.0).abs() < 1e-9, "{got}, expected {expected}");
}

#[test]
fn the_first_rate_is_the_window_over_a_millisecond_then_over_the_round_trip() {
    let mut path = Path::new();
    close(path.bbr.pacing_rate, 80e6 * 2.885 * 0.99);
    // Samples below the initial window over the round trip, 0.8 Mbit/s, do not slow it down.
    let ack = path.ack(0, 1, 0.1e6, 9);
    path.feed(&ack);
    close(path.bbr.pacing_rate, 0.8e6 * 2.885 * 0.99);
    let ack = path.ack(0, 1, 2e6, 9);
    path.feed(&ack);
    close(path.bbr.pacing_rate, 2e6 * 2.885 * 0.99);
}

#[test]
fn three_rounds_without_a_quarter_more_fill_the_pipe() {
    let mut path = Path::new();
    for (rate, mode) in [
        (8e6, BbrMode::Startup),
        (9.9e6, BbrMode::Startup),
        (10e6, BbrMode::Startup), // 1.25 times 8 Mbit/s
        (12e6, BbrMode::Startup),
        (12.4e6, BbrMode::Startup),
        (12e6, BbrMode::Drain),
    ] {
        path.round(rate, 400);
        assert_eq!(path.bbr.mode(), mode, "at {rate}");
    }
    close(path.bbr.pacing_rate, 12.4e6 / 2.885 * 0.99);
    // 12.4 Mbit/s for 100 ms are 155 packets; bursts are two packets, and three of them 6: 162, to be even.
    path.within_round(0, 163);
    assert_eq!(path.bbr.mode(), BbrMode::Drain);
    path.within_round(0, 162);
    assert_eq!(path.bbr.mode(), BbrMode::ProbeBw);
}

#[test]
fn application_limited_rounds_do_not_fill_the_pipe() {
    let mut path = Path::new();
    for _ in 0..20 {
        let mut ack = path.ack(RTT, 5, RATE, 5);
        ack.rate.app_limited = true;
        path.feed(&ack);
    }
    assert_eq!(path.bbr.mode(), BbrMode::Startup);
}

#[test]
fn the_window_is_two_products_and_three_bursts() {
    let mut path = Path::cruising();
    // Until it is forgotten that a whole round was acknowledged at once.
    for _ in 0..12 * 125 {
        let mut ack = path.ack(RTT / 62, 1, RATE, 200);
        ack.rate.prior_delivered = path.delivered.saturating_sub(125 * MSS);
        path.feed(&ack);
    }
    while path.bbr.pacing_gain != 1.0 {
        path.within_round(RTT + 1, 200);
    }
    // 250 and 6, and the packet acknowledged last, which the bandwidth does not explain, to be even.
    assert_eq!(path.bbr.cwnd, 258 * MSS);
}

#[test]
fn the_burst_is_a_millisecond_of_pacing_and_two_more_packets_probe() {
    let mut bbr = Bbr::new(0, MSS as u32);
    bbr.min_rtt = Path::cruising().bbr.min_rtt;
    for (rate, burst) in [(1e6, 1), (1.3e6, 2), (100e6, 12), (10e9, 65_u64)] {
        bbr.pacing_rate = rate;
        bbr.bandwidth.reset(0, RATE);
        assert_eq!(bbr.inflight(1.0), (125 + 3 * burst).next_multiple_of(2) * MSS, "at {rate}");
    }
    bbr.pacing_rate = 1e6;
    bbr.mode = BbrMode::ProbeBw;
    assert_eq!(bbr.inflight(1.25), (157 + 3 + 2) * MSS, "156.25 packets rounded up, a burst of one, two to probe");
}

#[test]
fn an_application_limited_sample_counts_if_it_is_larger() {
    let mut path = Path::cruising();
    for (rate, expected) in [(5e6, RATE), (11e6, 11e6)] {
        let mut ack = path.ack(RTT, 10, rate, 10);
        ack.rate.app_limited = true;
        path.feed(&ack);
        close(path.bbr.bandwidth(), expected);
    }
}

#[test]
fn the_largest_rate_of_ten_rounds_counts() {
    let mut path = Path::cruising();
    path.round(2.0 * RATE, 125);
    for _ in 0..10 {
        close(path.bbr.bandwidth(), 2.0 * RATE);
        path.round(RATE, 125);
    }
    path.round(RATE, 125);
    close(path.bbr.bandwidth(), RATE);
}

#[test]
fn a_cycle_starts_anywhere_but_where_it_drains() {
    let mut random = SplitMix64::new(1);
    let mut starts = [0; 3];
    for _ in 0..700 {
        let mut cycle = Cycle::default();
        cycle.start(0, &mut random);
        starts[[1.25, 0.75, 1.0].iter().position(|gain| *gain == cycle.gain()).unwrap()] += 1;
    }
    assert_eq!(starts[1], 0);
    assert!((70..130).contains(&starts[0]), "{starts:?}, expected one in seven to probe");
}

#[test]
fn a_phase_lasts_a_round_trip_and_the_probe_until_it_has_probed() {
    let mut path = Path::cruising();
    while path.bbr.pacing_gain != 1.25 {
        path.within_round(RTT + 1, 125);
    }
    // 1.25 products are 157 packets, and bursts and rounding make 166 of it.
    path.within_round(3 * RTT, 164);
    assert_eq!(path.bbr.pacing_gain, 1.25, "164 in flight, and one acknowledged");
    path.within_round(1, 165);
    assert_eq!(path.bbr.pacing_gain, 0.75);
    path.within_round(1, 131);
    assert_eq!(path.bbr.pacing_gain, 1.0, "132 in flight: 125, six for bursts, and even");
    let phases = (0..6).filter(|_| {
        path.within_round(RTT + 1, 125);
        path.bbr.pacing_gain == 1.0
    });
    assert_eq!(phases.count(), 5);
    path.within_round(RTT, 125);
    assert_eq!(path.bbr.pacing_gain, 1.25);
    path.lose(1, 126);
    path.within_round(1, 125);
    assert_eq!(path.bbr.pacing_gain, 0.75, "a loss says that there is no more room");
    path.within_round(RTT + 1, 200);
    assert_eq!(path.bbr.pacing_gain, 1.0, "a queue of others does not drain");
}

#[test]
fn packets_are_conserved_for_a_round_and_the_window_comes_back() {
    let mut path = Path::cruising();
    let before = path.bbr.cwnd;
    let end = path.bbr.delivered + 100 * MSS;
    path.lose(3, 100);
    path.within_round(0, 96);
    assert_eq!(path.bbr.cwnd, 97 * MSS, "what is in flight and what has left");
    path.within_round(0, 96);
    assert_eq!(path.bbr.cwnd, 97 * MSS);
    let ack = path.ack(RTT, 90, RATE, 50);
    path.feed(&ack);
    assert_eq!(path.bbr.cwnd, 187 * MSS, "after a round it grows by what is delivered");
    assert!(path.delivered < end);
    let ack = path.ack(0, 8, RATE, 50);
    path.feed(&ack);
    assert!(path.bbr.cwnd >= before, "{}, {before} before", path.bbr.cwnd);
}

#[test]
fn a_mark_changes_nothing() {
    let mut path = Path::cruising();
    let before = path.bbr.cwnd;
    let event = Congestion { now: path.now, signal: Signal::Ecn, flight_size: 100 * MSS, sent_at: 0 };
    path.bbr.on_congestion(&event);
    path.within_round(0, 99);
    assert!(path.bbr.cwnd >= before);
}

#[test]
fn a_timeout_leaves_one_segment_until_its_flight_is_delivered() {
    let mut path = Path::cruising();
    let before = path.bbr.cwnd;
    path.bbr.on_timeout(path.now, 20 * MSS);
    assert_eq!(path.bbr.cwnd, MSS);
    path.within_round(RTT, 0);
    assert_eq!(path.bbr.cwnd, 4 * MSS, "never less than four");
    for _ in 0..18 {
        path.within_round(0, 1);
    }
    assert_eq!(path.bbr.cwnd, 22 * MSS);
    path.within_round(0, 0);
    assert!(path.bbr.cwnd >= before);
}

#[test]
fn probe_rtt_after_ten_seconds_for_200_ms_and_a_round() {
    let mut path = Path::cruising();
    let before = path.bbr.cwnd;
    let mut ack = path.ack(0, 1, RATE, 125);
    ack.rtt = Some(RTT - 1);
    path.feed(&ack);
    path.within_round(10 * SECOND, 125);
    assert_eq!(path.bbr.mode(), BbrMode::ProbeBw);
    path.within_round(1, 125);
    assert_eq!((path.bbr.mode(), path.bbr.cwnd), (BbrMode::ProbeRtt, 4 * MSS));
    assert_eq!(path.bbr.min_rtt(), Some(RTT), "the old minimum is forgotten");
    path.within_round(RTT, 5);
    let from = path.now + 10;
    path.within_round(10, 4);
    for (at, mode) in [(150, BbrMode::ProbeRtt), (200, BbrMode::ProbeRtt), (201, BbrMode::ProbeBw)] {
        let mut ack = path.ack(from + at * MILLISECOND - path.now, 1, 0.1 * RATE, 4);
        ack.sent_at = ack.now - RTT;
        path.feed(&ack);
        assert_eq!(path.bbr.mode(), mode, "after {at} ms");
    }
    assert_eq!(path.bbr.cwnd, before);
    close(path.bbr.bandwidth(), RATE);
}

#[test]
fn rates_measured_in_probe_rtt_do_not_count() {
    let mut path = Path::cruising();
    path.within_round(10 * SECOND + 1, 125);
    // As on a short path, where it lasts for more rounds than the filter holds.
    for _ in 0..20 {
        let mut ack = path.ack(RTT, 4, 0.05 * RATE, 5);
        ack.sent_at = ack.now;
        path.feed(&ack);
    }
    assert_eq!(path.bbr.mode(), BbrMode::ProbeRtt);
    close(path.bbr.bandwidth(), RATE);
}

#[test]
fn idleness_delays_probe_rtt_and_restarts_without_a_burst() {
    let mut path = Path::cruising();
    while path.bbr.pacing_gain != 1.25 {
        path.within_round(RTT + 1, 125);
    }
    path.now += 20 * SECOND;
    path.bbr.on_idle_restart(path.now, 20 * SECOND);
    close(path.bbr.pacing_rate, RATE * 0.99);
    path.within_round(RTT, 10);
    assert_eq!(path.bbr.mode(), BbrMode::ProbeBw);
}

#[test]
fn bunches_make_room() {
    // 10 Mbit/s, and 125 packets at once every 100 ms: each bunch is 124 or 125 packets ahead of the bandwidth.
    let mut aggregation = Aggregation::default();
    let mut path = Path::new();
    for round in 0..20 {
        let ack = path.ack(RTT, 125, RATE, 0);
        path.now = ack.now;
        aggregation.on_ack(&ack, RATE, 1000 * MSS, MSS, round > 0);
        assert_eq!(aggregation.room(RATE), 125 * MSS);
    }
    assert_eq!(aggregation.room(RATE / 5.0), 25 * MSS, "what 100 ms deliver");
    // Single packets at half the bandwidth use up the head start, and ten rounds later it is forgotten.
    for packet in 0..12 * 125 {
        let ack = path.ack(RTT / 62, 1, RATE, 0);
        path.now = ack.now;
        aggregation.on_ack(&ack, RATE, 1000 * MSS, MSS, packet % 125 == 0);
    }
    assert_eq!(aggregation.room(RATE), MSS);
}

#[test]
fn two_lossy_intervals_of_the_same_rate_are_a_policer() {
    let mut policer = Policer::default();
    let mut now = 0;
    let mut round = |policer: &mut Policer, lost: u64| {
        now += RTT;
        policer.on_loss(lost * MSS);
        let delivered = now / RTT * 100 * MSS;
        let lossy = lost > 0;
        policer.on_sample(&Observation { now, delivered, lossy, round_start: true, app_limited: false }, true)
    };
    // The first loss begins an interval that lasts four rounds: 8 Mbit/s.
    for _ in 0..4 {
        assert!(!round(&mut policer, 20));
    }
    assert_eq!(policer.rate(), None);
    for _ in 0..3 {
        assert!(!round(&mut policer, 20));
        assert_eq!(policer.rate(), None);
    }
    assert!(!round(&mut policer, 20));
    assert_eq!(policer.rate(), Some(8e6));
    for _ in 0..47 {
        assert!(!round(&mut policer, 0));
    }
    assert_eq!(policer.rate(), Some(8e6));
    assert!(round(&mut policer, 0));
    assert_eq!(policer.rate(), None);
}

#[test]
fn nineteen_percent_are_no_policer() {
    let mut policer = Policer::default();
    for round in 1..200 {
        policer.on_loss(19 * MSS);
        let (now, delivered) = (round * RTT, round * 100 * MSS);
        policer.on_sample(&Observation { now, delivered, lossy: true, round_start: true, app_limited: false }, true);
        assert_eq!(policer.rate(), None);
    }
}
