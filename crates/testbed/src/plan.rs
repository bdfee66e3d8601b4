//! What is to happen at the ends of a trial's paths.

use std::net::{Ipv4Addr, SocketAddrV4};

use astraea_cc::Nanos;
use astraea_sim::SourceConfig;

use crate::scheme::Chosen;

/// One flow between two addresses. Times in ns since the trial began.
#[derive(Clone, Debug)]
pub struct FlowPlan {
    /// Its congestion control.
    pub scheme: Chosen,
    /// Address that it sends from; no two flows have the same.
    pub from: Ipv4Addr,
    /// Where it sends to; `None`: to the receiver of all flows.
    pub to: Option<SocketAddrV4>,
    /// When it has data.
    pub start: Nanos,
    /// When it stops sending; `None` for the end of the trial.
    pub stop: Option<Nanos>,
    /// How long before its start it connects: about the time that this takes on an idle path.
    pub lead: Nanos,
    /// How long an acknowledgement travels on an idle path.
    pub way_back: Nanos,
    /// Rate in bit/s of the path's narrowest link, or a rough guess.
    pub rate: f64,
    /// Where its data comes from.
    pub source: SourceConfig,
    /// Whether its packets are ECN-capable.
    pub ecn: bool,
}

/// All flows of a trial.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Length of the trial in ns.
    pub duration: Nanos,
    /// Length of a recording slot in ns.
    pub slot: Nanos,
    /// Seed of everything that is random.
    pub seed: u64,
    /// Where the receiver of all flows listens.
    pub receiver: SocketAddrV4,
    /// The flows.
    pub flows: Vec<FlowPlan>,
}
