//! Environments for training congestion controllers.
//!
//! * [`SingleFlow`]: one flow on one link, a rate action once a monitor interval (the set-ups of Aurora and MOCC);
//! * [`OrcaFlow`]: one flow of CUBIC's, whose window is multiplied once a period (Orca's set-up);
//! * [`SelectorFlow`]: one flow, whose scheme is chosen anew with each interval (the set-up of Antelope and HACC);
//! * [`MultiFlow`]: flows that share a bottleneck, come and go, and each ask for an action when their monitoring period
//!   has ended (Astraea's set-up), as a flow-driven or as a parallel environment;
//! * [`rollout`]: whole episodes of the latter with a policy evaluated here, for a learner and for its validation;
//! * [`Vector`]: many environments stepped on all cores.
//!
//! Random numbers come from one generator per environment, so the same seed gives the same episodes whatever else runs.

mod environment;
mod error;
pub mod multi_flow;
mod one_flow;
pub mod orca;
mod range;
pub mod rollout;
pub mod selector;
pub mod single_flow;
mod vector;

pub use environment::{Actions, Environment, Outcome};
pub use error::EnvError;
pub use multi_flow::MultiFlow;
pub use orca::OrcaFlow;
pub use range::{Range, Spread};
pub use rollout::Rollout;
pub use selector::SelectorFlow;
pub use single_flow::SingleFlow;
pub use vector::{Batch, Vector};
