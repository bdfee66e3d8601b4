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
