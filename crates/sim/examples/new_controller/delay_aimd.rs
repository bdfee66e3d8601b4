//! Additive increase, multiplicative decrease, with a queueing delay in place of a loss as the sign of congestion.

use astraea_cc::{Ack, Congestion, Controller, INITIAL_WINDOW, Nanos, Rtt};

/// One segment more per round trip while packets wait for less than `target`, three quarters of the window otherwise.
#[derive(Clone, Debug)]
pub struct DelayAimd {
    target: Nanos,
    mss: u64,
    cwnd: u64,
    /// Payload bytes acknowledged and not yet turned into growth.
    credit: u64,
    reduced_at: Nanos,
}

impl DelayAimd {
    /// A connection that begins, with segments of `mss` payload bytes; `target` is the queueing delay to stay below.
    pub fn new(target: Nanos, mss: u32) -> Self {
        let mss = u64::from(mss);
        Self { target, mss, cwnd: u64::from(INITIAL_WINDOW) * mss, credit: 0, reduced_at: 0 }
    }

    /// Packets sent before the last reduction say nothing about the window since: only later ones reduce it again.
    fn reduce(&mut self, now: Nanos, sent_at: Nanos) {
        if sent_at >= self.reduced_at {
            self.cwnd = (self.cwnd * 3 / 4).max(2 * self.mss);
            (self.credit, self.reduced_at) = (0, now);
        }
    }
}

impl Controller for DelayAimd {
    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        let (Some(sample), Some(base)) = (ack.rtt, rtt.min()) else { return };
        if sample - base > self.target {
            self.reduce(ack.now, ack.sent_at);
        } else if ack.cwnd_limited && !ack.in_recovery {
            self.credit += ack.acked;
            if self.credit >= self.cwnd {
                self.credit -= self.cwnd;
                self.cwnd += self.mss;
            }
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        self.reduce(event.now, event.sent_at);
    }

    fn on_timeout(&mut self, now: Nanos, _flight_size: u64) {
        (self.cwnd, self.credit, self.reduced_at) = (self.mss, 0, now);
    }

    fn cwnd(&self) -> u64 {
        self.cwnd
    }
}
