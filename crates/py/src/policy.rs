//! Policies: files, weights and inference.

// Python hands over arguments by value.
#![allow(clippy::needless_pass_by_value)]

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use astraea_policy::{Activation, Form, Layer, Metadata, Network, Scratch};
use numpy::{AllowTypeChange, PyArray1, PyArray2, PyArrayLike1, PyArrayLike2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::job::value_error;

/// From so many states on, other threads of Python run while the network is evaluated.
const MANY: usize = 64;

/// Weights and biases of layers.
pub(crate) fn weights<'py>(py: Python<'py>, layers: &[Layer]) -> PyResult<Vec<Arrays<'py>>> {
    let arrays = layers.iter().map(|layer| {
        let weights = PyArray1::from_slice(py, &layer.weights).reshape([layer.outputs(), layer.inputs])?;
        Ok((weights, PyArray1::from_slice(py, &layer.bias)))
    });
    arrays.collect()
}

/// A table of texts.
pub(crate) fn table<'py>(py: Python<'py>, texts: &BTreeMap<String, String>) -> PyResult<Bound<'py, PyDict>> {
    let table = PyDict::new(py);
    texts.iter().try_for_each(|(name, text)| table.set_item(name, text))?;
    Ok(table)
}

/// Observations of so many `inputs`, row by row.
pub(crate) fn observations<'py>(
    given: &Bound<'py, PyAny>,
    inputs: usize,
) -> PyResult<PyArrayLike2<'py, f32, AllowTypeChange>> {
    let wrong = |found: &str| value_error(format!("observations: {found}, expected numbers of shape (n, {inputs})"));
    let table: PyArrayLike2<'py, f32, AllowTypeChange> = given.extract().map_err(|_| wrong("no table of numbers"))?;
    match table.shape() {
        [_, found] if *found == inputs => Ok(table),
        [rows, found] => Err(wrong(&format!("shape ({rows}, {found})"))),
        _ => unreachable!("a table has two dimensions"),
    }
}

/// A policy: a network and what one must know to use it.
#[pyclass(frozen, module = "astraea._native")]
pub(crate) struct Policy {
    inner: Arc<astraea_policy::Policy>,
}

type Matrix<'py> = Bound<'py, PyArray2<f32>>;
type Vector<'py> = Bound<'py, PyArray1<f32>>;

/// Weights and biases of a layer.
pub(crate) type Arrays<'py> = (Matrix<'py>, Vector<'py>);

impl Policy {
    /// The policy itself.
    pub(crate) fn inner(&self) -> &Arc<astraea_policy::Policy> {
        &self.inner
    }

    fn new(policy: astraea_policy::Policy) -> Self {
        Self { inner: Arc::new(policy) }
    }
}

