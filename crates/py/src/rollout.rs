//! Roll-outs and what comes of them.

// Python hands over arguments by value.
#![allow(clippy::needless_pass_by_value)]

use astraea_env::multi_flow::{FlowStatistics, MultiFlowConfig};
use astraea_env::rollout::{self, Actor, Request, SCORES};
use astraea_policy::{Form, Network};
use numpy::{AllowTypeChange, PyArray1, PyArrayLikeDyn, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value;

use crate::job::value_error;
use crate::policy::Policy;
use crate::simulate::{Cancel, attended};

/// The network of a policy, which must be of that form.
fn network(policy: &Policy, form: Form) -> PyResult<&Network> {
    let (found, expected) = (policy.inner().metadata().form.name(), form.name());
    if found != expected {
        return Err(value_error(format!("policy: is of the form \"{found}\", expected \"{expected}\"")));
    }
    Ok(policy.inner().network())
}

fn within(name: &str, value: f64, low: f64, high: f64) -> PyResult<()> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(value_error(format!("{name}: is {value}, expected {low} to {high}")))
}

#[pyclass(frozen, module = "astraea._native")]
pub(crate) struct Rollout(rollout::Rollout);

#[pymethods]
impl Rollout {
    #[new]
    #[pyo3(signature = (config_json, form, alpha, threads=0, seed=0))]
    fn new(config_json: &str, form: &str, alpha: f64, threads: usize, seed: u64) -> PyResult<Self> {
        let form = Form::from_name(form).ok_or_else(|| {
            let names = Form::ALL.map(Form::name).join(", ");
            value_error(format!("form: is \"{form}\", expected one of {names}"))
        })?;
        within("threads", threads as f64, 0.0, 1024.0)?;
        if serde_json::from_str::<Value>(config_json).is_ok_and(|settings| settings.get("alpha").is_some()) {
            return Err(value_error("alpha: is an argument of its own, and no setting of the environment here"));
        }
        let config = MultiFlowConfig::from_json(config_json).map_err(value_error)?;
        let config = MultiFlowConfig { alpha, ..config };
        rollout::Rollout::new(config, form, threads, seed).map(Self).map_err(value_error)
    }

    #[getter]
    fn threads(&self) -> usize {
        self.0.threads()
    }

    #[getter]
    fn global_size(&self) -> usize {
        self.0.config().global_len()
    }

    #[getter]
    fn local_size(&self) -> usize {
        self.0.form().inputs()
    }

    #[getter]
    fn largest_episode(&self) -> (f64, f64) {
        self.0.largest_episode()
    }

    #[pyo3(signature = (policy, iteration, episodes, noise, *, statistics=false, cancel=None))]
    #[expect(clippy::too_many_arguments, reason = "they have names in Python")]
    fn run(
        &self,
        py: Python<'_>,
        policy: &Policy,
        iteration: u64,
        episodes: usize,
        noise: f64,
        statistics: bool,
        cancel: Option<&Bound<'_, Cancel>>,
    ) -> PyResult<Batch> {
        within("episodes", episodes as f64, 1.0, 1e6)?;
        within("noise", noise, 0.0, 10.0)?;
        let network = network(policy, self.0.form())?;
        let request = Request { iteration, episodes, noise, statistics };
        attended(py, &Cancel::flag(cancel), |stop| self.0.run(|| Actor::new(network), &request, stop)).map(Batch)
    }

    #[pyo3(signature = (policy, seeds, *, cancel=None))]
    fn score<'py>(
        &self,
        py: Python<'py>,
        policy: &Policy,
        seeds: Vec<u64>,
        cancel: Option<&Bound<'_, Cancel>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let network = network(policy, self.0.form())?;
        let scores = attended(py, &Cancel::flag(cancel), |stop| self.0.score(|| Actor::new(network), &seeds, stop))?;
        let table = PyDict::new(py);
        for (column, (name, _)) in SCORES.iter().enumerate() {
            table.set_item(name, PyArray1::from_iter(py, scores.iter().map(|score| score.0[column])))?;
        }
        Ok(table)
    }
}

