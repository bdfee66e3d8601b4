//! Rule tables of `RemyCC`.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;

use crate::job::value_error;

/// A rule table of `RemyCC`, read from a `.dna` file.
#[pyclass(frozen, module = "astraea._native")]
pub(crate) struct RemyTable {
    inner: Arc<astraea_cc::RemyTable>,
}

impl RemyTable {
    /// The table itself.
    pub(crate) fn inner(&self) -> &Arc<astraea_cc::RemyTable> {
        &self.inner
    }
}

#[pymethods]
impl RemyTable {
    /// Reads a `.dna` file.
    #[staticmethod]
    // Python hands over arguments by value.
    #[allow(clippy::needless_pass_by_value)]
    fn load(path: PathBuf) -> PyResult<Self> {
        let at = |error: &dyn std::fmt::Display| value_error(format!("{}: {error}", path.display()));
        // Without the number that the system gives the error.
        let plain = |error: std::io::Error| error.to_string().split(" (os error").next().unwrap_or_default().to_owned();
        let content = std::fs::read(&path).map_err(|error| at(&plain(error)))?;
        let table = astraea_cc::RemyTable::from_dna(&content).map_err(|error| at(&error))?;
        Ok(Self { inner: Arc::new(table) })
    }

    /// Number of rules.
    fn __len__(&self) -> usize {
        self.inner.len()
    }
}