#[pymethods]
impl Policy {
    /// Reads a policy file.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| astraea_policy::Policy::load(&path)).map(Self::new).map_err(value_error)
    }

    /// Reads the content of a policy file.
    #[staticmethod]
    fn from_bytes(content: &[u8]) -> PyResult<Self> {
        astraea_policy::Policy::from_bytes(content).map(Self::new).map_err(value_error)
    }

    /// A policy of these weights.
    #[staticmethod]
    #[pyo3(signature = (form, activation, layers, alpha=None, period=0.03, metadata=None))]
    fn from_weights(
        form: &str,
        activation: &str,
        layers: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
        alpha: Option<f64>,
        period: f64,
        metadata: Option<BTreeMap<String, String>>,
    ) -> PyResult<Self> {
        let form = self::form(form)?;
        let activations = Activation::ALL.map(Activation::name);
        let activation = named("activation", activation, Activation::from_name, activations)?;
        let network = Network::new(self::layers(&layers)?, activation).map_err(value_error)?;
        let metadata = Metadata {
            form,
            alpha: alpha.unwrap_or_else(|| form.default_alpha()),
            period: (period * 1e9).round() as u64,
            notes: metadata.unwrap_or_default(),
        };
        astraea_policy::Policy::new(network, metadata).map(Self::new).map_err(value_error)
    }

    /// Writes a policy file, as a whole or not at all.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        py.detach(|| self.inner.save(&path)).map_err(value_error)
    }

    /// The content of a policy file.
    fn to_bytes(&self) -> Vec<u8> {
        self.inner.to_bytes()
    }

    /// Name of the form.
    #[getter]
    fn form(&self) -> &'static str {
        self.inner.metadata().form.name()
    }

    /// Name of the hidden units' activation.
    #[getter]
    fn activation(&self) -> &'static str {
        self.inner.network().activation().name()
    }

    /// Action scale.
    #[getter]
    fn alpha(&self) -> f64 {
        self.inner.metadata().alpha
    }

    /// Monitoring period in s.
    #[getter]
    fn period(&self) -> f64 {
        self.inner.metadata().period as f64 / 1e9
    }

    /// Length of a state.
    #[getter]
    fn inputs(&self) -> usize {
        self.inner.network().inputs()
    }

    /// What the numbers of a state are, and their order.
    #[getter]
    fn definition(&self) -> String {
        self.inner.metadata().form.definition()
    }

    /// All metadata, as text.
    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        table(py, &self.inner.texts())
    }

    /// Weights and biases, layer by layer.
    fn weights<'py>(&self, py: Python<'py>) -> PyResult<Vec<Arrays<'py>>> {
        weights(py, self.inner.network().layers())
    }

    /// The actions for many states.
    fn forward<'py>(&self, py: Python<'py>, states: &Bound<'py, PyAny>) -> PyResult<Vector<'py>> {
        let network = self.inner.network();
        let wrong = |found: String| {
            value_error(format!("states: {found}, expected numbers of shape (n, {})", network.inputs()))
        };
        let states: PyArrayLike2<'py, f32, AllowTypeChange> =
            states.extract().map_err(|_| wrong("no table of numbers".to_owned()))?;
        if states.shape()[1] != network.inputs() {
            return Err(wrong(format!("shape ({}, {})", states.shape()[0], states.shape()[1])));
        }
        let copied;
        // A slice comes in the order of the memory, which need not be row by row.
        let values = if states.is_c_contiguous() {
            states.as_slice().map_err(value_error)?
        } else {
            copied = states.as_array().iter().copied().collect::<Vec<_>>();
            &copied
        };
        let mut actions = vec![0.0; states.shape()[0]];
        let mut evaluate = || network.forward_batch(values, &mut actions, &mut Scratch::default());
        if states.shape()[0] < MANY {
            evaluate();
        } else {
            py.detach(evaluate);
        }
        Ok(PyArray1::from_vec(py, actions))
    }

    /// Mean time in s of one evaluation of `batch` states, over `rounds` of them.
    fn bench(&self, py: Python<'_>, batch: usize, rounds: u32) -> PyResult<f64> {
        if !(1..=1 << 20).contains(&batch) || rounds == 0 {
            return Err(value_error(format!(
                "bench: batch {batch}, rounds {rounds}, expected 1 to 1048576 and at least 1"
            )));
        }
        let network = self.inner.network();
        let states: Vec<f32> = (0..batch * network.inputs()).map(|i| (i % 97) as f32 / 48.0 - 1.0).collect();
        let (mut actions, mut scratch) = (vec![0.0; batch], Scratch::default());
        Ok(py.detach(|| {
            let start = Instant::now();
            for _ in 0..rounds {
                network.forward_batch(black_box(&states), black_box(&mut actions), &mut scratch);
            }
            start.elapsed().as_secs_f64() / f64::from(rounds)
        }))
    }

    fn __repr__(&self) -> String {
        let name = self.inner.metadata().notes.get("name").map(|name| format!("{name}: ")).unwrap_or_default();
        format!("<Policy {name}{}, {}>", self.form(), self.inner.network().shape())
    }
}

/// The form of that name.
pub(crate) fn form(name: &str) -> PyResult<Form> {
    named("form", name, Form::from_name, Form::ALL.map(Form::name))
}

fn named<T, const N: usize>(what: &str, name: &str, find: impl Fn(&str) -> Option<T>, known: [&str; N]) -> PyResult<T> {
    find(name).ok_or_else(|| value_error(format!("{what}: is {name:?}, expected one of {}", known.join(", "))))
}

/// Layers from weights (outputs, inputs) and biases (outputs) as Python has them.
pub(crate) fn layers(arrays: &[(Bound<'_, PyAny>, Bound<'_, PyAny>)]) -> PyResult<Vec<Layer>> {
    arrays.iter().enumerate().map(|(index, (weights, bias))| layer(index, weights, bias)).collect()
}

fn layer(index: usize, weights: &Bound<'_, PyAny>, bias: &Bound<'_, PyAny>) -> PyResult<Layer> {
    let wrong =
        || value_error(format!("layers: layer {index}: expected weights (outputs, inputs) and biases (outputs)"));
    let weights: PyArrayLike2<'_, f32, AllowTypeChange> = weights.extract().map_err(|_| wrong())?;
    let bias: PyArrayLike1<'_, f32, AllowTypeChange> = bias.extract().map_err(|_| wrong())?;
    let [outputs, inputs] = [weights.shape()[0], weights.shape()[1]];
    if bias.shape()[0] != outputs {
        return Err(wrong());
    }
    Ok(Layer {
        inputs,
        weights: weights.as_array().iter().copied().collect(),
        bias: bias.as_array().iter().copied().collect(),
    })
}
