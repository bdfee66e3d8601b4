//! Reading link traces.

use std::path::PathBuf;

use astraea_sim::Trace;
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::job::value_error;

/// Delivery opportunities of a Mahimahi trace within one period, in ns; the last one ends the period.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "what Python hands over is owned")]
pub(crate) fn read_trace(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyArray1<i64>>> {
    let trace = py.detach(|| Trace::read(&path)).map_err(value_error)?;
    Ok(PyArray1::from_vec(py, trace.times().iter().map(|t| t.cast_signed()).collect()))
}
