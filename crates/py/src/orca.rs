//! Policies of Orca's.

// Python hands over arguments by value, and `self` whether or not it is needed.
#![allow(clippy::needless_pass_by_value, clippy::unused_self)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use astraea_policy::Scratch;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::job::value_error;
use crate::policy;

/// A policy of Orca's: a network from the features of the last reports to a power of four.
#[pyclass(frozen, module = "astraea._native")]
pub(crate) struct OrcaPolicy {
    inner: Arc<astraea_policy::orca::OrcaPolicy>,
}

impl OrcaPolicy {
    /// The policy itself.
    pub(crate) fn inner(&self) -> &Arc<astraea_policy::orca::OrcaPolicy> {
        &self.inner
    }

    fn made(policy: astraea_policy::orca::OrcaPolicy) -> Self {
        Self { inner: Arc::new(policy) }
    }
}

#[pymethods]
impl OrcaPolicy {
    /// A policy of these weights.
    #[new]
    #[pyo3(signature = (layers, *, period=0.02, metadata=None))]
    fn new(
        layers: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
        period: f64,
        metadata: Option<BTreeMap<String, String>>,
    ) -> PyResult<Self> {
        let (layers, period) = (policy::layers(&layers)?, (period * 1e9).round() as u64);
        let made = astraea_policy::orca::OrcaPolicy::new(layers, period, metadata.unwrap_or_default());
        made.map(Self::made).map_err(value_error)
    }

    /// The policy that comes with the crate.
    #[staticmethod]
    fn shipped() -> Self {
        Self { inner: astraea_policy::orca::shipped() }
    }

    /// Reads a `.orca` file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| astraea_policy::orca::OrcaPolicy::load(&path)).map(Self::made).map_err(value_error)
    }

    /// Writes a `.orca` file, as a whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.inner.save(&path)).map_err(value_error)
    }

    /// Time between reports in s.
    #[getter]
    fn period(&self) -> f64 {
        self.inner.period() as f64 / 1e9
    }

    /// Name of the hidden units' activation.
    #[getter]
    fn activation(&self) -> &'static str {
        self.inner.network().activation().name()
    }

    /// Length of an observation.
    #[getter]
    fn inputs(&self) -> usize {
        self.inner.inputs()
    }

    /// What the numbers of an observation are, and their order.
    #[getter]
    fn definition(&self) -> String {
        astraea_policy::orca::OrcaPolicy::definition()
    }

    /// Weights and biases, layer by layer.
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Vec<policy::Arrays<'py>>> {
        policy::weights(py, self.inner.network().layers())
    }

    /// All metadata, as text.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        policy::table(py, &self.inner.texts())
    }

    /// The actions for many observations.
    fn forward<'py>(&self, py: Python<'py>, observations: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mut scratch = Scratch::default();
        let observations = policy::observations(observations, self.inner.inputs())?;
        let rows = observations.as_array();
        let actions = rows.rows().into_iter().map(|row| self.inner.act(&row.to_vec(), &mut scratch));
        Ok(PyArray1::from_vec(py, actions.collect()))
    }

    fn __repr__(&self) -> String {
        format!("<OrcaPolicy {}>", self.inner.texts()["shape"])
    }
}
