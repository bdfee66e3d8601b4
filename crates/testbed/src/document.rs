//! What a trial leaves behind, in the form in which the simulator's results come: one line of JSON, and the arrays that
//! it names.

use std::io::{self, Write};

use astraea_cc::Nanos;
use astraea_sim::columns::{self, FlowSeries};
use astraea_sim::{Config, FlowSlot};
use serde_json::{Map, Value, json};

use crate::job::Job;
use crate::trial::Trial;

/// Arrays of numbers, written one after the other behind the line that describes them.
#[derive(Default)]
struct Arrays {
    listed: Vec<Value>,
    bytes: Vec<u8>,
}

impl Arrays {
    /// Adds 32-bit floats; returns what stands for them in the document.
    fn f32(&mut self, values: &[f32], shape: &[usize]) -> Value {
        self.list("<f4", shape, values.iter().flat_map(|value| value.to_le_bytes()))
    }

    fn f64(&mut self, values: &[f64]) -> Value {
        self.list("<f8", &[values.len()], values.iter().flat_map(|value| value.to_le_bytes()))
    }

    fn u32(&mut self, values: &[u32]) -> Value {
        self.list("<u4", &[values.len()], values.iter().flat_map(|value| value.to_le_bytes()))
    }

    fn list(&mut self, kind: &str, shape: &[usize], bytes: impl Iterator<Item = u8>) -> Value {
        self.listed.push(json!({"kind": kind, "shape": shape}));
        self.bytes.extend(bytes);
        json!({"array": self.listed.len() - 1})
    }
}

/// Writes the document: a line of JSON with the keys of the simulator's result, `emulation`, `decisions` if there is a
/// service, and `arrays`; then the arrays, in order and without gaps. `{"array": N}` stands for the N-th of them.
///
/// # Errors
/// If writing fails.
pub fn write(job: &Job, mut trial: Trial, to: &mut impl Write) -> io::Result<()> {
    let mut arrays = Arrays::default();
    let emulation = emulation(&trial);
    let links = links(&job.config, &mut trial, &mut arrays);
    join(&mut trial);
    let series = series(&job.config, &trial, &mut arrays);
    let mut document = json!({
        "flows": flows(&job.config, &trial),
        "links": links,
        "series": series,
        "emulation": emulation,
        "arrays": arrays.listed,
    });
    if let Some(service) = &job.service {
        let counts = service.counts();
        document["decisions"] = json!({"service": counts.answered, "rule": counts.ruled});
    }
    serde_json::to_writer(&mut *to, &document)?;
    to.write_all(b"\n")?;
    to.write_all(&arrays.bytes)?;
    to.flush()
}

/// Completes the flows' own accounts by what only the network knows.
fn join(trial: &mut Trial) {
    let (carried, data) = (u64::from(trial.packet.carried), u64::from(trial.packet.data));
    for (index, flow) in trial.flows.iter_mut().enumerate() {
        let path = trial.report.flow_stats(index);
        let departed = trial.report.flow_series(index);
        if flow.slots.len() < departed.len() {
            flow.slots.resize(departed.len(), FlowSlot::default());
        }
        let mut within = 0;
        for (entry, departed) in flow.slots.iter_mut().zip(&departed) {
            entry.delivered = departed.delivered * data / carried;
            within += departed.delivered;
        }
        // The links know ahead what leaves after the end.
        let beyond = path.departed_bytes.saturating_sub(within) / carried;
        // What was sent again for nothing has left the queue twice.
        let twice = flow.stats.spurious * data;
        flow.stats.dropped = path.gone;
        flow.stats.departed = path.departed.saturating_sub(beyond);
        flow.stats.delivered_bytes = (within * data / carried).saturating_sub(twice).max(flow.stats.delivered_bytes);
    }
}

