//! The interface between a transport and a congestion controller.

use crate::{Nanos, RateSample, Rtt};

/// What one arriving acknowledgement tells the sender.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    /// Arrival time.
    pub now: Nanos,
    /// Payload bytes that this acknowledgement covers for the first time.
    pub acked: u64,
    /// Send time of the newest packet that it covers.
    pub sent_at: Nanos,
    /// Round-trip sample of that packet, if it is usable (Karn's rule).
    pub rtt: Option<Nanos>,
    /// When the receiver sent it, by the receiver's clock, which counts from any time and ticks in milliseconds (RFC 7323 §3),
    /// if the transport knows.
    pub stamped: Option<Nanos>,
    /// Delivery-rate sample (draft-ietf-ccwg-bbr, "Delivery Rate Samples").
    pub rate: RateSample,
    /// Payload bytes in flight after this acknowledgement and before anything new is sent.
    pub in_flight: u64,
    /// Whether the window, and not the application or pacing, held the sender back since the previous acknowledgement.
    pub cwnd_limited: bool,
    /// Whether the sender is repairing a loss: packets sent before the last congestion event are still outstanding.
    /// False after a retransmission timeout, which is repaired in slow start.
    pub in_recovery: bool,
    /// Whether a packet older than an acknowledged one is unaccounted for: lost or only late. TCP's cumulative
    /// acknowledgement stands still then, and so does a window that grows by it (RFC 5681 §3.2).
    pub hole_open: bool,
    /// Newly acknowledged payload bytes that carried a congestion-experienced mark (RFC 3168).
    pub ce_marked: u64,
}

/// Packets newly declared lost.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// Time of detection.
    pub now: Nanos,
    /// Payload bytes declared lost by this detection.
    pub lost: u64,
    /// Payload bytes in flight after they were removed.
    pub in_flight: u64,
}

/// A packet newly declared lost, and the state of the connection when it was sent.
#[derive(Clone, Copy, Debug)]
pub struct LostPacket {
    /// Time of detection.
    pub now: Nanos,
    /// Its payload bytes.
    pub bytes: u64,
    /// When it was sent.
    pub sent_at: Nanos,
    /// Payload bytes in flight when it had been sent, itself included.
    pub sent_in_flight: u64,
    /// Payload bytes declared lost since it was sent, itself included.
    pub lost_since: u64,
    /// Whether the application, not the network, limited the sender when it was sent.
    pub app_limited: bool,
}

/// Why a sender takes the network to be congested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// A packet was declared lost.
    Loss,
    /// A congestion-experienced mark was echoed (RFC 3168 §6.1.2).
    Ecn,
}

/// The start of a recovery period: reported at most once a round trip, however many packets are lost in it.
#[derive(Clone, Copy, Debug)]
pub struct Congestion {
    /// Time of detection.
    pub now: Nanos,
    /// What happened.
    pub signal: Signal,
    /// Payload bytes that were in flight before the acknowledgement that revealed the loss (`FlightSize` of RFC 5681).
    pub flight_size: u64,
    /// Send time of the packet that was lost or marked.
    pub sent_at: Nanos,
}

/// A congestion controller.
///
/// The transport calls the `on_*` methods in the order of the events and then reads [`cwnd`](Controller::cwnd) and
/// [`pacing_rate`](Controller::pacing_rate). For one acknowledgement the order is: if it reveals a loss,
/// [`on_packet_lost`](Controller::on_packet_lost) for each packet, [`on_loss`](Controller::on_loss) and
/// [`on_congestion`](Controller::on_congestion); then [`on_ack`](Controller::on_ack).
pub trait Controller {
    /// A packet of `bytes` payload left at `now`; `in_flight` includes it.
    fn on_sent(&mut self, now: Nanos, bytes: u64, in_flight: u64) {
        let _ = (now, bytes, in_flight);
    }

    /// An acknowledgement arrived. `rtt` already includes its sample.
    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt);

    /// A packet was declared lost, in the order in which they were sent. A timeout is not reported packet by packet.
    fn on_packet_lost(&mut self, packet: &LostPacket) {
        let _ = packet;
    }

    /// Packets were declared lost (each detection, unlike [`on_congestion`](Controller::on_congestion), but for timeouts).
    fn on_loss(&mut self, loss: &Loss) {
        let _ = loss;
    }

    /// A recovery period begins.
    fn on_congestion(&mut self, event: &Congestion);

    /// Whether the transport spreads the reduction after a congestion event over a round trip (RFC 9937). Schemes that
    /// only set a window leave that to it, as in Linux; schemes that pace decide for themselves what leaves when.
    fn reduces_proportionally(&self) -> bool {
        false
    }

    /// The retransmission timer expired (RFC 6298): everything in flight is taken to be lost.
    fn on_timeout(&mut self, now: Nanos, flight_size: u64);

    /// The loss that began the present recovery period turned out to be reordering.
    fn on_spurious_congestion(&mut self, now: Nanos) {
        let _ = now;
    }

    /// The application has data again after the connection was idle for `idle` (nothing in flight).
    fn on_idle_restart(&mut self, now: Nanos, idle: Nanos) {
        let _ = (now, idle);
    }

    /// When [`on_timer`](Controller::on_timer) wants to be called next, if at all. Read after every other call.
    fn next_timer(&self) -> Option<Nanos> {
        None
    }

    /// The time asked for by [`next_timer`](Controller::next_timer) has come.
    fn on_timer(&mut self, now: Nanos) {
        let _ = now;
    }

    /// Congestion window: upper bound of payload bytes in flight.
    fn cwnd(&self) -> u64;

    /// Pacing rate in payload bit/s, or `None` to send as soon as the window allows.
    fn pacing_rate(&self) -> Option<f64> {
        None
    }
}

