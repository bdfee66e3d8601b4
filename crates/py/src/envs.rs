//! The environments.

// Python hands over arguments by value, and `self` whether or not it is needed.
#![allow(clippy::needless_pass_by_value, clippy::unused_self)]

use astraea_env::multi_flow::{
    AgentStatus, FlowDriven, FlowStatistics, GLOBAL_FEATURES, MultiFlowConfig, Observer, Parallel,
};
use astraea_env::orca::OrcaConfig;
use astraea_env::selector::SelectorConfig;
use astraea_env::single_flow::SingleFlowConfig;
use astraea_env::{Actions, Batch, Environment as _, OrcaFlow, SelectorFlow, SingleFlow, Vector};
use astraea_policy::{Feature, state};
use numpy::{PyArray1, PyReadonlyArray1, PyReadwriteArray1, PyReadwriteArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::job::value_error;

type AnyEnvironment = Box<dyn astraea_env::Environment>;

/// The environment of that kind with settings from a JSON object.
fn build(kind: &str, settings: &str) -> PyResult<AnyEnvironment> {
    fn boxed(env: impl astraea_env::Environment + 'static) -> AnyEnvironment {
        Box::new(env)
    }
    let made = match kind {
        "single_flow" => SingleFlowConfig::from_json(settings).and_then(SingleFlow::new).map(boxed),
        "orca" => OrcaConfig::from_json(settings).and_then(OrcaFlow::new).map(boxed),
        "selector" => SelectorConfig::from_json(settings).and_then(SelectorFlow::new).map(boxed),
        "multi_flow" => MultiFlowConfig::from_json(settings).and_then(FlowDriven::new).map(boxed),
        _ => {
            return Err(value_error(format!(
                "kind: is {kind:?}, expected \"single_flow\", \"orca\", \"selector\" or \"multi_flow\""
            )));
        }
    };
    made.map_err(value_error)
}

/// Lower and upper bounds of the numbers of an observation.
type Bounds<'py> = (Bound<'py, PyArray1<f32>>, Bound<'py, PyArray1<f32>>);

/// Those of features that repeat, and of others at the end.
fn bounds<'py>(py: Python<'py>, features: &[Feature], repeats: usize, at_the_end: &[Feature]) -> Bounds<'py> {
    let ends = |end: fn(&Feature) -> f32| {
        let once: Vec<f32> = features.iter().map(end).collect();
        PyArray1::from_vec(py, [once.repeat(repeats), at_the_end.iter().map(end).collect()].concat())
    };
    (ends(|f| f.bounds().0), ends(|f| f.bounds().1))
}

/// Statistics by name, each an array over the flows; `active` tells which flows are there.
fn statistics<'py>(py: Python<'py>, observer: &Observer) -> PyResult<Bound<'py, PyDict>> {
    let flows = 0..observer.len();
    let table = PyDict::new(py);
    table.set_item("active", PyArray1::from_iter(py, flows.clone().map(|flow| observer.is_active(flow))))?;
    let neighbours = flows.clone().map(|flow| observer.statistics(flow).neighbour);
    table.set_item("neighbour", PyArray1::from_iter(py, neighbours))?;
    for (column, name) in FlowStatistics::NAMES.iter().enumerate() {
        let values = flows.clone().map(|flow| observer.statistics(flow).values()[column]);
        table.set_item(name, PyArray1::from_iter(py, values))?;
    }
    Ok(table)
}

/// Fails for what is no action, which is called `name`.
fn check_action(actions: Actions, action: f64, name: impl Fn() -> String) -> PyResult<()> {
    if actions.accept(action) {
        return Ok(());
    }
    let expected = match actions {
        Actions::Within(_) => "a number".to_owned(),
        Actions::Below(choices) => format!("a whole number from 0 to {}", choices - 1),
    };
    Err(value_error(format!("{}: is {action}, expected {expected}", name())))
}

#[pyclass(module = "astraea._native")]
pub(crate) struct Environment {
    env: AnyEnvironment,
    observation: Vec<f32>,
}

#[pymethods]
impl Environment {
    #[new]
    fn new(kind: &str, settings: &str) -> PyResult<Self> {
        let env = build(kind, settings)?;
        Ok(Self { observation: vec![0.0; env.observation_len()], env })
    }

    #[getter]
    fn observation_bounds<'py>(&self, py: Python<'py>) -> Bounds<'py> {
        bounds(py, self.env.features(), self.env.observation_repeats(), self.env.features_at_the_end())
    }

    #[getter]
    fn action_limit(&self) -> Option<f64> {
        match self.env.actions() {
            Actions::Within(limit) => Some(limit),
            Actions::Below(_) => None,
        }
    }

    #[getter]
    fn choices(&self) -> Option<usize> {
        match self.env.actions() {
            Actions::Within(_) => None,
            Actions::Below(choices) => Some(choices),
        }
    }

    #[getter]
    fn info_names(&self) -> Vec<&'static str> {
        self.env.info_names().to_vec()
    }

    fn reset<'py>(&mut self, py: Python<'py>, seed: Option<u64>) -> Bound<'py, PyArray1<f32>> {
        py.detach(|| self.env.reset(seed, &mut self.observation));
        PyArray1::from_slice(py, &self.observation)
    }

    fn step<'py>(&mut self, py: Python<'py>, action: f64) -> PyResult<(Bound<'py, PyArray1<f32>>, f64, bool, bool)> {
        check_action(self.env.actions(), action, || "action".to_owned())?;
        let outcome = self.env.step(action, &mut self.observation);
        let observation = PyArray1::from_slice(py, &self.observation);
        Ok((observation, outcome.reward, outcome.terminated, outcome.truncated))
    }

    fn info<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        let mut info = vec![0.0; self.env.info_names().len()];
        self.env.info(&mut info);
        PyArray1::from_vec(py, info)
    }

    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.env.observer().map(|observer| statistics(py, observer)).transpose()
    }
}

