//! A lossy bottleneck link under a flow that sends at a fixed rate: the simulator's special case that needs no events.
//!
//! The sender does not react within a monitor interval, so all its packets can be sent first and all acknowledgements
//! counted afterwards; the departure of a packet from a drop-tail queue is certain when it arrives. What comes out is
//! exactly what the event-driven simulator gives (a test compares them nanosecond by nanosecond), at a few nanoseconds
//! per packet.

use std::collections::VecDeque;

use astraea_cc::Nanos;
use astraea_policy::aurora::Interval;
use rand::{Rng, RngExt};

/// What came of one monitor interval, in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What the sender sees.
    pub interval: Interval,
    /// Packets found lost.
    pub lost: u64,
}

impl Report {
    /// Acknowledged packets/s.
    pub fn throughput(&self) -> f64 {
        self.interval.acked as f64 / self.interval.seconds()
    }

    /// Share of the packets whose fate became known that was lost.
    pub fn loss(&self) -> f64 {
        self.lost as f64 / (self.interval.acked + self.lost).max(1) as f64
    }
}

/// A packet whose fate the sender does not know yet.
#[derive(Clone, Copy)]
struct Outstanding {
    /// When it will.
    known_at: Nanos,
    /// Round-trip time, 0 if the packet is lost.
    rtt: Nanos,
}

/// A link with a drop-tail queue and random loss in front of it, and the constant delay around it.
///
/// The sender learns of a lost packet when its acknowledgement would have arrived, had it waited in a queue with room.
#[derive(Default)]
pub struct Path {
    now: Nanos,
    /// Transmission time of a packet.
    service: Nanos,
    /// Longest wait that still leaves room in the queue.
    max_wait: Nanos,
    /// Round-trip time of a packet that does not wait, without its transmission time.
    propagation: Nanos,
    loss: f64,
    /// Packets that get through until the next random loss.
    until_loss: u64,
    free_at: Nanos,
    next_send: Nanos,
    outstanding: VecDeque<Outstanding>,
}

impl Path {
    /// Starts over with an idle link at time 0.
    ///
    /// `bandwidth` in packets/s, `propagation` in s (both directions), `queue` in waiting packets, `loss` a probability.
    pub fn reset(&mut self, bandwidth: f64, propagation: f64, queue: u32, loss: f64, rng: &mut impl Rng) {
        self.service = (1e9 / bandwidth).round() as Nanos;
        self.max_wait = u64::from(queue) * self.service;
        self.propagation = (propagation * 1e9).round() as Nanos;
        self.loss = loss;
        self.until_loss = packets_until_loss(loss, rng);
        (self.now, self.free_at, self.next_send) = (0, 0, 0);
        self.outstanding.clear();
    }

    /// Present time in ns.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// Sends at `rate` packets/s for `duration` ns.
    pub fn run(&mut self, rate: f64, duration: Nanos, rng: &mut impl Rng) -> Report {
        let mut report = Report { interval: Interval::new(self.now, duration), lost: 0 };
        self.send(rate, &mut report.interval, rng);
        self.receive(&mut report);
        self.now = report.interval.end;
        report
    }

    fn send(&mut self, rate: f64, interval: &mut Interval, rng: &mut impl Rng) {
        let gap = ((1e9 / rate) as Nanos).max(1);
        let (mut time, mut free_at) = (self.next_send, self.free_at);
        while time <= interval.end {
            let start = free_at.max(time);
            let known_at = start + self.service + self.propagation;
            let mut rtt = known_at - time;
            if self.until_loss == 0 {
                self.until_loss = packets_until_loss(self.loss, rng);
                rtt = 0;
            } else {
                self.until_loss -= 1;
                if start - time <= self.max_wait {
                    free_at = start + self.service;
                } else {
                    rtt = 0;
                }
            }
            self.outstanding.push_back(Outstanding { known_at, rtt });
            interval.sent += 1;
            time += gap;
        }
        (self.next_send, self.free_at) = (time, free_at);
    }

