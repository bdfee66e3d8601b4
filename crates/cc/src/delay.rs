//! The delay that one round trip shows, for schemes that decide once per round trip.

use crate::{Ack, Nanos};

/// What one round trip has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoundDelay {
    /// Smallest sample since the last [`DelayRounds::reset_base`], in ns, at least 1.
    pub(crate) base: Nanos,
    /// Smallest sample of the round, in ns, at least `base`: a burst lengthens the round trip of its later packets
    /// only.
    pub(crate) rtt: Nanos,
    /// Samples in the round.
    pub(crate) samples: u32,
    /// Whether the window held the sender back at any time in it.
    pub(crate) cwnd_limited: bool,
}

/// Divides a connection into round trips: one ends when a packet is acknowledged that was sent after its beginning.
///
/// A round trip in which a loss is repaired tells nothing: it begins anew until the repair is complete.
#[derive(Clone, Debug, Default)]
pub(crate) struct DelayRounds {
    base: Option<Nanos>,
    start: Nanos,
    min: Option<Nanos>,
    samples: u32,
    cwnd_limited: bool,
}

impl DelayRounds {
    /// Takes an acknowledgement; returns the round trip that it ends, if there was a sample in it.
    #[inline]
    pub(crate) fn on_ack(&mut self, ack: &Ack) -> Option<RoundDelay> {
        if let Some(sample) = ack.rtt {
            let sample = sample.max(1);
            self.base = Some(self.base.map_or(sample, |base| base.min(sample)));
            self.min = Some(self.min.map_or(sample, |min| min.min(sample)));
            self.samples += 1;
        }
        self.cwnd_limited |= ack.cwnd_limited;
        if ack.in_recovery || ack.hole_open {
            self.begin(ack.now);
            return None;
        }
        if ack.sent_at < self.start {
            return None;
        }
        let (samples, cwnd_limited) = (self.samples, self.cwnd_limited);
        let ended = self.base.zip(self.min).map(|(base, rtt)| RoundDelay { base, rtt, samples, cwnd_limited });
        self.begin(ack.now);
        ended
    }

    /// Forgets the smallest sample, or replaces it.
    pub(crate) fn reset_base(&mut self, base: Option<Nanos>) {
        self.base = base.map(|base| base.max(1));
        self.min = None;
        self.samples = 0;
    }

    fn begin(&mut self, now: Nanos) {
        self.start = now;
        self.min = None;
        self.samples = 0;
        self.cwnd_limited = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(now: Nanos, rtt: Nanos) -> Ack {
        Ack { now, acked: 1000, sent_at: now - rtt, rtt: Some(rtt), ..Ack::default() }
    }

    /// Sent at 0, 10 and 100, of which the last is acknowledged after the round began at 100.
    #[test]
    fn a_round_ends_with_the_first_packet_sent_in_it() {
        let mut rounds = DelayRounds::default();
        assert_eq!(rounds.on_ack(&ack(100, 100)).map(|round| round.samples), Some(1));
        assert_eq!(rounds.on_ack(&Ack { cwnd_limited: true, ..ack(110, 100) }), None);
        assert_eq!(rounds.on_ack(&ack(160, 140)), None);
        let ended = rounds.on_ack(&ack(220, 120)).expect("the end");
        assert_eq!(ended, RoundDelay { base: 100, rtt: 100, samples: 3, cwnd_limited: true });
        let next = rounds.on_ack(&ack(350, 130)).expect("the next");
        assert_eq!(next, RoundDelay { base: 100, rtt: 130, samples: 1, cwnd_limited: false });
    }

    #[test]
    fn a_round_with_a_repair_in_it_begins_anew() {
        let mut rounds = DelayRounds::default();
        rounds.on_ack(&ack(100, 100));
        assert_eq!(rounds.on_ack(&Ack { in_recovery: true, ..ack(200, 100) }), None);
        assert_eq!(rounds.on_ack(&Ack { hole_open: true, ..ack(250, 90) }), None);
        assert_eq!(rounds.on_ack(&ack(340, 100)), None, "sent at 240, before the end of the repair");
        let ended = rounds.on_ack(&ack(350, 100)).expect("sent at 250");
        assert_eq!((ended.base, ended.rtt, ended.samples), (90, 100, 2));
    }

    #[test]
    fn the_base_can_be_forgotten_or_replaced() {
        let mut rounds = DelayRounds::default();
        rounds.on_ack(&ack(100, 100));
        rounds.reset_base(None);
        assert_eq!(rounds.on_ack(&ack(220, 120)).map(|round| round.base), Some(120));
        rounds.reset_base(Some(110));
        assert_eq!(rounds.on_ack(&ack(350, 130)).map(|round| round.base), Some(110));
    }
}