/// Implements [`Controller`] for an enum, each of whose variants holds one controller, itself or in a box: every call
/// goes to the one inside, by a jump on the variant, which the compiler can see through.
///
/// After the enum's name come those of its variants, as in `forward_controller!(Driver: Agent, Neighbour)`. The trait
/// must be in scope.
#[macro_export]
macro_rules! forward_controller {
    ($controllers:ident: $($variant:ident),+ $(,)?) => {
        impl $crate::Controller for $controllers {
            #[inline]
            fn on_sent(&mut self, now: $crate::Nanos, bytes: u64, in_flight: u64) {
                match self { $(Self::$variant(inner) => inner.on_sent(now, bytes, in_flight)),+ }
            }

            #[inline]
            fn on_ack(&mut self, ack: &$crate::Ack, rtt: &$crate::Rtt) {
                match self { $(Self::$variant(inner) => inner.on_ack(ack, rtt)),+ }
            }

            #[inline]
            fn on_packet_lost(&mut self, packet: &$crate::LostPacket) {
                match self { $(Self::$variant(inner) => inner.on_packet_lost(packet)),+ }
            }

            #[inline]
            fn on_loss(&mut self, loss: &$crate::Loss) {
                match self { $(Self::$variant(inner) => inner.on_loss(loss)),+ }
            }

            #[inline]
            fn on_congestion(&mut self, event: &$crate::Congestion) {
                match self { $(Self::$variant(inner) => inner.on_congestion(event)),+ }
            }

            #[inline]
            fn reduces_proportionally(&self) -> bool {
                match self { $(Self::$variant(inner) => inner.reduces_proportionally()),+ }
            }

            #[inline]
            fn on_timeout(&mut self, now: $crate::Nanos, flight_size: u64) {
                match self { $(Self::$variant(inner) => inner.on_timeout(now, flight_size)),+ }
            }

            #[inline]
            fn on_spurious_congestion(&mut self, now: $crate::Nanos) {
                match self { $(Self::$variant(inner) => inner.on_spurious_congestion(now)),+ }
            }

            #[inline]
            fn on_idle_restart(&mut self, now: $crate::Nanos, idle: $crate::Nanos) {
                match self { $(Self::$variant(inner) => inner.on_idle_restart(now, idle)),+ }
            }

            #[inline]
            fn next_timer(&self) -> Option<$crate::Nanos> {
                match self { $(Self::$variant(inner) => inner.next_timer()),+ }
            }

            #[inline]
            fn on_timer(&mut self, now: $crate::Nanos) {
                match self { $(Self::$variant(inner) => inner.on_timer(now)),+ }
            }

            #[inline]
            fn cwnd(&self) -> u64 {
                match self { $(Self::$variant(inner) => inner.cwnd()),+ }
            }

            #[inline]
            fn pacing_rate(&self) -> Option<f64> {
                match self { $(Self::$variant(inner) => inner.pacing_rate()),+ }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes down what it is told, and answers nothing as by default.
    #[derive(Default)]
    struct Scribe(Vec<&'static str>);

    impl Controller for Scribe {
        fn on_sent(&mut self, _now: Nanos, _bytes: u64, _in_flight: u64) {
            self.0.push("sent");
        }

        fn on_ack(&mut self, _ack: &Ack, _rtt: &Rtt) {
            self.0.push("ack");
        }

        fn on_packet_lost(&mut self, _packet: &LostPacket) {
            self.0.push("packet lost");
        }

        fn on_loss(&mut self, _loss: &Loss) {
            self.0.push("loss");
        }

        fn on_congestion(&mut self, _event: &Congestion) {
            self.0.push("congestion");
        }

        fn reduces_proportionally(&self) -> bool {
            true
        }

        fn on_timeout(&mut self, _now: Nanos, _flight_size: u64) {
            self.0.push("timeout");
        }

        fn on_spurious_congestion(&mut self, _now: Nanos) {
            self.0.push("spurious congestion");
        }

        fn on_idle_restart(&mut self, _now: Nanos, _idle: Nanos) {
            self.0.push("idle restart");
        }

        fn next_timer(&self) -> Option<Nanos> {
            Some(5)
        }

        fn on_timer(&mut self, _now: Nanos) {
            self.0.push("timer");
        }

        fn cwnd(&self) -> u64 {
            7
        }

        fn pacing_rate(&self) -> Option<f64> {
            Some(9.0)
        }
    }

    enum Only {
        One(Box<Scribe>),
    }

    forward_controller!(Only: One);

    /// What has a default in the trait would go unnoticed if it were left out.
    #[test]
    fn every_call_is_forwarded() {
        let mut only = Only::One(Box::default());
        only.on_sent(0, 1, 1);
        only.on_ack(&Ack::default(), &Rtt::default());
        let packet = LostPacket { now: 0, bytes: 1, sent_at: 0, sent_in_flight: 1, lost_since: 1, app_limited: false };
        only.on_packet_lost(&packet);
        only.on_loss(&Loss { now: 0, lost: 1, in_flight: 0 });
        only.on_congestion(&Congestion { now: 0, signal: Signal::Loss, flight_size: 1, sent_at: 0 });
        only.on_timeout(0, 1);
        only.on_spurious_congestion(0);
        only.on_idle_restart(0, 1);
        only.on_timer(5);
        assert!(only.reduces_proportionally());
        assert_eq!((only.next_timer(), only.cwnd(), only.pacing_rate()), (Some(5), 7, Some(9.0)));
        let Only::One(scribe) = only;
        let told = ["sent", "ack", "packet lost", "loss", "congestion", "timeout"];
        assert_eq!(scribe.0, [&told[..], &["spurious congestion", "idle restart", "timer"]].concat());
    }
}
