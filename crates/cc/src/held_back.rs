//! Which rate samples are of a time when the controller itself held the sender back.

use crate::{Ack, Nanos};

/// BBR declares the connection application-limited while it is in `PROBE_RTT`. The transport does not know, so the
/// packets concerned are recognised by the time at which they were sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeldBack {
    /// Packets sent from `from` and before `to` were held back.
    from: Nanos,
    to: Nanos,
    /// Delivered payload bytes that end it.
    until: u64,
}

impl HeldBack {
    /// Whether the rate sample of this acknowledgement is of such a time.
    #[inline]
    pub(crate) fn covers(&mut self, ack: &Ack) -> bool {
        if self.to == Nanos::MAX && ack.rate.total_delivered > self.until {
            self.to = ack.now;
        }
        (self.from..self.to).contains(&ack.sent_at)
    }

    /// The sender is held back now, and until what is in flight has been delivered.
    pub(crate) fn extend(&mut self, ack: &Ack) {
        if self.to != Nanos::MAX {
            (self.from, self.to) = (ack.now, Nanos::MAX);
        }
        self.until = ack.rate.total_delivered + ack.in_flight;
    }
}
