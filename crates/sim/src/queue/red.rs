//! RED (Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", 1993): drops arriving packets
//! with a probability that grows with the average queue length, spaced evenly; in the "gentle" variant (Floyd 2000) the
//! probability rises to one between the upper threshold and twice it.
//!
//! The queue is measured in bytes, and a packet's size does not change its probability (RFC 7141). The paper ages the
//! average over idle time by the number of packets that could have been sent: here the time for a packet is not
//! configured but measured, between departures of a backlogged queue.

use super::fifo::Fifo;
use super::{Discipline, Limit, Packet, Verdict};
use astraea_cc::Nanos;
use rand::{Rng, RngExt};
use serde::{Deserialize, Serialize};

/// Parameters of RED.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedConfig {
    /// Average queue in bytes from which on packets are dropped or marked.
    pub min_bytes: u64,
    /// Average queue in bytes at which the probability is `max_p`.
    pub max_bytes: u64,
    /// Probability at the upper threshold. Default 0.1.
    #[serde(default = "default_max_p")]
    pub max_p: f64,
    /// Weight of the newest sample in the average. Default 0.002.
    #[serde(default = "default_weight")]
    pub weight: f64,
    /// Let the probability rise to one between `max_bytes` and twice that, instead of jumping. Default on.
    #[serde(default = "default_gentle")]
    pub gentle: bool,
    /// Mark capable packets instead of dropping them while the average is below `max_bytes`. Default off.
    #[serde(default)]
    pub ecn: bool,
}

fn default_max_p() -> f64 {
    0.1
}

fn default_weight() -> f64 {
    0.002
}

fn default_gentle() -> bool {
    true
}

impl RedConfig {
    /// These thresholds in bytes, and the defaults for the rest.
    pub fn new(min_bytes: u64, max_bytes: u64) -> Self {
        let (max_p, weight, gentle) = (default_max_p(), default_weight(), default_gentle());
        Self { min_bytes, max_bytes, max_p, weight, gentle, ecn: false }
    }

    pub(super) fn validate(self) -> Result<(), String> {
        if self.min_bytes == 0 || self.max_bytes <= self.min_bytes {
            let (min, max) = (self.min_bytes, self.max_bytes);
            return Err(format!("expected 0 < min_bytes < max_bytes, got {min} and {max}"));
        }
        for (key, value) in [("max_p", self.max_p), ("weight", self.weight)] {
            if !(value > 0.0 && value <= 1.0) {
                return Err(format!("expected {key} above 0 and at most 1, got {value}"));
            }
        }
        Ok(())
    }

    /// The probability `p_b` for an average queue of so many bytes, before drops are spaced.
    fn probability(&self, average: f64) -> f64 {
        let (min, max) = (self.min_bytes as f64, self.max_bytes as f64);
        if average < min {
            0.0
        } else if average < max {
            self.max_p * (average - min) / (max - min)
        } else if self.gentle && average < 2.0 * max {
            self.max_p + (1.0 - self.max_p) * (average - max) / max
        } else {
            1.0
        }
    }
}

/// A FIFO under RED.
#[derive(Clone, Debug)]
pub struct Red<P> {
    config: RedConfig,
    limit: Limit,
    fifo: Fifo<P>,
    /// Average queue in bytes.
    average: f64,
    /// Packets let through since the last one that was dropped or marked.
    passed: u32,
    /// The last departure, and whether packets waited behind it.
    departure: Nanos,
    backlogged: bool,
    /// Smoothed time for a packet in ns; zero until measured.
    packet_time: f64,
}

impl<P> Red<P> {
    /// An empty queue.
    pub fn new(config: RedConfig, limit: Limit) -> Self {
        Self {
            config,
            limit,
            fifo: Fifo::new(),
            average: 0.0,
            passed: 0,
            departure: 0,
            backlogged: false,
            packet_time: 0.0,
        }
    }

    /// The average queue in bytes.
    pub fn average(&self) -> f64 {
        self.average
    }
}

impl<P: Packet> Red<P> {
    /// The average as an arriving packet finds it: one step, and one more for each packet that could have been sent
    /// since the last one left the transmitter, had there been one.
    fn update_average(&mut self, now: Nanos) {
        let keep = 1.0 - self.config.weight;
        if self.fifo.is_empty() && self.packet_time > 0.0 {
            let idle = now.saturating_sub(self.departure) as f64 - self.packet_time;
            if idle > 0.0 {
                self.average *= libm::pow(keep, idle / self.packet_time);
            }
        }
        self.average = keep * self.average + self.config.weight * self.fifo.bytes() as f64;
    }