#[pyclass(frozen, module = "astraea._native")]
pub(crate) struct Batch(rollout::Batch);

#[pymethods]
impl Batch {
    #[getter]
    fn decisions(&self) -> usize {
        self.0.decisions()
    }

    #[getter]
    fn episodes(&self) -> usize {
        self.0.episodes()
    }

    #[getter]
    fn diverged(&self) -> usize {
        self.0.diverged()
    }

    #[getter]
    fn reward_mean(&self) -> f64 {
        self.0.reward_mean()
    }

    #[getter]
    fn seconds(&self) -> f64 {
        self.0.seconds()
    }

    fn rewards<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_vec(py, self.0.rewards())
    }

    fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let statistics = py
            .detach(|| self.0.statistics())
            .ok_or_else(|| value_error("statistics: were not kept, run with statistics=True"))?;
        let (n, flows) = (self.0.decisions(), statistics.flows);
        let table = PyDict::new(py);
        table.set_item("active", PyArray1::from_vec(py, statistics.active).reshape([n, flows])?)?;
        table.set_item("neighbour", PyArray1::from_vec(py, statistics.neighbour).reshape([n, flows])?)?;
        for (name, column) in FlowStatistics::NAMES.iter().zip(statistics.columns) {
            table.set_item(name, PyArray1::from_vec(py, column).reshape([n, flows])?)?;
        }
        for (name, column) in [
            ("time", statistics.time),
            ("capacity", statistics.capacity),
            ("buffer", statistics.buffer),
            ("rtt", statistics.rtt),
        ] {
            table.set_item(name, PyArray1::from_vec(py, column))?;
        }
        Ok(table)
    }

    #[pyo3(signature = (gamma, n, rewards=None))]
    fn transitions<'py>(
        &self,
        py: Python<'py>,
        gamma: f64,
        n: usize,
        rewards: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        within("gamma", gamma, 0.0, 1.0)?;
        within("n", n as f64, 1.0, 1e6)?;
        let rewards = rewards.map(|rewards| self.rewards_of(rewards)).transpose()?;
        let transitions = py.detach(|| self.0.transitions(gamma, n, rewards.as_deref()));
        let (n, g, s) = (transitions.action.len(), self.0.global_len(), self.0.local_len());
        let table = PyDict::new(py);
        table.set_item("g", PyArray1::from_vec(py, transitions.global).reshape([n, g])?)?;
        table.set_item("s", PyArray1::from_vec(py, transitions.local).reshape([n, s])?)?;
        table.set_item("a", PyArray1::from_vec(py, transitions.action))?;
        table.set_item("r", PyArray1::from_vec(py, transitions.reward))?;
        table.set_item("g2", PyArray1::from_vec(py, transitions.next_global).reshape([n, g])?)?;
        table.set_item("s2", PyArray1::from_vec(py, transitions.next_local).reshape([n, s])?)?;
        table.set_item("discount", PyArray1::from_vec(py, transitions.discount))?;
        Ok(table)
    }
}

impl Batch {
    /// Somebody's own rewards, one for each decision.
    fn rewards_of(&self, given: &Bound<'_, PyAny>) -> PyResult<Vec<f32>> {
        let expected = self.0.decisions();
        let wrong =
            |found: String| value_error(format!("rewards: {found}, expected {expected}, one for each decision"));
        let given: PyArrayLikeDyn<'_, f64, AllowTypeChange> =
            given.extract().map_err(|_| wrong("no array of numbers".to_owned()))?;
        match *given.shape() {
            [found] if found == expected => {}
            [found] => return Err(wrong(format!("{found} of them"))),
            ref shape => {
                let shape = shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                return Err(wrong(format!("an array of shape ({shape})")));
            }
        }
        let rewards: Vec<f32> = given.as_array().iter().map(|reward| *reward as f32).collect();
        if let Some(i) = rewards.iter().position(|reward| !reward.is_finite()) {
            return Err(value_error(format!("rewards[{i}]: is {}, expected a number", rewards[i])));
        }
        Ok(rewards)
    }
}
