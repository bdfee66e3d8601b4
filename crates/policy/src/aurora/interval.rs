//! What a sender sees in one monitor interval (Aurora §2.2).

use astraea_cc::Nanos;

/// A monitor interval. The packets sent in it and the acknowledgements that arrived in it are its own, whichever packets
/// those are for, as in the gym that Aurora was trained in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Interval {
    /// When it begins.
    pub start: Nanos,
    /// When it ends.
    pub end: Nanos,
    /// Sent, in packets or in payload bytes.
    pub sent: u64,
    /// Acknowledged, in the same unit.
    pub acked: u64,
    early: Sum,
    late: Sum,
}

/// Round-trip times of one half.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    rtts: Nanos,
    count: u32,
}

impl Sum {
    fn mean(self) -> Option<f64> {
        (self.count > 0).then(|| self.rtts as f64 / f64::from(self.count))
    }
}

impl Interval {
    /// An interval of `length` ns, in which nothing has happened yet.
    pub fn new(start: Nanos, length: Nanos) -> Self {
        Self { start, end: start + length.max(1), ..Self::default() }
    }

    /// A round-trip time in ns that an acknowledgement at `now` shows.
    #[inline]
    pub fn on_rtt(&mut self, now: Nanos, rtt: Nanos) {
        // Comparing with the middle would round it; times are below 2^63 ns.
        let half = if 2 * now >= self.start + self.end { &mut self.late } else { &mut self.early };
        half.rtts += rtt;
        half.count += 1;
    }

    /// Its length in s.
    pub fn seconds(&self) -> f64 {
        (self.end - self.start) as f64 / 1e9
    }

    /// Sum of the round-trip times in ns.
    pub fn rtts(&self) -> Nanos {
        self.early.rtts + self.late.rtts
    }

    /// Mean round-trip time in s, or `None` without one.
    pub fn latency(&self) -> Option<f64> {
        let count = self.early.count + self.late.count;
        (count > 0).then(|| self.rtts() as f64 / (1e9 * f64::from(count)))
    }

    /// Change of the mean round-trip time from the first half of the interval to the second, as a share of the interval; 0
    /// unless both halves have acknowledgements.
    pub fn latency_gradient(&self) -> f64 {
        let (Some(early), Some(late)) = (self.early.mean(), self.late.mean()) else { return 0.0 };
        (late - early) / (self.end - self.start) as f64
    }

    /// What was sent over what was acknowledged, of which there is a `packet` at least (in the unit of both).
    pub fn send_ratio(&self, packet: u64) -> f64 {
        self.sent as f64 / self.acked.max(packet).max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        let mut interval = Interval { sent: 30, acked: 20, ..Interval::new(1000, 1000) };
        assert_eq!((interval.latency(), interval.latency_gradient()), (None, 0.0));
        interval.on_rtt(1200, 240);
        interval.on_rtt(1499, 260);
        assert_eq!((interval.latency(), interval.latency_gradient()), (Some(250e-9), 0.0), "one half has none");
        // The middle belongs to the second half.
        interval.on_rtt(1500, 340);
        interval.on_rtt(2000, 360);
        assert_eq!((interval.latency(), interval.latency_gradient()), (Some(300e-9), 0.1));
        assert_eq!((interval.send_ratio(1), interval.send_ratio(60)), (1.5, 0.5));
        assert_eq!(Interval { sent: 7, ..Interval::new(0, 0) }.send_ratio(1), 7.0, "one acknowledgement at least");
    }
}