    /// Whether an arriving packet is to be dropped or marked. With `count` packets let through since the last signal,
    /// `p_a = p_b / (1 - count * p_b)` makes the distance between signals uniform in `1..=1/p_b` (section 7 of the
    /// paper; its figure 2 counts the packet at hand as well and so signals one packet earlier).
    fn signals(&mut self, rng: &mut impl Rng) -> bool {
        let base = self.config.probability(self.average);
        if base == 0.0 {
            self.passed = 0;
            return false;
        }
        let remaining = 1.0 - f64::from(self.passed) * base;
        let signal = base >= remaining || rng.random_bool(base / remaining);
        self.passed = if signal { 0 } else { self.passed + 1 };
        signal
    }
}

impl<P: Packet> Discipline<P> for Red<P> {
    fn enqueue(&mut self, now: Nanos, mut packet: P, rng: &mut impl Rng) -> Verdict<P> {
        self.update_average(now);
        if !self.fifo.has_room(self.limit, &packet) {
            self.passed = 0;
            return Verdict::Dropped(packet);
        }
        if self.signals(rng) {
            // Above the upper threshold marking has not helped: drop (RFC 3168 section 7).
            let mild = self.average < self.config.max_bytes as f64;
            if !(self.config.ecn && packet.ecn_capable() && mild) {
                return Verdict::Dropped(packet);
            }
            packet.mark_ce();
        }
        self.fifo.push(now, packet);
        Verdict::Queued
    }

    fn dequeue(&mut self, now: Nanos, _dropped: &mut Vec<P>) -> Option<P> {
        let packet = self.fifo.pop()?;
        if self.backlogged {
            let sample = now.saturating_sub(self.departure) as f64;
            let first = self.packet_time == 0.0;
            self.packet_time += (sample - self.packet_time) * if first { 1.0 } else { 0.125 };
        }
        self.departure = now;
        self.backlogged = !self.fifo.is_empty();
        Some(packet)
    }

    fn len(&self) -> usize {
        self.fifo.len()
    }

