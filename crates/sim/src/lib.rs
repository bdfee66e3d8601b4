//! Packet-level discrete-event simulator of many flows on shared links.
//!
//! A [`Simulation`] is built from a [`Config`] (links, flows, times) and one congestion controller per flow. Time is
//! integer nanoseconds; events are ordered by time and then by the order in which they were scheduled; the same
//! configuration and seed give the same bytes everywhere.
//!
//! # How it is fast
//!
//! A drop-tail queue in front of a link whose rate is known in advance needs no events: when a packet arrives its
//! departure time is already certain, so the packet moves straight on to the delay line behind the link
//! ([`link`]). Delay lines are FIFO, and only the head of each is in the event queue. Where the receiver
//! acknowledges every packet over an uncongested return path, data and acknowledgement share one delay line, so a
//! packet costs one event. Every other case (active queue management, several bottlenecks, delayed acknowledgements …)
//! takes the general path with one event per step.

pub mod columns;
pub mod config;
mod engine;
mod event;
mod flow;
mod histogram;
pub mod link;
mod loss;
pub mod mesh;
mod monitor;
mod network;
mod pacer;
mod packet;
pub mod queue;
mod rate;
mod receiver;
mod record;
mod route;
mod scoreboard;
mod sender;
pub mod source;
mod trace;

pub use astraea_cc::{MILLISECOND, Nanos};
pub use config::{AckConfig, Config, ConfigError, DelayConfig, FlowConfig, LinkConfig, ReorderConfig, SourceConfig};
pub use engine::{Simulation, Stop};
pub use flow::{Flow, FlowStats};
pub use histogram::Histogram;
pub use link::LinkStats;
pub use loss::LossConfig;
pub use monitor::Interval;
pub use packet::{HEADER, Packet};
pub use rate::{RateConfig, Server};
pub use receiver::Completion;
pub use record::{FlowSlot, LinkSlot, Recorder};
pub use trace::{OPPORTUNITY_BYTES, Trace, TraceError};
