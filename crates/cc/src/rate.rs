//! Delivery-rate samples (draft-ietf-ccwg-bbr, "Delivery Rate Samples").
//!
//! Each packet carries a [`SendStamp`]; when it is acknowledged, the data delivered since it was sent, divided by the
//! longer of the time it took to send and the time it took to acknowledge that data, is a rate that the path has shown.

use crate::Nanos;

/// State of the connection at the moment a packet was sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct SendStamp {
    /// When the packet left.
    pub sent_at: Nanos,
    /// Payload bytes delivered by then.
    pub delivered: u64,
    /// When `delivered` was last advanced.
    pub delivered_at: Nanos,
    /// Send time of the first packet of the flight that was being sampled.
    pub first_sent_at: Nanos,
    /// Payload bytes in flight then, the packet included.
    pub in_flight: u64,
    /// Payload bytes declared lost by then.
    pub lost: u64,
    /// Whether the application, not the network, limited the sender then.
    pub app_limited: bool,
}

/// What the path delivered over one sampling interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSample {
    /// Payload bytes delivered in the interval.
    pub delivered: u64,
    /// Its length; 0 if there is no valid sample.
    pub interval: Nanos,
    /// Payload bytes that had been delivered when the sampled packet was sent (marks packet-timed round trips).
    pub prior_delivered: u64,
    /// Payload bytes delivered over the connection so far.
    pub total_delivered: u64,
    /// Payload bytes in flight when the sampled packet had been sent, itself included.
    pub sent_in_flight: u64,
    /// Payload bytes declared lost since the sampled packet was sent.
    pub lost: u64,
    /// Whether the sample was taken while the application limited the sender: a lower bound only.
    pub app_limited: bool,
}

impl RateSample {
    /// Delivery rate in payload bit/s, or `None` without a valid interval.
    #[inline]
    pub fn bit_rate(&self) -> Option<f64> {
        (self.interval > 0).then(|| self.delivered as f64 * 8e9 / self.interval as f64)
    }
}

/// Connection-wide part of the sampler.
#[derive(Clone, Copy, Debug, Default)]
pub struct RateSampler {
    delivered: u64,
    delivered_at: Nanos,
    first_sent_at: Nanos,
    lost: u64,
    /// While `delivered` is below this, samples are application-limited; 0 when they are not.
    app_limited_until: u64,
}

impl RateSampler {
    /// Stamps a packet of `bytes` payload sent at `now`, before which `in_flight` payload bytes were in flight.
    #[inline]
    pub fn on_sent(&mut self, now: Nanos, bytes: u64, in_flight: u64) -> SendStamp {
        if in_flight == 0 {
            self.first_sent_at = now;
            self.delivered_at = now;
        }
        SendStamp {
            sent_at: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent_at: self.first_sent_at,
            in_flight: in_flight + bytes,
            lost: self.lost,
            app_limited: self.app_limited_until != 0,
        }
    }

    /// Counts `bytes` of payload as delivered at `now`.
    #[inline]
    pub fn on_delivered(&mut self, now: Nanos, bytes: u64) {
        self.delivered += bytes;
        self.delivered_at = now;
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
    }

    /// Counts `bytes` of payload as lost; a loss that is taken back stays counted.
    #[inline]
    pub fn on_lost(&mut self, bytes: u64) {
        self.lost += bytes;
    }

    /// Payload bytes declared lost so far.
    #[inline]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The sample that the newest acknowledged packet yields; call after [`on_delivered`](Self::on_delivered).
    ///
    /// `min_rtt` guards against samples shorter than any round trip (the draft's check on the interval).
    #[inline]
    pub fn sample(&mut self, stamp: &SendStamp, min_rtt: Nanos) -> RateSample {
        self.first_sent_at = stamp.sent_at;
        let send_elapsed = stamp.sent_at.saturating_sub(stamp.first_sent_at);
        let ack_elapsed = self.delivered_at - stamp.delivered_at;
        let interval = send_elapsed.max(ack_elapsed);
        RateSample {
            delivered: self.delivered - stamp.delivered,
            interval: if interval < min_rtt { 0 } else { interval },
            prior_delivered: stamp.delivered,
            total_delivered: self.delivered,
            sent_in_flight: stamp.in_flight,
            lost: self.lost - stamp.lost,
            app_limited: stamp.app_limited,
        }
    }

    /// The sender ran out of data with `in_flight` bytes outstanding: samples until they are delivered are limited.
    #[inline]
    pub fn on_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = (self.delivered + in_flight).max(1);
    }

    /// Payload bytes delivered so far.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.delivered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_delivery_yields_the_delivery_rate() {
        // One 1000-byte packet a millisecond, acknowledged 10 ms later: 8 Mbit/s.
        let mut sampler = RateSampler::default();
        let mut stamps = Vec::new();
        for ms in 0..100_u64 {
            if ms >= 10 {
                sampler.on_delivered(ms * 1_000_000, 1000);
                let sample = sampler.sample(&stamps[(ms - 10) as usize], 10_000_000);
                if ms >= 30 {
                    assert_eq!(sample.bit_rate(), Some(8e6), "at {ms} ms");
                }
            }
            stamps.push(sampler.on_sent(ms * 1_000_000, 1000, 1000 * ms.min(9)));
        }
    }

    #[test]
    fn compressed_acks_do_not_raise_the_rate_above_the_send_rate() {
        let mut sampler = RateSampler::default();
        let stamps: Vec<_> = (0..10).map(|ms| sampler.on_sent(ms * 1_000_000, 1000, 1000 * ms)).collect();
        for stamp in &stamps {
            sampler.on_delivered(20_000_000, 1000);
            let rate = sampler.sample(stamp, 10_000_000).bit_rate().unwrap();
            assert!(rate <= 8e6 * 10.0 / 9.0, "{rate}");
        }
    }

    #[test]
    fn a_sample_knows_the_flight_and_what_was_lost_since() {
        let mut sampler = RateSampler::default();
        sampler.on_lost(500);
        let stamp = sampler.on_sent(0, 1000, 4000);
        sampler.on_lost(2000);
        sampler.on_delivered(10, 1000);
        let sample = sampler.sample(&stamp, 0);
        assert_eq!((sample.sent_in_flight, sample.lost, sampler.lost()), (5000, 2000, 2500));
    }

    #[test]
    fn app_limited_marks_the_outstanding_data_only() {
        let mut sampler = RateSampler::default();
        let first = sampler.on_sent(0, 1000, 0);
        sampler.on_app_limited(1000);
        let second = sampler.on_sent(1, 1000, 1000);
        assert!(!first.app_limited && second.app_limited);
        sampler.on_delivered(10, 1000);
        sampler.on_delivered(11, 1000);
        assert!(!sampler.on_sent(12, 1000, 0).app_limited);
    }
}