    fn bytes(&self) -> u64 {
        self.fifo.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{TestPacket, drive, rng};
    use super::*;

    const CONFIG: RedConfig =
        RedConfig { min_bytes: 10_000, max_bytes: 30_000, max_p: 0.1, weight: 0.002, gentle: true, ecn: false };

    /// Distances between signals while the average is held at `average` bytes.
    fn distances(config: RedConfig, average: f64, packets: u32) -> Vec<u32> {
        let mut queue = Red::<TestPacket>::new(config, Limit::Infinite);
        let (mut rng, mut since, mut distances) = (rng(), 0, Vec::new());
        for _ in 0..packets {
            queue.average = average;
            since += 1;
            if queue.signals(&mut rng) {
                distances.push(std::mem::take(&mut since));
            }
        }
        distances
    }

    #[test]
    fn the_probability_is_piecewise_linear() {
        let near = |got: f64, want: f64| assert!((got - want).abs() < 1e-12, "{got} for {want}");
        let at = |config: RedConfig, average: f64| config.probability(average);
        near(at(CONFIG, 9_999.0), 0.0);
        near(at(CONFIG, 10_000.0), 0.0);
        near(at(CONFIG, 20_000.0), 0.05);
        near(at(CONFIG, 30_000.0), 0.1);
        near(at(CONFIG, 45_000.0), 0.55);
        near(at(CONFIG, 60_000.0), 1.0);
        let steep = RedConfig { gentle: false, ..CONFIG };
        near(at(steep, 29_999.0), 0.099_995);
        near(at(steep, 30_000.0), 1.0);
    }

    #[test]
    fn distances_between_signals_are_uniform() {
        // p_b = 0.05: uniform in 1..=20, mean 10.5, variance (20^2 - 1) / 12 = 33.25.
        let distances = distances(CONFIG, 20_000.0, 200_000);
        let count = distances.len() as f64;
        assert_eq!((distances.iter().min(), distances.iter().max()), (Some(&1), Some(&20)));
        let mean = distances.iter().map(|&d| f64::from(d)).sum::<f64>() / count;
        let variance = distances.iter().map(|&d| (f64::from(d) - mean).powi(2)).sum::<f64>() / count;
        assert!((mean - 10.5).abs() < 0.2, "mean {mean}");
        assert!((variance - 33.25).abs() < 1.5, "variance {variance}");
    }

    #[test]
    fn nothing_passes_an_average_beyond_the_range() {
        assert_eq!(distances(CONFIG, 60_000.0, 10), [1; 10]);
        assert!(distances(CONFIG, 9_000.0, 1000).is_empty());
    }

    #[test]
    fn a_packet_that_does_not_fit_counts_as_a_signal() {
        let mut queue = Red::new(RedConfig { weight: 1.0, ..CONFIG }, Limit::Bytes(10_000));
        let _ = queue.enqueue(0, TestPacket::new(0, 0, 10_000), &mut rng());
        queue.passed = 19;
        assert!(matches!(queue.enqueue(0, TestPacket::new(1, 0, 1), &mut rng()), Verdict::Dropped(p) if p.id == 1));
        assert_eq!(queue.passed, 0);
    }

    #[test]
    fn the_average_is_a_moving_one() {
        let config = RedConfig { min_bytes: 1_000_000, max_bytes: 2_000_000, weight: 0.25, ..CONFIG };
        let mut queue = Red::new(config, Limit::Infinite);
        let mut averages = Vec::new();
        for id in 0..4 {
            let _ = queue.enqueue(0, TestPacket::new(id, 0, 1600), &mut rng());
            averages.push(queue.average());
        }
        // Found 0, 1600, 3200, 4800 bytes waiting.
        assert_eq!(averages, [0.0, 400.0, 1100.0, 2025.0]);
    }

    #[test]
    fn the_average_ages_while_the_link_is_idle() {
        let mut queue = Red::new(RedConfig { weight: 0.25, ..CONFIG }, Limit::Infinite);
        for id in 0..3 {
            let _ = queue.enqueue(0, TestPacket::new(id, 0, 1000), &mut rng());
        }
        for now in [0, 1000, 2000] {
            assert!(queue.dequeue(now, &mut Vec::new()).is_some());
        }
        // 1000 ns for a packet: the last one leaves the link at 3000, then five more could have been sent.
        let before = queue.average();
        let _ = queue.enqueue(8000, TestPacket::new(3, 0, 1000), &mut rng());
        assert!((queue.average() - before * 0.75_f64.powi(6)).abs() < 1e-9);
    }

    #[test]
    fn keeps_the_average_between_the_thresholds_when_the_overload_is_moderate() {
        // 5 % too much: the average settles near the point where p_b makes the drop rate (2 p_b / (1 + p_b)) 4.8 %.
        let mut queue = Red::new(CONFIG, Limit::Infinite);
        let every = 600_000 * 100 / 105;
        let arrivals = (0..200_000).map(|id| (id * every, TestPacket::new(id, 0, 1500)));
        let outcome = drive(&mut queue, arrivals, 400);
        let rate = outcome.dropped.iter().filter(|(at, _)| *at > 50_000 * every).count() as f64 / 150_000.0;
        assert!((rate - 5.0 / 105.0).abs() < 0.002, "drop rate {rate}");
        let expected = rate / (2.0 - rate);
        let settled = CONFIG.probability(queue.average());
        assert!((settled - expected).abs() < 0.01, "p_b {settled}, expected {expected}");
    }

    #[test]
    fn marks_below_the_upper_threshold_and_drops_above() {
        let ecn = RedConfig { ecn: true, weight: 1.0, ..CONFIG };
        let mut queue = Red::new(ecn, Limit::Infinite);
        let (mut rng, mut dropped) = (rng(), 0);
        // The queue is held at 20 packets (30 000 bytes less one), where p_b is just below max_p.
        for id in 0..1000 {
            let verdict = queue.enqueue(0, TestPacket::new(id, 0, 1499).capable(), &mut rng);
            dropped += u32::from(verdict != Verdict::Queued);
            if queue.len() > 20 {
                let _ = queue.dequeue(0, &mut Vec::new());
            }
        }
        assert_eq!(dropped, 0);
        // Beyond it capable packets are dropped as well.
        for id in 0..1000 {
            dropped += u32::from(queue.enqueue(0, TestPacket::new(id, 0, 1499).capable(), &mut rng) != Verdict::Queued);
        }
        assert!(dropped > 0);
        let marked = std::iter::from_fn(|| queue.dequeue(0, &mut Vec::new())).filter(|p| p.marked).count();
        assert!(marked > 0);
    }
}
