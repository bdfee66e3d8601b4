//! One flow on one link, whose sending rate is set once a monitor interval (Aurora, ICML'19; MOCC, `EuroSys`'22).

mod config;
mod env;
mod path;

pub use config::{DelayMeaning, SingleFlowConfig};
pub use env::{LinkDraw, SingleFlow};
pub use path::{Path, Report};
