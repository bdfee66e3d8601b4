//! Learned controllers: what a policy sees, and what its answer does.
//!
//! * [`state`]: the one definition of the local state, from one flow's measurements to numbers of order one;
//! * [`action`]: what an action does to a window or a rate;
//! * [`AgentController`]: a congestion controller whose window is set by actions, once a monitoring period.

pub mod action;
mod controller;
pub mod state;

pub use controller::AgentController;
pub use state::{Feature, LocalState, Measurement, Scale};
