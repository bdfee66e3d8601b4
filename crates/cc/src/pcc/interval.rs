//! A monitor interval: what was sent at one rate, and what became of it.

use crate::Nanos;

/// Reliable samples that an interval needs (`kMinReliableRtt`).
const MIN_RELIABLE: u32 = 4;

/// Part of the samples that must be reliable, or the interval lasts twice as long (`kMinReliabilityRatio`).
const RELIABLE_PART: f64 = 0.8;

/// An acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sample {
    pub(super) now: Nanos,
    pub(super) sent_at: Nanos,
    pub(super) bytes: u64,
    pub(super) rtt: Nanos,
    /// Smoothed round-trip time with this sample.
    pub(super) smoothed: Nanos,
}

/// What an interval showed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    /// Sent, acknowledged and lost payload bit/s over the time that it took to send it all.
    pub(crate) sent: f64,
    pub(crate) acked: f64,
    pub(crate) lost: f64,
    /// Part of the bytes that was lost.
    pub(crate) loss: f64,
    /// Change of the round-trip time per time of sending, by least squares over reliable samples; 0 without two of
    /// them.
    pub(crate) gradient: f64,
    /// Standard deviation of those samples, relative to their mean.
    pub(crate) deviation: f64,
    /// Their mean in s; `None` without two of them.
    pub(crate) rtt: Option<f64>,
    /// Smoothed round-trip time before the first acknowledgement over that at the end.
    pub(crate) rtt_ratio: f64,
    /// Length in s.
    pub(crate) length: f64,
    /// Whether the sender was starting.
    pub(crate) starting: bool,
}

/// Sums over an interval.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interval {
    rate: f64,
    /// Time that it takes at least.
    duration: Nanos,
    extended: bool,
    starting: bool,
    first_sent: Nanos,
    last_sent: Nanos,
    sent: u64,
    acked: u64,
    lost: u64,
    smoothed_before: Nanos,
    smoothed_after: Nanos,
    complete: bool,
    samples: u32,
    regression: Regression,
}

impl Interval {
    pub(super) fn new(rate: f64, duration: Nanos, starting: bool) -> Self {
        Self { rate, duration, starting, ..Self::default() }
    }

    /// Rate in bit/s.
    #[inline]
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }

    #[inline]
    pub(super) fn on_sent(&mut self, now: Nanos, bytes: u64) {
        if self.sent == 0 {
            self.first_sent = now;
        }
        self.last_sent = now;
        self.sent += bytes;
    }

    /// Whether the next packet belongs to another interval: this one has lasted a round trip, and its own samples have
    /// begun to arrive. What is sent at one time belongs to one interval, as its packets are known by their times.
    #[inline]
    pub(super) fn is_over(&mut self, now: Nanos) -> bool {
        let reliable = self.regression.count;
        if reliable < MIN_RELIABLE || now - self.first_sent < self.duration || now == self.last_sent {
            return false;
        }
        if f64::from(reliable) > RELIABLE_PART * f64::from(self.samples) || self.extended {
            return true;
        }
        self.extended = true;
        self.duration *= 2;
        false
    }

    fn contains(&self, sent_at: Nanos) -> bool {
        self.sent > 0 && (self.first_sent..=self.last_sent).contains(&sent_at)
    }

    /// An acknowledgement, of this interval or of another. `hole_open`: an older packet than one acknowledged is
    /// unaccounted for.
    #[inline]
    pub(super) fn on_ack(&mut self, ack: &Sample, reliable: bool, smoothed: Nanos, hole_open: bool) {
        if self.complete {
            return;
        }
        if self.contains(ack.sent_at) {
            if self.samples == 0 {
                self.smoothed_before = ack.smoothed;
            }
            self.samples += 1;
            self.acked += ack.bytes;
            if reliable {
                self.regression.add((ack.sent_at - self.first_sent) as f64 / 1e9, ack.rtt as f64 / 1e9);
            }
        } else if self.sent > 0 && ack.sent_at > self.last_sent && !hole_open {
            // An acknowledgement of several packets counts for the interval of the newest: everything older has arrived
            // or is known to be lost.
            self.acked = self.sent - self.lost.min(self.sent);
        }
        self.complete(smoothed);
    }

    pub(super) fn on_lost(&mut self, sent_at: Nanos, bytes: u64, smoothed: Nanos) {
        if !self.complete && self.contains(sent_at) {
            self.lost += bytes;
            self.complete(smoothed);
        }
    }

    pub(super) fn on_timeout(&mut self, smoothed: Nanos) {
        if !self.complete {
            self.lost = self.sent - self.acked.min(self.sent);
            self.complete(smoothed);
        }
    }

    fn complete(&mut self, smoothed: Nanos) {
        if self.regression.count >= MIN_RELIABLE && self.acked + self.lost >= self.sent {
            self.complete = true;
            self.smoothed_after = smoothed;
        }
    }

    /// Whether all that was sent is accounted for.
    #[inline]
    pub(super) fn is_complete(&self) -> bool {
        self.complete
    }

    /// Whether it has no length.
    pub(super) fn is_void(&self) -> bool {
        self.first_sent == self.last_sent
    }

    /// What it showed, for packets of `mss` payload bytes.
    pub(super) fn measured(&self, mss: u64) -> Measured {
        // The last packet takes its time as well.
        let length = (self.last_sent - self.first_sent) as f64 / 1e9 + mss as f64 * 8.0 / self.rate;
        let rate = |bytes: u64| bytes as f64 * 8.0 / length;
        let two = self.regression.count >= 2;
        Measured {
            sent: rate(self.sent),
            acked: rate(self.acked),
            lost: rate(self.lost),
            loss: self.lost as f64 / self.sent as f64,
            gradient: if two { self.regression.slope() } else { 0.0 },
            deviation: if two { self.regression.deviation() } else { 0.0 },
            rtt: two.then_some(self.regression.mean_y),
            rtt_ratio: self.smoothed_before as f64 / self.smoothed_after.max(1) as f64,
            length,
            starting: self.starting,
        }
    }
}

