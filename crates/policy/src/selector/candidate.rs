//! The schemes that a selector chooses from.

use astraea_cc::{
    Ack, Bbr, C2tcp, C2tcpConfig, Congestion, Connection, Controller, Cubic, CubicConfig, HandOver, Illinois,
    IllinoisConfig, Loss, LostPacket, Nanos, Rtt, Successor, Vegas, VegasConfig, Westwood,
};

/// A scheme that is at work on a connection.
#[derive(Clone, Debug)]
pub(super) enum Candidate {
    Bbr(Bbr),
    Cubic(Cubic),
    Illinois(Illinois),
    C2tcp(C2tcp),
    Westwood(Westwood),
    Vegas(Vegas),
}

/// Their names, in the order of the authors' code (`ccNameMap`); a choice is an index into it.
pub const CANDIDATES: [&str; 6] = ["bbr", "cubic", "illinois", "c2tcp", "westwood", "vegas"];

impl Candidate {
    /// The scheme of that index in [`CANDIDATES`], as its parameters are where nobody sets them, on a connection that begins.
    pub(super) fn new(index: usize, mss: u32) -> Self {
        match index {
            0 => Self::Bbr(Bbr::new(0, mss)),
            1 => Self::Cubic(Cubic::new(CubicConfig { linux: true, ..CubicConfig::default() }, mss)),
            2 => Self::Illinois(Illinois::new(IllinoisConfig::default(), mss)),
            3 => Self::C2tcp(C2tcp::new(C2tcpConfig::default(), mss)),
            4 => Self::Westwood(Westwood::new(mss)),
            5 => Self::Vegas(Vegas::new(VegasConfig::default(), mss)),
            _ => unreachable!("a choice is checked where it is made"),
        }
    }
}

/// The same expression for the scheme inside, whichever it is.
macro_rules! each {
    ($any:expr, $scheme:ident => $call:expr) => {
        match $any {
            Candidate::Bbr($scheme) => $call,
            Candidate::Cubic($scheme) => $call,
            Candidate::Illinois($scheme) => $call,
            Candidate::C2tcp($scheme) => $call,
            Candidate::Westwood($scheme) => $call,
            Candidate::Vegas($scheme) => $call,
        }
    };
}

impl Controller for Candidate {
    #[inline]
    fn on_sent(&mut self, now: Nanos, bytes: u64, in_flight: u64) {
        each!(self, scheme => scheme.on_sent(now, bytes, in_flight));
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        each!(self, scheme => scheme.on_ack(ack, rtt));
    }

    fn on_packet_lost(&mut self, packet: &LostPacket) {
        each!(self, scheme => scheme.on_packet_lost(packet));
    }

    fn on_loss(&mut self, loss: &Loss) {
        each!(self, scheme => scheme.on_loss(loss));
    }

    fn on_congestion(&mut self, event: &Congestion) {
        each!(self, scheme => scheme.on_congestion(event));
    }

    fn reduces_proportionally(&self) -> bool {
        each!(self, scheme => scheme.reduces_proportionally())
    }

    fn on_timeout(&mut self, now: Nanos, flight_size: u64) {
        each!(self, scheme => scheme.on_timeout(now, flight_size));
    }

    fn on_spurious_congestion(&mut self, now: Nanos) {
        each!(self, scheme => scheme.on_spurious_congestion(now));
    }

    fn on_idle_restart(&mut self, now: Nanos, idle: Nanos) {
        each!(self, scheme => scheme.on_idle_restart(now, idle));
    }

    #[inline]
    fn cwnd(&self) -> u64 {
        each!(self, scheme => scheme.cwnd())
    }

    #[inline]
    fn pacing_rate(&self) -> Option<f64> {
        each!(self, scheme => scheme.pacing_rate())
    }
}

impl Successor for Candidate {
    fn hand_over(&self) -> HandOver {
        each!(self, scheme => scheme.hand_over())
    }

    fn take_over(&mut self, from: HandOver, connection: &Connection) {
        each!(self, scheme => scheme.take_over(from, connection));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use astraea_cc::{SCHEMES, Scheme};

    #[test]
    fn every_candidate_is_a_scheme_that_a_user_can_name() {
        for (index, name) in CANDIDATES.iter().enumerate() {
            let scheme = Scheme::find(name, SCHEMES.iter()).unwrap().controller(&[], 1448).unwrap();
            let inside = format!("{scheme:?}");
            assert!(format!("{:?}", Candidate::new(index, 1448)).ends_with(&format!("({inside})")), "{name}: {inside}");
        }
    }

    #[test]
    fn window_and_threshold_are_handed_on() {
        let mut connection = Connection { now: 5, ..Connection::default() };
        connection.rtt.update(40_000_000);
        for (from, old) in CANDIDATES.iter().enumerate() {
            for (to, new) in CANDIDATES.iter().enumerate() {
                let mut first = Candidate::new(from, 1000);
                first.take_over(HandOver { cwnd: 80_000, ssthresh: 60_000 }, &connection);
                let left = first.hand_over();
                let mut second = Candidate::new(to, 1000);
                second.take_over(left, &connection);
                assert_eq!((first.cwnd(), second.cwnd()), (80_000, 80_000));
                // BBR takes nothing for a threshold (`bbr_init`).
                let kept = if from == 0 || to == 0 { u64::MAX } else { 60_000 };
                assert_eq!(second.hand_over().ssthresh, kept, "{old} to {new}");
            }
        }
    }
}