fn flows(config: &Config, trial: &Trial) -> Vec<Value> {
    let entry = |(flow, outcome): (&astraea_sim::FlowConfig, &crate::FlowOutcome)| {
        let stats = &outcome.stats;
        let mean = (stats.rtt_count > 0).then(|| stats.rtt_sum as f64 / stats.rtt_count as f64);
        let completions: Vec<(Nanos, Nanos)> = stats.completions.iter().map(|c| (c.start, c.end)).collect();
        json!({
            "start_ns": flow.start_ns,
            "end_ns": outcome.ended_at.unwrap_or(config.duration_ns).min(config.duration_ns),
            "sent_packets": stats.sent,
            "retransmitted_packets": stats.retransmitted,
            "lost_packets": stats.declared_lost,
            "spurious_packets": stats.spurious,
            "timeouts": stats.timeouts,
            "dropped_packets": stats.dropped,
            "departed_packets": stats.departed,
            "delivered_bytes": stats.delivered_bytes,
            "acked_bytes": stats.acked_bytes,
            "rtt_min_ns": stats.rtt_min,
            "rtt_mean_ns": mean,
            "completions": completions,
            "failure": outcome.failure,
        })
    };
    config.flows.iter().zip(&trial.flows).map(entry).collect()
}

fn links(config: &Config, trial: &mut Trial, arrays: &mut Arrays) -> Vec<Value> {
    let (duration, length) = (config.duration_ns, config.slot_ns);
    let slots = duration.div_ceil(length) as usize;
    let mut entries = Vec::with_capacity(config.links.len());
    for (index, link) in config.links.iter().enumerate() {
        let recorded = trial.report.link_series(index);
        let stats = trial.report.link_stats(index).clone();
        let capacity = |from, to| trial.report.capacity_bytes(index, from, to);
        let columns = columns::of_link(&recorded, slots, length, duration, capacity);
        let mean = (stats.served > 0).then(|| stats.wait_sum as f64 / stats.served as f64);
        entries.push(json!({
            "name": link.name,
            "offered_packets": stats.offered,
            "served_packets": stats.served,
            "served_bytes": stats.served_bytes,
            "dropped_packets": stats.dropped,
            "lost_packets": stats.lost,
            "marked_packets": stats.marked,
            "capacity_bytes": capacity(0, duration),
            "queue_delay_mean_ns": mean,
            "queue_delay_p95_ns": stats.waits.quantile(0.95),
            "queue_delay_hist": stats.waits.buckets().collect::<Vec<_>>(),
            "series": {
                "queue_delay": arrays.f32(&columns.queue_delay, &[slots]),
                "served": arrays.f64(&columns.served),
                "dropped": arrays.u32(&columns.dropped),
                "capacity": arrays.f64(&columns.capacity),
            },
        }));
    }
    entries
}

fn series(config: &Config, trial: &Trial, arrays: &mut Arrays) -> Map<String, Value> {
    let slots = config.duration_ns.div_ceil(config.slot_ns) as usize;
    let each = config.flows.iter().zip(&trial.flows).map(|(flow, outcome)| {
        let end = outcome.ended_at.unwrap_or(config.duration_ns);
        FlowSeries::new(&outcome.slots, Some(flow.start_ns), end, config.slot_ns)
    });
    let each: Vec<FlowSeries<'_>> = each.collect();
    let columns = columns::of_flows(&each, slots);
    columns.iter().map(|(name, values)| ((*name).to_owned(), arrays.f32(values, &[each.len(), slots]))).collect()
}

/// How well the links were emulated.
fn emulation(trial: &Trial) -> Value {
    let report = &trial.report;
    let late = |share: f64| report.lateness.quantile(share).map(f64::round);
    json!({
        "problems": trial.problems(),
        "held_up_ns": trial.held_up,
        "lateness_p50_ns": late(0.5),
        "lateness_p99_ns": late(0.99),
        "lateness_p999_ns": late(0.999),
        "device_dropped_packets": report.device_dropped,
        "refused_packets": report.refused,
        "realtime": report.realtime,
        "cpu": report.cpu_ns as f64 / report.elapsed_ns.max(1) as f64,
    })
}