/// Least squares in one pass (Welford's updates).
#[derive(Clone, Copy, Debug, Default)]
struct Regression {
    count: u32,
    mean_x: f64,
    mean_y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Regression {
    #[inline]
    fn add(&mut self, x: f64, y: f64) {
        self.count += 1;
        let n = f64::from(self.count);
        let (dx, dy) = (x - self.mean_x, y - self.mean_y);
        self.mean_x += dx / n;
        self.mean_y += dy / n;
        self.xx += dx * (x - self.mean_x);
        self.xy += dx * (y - self.mean_y);
        self.yy += dy * (y - self.mean_y);
    }

    fn slope(&self) -> f64 {
        if self.xx > 0.0 { self.xy / self.xx } else { 0.0 }
    }

    /// Standard deviation of y relative to its mean.
    fn deviation(&self) -> f64 {
        if self.mean_y > 0.0 { (self.yy / f64::from(self.count)).sqrt() / self.mean_y } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    /// Ten packets of 1000 bytes, one a millisecond; each waits 0.1 ms longer than the one before.
    fn sent() -> Interval {
        let mut interval = Interval::new(8e6, 9 * MS, false);
        for packet in 0..10 {
            interval.on_sent(packet * MS, 1000);
        }
        interval
    }

    fn ack(packet: Nanos) -> Sample {
        let rtt = 20 * MS + packet * MS / 10;
        Sample { now: packet * MS + rtt, sent_at: packet * MS, bytes: 1000, rtt, smoothed: 20 * MS }
    }

    #[test]
    fn rates_losses_and_the_slope_by_hand() {
        let mut interval = sent();
        for packet in 0..9 {
            interval.on_ack(&ack(packet), true, 25 * MS, true);
        }
        assert!(!interval.is_complete());
        interval.on_lost(10 * MS, 1000, 25 * MS);
        assert!(!interval.is_complete(), "not of this interval");
        interval.on_lost(9 * MS, 1000, 25 * MS);
        assert!(interval.is_complete());
        let measured = interval.measured(1000);
        assert!((measured.sent - 8e6).abs() < 1.0 && (measured.acked - 7.2e6).abs() < 1.0, "{measured:?}");
        assert!((measured.loss - 0.1).abs() < 1e-12 && (measured.gradient - 0.1).abs() < 1e-9, "{measured:?}");
        assert!((measured.rtt_ratio - 0.8).abs() < 1e-12 && (measured.length - 0.01).abs() < 1e-12);
        // 0 to 0.8 ms in nine steps: a deviation of 0.1 sqrt(80/12) ms, and a mean of 20.4 ms.
        assert!((measured.rtt.unwrap() - 0.0204).abs() < 1e-12);
        assert!((measured.deviation - 0.1 * (80.0_f64 / 12.0).sqrt() / 20.4).abs() < 1e-9);
    }

    #[test]
    fn it_lasts_a_round_trip_and_until_four_samples_are_there() {
        let mut interval = sent();
        assert!(!interval.is_over(30 * MS));
        for packet in 0..4 {
            interval.on_ack(&ack(packet), true, 20 * MS, true);
        }
        assert!(!interval.is_over(8 * MS), "nine milliseconds at least");
        assert!(!interval.is_over(9 * MS), "what leaves with its last packet is its own");
        assert!(interval.is_over(9 * MS + 1));
        // Four reliable samples of five are just not enough: twice as long, once.
        interval.on_ack(&ack(4), false, 20 * MS, true);
        assert!(!interval.is_over(9 * MS + 1) && !interval.is_over(17 * MS) && interval.is_over(18 * MS));
    }

    #[test]
    fn a_later_acknowledgement_without_a_hole_accounts_for_the_rest() {
        let mut interval = sent();
        for packet in [0, 2, 4, 6, 8] {
            interval.on_ack(&ack(packet), true, 20 * MS, false);
        }
        interval.on_lost(5 * MS, 1000, 20 * MS);
        let later = Sample { sent_at: 10 * MS, ..ack(10) };
        interval.on_ack(&later, true, 20 * MS, true);
        assert!(!interval.is_complete());
        interval.on_ack(&later, true, 20 * MS, false);
        assert!(interval.is_complete());
        assert!((interval.measured(1000).loss - 0.1).abs() < 1e-12);
    }

    #[test]
    fn a_timeout_loses_what_is_left() {
        let mut interval = sent();
        for packet in 0..6 {
            interval.on_ack(&ack(packet), true, 20 * MS, false);
        }
        interval.on_timeout(20 * MS);
        assert!((interval.measured(1000).loss - 0.4).abs() < 1e-12);
    }
}
