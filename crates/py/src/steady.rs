//! What policies see of flows at rest, and what law and network make of it.

// Python hands over arguments by value.
#![allow(clippy::needless_pass_by_value)]

use astraea_policy::{Rules, Steady};
use numpy::{AllowTypeChange, PyArray1, PyArray2, PyArrayLike1, PyArrayLike2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::job::value_error;
use crate::policy::form;

/// Columns of a table of flows.
const COLUMNS: [&str; 6] = ["rate", "queue", "loss", "spread", "base_rtt", "peak"];

/// The states of flows at rest.
#[pyfunction]
pub(crate) fn steady_states<'py>(
    py: Python<'py>,
    form_name: &str,
    flows: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let form = form(form_name)?;
    let flows = read(flows)?;
    let states = py.detach(|| {
        let mut states = Vec::with_capacity(flows.len() * form.inputs());
        for flow in &flows {
            flow.with_state(form, |state| states.extend_from_slice(state));
        }
        states
    });
    PyArray1::from_vec(py, states).reshape([flows.len(), form.inputs()])
}

/// The steps of law and network together for flows at rest; `network`: what its answers change, as relative changes.
#[pyfunction]
pub(crate) fn steady_step<'py>(
    py: Python<'py>,
    flows: &Bound<'py, PyAny>,
    network: PyArrayLike1<'py, f64, AllowTypeChange>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let flows = read(flows)?;
    let network = network.as_array();
    if network.len() != flows.len() {
        return Err(value_error(format!("network: expected {} numbers, one for each flow", flows.len())));
    }
    let rules = Rules::default();
    let steps = flows.iter().zip(network).map(|(flow, network)| rules.step(flow.law(&rules), *network, flow.loss));
    Ok(PyArray1::from_vec(py, steps.collect()))
}

fn read(flows: &Bound<'_, PyAny>) -> PyResult<Vec<Steady>> {
    let wrong = || value_error(format!("flows: expected numbers of shape (n, 6): {}", COLUMNS.join(", ")));
    let table: PyArrayLike2<'_, f64, AllowTypeChange> = flows.extract().map_err(|_| wrong())?;
    if table.shape()[1] != COLUMNS.len() {
        return Err(wrong());
    }
    let flow = |row: numpy::ndarray::ArrayView1<'_, f64>| Steady {
        rate: row[0],
        queue: row[1],
        loss: row[2],
        spread: row[3],
        base_rtt: row[4],
        peak: row[5],
    };
    Ok(table.as_array().rows().into_iter().map(flow).collect())
}
