//! Running a simulation from Python.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use astraea_cc::{AnyController, Controller, INITIAL_WINDOW, MILLISECOND, Manual, Nanos};
use astraea_policy::SchemeFile;
use astraea_sim::{Interval, Simulation, Stop};
use pyo3::exceptions::{PyKeyboardInterrupt, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::job::{Job, Policies, value_error};
use crate::policy::Policy;
use crate::results::results;
use crate::rivals::{AuroraPolicy, MoccPolicy, OrcaPolicy};
use crate::selector::SelectorPolicy;
use crate::table::RemyTable;

/// Real time between two looks at signals and the cancel flag, at most about twice this.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What a file holds that stands for a scheme.
#[derive(FromPyObject)]
pub(crate) enum File<'py> {
    Policy(Bound<'py, Policy>),
    Table(Bound<'py, RemyTable>),
    Aurora(Bound<'py, AuroraPolicy>),
    Mocc(Bound<'py, MoccPolicy>),
    Orca(Bound<'py, OrcaPolicy>),
    Selector(Bound<'py, SelectorPolicy>),
}

impl File<'_> {
    fn content(&self) -> SchemeFile {
        match self {
            Self::Policy(policy) => SchemeFile::Policy(policy.get().inner().clone()),
            Self::Table(table) => SchemeFile::Table(table.get().inner().clone()),
            Self::Aurora(policy) => SchemeFile::Aurora(policy.get().inner().clone()),
            Self::Mocc(policy) => SchemeFile::Mocc(policy.get().inner().clone()),
            Self::Orca(policy) => SchemeFile::Orca(policy.get().inner().clone()),
            Self::Selector(policy) => SchemeFile::Selector(policy.get().inner().clone()),
        }
    }
}

/// Files by the name that the configuration calls them by.
type PolicyTable<'py> = HashMap<String, File<'py>>;

fn by_name(policies: Option<PolicyTable<'_>>) -> Policies {
    policies.into_iter().flatten().map(|(name, file)| (name, file.content())).collect()
}

/// A flag that stops running simulations from another thread.
#[pyclass(frozen, module = "astraea._native")]
#[derive(Default)]
pub(crate) struct Cancel {
    flag: Arc<AtomicBool>,
}

impl Cancel {
    /// The flag of what was given, or one that nobody sets.
    pub(crate) fn flag(given: Option<&Bound<'_, Self>>) -> Arc<AtomicBool> {
        given.map(|cancel| cancel.get().flag.clone()).unwrap_or_default()
    }
}

/// Does long work without the interpreter lock, on a thread of its own, and looks after signals meanwhile.
///
/// The work has no result if it ended early, as it is to do when what it is given says so: `cancelled` was set, or a
/// signal's handler raised.
pub(crate) fn attended<T: Send>(
    py: Python<'_>,
    cancelled: &AtomicBool,
    work: impl FnOnce(&(dyn Fn() -> bool + Sync)) -> Option<T> + Send,
) -> PyResult<T> {
    let ended = AtomicBool::new(false);
    let stop = || cancelled.load(Ordering::Relaxed) || ended.load(Ordering::Relaxed);
    py.detach(|| {
        let (done, result) = mpsc::channel();
        std::thread::scope(|scope| {
            let stop = &stop;
            scope.spawn(move || done.send(work(stop)));
            loop {
                match result.recv_timeout(LOOK_EVERY) {
                    Ok(found) => return found.ok_or_else(|| PyKeyboardInterrupt::new_err("cancelled")),
                    // It panicked, which the scope passes on.
                    Err(RecvTimeoutError::Disconnected) => return Err(PyKeyboardInterrupt::new_err("cancelled")),
                    Err(RecvTimeoutError::Timeout) => {
                        check_signals().inspect_err(|_| ended.store(true, Ordering::Relaxed))?;
                    }
                }
            }
        })
    })
}

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Makes everything that was given this object raise `KeyboardInterrupt` soon.
    fn cancel(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }
}

/// Checks a configuration without running it.
#[pyfunction]
#[pyo3(signature = (config_json, policies=None))]
pub(crate) fn check(py: Python<'_>, config_json: &str, policies: Option<PolicyTable<'_>>) -> PyResult<()> {
    let job = Job::parse(config_json, by_name(policies))?;
    py.detach(|| Simulation::new(&job.config, 0, |_| AnyController::Manual(manual(&job, 0)))).map_err(value_error)?;
    Ok(())
}

/// Runs a configuration and returns what happened.
#[pyfunction]
#[pyo3(signature = (config_json, seed, controllers=None, cancel=None, policies=None))]
pub(crate) fn simulate<'py>(
    py: Python<'py>,
    config_json: &str,
    seed: u64,
    controllers: Option<HashMap<usize, Py<PyAny>>>,
    cancel: Option<&Bound<'_, Cancel>>,
    policies: Option<PolicyTable<'_>>,
) -> PyResult<Bound<'py, PyDict>> {
    let job = Job::parse(config_json, by_name(policies))?;
    let deciders = controllers.unwrap_or_default();
    if let Some(flow) = deciders.keys().find(|f| job.config.flows.get(**f).is_none_or(|flow| flow.period_ns == 0)) {
        return Err(PyValueError::new_err(format!("controllers: flow {flow} does not exist or has no period_ns")));
    }
    let cancelled = Cancel::flag(cancel);
    let mut simulation = new_simulation(&job, seed, |flow| deciders.contains_key(&flow))?;
    py.detach(|| run(&mut simulation, &deciders, &cancelled))?;
    job.check()?;
    results(py, &job.config, &mut simulation)
}

/// Runs a configuration and returns only (simulated s, wall s, packets sent, events): for benchmarks.
#[pyfunction]
pub(crate) fn bench(py: Python<'_>, config_json: &str, seed: u64) -> PyResult<(f64, f64, u64, u64)> {
    let job = Job::parse(config_json, Policies::new())?;
    let mut simulation = new_simulation(&job, seed, |_| false)?;
    py.detach(|| {
        let start = std::time::Instant::now();
        run(&mut simulation, &HashMap::new(), &AtomicBool::new(false))?;
        let wall = start.elapsed().as_secs_f64();
        let packets = (0..job.config.flows.len()).map(|flow| simulation.flow_stats(flow).sent).sum();
        Ok((job.config.duration_ns as f64 / 1e9, wall, packets, simulation.events()))
    })
}

/// The controller of a flow that Python decides for: the usual initial window until the first decision.
fn manual(job: &Job, flow: usize) -> Manual {
    Manual::new(u64::from(INITIAL_WINDOW * job.config.flows[flow].mss), None)
}

fn new_simulation(job: &Job, seed: u64, is_manual: impl Fn(usize) -> bool) -> PyResult<Simulation<AnyController>> {
    let mut controllers = (0..job.config.flows.len())
        .map(|flow| if is_manual(flow) { Ok(AnyController::Manual(manual(job, flow))) } else { job.controller(flow) })
        .collect::<PyResult<Vec<AnyController>>>()?
        .into_iter();
    Simulation::new(&job.config, seed, |_| controllers.next().expect("one controller for each flow"))
        .map_err(value_error)
}

fn run(
    simulation: &mut Simulation<AnyController>,
    deciders: &HashMap<usize, Py<PyAny>>,
    cancelled: &AtomicBool,
) -> PyResult<()> {
    let (mut until, mut chunk) = (0, MILLISECOND);
    let mut looked = Instant::now();
    while simulation.now() < simulation.duration() {
        if simulation.now() >= until {
            check_signals()?;
            // How much real time a stretch of simulated time takes depends on how much happens in it.
            chunk = if looked.elapsed() < LOOK_EVERY { 2 * chunk } else { (chunk / 2).max(1) };
            looked = Instant::now();
            until = simulation.now().saturating_add(chunk).min(simulation.duration());
        }
        if cancelled.load(Ordering::Relaxed) {
            return Err(PyKeyboardInterrupt::new_err("cancelled"));
        }
        if let Stop::Decision(flow) = simulation.run_until(until) {
            let interval = simulation.take_interval(flow, None);
            if let Some(decider) = deciders.get(&flow) {
                Python::attach(|py| decide(py, decider, simulation, flow, &interval))?;
                simulation.pump(flow);
            }
        }
    }
    Ok(())
}

/// Raises what a signal handler of Python raises, if a signal came.
fn check_signals() -> PyResult<()> {
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the method is not general over lifetimes")]
    Python::attach(|py| py.check_signals())
}

/// Tells a Python controller what it measured, and takes its window and rate.
fn decide(
    py: Python<'_>,
    decider: &Py<PyAny>,
    simulation: &mut Simulation<AnyController>,
    flow: usize,
    interval: &Interval,
) -> PyResult<()> {
    let mss = f64::from(astraea_cc::MSS);
    let now = simulation.now();
    let flow = simulation.flow_mut(flow);
    let seconds = |ns: Nanos| ns as f64 / 1e9;
    let stats = PyDict::new(py);
    stats.set_item("now", seconds(now))?;
    stats.set_item("period", seconds(interval.length()))?;
    stats.set_item("sent_bytes", interval.sent)?;
    stats.set_item("acked_bytes", interval.acked)?;
    stats.set_item("lost_bytes", interval.lost)?;
    stats.set_item("throughput", interval.throughput())?;
    stats.set_item("rtt_mean", interval.rtt_mean().map(|ns| ns / 1e9))?;
    stats.set_item("rtt_min", (interval.rtt_count > 0).then(|| seconds(interval.rtt_min)))?;
    stats.set_item("srtt", flow.rtt().has_sample().then(|| seconds(flow.rtt().smoothed())))?;
    stats.set_item("min_rtt", flow.rtt().min().map(seconds))?;
    stats.set_item("inflight", flow.in_flight() as f64 / mss)?;
    stats.set_item("cwnd", flow.controller().cwnd() as f64 / mss)?;
    stats.set_item("pacing", flow.controller().pacing_rate())?;

    let answer = decider.bind(py).call_method1("decide", (stats,))?;
    if answer.is_none() {
        return Ok(());
    }
    let answer = answer
        .cast::<PyDict>()
        .map_err(|_| PyTypeError::new_err("decide: expected None or a dict with cwnd and/or pacing"))?;
    let number = |key: &str| -> PyResult<Option<f64>> {
        let Some(value) = answer.get_item(key)?.filter(|v| !v.is_none()) else { return Ok(None) };
        let value: f64 = value.extract()?;
        if !(value.is_finite() && value > 0.0) {
            return Err(PyValueError::new_err(format!("decide: {key} is {value}, expected a positive number")));
        }
        Ok(Some(value))
    };
    let (cwnd, pacing) = (number("cwnd")?, number("pacing")?);
    let window = cwnd.map_or(flow.controller().cwnd(), |packets| ((packets * mss) as u64).max(1));
    if let Some(manual) = flow.controller_mut().as_manual() {
        manual.set(window, pacing);
    }
    Ok(())
}