    fn receive(&mut self, report: &mut Report) {
        while let Some(&Outstanding { known_at, rtt }) = self.outstanding.front()
            && known_at <= report.interval.end
        {
            self.outstanding.pop_front();
            if rtt == 0 {
                report.lost += 1;
            } else {
                report.interval.acked += 1;
                report.interval.on_rtt(known_at, rtt);
            }
        }
    }
}

/// How many packets get through before the next one is lost, each with probability `loss`: a geometric draw.
fn packets_until_loss(loss: f64, rng: &mut impl Rng) -> u64 {
    if loss <= 0.0 {
        return u64::MAX;
    }
    // 1 - U is in (0, 1]; for a loss of 1 the quotient is 0 or negative zero.
    (libm::log(1.0 - rng.random::<f64>()) / libm::log1p(-loss)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    fn path(bandwidth: f64, propagation: f64, queue: u32, loss: f64) -> (Path, Xoshiro256PlusPlus) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut path = Path::default();
        path.reset(bandwidth, propagation, queue, loss, &mut rng);
        (path, rng)
    }

    const SECOND: Nanos = 1_000_000_000;

    #[test]
    fn below_capacity_nothing_waits() {
        let (mut path, mut rng) = path(100.0, 0.1, 10, 0.0);
        // Sent at 0, 20, …, 1000 ms; the acknowledgements of 0 … 880 ms arrive by 1000 ms, each after 110 ms.
        let report = path.run(50.0, SECOND, &mut rng);
        assert_eq!((report.interval.sent, report.interval.acked, report.lost), (51, 45, 0));
        assert_eq!(report.interval.latency(), Some(0.11));
        assert_eq!(report.interval.latency_gradient(), 0.0);
        // From then on one in, one out.
        let report = path.run(50.0, SECOND, &mut rng);
        assert_eq!((report.interval.sent, report.interval.acked, report.throughput()), (50, 50, 50.0));
    }

    #[test]
    fn above_capacity_the_queue_fills_and_drops() {
        let (mut path, mut rng) = path(100.0, 0.1, 10, 0.0);
        // The k-th packet is sent at 5k ms and leaves at 10(k+1) ms: it waits 5k ms, up to the limit of ten services.
        let report = path.run(200.0, 95_000_000, &mut rng);
        assert_eq!((report.interval.sent, report.interval.acked), (20, 0));
        let report = path.run(200.0, SECOND - 95_000_000, &mut rng);
        // Acknowledgements arrive every 10 ms from 110 ms on. The first packet to find the queue full is sent at 105 ms
        // and known to be lost at 320 ms, and then one every 10 ms.
        assert_eq!((report.interval.acked, report.lost), (90, 69));
        let report = path.run(200.0, SECOND, &mut rng);
        assert_eq!((report.interval.sent, report.interval.acked, report.lost), (200, 100, 100));
        assert_eq!(report.loss(), 0.5);
        // Ten services of waiting, one of its own, and the propagation.
        assert_eq!(report.interval.latency(), Some(0.21));
    }

    #[test]
    fn latency_gradient_of_a_growing_queue() {
        let (mut path, mut rng) = path(100.0, 0.1, 1000, 0.0);
        path.run(200.0, SECOND, &mut rng);
        // Each acknowledgement is 10 ms after the one before and has a 5 ms longer round trip.
        let gradient = path.run(200.0, SECOND, &mut rng).interval.latency_gradient();
        // The halves' means are 50 acknowledgements apart: 250 ms in an interval of 1 s.
        assert!((gradient - 0.25).abs() < 1e-12, "{gradient}");
    }

    #[test]
    fn losses_are_as_frequent_as_asked_for() {
        for loss in [0.01, 0.3, 1.0] {
            let (mut path, mut rng) = path(1e6, 0.01, 10, loss);
            let report = path.run(1e5, 10 * SECOND, &mut rng);
            let n = (report.interval.acked + report.lost) as f64;
            let deviation = (loss * (1.0 - loss) / n).sqrt();
            assert!((report.loss() - loss).abs() <= 4.0 * deviation, "{} instead of {loss}", report.loss());
        }
    }
}
