//! Copa's two modes: the delay it aims at, and the smaller delta with which it holds its own against schemes that fill
//! the buffer.

use super::delays::Delays;
use crate::Nanos;

/// The mode and the delta that goes with it.
#[derive(Clone, Debug)]
pub(super) struct Competition {
    default_delta: f64,
    /// Whether the mode may change.
    enabled: bool,
    competitive: bool,
    delta: f64,
    /// When the present round trip of competitive mode began: after it 1/delta may grow.
    since: Nanos,
    /// Whether the window has been used since then.
    used: bool,
    /// When 1/delta last shrank.
    shrunk_at: Option<Nanos>,
}

impl Competition {
    pub(super) fn new(default_delta: f64, enabled: bool) -> Self {
        let delta = default_delta;
        Self { default_delta, enabled, competitive: false, delta, since: 0, used: false, shrunk_at: None }
    }

    /// Present delta in 1/packets: one flow aims at about 1/delta packets in the queue.
    #[inline]
    pub(super) fn delta(&self) -> f64 {
        self.delta
    }

    /// Whether the flow is in competitive mode.
    #[inline]
    pub(super) fn competitive(&self) -> bool {
        self.competitive
    }

    /// Chooses the mode (paper §2.2): Copa flows alone empty the queue once in about five round trips, so one that has
    /// not been nearly empty for four smoothed ones is being filled by someone else. Then 1/delta grows by one packet
    /// per round trip, as a loss-based window would. `used`: the window, and not the application, held the sender back.
    ///
    /// A round trip in which the window was not used leaves 1/delta as it is, as a loss-based window would stand still. It
    /// would otherwise grow for as long as an application pauses, and move the window by as much once it is used again.
    pub(super) fn on_ack(&mut self, now: Nanos, delays: &Delays, used: bool) {
        if !self.enabled {
            return;
        }
        self.competitive = !delays.nearly_empty();
        let round_trip = delays.latest();
        if self.competitive {
            self.used |= used;
            if now - self.since > round_trip {
                if self.used {
                    self.delta = 1.0 / (1.0 / self.delta + 1.0);
                }
                (self.since, self.used) = (now, false);
            }
        } else if self.shrunk_at.is_none_or(|at| now - at > round_trip) {
            // Not in the round trip after a loss, in which the others let the queue drain as well (genericCC).
            self.delta = self.default_delta;
            (self.since, self.used) = (now, false);
        }
    }

    /// A loss or a mark, at most once per round trip: halves 1/delta, down to its default.
    pub(super) fn on_congestion(&mut self, now: Nanos) {
        if self.competitive {
            self.delta = (2.0 * self.delta).min(self.default_delta);
            self.shrunk_at = Some(now);
        }
    }
}
