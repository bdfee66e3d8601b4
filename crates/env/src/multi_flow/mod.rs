//! Flows that share a bottleneck and one policy (Astraea §3.2 and §3.3).
//!
//! A flow whose monitoring period has ended asks for an action: [`MultiFlow::next_decision`] runs the simulation until
//! one does, [`MultiFlow::local_state`] is what its policy sees, [`MultiFlow::act`] answers. Meanwhile the [`Observer`]
//! keeps statistics of all flows, from which [`MultiFlow::global_state`] (for a central critic) and the
//! [`MultiFlow::reward`] (shared by all flows) are made.

mod config;
mod domain;
mod driven;
mod driver;
mod episode;
mod global;
mod observer;
mod parallel;
mod path;
mod reward;
mod scenario;

pub use config::MultiFlowConfig;
pub use domain::{Changes, Neighbours, Outages, ShortFlows};
pub use driven::FlowDriven;
pub use episode::{Decision, MultiFlow};
pub use global::{GLOBAL_FEATURES, Link, NEIGHBOURS};
pub use observer::{FlowStatistics, Observer};
pub use parallel::{AgentStatus, Parallel};
pub use path::{Path, Steps};
pub use reward::{Fairness, RewardConfig, RewardTerms};
pub use scenario::{FlowDraw, Scenario};
