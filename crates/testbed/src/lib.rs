//! Trials on the kernel's own TCP.
//!
//! A trial takes the configuration that the simulator takes and answers with the same document, so that metrics, series
//! and reports do not know which of the two it came from. Links are emulated (`astraea-emu`) between two network
//! namespaces; the flows are TCP connections of this kernel, watched through `TCP_INFO`.

pub mod clock;
mod flow;
mod flows;
mod plan;
pub mod scheme;
mod socket;
mod tcp_info;

pub use flow::FlowOutcome;
pub use flows::{Flows, FlowsError};
pub use plan::{FlowPlan, Plan};
pub use tcp_info::TcpInfo;
