//! What a simulation leaves behind, as Python dictionaries and arrays.

use astraea_cc::{AnyController, Nanos};
use astraea_sim::columns::{self, FlowSeries};
use astraea_sim::{Config, Simulation};
use numpy::{PyArray1, PyArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

type Sim = Simulation<AnyController>;

/// Everything that `simulate` returns; see `_native.pyi` for keys, shapes and units.
pub(crate) fn results<'py>(py: Python<'py>, config: &Config, simulation: &mut Sim) -> PyResult<Bound<'py, PyDict>> {
    let result = PyDict::new(py);
    result.set_item("flows", flows(py, config, simulation)?)?;
    result.set_item("links", links(py, config, simulation)?)?;
    result.set_item("series", flow_series(py, config, simulation)?)?;
    Ok(result)
}

fn flows<'py>(py: Python<'py>, config: &Config, simulation: &Sim) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (index, flow) in simulation.flows().iter().enumerate() {
        let stats = simulation.flow_stats(index);
        let entry = PyDict::new(py);
        entry.set_item("start_ns", flow.started_at())?;
        entry.set_item("end_ns", flow.started_at().map(|_| flow.ended_at().unwrap_or(config.duration_ns)))?;
        entry.set_item("sent_packets", stats.sent)?;
        entry.set_item("retransmitted_packets", stats.retransmitted)?;
        entry.set_item("lost_packets", stats.declared_lost)?;
        entry.set_item("spurious_packets", stats.spurious)?;
        entry.set_item("timeouts", stats.timeouts)?;
        entry.set_item("dropped_packets", stats.dropped)?;
        entry.set_item("departed_packets", stats.departed)?;
        entry.set_item("delivered_bytes", stats.delivered_bytes)?;
        entry.set_item("acked_bytes", stats.acked_bytes)?;
        entry.set_item("rtt_min_ns", stats.rtt_min)?;
        let mean = (stats.rtt_count > 0).then(|| stats.rtt_sum as f64 / stats.rtt_count as f64);
        entry.set_item("rtt_mean_ns", mean)?;
        let completions: Vec<(Nanos, Nanos)> = stats.completions.iter().map(|c| (c.start, c.end)).collect();
        entry.set_item("completions", completions)?;
        list.append(entry)?;
    }
    Ok(list)
}

fn links<'py>(py: Python<'py>, config: &Config, simulation: &mut Sim) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for (index, link) in config.links.iter().enumerate() {
        let stats = simulation.link_stats(index).clone();
        let entry = PyDict::new(py);
        entry.set_item("name", &link.name)?;
        entry.set_item("offered_packets", stats.offered)?;
        entry.set_item("served_packets", stats.served)?;
        entry.set_item("served_bytes", stats.served_bytes)?;
        entry.set_item("dropped_packets", stats.dropped)?;
        entry.set_item("lost_packets", stats.lost)?;
        entry.set_item("marked_packets", stats.marked)?;
        entry.set_item("capacity_bytes", simulation.capacity_bytes(index, 0, config.duration_ns))?;
        let mean = (stats.served > 0).then(|| stats.wait_sum as f64 / stats.served as f64);
        entry.set_item("queue_delay_mean_ns", mean)?;
        entry.set_item("queue_delay_p95_ns", stats.waits.quantile(0.95))?;
        let buckets: Vec<(Nanos, Nanos, u64)> = stats.waits.buckets().collect();
        entry.set_item("queue_delay_hist", buckets)?;
        entry.set_item("series", link_series(py, simulation, index)?)?;
        list.append(entry)?;
    }
    Ok(list)
}

fn link_series<'py>(py: Python<'py>, simulation: &mut Sim, link: usize) -> PyResult<Bound<'py, PyDict>> {
    let series = PyDict::new(py);
    let Some(recorder) = simulation.recorder() else { return Ok(series) };
    let (slots, length) = (recorder.slots(), recorder.slot_ns());
    let recorded = recorder.link(link).to_vec();
    let duration = simulation.duration();
    let capacity = |from, to| simulation.capacity_bytes(link, from, to);
    let columns = columns::of_link(&recorded, slots, length, duration, capacity);
    series.set_item("queue_delay", PyArray1::from_vec(py, columns.queue_delay))?;
    series.set_item("served", PyArray1::from_vec(py, columns.served))?;
    series.set_item("dropped", PyArray1::from_vec(py, columns.dropped))?;
    series.set_item("capacity", PyArray1::from_vec(py, columns.capacity))?;
    Ok(series)
}

fn flow_series<'py>(py: Python<'py>, config: &Config, simulation: &mut Sim) -> PyResult<Bound<'py, PyDict>> {
    let series = PyDict::new(py);
    let spans: Vec<_> = simulation.flows().iter().map(|f| (f.started_at(), f.ended_at())).collect();
    let Some(recorder) = simulation.recorder() else { return Ok(series) };
    let (slots, length) = (recorder.slots(), recorder.slot_ns());
    let flow = |(index, (start, end)): (usize, &(_, Option<Nanos>))| {
        FlowSeries::new(recorder.flow(index), *start, end.unwrap_or(config.duration_ns), length)
    };
    let flows: Vec<FlowSeries> = spans.iter().enumerate().map(flow).collect();
    for (name, column) in columns::of_flows(&flows, slots) {
        series.set_item(name, PyArray1::from_vec(py, column).reshape([flows.len(), slots])?)?;
    }
    Ok(series)
}