#[pyclass(module = "astraea._native")]
pub(crate) struct VectorEnvironment(Vector<AnyEnvironment>);

/// The arrays of a step, borrowed from Python.
#[derive(FromPyObject)]
pub(crate) struct Arrays<'py>(
    PyReadwriteArray2<'py, f32>,
    PyReadwriteArray1<'py, f64>,
    PyReadwriteArray1<'py, bool>,
    PyReadwriteArray1<'py, bool>,
    PyReadwriteArray2<'py, f64>,
);

impl Arrays<'_> {
    fn batch(&mut self) -> PyResult<Batch<'_>> {
        Ok(Batch {
            observations: self.0.as_slice_mut().map_err(value_error)?,
            rewards: self.1.as_slice_mut().map_err(value_error)?,
            terminated: self.2.as_slice_mut().map_err(value_error)?,
            truncated: self.3.as_slice_mut().map_err(value_error)?,
            info: self.4.as_slice_mut().map_err(value_error)?,
        })
    }
}

#[pymethods]
impl VectorEnvironment {
    #[new]
    fn new(kind: &str, settings: &str, num_envs: usize, num_threads: usize) -> PyResult<Self> {
        let envs = (0..num_envs).map(|_| build(kind, settings)).collect::<PyResult<_>>()?;
        Vector::new(envs, num_threads).map(Self).map_err(value_error)
    }

    #[getter]
    fn num_threads(&self) -> usize {
        self.0.threads()
    }

    fn reset(
        &mut self,
        py: Python<'_>,
        seeds: Option<PyReadonlyArray1<'_, u64>>,
        mut arrays: Arrays<'_>,
    ) -> PyResult<()> {
        let seeds = seeds.as_ref().map(PyReadonlyArray1::as_slice).transpose().map_err(value_error)?;
        let batch = arrays.batch()?;
        py.detach(|| self.0.reset(seeds, batch));
        Ok(())
    }

    fn step(&mut self, py: Python<'_>, actions: PyReadonlyArray1<'_, f32>, mut arrays: Arrays<'_>) -> PyResult<()> {
        let actions = actions.as_slice().map_err(value_error)?;
        let allowed = self.0.actions();
        for (index, action) in actions.iter().enumerate() {
            check_action(allowed, f64::from(*action), || format!("actions[{index}]"))?;
        }
        let batch = arrays.batch()?;
        py.detach(|| self.0.step(actions, batch));
        Ok(())
    }
}

#[pyclass(module = "astraea._native")]
pub(crate) struct ParallelEnvironment {
    env: Parallel,
    max_agents: usize,
}

#[pymethods]
impl ParallelEnvironment {
    #[new]
    fn new(settings: &str) -> PyResult<Self> {
        let config = MultiFlowConfig::from_json(settings).map_err(value_error)?;
        Ok(Self { max_agents: config.max_agents(), env: Parallel::new(config).map_err(value_error)? })
    }

    #[getter]
    fn max_agents(&self) -> usize {
        self.max_agents
    }

    #[getter]
    fn observation_bounds<'py>(&self, py: Python<'py>) -> Bounds<'py> {
        bounds(py, &state::FEATURES, state::PERIODS, &[])
    }

    #[getter]
    fn state_bounds<'py>(&self, py: Python<'py>) -> Bounds<'py> {
        bounds(py, &GLOBAL_FEATURES, 1, &[])
    }

    fn reset(&mut self, py: Python<'_>, seed: Option<u64>) {
        py.detach(|| self.env.reset(seed));
    }

    fn step(&mut self, py: Python<'_>, actions: Vec<f64>) -> PyResult<()> {
        let number = Actions::Within(1.0);
        actions.iter().try_for_each(|action| check_action(number, *action, || "action".to_owned()))?;
        py.detach(|| self.env.step(&actions));
        Ok(())
    }

    /// Flows whose agents are live, and flows whose agents left in the last step.
    fn agents(&self) -> (Vec<usize>, Vec<usize>) {
        let with = |status| {
            let agents = self.env.agents().iter().enumerate();
            agents.filter(|(_, a)| **a == status).map(|(flow, _)| flow).collect()
        };
        (with(AgentStatus::Live), with(AgentStatus::Left))
    }

    #[getter]
    fn is_over(&self) -> bool {
        self.env.is_over()
    }

    #[getter]
    fn time(&self) -> f64 {
        self.env.env().now() as f64 / 1e9
    }

    fn observation<'py>(&self, py: Python<'py>, flow: usize) -> PyResult<Bound<'py, PyArray1<f32>>> {
        let flows = self.env.agents().len();
        if flow >= flows {
            return Err(value_error(format!("flow: is {flow}, expected less than {flows}")));
        }
        Ok(PyArray1::from_slice(py, self.env.env().local_state(flow)))
    }

    fn reward(&self) -> f64 {
        self.env.env().reward().total
    }

    fn state<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_slice(py, &self.env.env().global_state())
    }

    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        statistics(py, self.env.env().observer())
    }
}
