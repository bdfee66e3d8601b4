//! One flow of CUBIC's whose window is multiplied every 20 ms (Orca's set-up).

mod config;
mod env;

pub use config::OrcaConfig;
pub use env::OrcaFlow;
