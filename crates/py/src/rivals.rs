//! Policies of other papers: Aurora's, MOCC's and Orca's.

// Python hands over arguments by value, and `self` whether or not it is needed.
#![allow(clippy::needless_pass_by_value, clippy::unused_self)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use astraea_policy::aurora::AuroraTerms;
use astraea_policy::mocc::{Preference, WEIGHT};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::job::value_error;
use crate::policy;

/// A class around the policy of that name in that module of `astraea_policy`: the methods that only it has, and those that
/// all of them have.
macro_rules! class {
    ($(#[$about:meta])* $name:ident in $module:ident { $($own:tt)* }) => {
        $(#[$about])*
        #[pyclass(frozen, module = "astraea._native")]
        pub(crate) struct $name {
            inner: Arc<astraea_policy::$module::$name>,
        }

        impl $name {
            /// The policy itself.
            pub(crate) fn inner(&self) -> &Arc<astraea_policy::$module::$name> {
                &self.inner
            }

            fn made(policy: astraea_policy::$module::$name) -> Self {
                Self { inner: Arc::new(policy) }
            }
        }

        #[pymethods]
        impl $name {
            $($own)*

            /// The policy that comes with the crate.
            #[staticmethod]
            fn shipped() -> Self {
                Self { inner: astraea_policy::$module::shipped() }
            }

            /// Reads a file.
            #[staticmethod]
            fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
                py.detach(|| astraea_policy::$module::$name::load(&path)).map(Self::made).map_err(value_error)
            }

            /// Writes a file, as a whole or not at all.
            fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
                py.detach(|| self.inner.save(&path)).map_err(value_error)
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
                astraea_policy::$module::$name::definition()
            }

            /// All metadata, as text.
            #[getter]
            fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                policy::table(py, &self.inner.texts())
            }

            /// Weights and biases, layer by layer.
            fn weights<'py>(&self, py: Python<'py>) -> PyResult<Vec<policy::Arrays<'py>>> {
                policy::weights(py, self.inner.layers())
            }

            /// The actions for many observations.
            fn forward<'py>(
                &self,
                py: Python<'py>,
                observations: &Bound<'py, PyAny>,
            ) -> PyResult<Bound<'py, PyArray1<f64>>> {
                let mut scratch = Default::default();
                let observations = policy::observations(observations, self.inner.inputs())?;
                let rows = observations.as_array();
                let actions = rows.rows().into_iter().map(|row| self.inner.act(&row.to_vec(), &mut scratch));
                Ok(PyArray1::from_vec(py, actions.collect()))
            }

            fn __repr__(&self) -> String {
                format!("<{} {}>", stringify!($name), self.inner.texts()["shape"])
            }
        }
    };
}

class! {
    /// A policy of Aurora's: a network from the features of the last intervals to a change of the rate.
    AuroraPolicy in aurora {
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

        /// Largest magnitude of an action.
        #[getter]
        fn action_limit(&self) -> f64 {
            self.inner.terms().limit
        }
    }
}

class! {
    /// A policy of MOCC's: as Aurora's, and what is asked for joins the features.
    MoccPolicy in mocc {
        /// A policy of these weights.
        #[new]
        #[pyo3(signature = (preference, layers, *, alpha=0.025, action_limit=1.0, interval=0.5, metadata=None))]
        fn new(
            preference: (Bound<'_, PyAny>, Bound<'_, PyAny>),
            layers: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
            alpha: f64,
            action_limit: f64,
            interval: f64,
            metadata: Option<BTreeMap<String, String>>,
        ) -> PyResult<Self> {
            let terms = AuroraTerms { alpha, limit: action_limit, interval, notes: metadata.unwrap_or_default() };
            let preference = policy::layers(&[preference])?.remove(0);
            let made = astraea_policy::mocc::MoccPolicy::new(preference, policy::layers(&layers)?, terms);
            made.map(Self::made).map_err(value_error)
        }

        /// Weights and biases of the layer for the preference.
        fn preference<'py>(&self, py: Python<'py>) -> PyResult<policy::Arrays<'py>> {
            Ok(policy::weights(py, std::slice::from_ref(self.inner.preference()))?.remove(0))
        }

        /// The policy of Aurora's that this one is for as long as a preference holds.
        fn prefer(&self, throughput: f64, latency: f64, loss: f64) -> PyResult<AuroraPolicy> {
            let weights = [throughput, latency, loss];
            let preference = Preference::new(weights).ok_or_else(|| {
                value_error(format!("weights: are {weights:?}, expected {} to {}", WEIGHT.start(), WEIGHT.end()))
            })?;
            Ok(AuroraPolicy::made(self.inner.prefer(preference)))
        }

        /// Largest magnitude of an action.
        #[getter]
        fn action_limit(&self) -> f64 {
            self.inner.terms().limit
        }
    }
}

class! {
    /// A policy of Orca's: a network from the features of the last reports to a power of four.
    OrcaPolicy in orca {
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

        /// Time between reports in s.
        #[getter]
        fn period(&self) -> f64 {
            self.inner.period() as f64 / 1e9
        }
    }
}
