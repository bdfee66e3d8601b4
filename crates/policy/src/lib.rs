//! Learned controllers: what a policy sees, and what its answer does.
//!
//! * [`state`]: the one definition of the papers' local state, from one flow's measurements to numbers of order one;
//! * [`Feature`]: one of the numbers that a policy sees, and how it is scaled;
//! * [`action`]: what an action does to a window or a rate;
//! * [`backlog`]: the other one, from which a flow can tell its own packets in the queue;
//! * [`Form`]: which of them a policy sees, and what its answer does;
//! * [`Agent`]: one flow's measurements, start-up, rules and window, to be answered once a monitoring period;
//! * [`fixed`]: a network in integers;
//! * [`Policy`]: a network and its metadata, as a file holds them; [`Pilot`]: the controller that runs one;
//! * [`aurora`]: a policy of another kind, that sets a rate; [`mocc`]: one of that kind that is told what to go for;
//!   [`orca`]: another one, that multiplies CUBIC's window; [`selector`]: others, that choose which classic scheme is at work;
//! * [`shipped`]: the policies that come with the crate; [`schemes`]: everything that a user can name;
//!   [`SchemeFile`]: what a user's own file may hold instead.

pub mod action;
pub mod agent;
pub mod aurora;
pub mod backlog;
mod fast;
mod feature;
mod file;
pub mod fixed;
mod form;
pub mod mocc;
pub mod network;
pub mod orca;
mod pilot;
mod policy_state;
mod scheme_file;
pub mod schemes;
pub mod selector;
pub mod shipped;
pub mod state;
mod steady;

pub use agent::{Agent, AgentConfig, DrainRules, LeapRules, LossRules, NeighbourRules, Rules, Stride, law_step};
pub use backlog::{BacklogState, Signals};
pub use feature::{Feature, Scale};
pub use file::{Metadata, Policy, PolicyError};
pub use fixed::FixedNetwork;
pub use form::Form;
pub use network::{Activation, Layer, Network, NetworkError, Scratch};
pub use pilot::{Answers, Decide, Pilot};
pub use policy_state::PolicyState;
pub use scheme_file::{SchemeFile, SchemeFileError};
pub use state::{LocalState, Measurement};
pub use steady::Steady;
