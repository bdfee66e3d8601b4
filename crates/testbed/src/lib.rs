//! Trials on real traffic: the kernel's own TCP, or QUIC under any scheme.
//!
//! A trial takes the configuration that the simulator takes and answers with the same document, so that metrics, series
//! and reports do not know which of the two it came from. Links are emulated (`astraea-emu`) between two network
//! namespaces; the flows are TCP connections of this kernel, watched through `TCP_INFO`, or QUIC connections of this
//! process (`astraea-quic`).
//!
//! * [`Job`]: what is asked for, and a refusal in one line where it cannot be done.
//! * [`trial`]: namespaces, links and flows, from start to end.
//! * [`document`]: the answer.
//! * [`Flows`]: both ends of all TCP flows, which work over any network.
//!
//! Linux only. Everything happens inside two network namespaces without names, which end with the process.

pub mod document;
mod flow;
mod flows;
mod job;
mod plan;
mod priority;
mod quic;
mod quickack;
pub mod scheme;
mod service;
mod socket;
mod tcp_info;
pub mod trial;

pub use flow::FlowOutcome;
pub use flows::{Flows, FlowsError, Outcome};
pub use job::{Job, Refusal, Schemes, Traffic};
pub use plan::{FlowPlan, Plan};
pub use service::Service;
pub use tcp_info::TcpInfo;
pub use trial::{Trial, TrialError};
