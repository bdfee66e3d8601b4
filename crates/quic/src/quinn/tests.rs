//! The stack's calls by hand, in its order: acknowledged packets, the end of the batch, then losses.

use std::time::Duration;

use super::*;

struct Bench {
    adapter: Adapter,
    zero: Instant,
    in_flight: u64,
    largest: u64,
}

impl Bench {
    fn new(name: &str, params: &[(String, f64)]) -> Self {
        let zero = Instant::now();
        let adapter = Adapter::new(&Scheme::named(name, params).unwrap(), zero, 1000);
        Self { adapter, zero, in_flight: 0, largest: 0 }
    }

    fn at(&self, ms: u64) -> Instant {
        self.zero + Duration::from_millis(ms)
    }

    fn send(&mut self, ms: u64, packets: u64) {
        self.in_flight += packets * 1000;
        self.adapter.on_sent(self.at(ms), packets * 1000, 0);
    }

    /// One packet of each of the batches sent at these times is acknowledged.
    fn ack(&mut self, ms: u64, sent: &[u64]) {
        let now = self.at(ms);
        for sent in sent {
            self.in_flight -= 1000;
            self.adapter.state().on_acked_packet(now, self.at(*sent), 1000);
        }
        self.largest += 1;
        self.adapter.on_end_acks(now, self.in_flight, false, Some(self.largest));
    }

    fn lose(&mut self, ms: u64, sent: u64, packets: u64) {
        self.in_flight -= packets * 1000;
        self.adapter.on_congestion_event(self.at(ms), self.at(sent), false, packets * 1000);
    }

    /// Packets that the stack would send now.
    fn room(&self) -> u64 {
        // `in_flight + size >= window` blocks.
        (self.adapter.window() - self.in_flight).div_ceil(1000) - 1
    }
}

#[test]
fn the_whole_window_is_used() {
    let mut bench = Bench::new("newreno", &[]);
    assert_eq!((bench.adapter.initial_window(), bench.room()), (10_000, 10));
    bench.send(0, 9);
    assert_eq!(bench.room(), 1);
    bench.send(0, 1);
    assert_eq!(bench.room(), 0);
    bench.ack(10, &[0, 0]);
    assert_eq!(bench.room(), 4);
    assert_eq!(bench.adapter.clone_box().window(), bench.adapter.window());
}

#[test]
fn batches_that_leave_at_one_time_are_one() {
    let mut bench = Bench::new("newreno", &[]);
    bench.send(0, 5);
    bench.send(0, 5);
    bench.send(1, 1);
    bench.ack(10, &[0; 9]);
    let acked: Vec<_> = bench.adapter.state().batches.iter().map(|batch| batch.acked).collect();
    assert_eq!(acked, [9000, 0]);
    let state = bench.adapter.state();
    assert_eq!((state.batches[0].begin, state.batches[0].stamp.end), (0, 10_000));
}

#[test]
fn losses_count_before_the_acknowledgement_that_revealed_them() {
    let mut bench = Bench::new("newreno", &[]);
    bench.send(0, 10);
    bench.ack(10, &[0, 0, 0]);
    bench.lose(10, 0, 1);
    // Half of the ten that were in flight is wanted, and six are left: for three that arrive, one and a half may leave.
    assert_eq!((bench.in_flight, bench.adapter.window()), (6000, 7500 + 1));
    // The last six of a flight that had filled the window are more than the five of the new one, which grows by a packet.
    bench.ack(11, &[0, 0, 0, 0, 0, 0]);
    assert_eq!((bench.in_flight, bench.room()), (0, 6));
    // More losses of the same flight change nothing.
    bench.send(12, 1);
    bench.lose(12, 0, 0);
    let room = bench.room();
    bench.send(13, 1);
    bench.lose(14, 0, 1);
    assert_eq!(bench.room(), room);
}

#[test]
fn a_mark_is_a_congestion_event_without_loss() {
    let mut bench = Bench::new("newreno", &[]);
    bench.send(0, 10);
    bench.ack(10, &[0; 9]);
    bench.adapter.on_congestion_event(bench.at(10), bench.at(0), false, 0);
    bench.ack(11, &[0]);
    assert_eq!((bench.in_flight, bench.room()), (0, 5));
}

#[test]
fn a_rate_bounds_the_window_once_there_is_a_round_trip_time() {
    // 8 Mbit/s: a packet each millisecond.
    let mut bench = Bench::new("constant-rate", &[("rate".to_owned(), 8e6)]);
    assert_eq!(bench.adapter.window(), 1_000_000_000 + 1);
    bench.send(0, 10);
    bench.ack(20, &[0]);
    assert_eq!(bench.adapter.window(), 20 * 1000 + 1);
    assert_eq!(bench.adapter.metrics().pacing_rate, Some(8_000_000));
}

#[test]
fn packets_that_only_acknowledge_are_not_in_flight() {
    let mut bench = Bench::new("newreno", &[]);
    for ms in 0..100 {
        bench.adapter.on_sent(bench.at(ms), 50, 0);
    }
    bench.send(100, 2);
    bench.ack(110, &[100]);
    bench.ack(110, &[100]);
    assert_eq!(bench.room(), 10);
    let state = bench.adapter.state();
    assert_eq!((state.driver.in_flight(), state.batches.len()), (0, 11));
}
