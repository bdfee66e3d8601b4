//! Taking a connection over from another scheme, as a socket option of Linux lets an application do it at any time.

use crate::{Controller, Nanos, Rtt};

/// What a scheme leaves to the one that takes the connection over: of what is its own, Linux keeps that when another scheme is
/// chosen (`tcp_reinit_congestion_control`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandOver {
    /// Congestion window in payload bytes.
    pub cwnd: u64,
    /// Slow-start threshold in payload bytes, `u64::MAX` where there is none.
    pub ssthresh: u64,
}

/// What the transport knows of a connection that goes on under another scheme.
#[derive(Clone, Copy, Debug, Default)]
pub struct Connection {
    /// The present time.
    pub now: Nanos,
    /// Its round-trip times.
    pub rtt: Rtt,
    /// Payload bytes delivered so far.
    pub delivered: u64,
    /// Payload bytes in flight.
    pub in_flight: u64,
    /// A loss is being repaired, or a mark answered.
    pub in_recovery: bool,
}

/// A controller that can take over a connection that another one has begun, and hand it on.
pub trait Successor: Controller {
    /// What it leaves.
    fn hand_over(&self) -> HandOver;

    /// Goes on from what another scheme left, as a controller that has seen nothing of the connection yet.
    fn take_over(&mut self, from: HandOver, connection: &Connection);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ack, Bbr, Congestion, Cubic, CubicConfig, Loss, MILLISECOND, RateSample, SECOND, Signal, Westwood};

    const MSS: u64 = 1000;
    const DELIVERED: u64 = 10_000 * MSS;

    /// A connection of which ten megabytes have been delivered and 40 packets are in flight.
    fn connection(in_recovery: bool) -> Connection {
        let mut rtt = Rtt::default();
        rtt.update(40 * MILLISECOND);
        Connection { now: SECOND, rtt, delivered: DELIVERED, in_flight: 40 * MSS, in_recovery }
    }

    /// Acknowledges one more packet, sent before the new scheme came, and leaves 39.
    fn ack(in_recovery: bool) -> Ack {
        Ack {
            now: SECOND + MILLISECOND,
            acked: MSS,
            sent_at: SECOND - 39 * MILLISECOND,
            rtt: Some(40 * MILLISECOND),
            stamped: None,
            rate: RateSample {
                delivered: 40 * MSS,
                interval: 40 * MILLISECOND,
                prior_delivered: DELIVERED - 39 * MSS,
                total_delivered: DELIVERED + MSS,
                ..RateSample::default()
            },
            in_flight: 39 * MSS,
            cwnd_limited: true,
            in_recovery,
            hole_open: in_recovery,
            ce_marked: 0,
        }
    }

    fn bbr(in_recovery: bool) -> Bbr {
        let mut bbr = Bbr::new(0, MSS as u32);
        bbr.take_over(HandOver { cwnd: 80 * MSS, ssthresh: 60 * MSS }, &connection(in_recovery));
        bbr
    }

    #[test]
    fn bbr_goes_on_from_the_window_at_the_gain_of_its_startup() {
        let mut bbr = bbr(false);
        assert_eq!((bbr.cwnd(), bbr.hand_over().ssthresh), (80 * MSS, u64::MAX));
        let rate = 2.885 * 0.99 * 80_000.0 * 8.0 / 0.04;
        assert!((bbr.pacing_rate().unwrap() / rate - 1.0).abs() < 1e-9);
        bbr.on_ack(&ack(false), &connection(false).rtt);
        assert_eq!(bbr.min_rtt(), Some(40 * MILLISECOND));
        assert_eq!(bbr.cwnd(), 81 * MSS, "nothing is repaired, and STARTUP grows");
    }

    #[test]
    fn bbr_conserves_what_is_in_flight_from_the_first_loss_on() {
        let mut bbr = bbr(false);
        let now = SECOND + MILLISECOND;
        bbr.on_loss(&Loss { now, lost: MSS, in_flight: 39 * MSS });
        bbr.on_congestion(&Congestion { now, signal: Signal::Loss, flight_size: 40 * MSS, sent_at: 0 });
        bbr.on_ack(&ack(true), &connection(true).rtt);
        assert_eq!(bbr.cwnd(), 40 * MSS);
    }

    #[test]
    fn a_repair_goes_on_under_the_scheme_that_takes_over() {
        let mut bbr = bbr(true);
        bbr.on_ack(&ack(true), &connection(true).rtt);
        assert_eq!(bbr.cwnd(), 40 * MSS, "conserved");
        // Without an estimate yet, Westwood is left two segments at the end.
        let mut westwood = Westwood::new(MSS as u32);
        westwood.take_over(HandOver { cwnd: 80 * MSS, ssthresh: 60 * MSS }, &connection(true));
        westwood.on_ack(&ack(true), &connection(true).rtt);
        assert_eq!(westwood.cwnd(), 80 * MSS);
        westwood.on_ack(&ack(false), &connection(false).rtt);
        assert!(westwood.cwnd() < 4 * MSS, "{}", westwood.cwnd());
    }

    #[test]
    fn a_pause_right_after_counts_in_timeouts_of_the_connection() {
        let mut cubic = Cubic::new(CubicConfig::LINUX, MSS as u32);
        cubic.take_over(HandOver { cwnd: 80 * MSS, ssthresh: 60 * MSS }, &connection(false));
        // 240 ms; two of them pass.
        cubic.on_idle_restart(2 * SECOND, 500 * MILLISECOND);
        assert_eq!(cubic.cwnd(), 20 * MSS);
    }
}
