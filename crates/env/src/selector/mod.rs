//! One flow whose scheme is chosen anew with each interval (the set-up of Antelope and HACC).

mod config;
mod env;

pub use config::SelectorConfig;
pub use env::SelectorFlow;
