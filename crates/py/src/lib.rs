//! The native module `astraea._native`: simulator, environments and registries for Python.
//!
//! Everything here converts between Python and the Rust crates; no logic lives in this crate. Its Python-facing
//! documentation and types are in `python/astraea/_native.pyi`.

mod envs;
mod job;
mod policy;
mod results;
mod rivals;
mod rollout;
mod schemes;
mod selector;
mod service;
mod simulate;
mod steady;
mod table;
mod traces;

#[pyo3::pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::envs::{Environment, ParallelEnvironment, VectorEnvironment};
    #[pymodule_export]
    use super::policy::Policy;
    #[pymodule_export]
    use super::rivals::{AuroraPolicy, MoccPolicy, OrcaPolicy};
    #[pymodule_export]
    use super::rollout::{Batch, Rollout};
    #[pymodule_export]
    use super::schemes::schemes;
    #[pymodule_export]
    use super::selector::SelectorPolicy;
    #[pymodule_export]
    use super::simulate::{Cancel, bench, check, simulate};
    #[pymodule_export]
    use super::steady::{steady_states, steady_step};
    #[pymodule_export]
    use super::table::RemyTable;
    #[pymodule_export]
    use super::traces::read_trace;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("build_profile", if cfg!(debug_assertions) { "debug" } else { "release" })
    }
}
