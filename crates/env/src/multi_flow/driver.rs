//! Who sets the window of a flow: a policy through its agent, or a neighbour's own scheme.

use astraea_cc::{AnyController, Controller, forward_controller};
use astraea_policy::{Agent, Measurement};
use astraea_sim::{Flow, Interval};

/// The controller of a flow.
pub(crate) enum Driver {
    /// Asks for actions.
    Agent(Box<Agent>),
    /// Does not.
    Neighbour(Box<AnyController>),
}

forward_controller!(Driver: Agent, Neighbour);

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
