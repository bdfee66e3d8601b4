//! One flow of CUBIC's whose window is multiplied once a period (Orca's set-up).

mod config;
mod env;

pub use config::OrcaConfig;
pub use env::OrcaFlow;
