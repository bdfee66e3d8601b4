//! The registry of schemes.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// All schemes with their descriptions and parameters.
#[pyfunction]
pub(crate) fn schemes(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for scheme in astraea_policy::schemes::all() {
        let params = PyList::empty(py);
        for parameter in scheme.parameters {
            let entry = PyDict::new(py);
            entry.set_item("name", parameter.name)?;
            entry.set_item("default", parameter.default)?;
            entry.set_item("min", parameter.min)?;
            entry.set_item("max", parameter.max)?;
            entry.set_item("unit", parameter.unit)?;
            entry.set_item("doc", parameter.doc)?;
            params.append(entry)?;
        }
        let entry = PyDict::new(py);
        entry.set_item("name", scheme.name)?;
        entry.set_item("title", scheme.title)?;
        entry.set_item("kind", scheme.kind)?;
        entry.set_item("year", scheme.year)?;
        entry.set_item("reference", scheme.reference)?;
        entry.set_item("params", params)?;
        list.append(entry)?;
    }
    Ok(list)
}
