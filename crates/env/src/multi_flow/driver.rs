//! Who sets the window of a flow: a policy through its agent, or a neighbour's own scheme.

use astraea_cc::{Ack, AnyController, Congestion, Controller, Loss, LostPacket, Nanos, Rtt};
use astraea_policy::{Agent, Measurement};
use astraea_sim::{Flow, Interval};

/// The controller of a flow.
pub(crate) enum Driver {
    /// Asks for actions.
    Agent(Box<Agent>),
    /// Does not.
    Neighbour(Box<AnyController>),
}

impl Driver {
    pub(crate) fn agent(&self) -> Option<&Agent> {
        match self {
            Self::Agent(agent) => Some(agent),
            Self::Neighbour(_) => None,
        }
    }

    pub(crate) fn agent_mut(&mut self) -> Option<&mut Agent> {
        match self {
            Self::Agent(agent) => Some(agent),
            Self::Neighbour(_) => None,
        }
    }
}

/// What a flow without an agent to measure it did in a period.
pub(super) fn measure(interval: &Interval, flow: &Flow<Driver>) -> Measurement {
    let bit_rate = |bytes: u64| bytes as f64 * 8e9 / interval.length().max(1) as f64;
    let cwnd = flow.controller().cwnd() as f64;
    let unpaced = || if flow.rtt().has_sample() { cwnd * 8e9 / flow.rtt().smoothed() as f64 } else { 0.0 };
    Measurement {
        throughput: bit_rate(interval.acked),
        latency: interval.rtt_mean().map(|ns| ns / 1e9),
        latency_min: flow.rtt().min().unwrap_or(0) as f64 / 1e9,
        loss: bit_rate(interval.lost),
        in_flight: flow.in_flight() as f64,
        cwnd,
        pacing_rate: flow.controller().pacing_rate().unwrap_or_else(unpaced),
    }
}

/// The same expression for the controller inside.
macro_rules! each {
    ($driver:expr, $controller:ident => $call:expr) => {
        match $driver {
            Driver::Agent($controller) => $call,
            Driver::Neighbour($controller) => $call,
        }
    };
}

impl Controller for Driver {
    #[inline]
    fn on_sent(&mut self, now: Nanos, bytes: u64, in_flight: u64) {
        each!(self, controller => controller.on_sent(now, bytes, in_flight));
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        each!(self, controller => controller.on_ack(ack, rtt));
    }

    #[inline]
    fn on_packet_lost(&mut self, packet: &LostPacket) {
        each!(self, controller => controller.on_packet_lost(packet));
    }

    #[inline]
    fn on_loss(&mut self, loss: &Loss) {
        each!(self, controller => controller.on_loss(loss));
    }

    #[inline]
    fn on_congestion(&mut self, event: &Congestion) {
        each!(self, controller => controller.on_congestion(event));
    }

    #[inline]
    fn reduces_proportionally(&self) -> bool {
        each!(self, controller => controller.reduces_proportionally())
    }

    #[inline]
    fn on_timeout(&mut self, now: Nanos, flight_size: u64) {
        each!(self, controller => controller.on_timeout(now, flight_size));
    }

    #[inline]
    fn on_spurious_congestion(&mut self, now: Nanos) {
        each!(self, controller => controller.on_spurious_congestion(now));
    }

    #[inline]
    fn on_idle_restart(&mut self, now: Nanos, idle: Nanos) {
        each!(self, controller => controller.on_idle_restart(now, idle));
    }

    #[inline]
    fn next_timer(&self) -> Option<Nanos> {
        each!(self, controller => controller.next_timer())
    }

    #[inline]
    fn on_timer(&mut self, now: Nanos) {
        each!(self, controller => controller.on_timer(now));
    }

    #[inline]
    fn cwnd(&self) -> u64 {
        each!(self, controller => controller.cwnd())
    }

    #[inline]
    fn pacing_rate(&self) -> Option<f64> {
        each!(self, controller => controller.pacing_rate())
    }
}
