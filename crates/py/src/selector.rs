//! Policies of selectors.

// Python hands over arguments by value.
#![allow(clippy::needless_pass_by_value)]

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use astraea_policy::selector::{self, CANDIDATES, Forest, Kind};
use numpy::{AllowTypeChange, PyArray1, PyArray2, PyArrayLike2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::job::value_error;
use crate::policy;

/// A policy of a selector's: for each scheme a model of what it would be worth.
#[pyclass(frozen, module = "astraea._native")]
pub(crate) struct SelectorPolicy {
    inner: Arc<selector::SelectorPolicy>,
}

/// What all trees start from, the features asked for (trees, questions), thresholds (trees, questions), answers (trees,
/// questions + 1).
type Model<'py> = (f32, Bound<'py, PyArray2<u32>>, Bound<'py, PyArray2<f32>>, Bound<'py, PyArray2<f32>>);

impl SelectorPolicy {
    /// The policy itself.
    pub(crate) fn inner(&self) -> &Arc<selector::SelectorPolicy> {
        &self.inner
    }

    fn made(policy: selector::SelectorPolicy) -> Self {
        Self { inner: Arc::new(policy) }
    }
}

#[pymethods]
impl SelectorPolicy {
    /// A policy of these models, by the name of the scheme.
    #[new]
    #[pyo3(signature = (form, models, *, metadata=None))]
    fn new(
        form: &str,
        models: HashMap<String, Bound<'_, PyAny>>,
        metadata: Option<BTreeMap<String, String>>,
    ) -> PyResult<Self> {
        let form = self::form(form)?;
        if let Some(name) = models.keys().filter(|name| !CANDIDATES.contains(&name.as_str())).min() {
            return Err(value_error(format!("models: {name:?}, expected {}", CANDIDATES.join(", "))));
        }
        let models = CANDIDATES.map(|name| match models.get(name) {
            Some(model) => forest(name, model),
            None => Err(value_error(format!("models: none for {name}, expected {}", CANDIDATES.join(", ")))),
        });
        let models = models.into_iter().collect::<PyResult<_>>()?;
        selector::SelectorPolicy::new(form, models, metadata.unwrap_or_default()).map(Self::made).map_err(value_error)
    }

    /// The policy that comes with the crate under that name.
    #[staticmethod]
    fn shipped(form: &str) -> PyResult<Self> {
        Ok(Self { inner: selector::shipped(self::form(form)?) })
    }

    /// Reads a file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| selector::SelectorPolicy::load(&path)).map(Self::made).map_err(value_error)
    }

    /// Writes a file, as a whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.inner.save(&path)).map_err(value_error)
    }

    /// Which selector it is for.
    #[getter]
    fn form(&self) -> &'static str {
        self.inner.kind().name()
    }

    /// Length of an observation.
    #[getter]
    fn inputs(&self) -> usize {
        self.inner.inputs()
    }

    /// What the numbers of an observation are, and their order.
    #[getter]
    fn definition(&self) -> String {
        selector::SelectorPolicy::definition(self.inner.kind())
    }

    /// The schemes that it chooses from, in order.
    #[classattr]
    fn candidates(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        PyTuple::new(py, CANDIDATES)
    }

    /// All metadata, as text.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        policy::table(py, &self.inner.texts())
    }

    /// The models by the name of the scheme.
    fn models<'py>(&self, py: Python<'py>) -> PyResult<HashMap<&'static str, Model<'py>>> {
        let arrays = |model: &Forest| -> PyResult<Model<'py>> {
            let shape = |columns: usize| [model.trees(), columns];
            let questions = model.features.len() / model.trees();
            Ok((
                model.base,
                PyArray1::from_slice(py, &model.features).reshape(shape(questions))?,
                PyArray1::from_slice(py, &model.thresholds).reshape(shape(questions))?,
                PyArray1::from_slice(py, &model.answers).reshape(shape(questions + 1))?,
            ))
        };
        CANDIDATES.iter().zip(self.inner.models()).map(|(name, model)| Ok((*name, arrays(model)?))).collect()
    }

    /// What each scheme would be worth, for many observations.
    fn predict<'py>(&self, py: Python<'py>, observations: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let observations = policy::observations(observations, self.inner.inputs())?;
        let rows = observations.as_array();
        let worth = rows.rows().into_iter().flat_map(|row| self.inner.predict(&row.to_vec()));
        PyArray1::from_vec(py, worth.collect()).reshape([observations.shape()[0], CANDIDATES.len()])
    }

    fn __repr__(&self) -> String {
        let texts = self.inner.texts();
        format!("<SelectorPolicy {}, {} trees of depth {} a scheme>", self.form(), texts["trees"], texts["depth"])
    }
}

fn form(name: &str) -> PyResult<Kind> {
    let known = Kind::ALL.map(Kind::name).join(" or ");
    Kind::from_name(name).ok_or_else(|| value_error(format!("form: is {name:?}, expected {known}")))
}

fn forest(name: &str, model: &Bound<'_, PyAny>) -> PyResult<Forest> {
    type Table<'py, T> = PyArrayLike2<'py, T, AllowTypeChange>;
    let wrong = || {
        let arrays = "features (trees, questions), thresholds (trees, questions), answers (trees, questions + 1)";
        value_error(format!("models: {name}: expected a number, {arrays}"))
    };
    let (base, features, thresholds, answers): (f32, Table<'_, f64>, Table<'_, f32>, Table<'_, f32>) =
        model.extract().map_err(|_| wrong())?;
    let (trees, questions) = (features.shape()[0], features.shape()[1]);
    let fit = thresholds.shape() == features.shape() && answers.shape() == [trees, questions + 1];
    let whole = features.as_array().iter().all(|feature| feature.fract() == 0.0 && (0.0..1e6).contains(feature));
    if !(fit && whole && (questions + 1).is_power_of_two()) {
        return Err(wrong());
    }
    Ok(Forest {
        base,
        depth: (questions + 1).ilog2() as usize,
        features: features.as_array().iter().map(|feature| *feature as u32).collect(),
        thresholds: thresholds.as_array().iter().copied().collect(),
        answers: answers.as_array().iter().copied().collect(),
    })
}
