//! The stack's calls by hand.

use num_rational::Ratio;
use s2n_quic_core::event::builder::{BbrState, SlowStartExitCause};
use s2n_quic_core::recovery::bandwidth::{Bandwidth, RateSample};
use s2n_quic_core::{random, time::Clock as _, time::StdClock};

use super::*;

struct Nobody;

impl Publisher for Nobody {
    fn on_slow_start_exited(&mut self, _cause: SlowStartExitCause, _congestion_window: u32) {}
    fn on_delivery_rate_sampled(&mut self, _rate_sample: RateSample) {}
    fn on_pacing_rate_updated(&mut self, _pacing_rate: Bandwidth, _burst_size: u32, _pacing_gain: Ratio<u64>) {}
    fn on_bbr_state_changed(&mut self, _state: BbrState) {}
}

#[derive(Debug)]
struct Zeros;

impl random::Generator for Zeros {
    fn public_random_fill(&mut self, dest: &mut [u8]) {
        dest.fill(0);
    }
    fn private_random_fill(&mut self, dest: &mut [u8]) {
        dest.fill(0);
    }
}

struct Bench {
    adapter: Adapter,
    zero: Timestamp,
    rtt: RttEstimator,
}

impl Bench {
    fn new(name: &str, params: &[(String, f64)]) -> Self {
        let adapter = Adapter::new(&Scheme::named(name, params).unwrap(), 1000);
        let zero = StdClock::default().get_time();
        Self { adapter, zero, rtt: RttEstimator::new(Duration::from_millis(333)) }
    }

    fn at(&self, us: u64) -> Timestamp {
        self.zero + Duration::from_micros(us)
    }

    fn send(&mut self, us: u64) -> PacketInfo {
        let time = self.at(us);
        self.adapter.on_packet_sent(time, 1000, Some(false), &self.rtt, &mut Nobody)
    }

    fn ack(&mut self, us: u64, sent: u64, packets: usize, newest: PacketInfo) {
        let (now, sent) = (self.at(us), self.at(sent));
        self.adapter.on_rtt_update(sent, now, &self.rtt, &mut Nobody);
        self.adapter.on_ack(sent, packets * 1000, newest, &self.rtt, &mut Zeros, now, &mut Nobody);
    }

    fn lose(&mut self, us: u64, packet: PacketInfo) {
        let now = self.at(us);
        self.adapter.on_packet_lost(1000, packet, false, true, &mut Zeros, now, &mut Nobody);
    }
}

#[test]
fn a_window_grows_fills_and_halves() {
    let mut bench = Bench::new("newreno", &[]);
    assert_eq!(bench.adapter.congestion_window(), 10_000);
    let sent: Vec<_> = (0..10).map(|_| bench.send(0)).collect();
    assert!(bench.adapter.is_congestion_limited());
    assert_eq!(bench.adapter.bytes_in_flight(), 10_000);
    bench.ack(10_000, 0, 4, sent[3]);
    assert_eq!((bench.adapter.congestion_window(), bench.adapter.bytes_in_flight()), (14_000, 6000));
    for _ in 0..8 {
        bench.send(10_000);
    }
    assert!(bench.adapter.is_congestion_limited());
    bench.lose(20_000, sent[4]);
    bench.ack(20_000, 0, 5, sent[9]);
    // 14 were in flight, 7 are wanted: for five that arrive, two and a half may leave (RFC 9937).
    assert_eq!((bench.adapter.bytes_in_flight(), bench.adapter.congestion_window()), (8000, 8000 + 2500));
    // A clone is the same controller.
    assert_eq!(bench.adapter.clone().congestion_window(), bench.adapter.congestion_window());
}

#[test]
fn the_stack_waits_until_pacing_allows_the_next_packet() {
    // A packet in 100 us.
    let mut bench = Bench::new("constant-rate", &[("rate".to_owned(), 80e6)]);
    bench.send(0);
    bench.send(0);
    assert_eq!(bench.adapter.send_quantum(), Some(0));
    let departure = bench.adapter.earliest_departure_time().unwrap();
    assert_eq!([199, 200].map(|us| departure.has_elapsed(bench.at(us))), [false, true]);
    // Two packets late: they make a batch.
    bench.send(400);
    assert_eq!(bench.adapter.send_quantum(), None);
    bench.send(400);
    bench.send(400);
    assert_eq!(bench.adapter.send_quantum(), Some(0));
}

#[test]
fn packets_that_only_acknowledge_do_not_count() {
    let mut bench = Bench::new("newreno", &[]);
    let time = bench.at(0);
    bench.adapter.on_packet_sent(time, 0, Some(true), &RttEstimator::new(Duration::from_millis(1)), &mut Nobody);
    let sent = bench.send(0);
    assert_eq!(bench.adapter.bytes_in_flight(), 1000);
    bench.adapter.on_packet_discarded(1000, &mut Nobody);
    assert_eq!(bench.adapter.bytes_in_flight(), 0);
    bench.ack(1000, 0, 0, sent);
    assert_eq!(bench.adapter.congestion_window(), 10_000);
}

#[test]
fn marks_reduce_the_window_once_a_round_trip() {
    let mut bench = Bench::new("newreno", &[]);
    let sent: Vec<_> = (0..10).map(|_| bench.send(0)).collect();
    let now = bench.at(10_000);
    bench.adapter.on_explicit_congestion(1, now, &mut Nobody);
    bench.ack(10_000, 0, 2, sent[1]);
    bench.adapter.on_explicit_congestion(3, now, &mut Nobody);
    // Half of ten packets, and one more: the eight had filled the window when they were sent.
    bench.ack(11_000, 0, 8, sent[9]);
    assert_eq!(bench.adapter.congestion_window(), 6000);
}
