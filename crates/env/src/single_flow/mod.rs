//! One flow on one link, whose sending rate is set once a monitor interval (Aurora, ICML'19).

mod config;
mod env;
mod history;
mod path;

pub use config::{DelayMeaning, SingleFlowConfig};
pub use env::{LinkDraw, SingleFlow};
pub use history::{FEATURES, History};
pub use path::{Path, Report};
