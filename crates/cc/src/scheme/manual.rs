//! A controller that is told what to do from outside.

use crate::{Ack, Congestion, Controller, Nanos, Rtt};

/// Holds the window and pacing rate that an agent chose last; reacts to nothing by itself.
#[derive(Clone, Debug)]
pub struct Manual {
    cwnd: u64,
    pacing: Option<f64>,
}

impl Manual {
    /// `cwnd` in payload bytes (at least one segment, or the flow stalls), `pacing` in payload bit/s (above 0).
    pub fn new(cwnd: u64, pacing: Option<f64>) -> Self {
        let mut manual = Self { cwnd, pacing: None };
        manual.set(cwnd, pacing);
        manual
    }

    /// Replaces both; units as in [`new`](Self::new).
    #[inline]
    pub fn set(&mut self, cwnd: u64, pacing: Option<f64>) {
        debug_assert!(cwnd > 0 && pacing.is_none_or(|rate| rate > 0.0), "cwnd {cwnd}, pacing {pacing:?}");
        self.cwnd = cwnd;
        self.pacing = pacing;
    }
}

impl Controller for Manual {
    #[inline]
    fn on_ack(&mut self, _ack: &Ack, _rtt: &Rtt) {}

    fn on_congestion(&mut self, _event: &Congestion) {}

    fn on_timeout(&mut self, _now: Nanos, _flight_size: u64) {}

    #[inline]
    fn cwnd(&self) -> u64 {
        self.cwnd
    }

    #[inline]
    fn pacing_rate(&self) -> Option<f64> {
        self.pacing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_set_changes_it() {
        let mut manual = Manual::new(20_000, None);
        manual.on_timeout(0, 20_000);
        assert_eq!((manual.cwnd(), manual.pacing_rate()), (20_000, None));
        manual.set(30_000, Some(1e6));
        assert_eq!((manual.cwnd(), manual.pacing_rate()), (30_000, Some(1e6)));
    }
}
