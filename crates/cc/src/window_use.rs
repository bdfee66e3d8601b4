//! Whether a window may grow, by how far it is used: as Linux remembers it (`tcp_cwnd_validate`, `tcp_is_cwnd_limited`).

use crate::{Ack, Nanos};

/// How far a flow uses its window.
///
/// A window that held the sender back at any time grows by everything that is acknowledged until the flight of that time
/// has been: an application that sends a little more than the window, and then pauses, has used all of it. In slow start
/// more than half of the window in flight is enough.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WindowUse {
    /// Whether the window held the sender back, …
    limited: bool,
    /// … and the most payload bytes that were in flight otherwise, …
    most: u64,
    /// … which count until something is acknowledged that was sent at this time or later.
    since: Nanos,
    /// In flight after the newest acknowledgement.
    left: u64,
}

impl WindowUse {
    /// Takes an acknowledgement that finds a window of `cwnd` payload bytes.
    #[inline]
    pub(crate) fn on_ack(&mut self, ack: &Ack, cwnd: u64, mss: u64) {
        // What was in flight once the acknowledgement before had let go what it could.
        let used = ack.in_flight + ack.acked;
        let sent = used > self.left;
        self.left = ack.in_flight;
        // A full window counts although the application may have had no more.
        let limited = ack.cwnd_limited || sent && used + mss > cwnd;
        if limited || sent && (ack.sent_at >= self.since || !self.limited && used > self.most) {
            *self = Self { limited, most: used, since: ack.now, ..*self };
        }
    }

    /// Whether a window of `cwnd` payload bytes may grow.
    #[inline]
    pub(crate) fn allows_growth(&self, cwnd: u64, in_slow_start: bool) -> bool {
        self.limited || in_slow_start && cwnd < 2 * self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    /// A packet sent at `sent_at` is acknowledged at `now` and leaves `in_flight` packets.
    fn ack(now: Nanos, sent_at: Nanos, in_flight: u64, cwnd_limited: bool) -> Ack {
        Ack { now, acked: MSS, sent_at, in_flight: in_flight * MSS, cwnd_limited, ..Ack::default() }
    }

    /// After acknowledgements that each find a window of so many packets: whether it may grow, in slow start and after it.
    fn after(usage: &mut WindowUse, cwnd: u64, acks: &[Ack]) -> (bool, bool) {
        for ack in acks {
            usage.on_ack(ack, cwnd * MSS, MSS);
        }
        (usage.allows_growth(cwnd * MSS, true), usage.allows_growth(cwnd * MSS, false))
    }

    #[test]
    fn a_window_that_was_full_once_is_used_until_that_flight_has_arrived() {
        let mut usage = WindowUse::default();
        // Ten packets at 0, and two more at 100 for which there was no room before.
        assert_eq!(after(&mut usage, 10, &[ack(100, 0, 9, true)]), (true, true));
        assert_eq!(after(&mut usage, 20, &[ack(101, 0, 10, false), ack(102, 0, 9, false)]), (true, true));
        assert_eq!(after(&mut usage, 20, &[ack(200, 100, 1, false), ack(201, 100, 0, false)]), (true, true));
        // Five packets at 300.
        assert_eq!(after(&mut usage, 20, &[ack(400, 300, 4, false)]), (false, false));
    }

    #[test]
    fn in_slow_start_more_than_half_of_the_window_is_enough() {
        for (packets, grows) in [(10, false), (11, true), (19, true)] {
            let acks = [ack(400, 300, packets - 1, false), ack(401, 300, packets - 2, false)];
            assert_eq!(after(&mut WindowUse::default(), 20, &acks), (grows, false), "{packets}");
        }
        let full = ack(400, 300, 19, false);
        assert_eq!(after(&mut WindowUse::default(), 20, &[full]), (true, true), "there may have been no more");
    }

    #[test]
    fn what_grows_in_flight_is_seen_before_the_flight_has_arrived() {
        let mut usage = WindowUse::default();
        assert_eq!(after(&mut usage, 20, &[ack(100, 0, 5, false), ack(101, 0, 4, false)]), (false, false));
        assert_eq!(after(&mut usage, 20, &[ack(102, 0, 11, false)]), (true, false));
        assert_eq!(after(&mut usage, 20, &[ack(103, 0, 10, false)]), (true, false));
    }
}
