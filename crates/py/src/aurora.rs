//! Policies of Aurora's.

// Python hands over arguments by value, and `self` whether or not it is needed.
#![allow(clippy::needless_pass_by_value, clippy::unused_self)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use astraea_policy::aurora::AuroraTerms;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::job::value_error;
use crate::policy;

/// A policy of Aurora's: a network from the features of the last intervals to a change of the rate.
#[pyclass(frozen, module = "astraea._native")]
pub(crate) struct AuroraPolicy {
    inner: Arc<astraea_policy::aurora::AuroraPolicy>,
}

impl AuroraPolicy {
    /// The policy itself.
    pub(crate) fn inner(&self) -> &Arc<astraea_policy::aurora::AuroraPolicy> {
        &self.inner
    }

    fn made(policy: astraea_policy::aurora::AuroraPolicy) -> Self {
        Self { inner: Arc::new(policy) }
    }
}

#[pymethods]
impl AuroraPolicy {
    /// A policy of these weights.
    #[new]
    #[pyo3(signature = (layers, *, alpha=0.025, action_limit=1.0, interval=0.5, metadata=None))]
    fn new(
        layers: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
        alpha: f64,
        action_limit: f64,
        interval: f64,
        metadata: Option<BTreeMap<String, String>>,
    ) -> PyResult<Self> {
        let terms = AuroraTerms { alpha, limit: action_limit, interval, notes: metadata.unwrap_or_default() };
        let made = astraea_policy::aurora::AuroraPolicy::new(policy::layers(&layers)?, terms);
        made.map(Self::made).map_err(value_error)
    }

    /// The policy that comes with the crate.
    #[staticmethod]
    fn shipped() -> Self {
        Self { inner: astraea_policy::aurora::shipped() }
    }

    /// Reads a `.aurora` file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| astraea_policy::aurora::AuroraPolicy::load(&path)).map(Self::made).map_err(value_error)
    }

    /// Writes a `.aurora` file, as a whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.inner.save(&path)).map_err(value_error)
    }

    /// Largest magnitude of an action.
    #[getter]
    fn action_limit(&self) -> f64 {
        self.inner.terms().limit
    }

    /// Name of the hidden units' activation.
    #[getter]
    fn activation(&self) -> &'static str {
        self.inner.activation()
    }

    /// Length of an observation.
    #[getter]
    fn inputs(&self) -> usize {
        self.inner.inputs()
    }

    /// What the numbers of an observation are, and their order.
    #[getter]
    fn definition(&self) -> String {
        astraea_policy::aurora::AuroraPolicy::definition()
    }

    /// Weights and biases, layer by layer.
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Vec<policy::Arrays<'py>>> {
        policy::weights(py, self.inner.layers())
    }

    /// All metadata, as text.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        policy::table(py, &self.inner.texts())
    }

    /// The actions for many observations.
    fn forward<'py>(&self, py: Python<'py>, observations: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mut scratch = astraea_policy::aurora::Scratch::default();
        let observations = policy::observations(observations, self.inner.inputs())?;
        let rows = observations.as_array();
        let actions = rows.rows().into_iter().map(|row| self.inner.act(&row.to_vec(), &mut scratch));
        Ok(PyArray1::from_vec(py, actions.collect()))
    }

    fn __repr__(&self) -> String {
        format!("<AuroraPolicy {}>", self.inner.texts()["shape"])
    }
}
