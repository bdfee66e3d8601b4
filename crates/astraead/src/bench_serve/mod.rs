//! `astraead bench-serve`: a load on the inference service, and what it makes of it.

mod child;
mod flood;
mod load;
mod process;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use astraea_serve::{Address, Key};
use clap::Args;
use serde_json::json;

use crate::failure::{Failure, INTERRUPTED};
use crate::{output, running};
use child::Child;
use flood::Kind;
use load::{Load, Measured};

/// Longest measurement.
const LONGEST: Duration = Duration::from_hours(1);

/// Load an inference service with flows, on this host only, and measure how it answers.
///
/// Without --connect a service is started for the purpose, and ends with it.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The service to load, unix:PATH or udp:HOST:PORT on loopback. [default: one of its own]
    #[arg(long, value_name = "ADDRESS")]
    connect: Option<Address>,
    /// File with the shared key, for a service that has one on UDP.
    #[arg(long, value_name = "FILE", requires = "connect")]
    key: Option<PathBuf>,
    /// Flows.
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    flows: u64,
    /// Connections that they share.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    connections: u64,
    /// Monitoring period, like 30ms; 0: each flow asks again as soon as it is answered.
    #[arg(long, default_value = "30ms", value_parser = duration)]
    period: Duration,
    /// How long to measure, at most an hour; a second before that is not measured.
    #[arg(long, default_value = "10s", value_parser = duration)]
    duration: Duration,
    /// Policy of the service that is started.
    #[arg(long, default_value = "astraea-paper", value_name = "POLICY")]
    policy: String,
    /// Longest wait for a batch of the service that is started, in ms.
    #[arg(long, default_value = "1", value_name = "MS")]
    max_wait: String,
    /// Start the service on UDP instead of a UNIX socket.
    #[arg(long)]
    udp: bool,
    /// Add a peer that sends as fast as it can over a connection of its own.
    #[arg(long, value_name = "KIND", num_args = 0..=1, default_missing_value = "answered")]
    flood: Option<Kind>,
    /// Give the service that is started a processor of its own, and the load the others.
    #[arg(long, conflicts_with = "connect")]
    apart: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A time with its unit.
fn duration(text: &str) -> Result<Duration, String> {
    let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let scale = match &text[end..] {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "" if text == "0" => 0.0,
        _ => return Err("expected a time like 30ms or 10s".to_owned()),
    };
    let seconds: Option<f64> = text[..end].parse().ok().map(|number: f64| number * scale);
    let fits = seconds.filter(|seconds| (0.0..=LONGEST.as_secs_f64()).contains(seconds));
    fits.map(Duration::from_secs_f64).ok_or_else(|| "expected a time from 0 to an hour, like 30ms or 10s".to_owned())
}

/// Measures and prints.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    if let Some(address) = arguments.connect.as_ref().filter(|address| address.is_remote()) {
        return Err(format!("--connect {address}: expected an address of this host").into());
    }
    if arguments.duration.is_zero() {
        return Err("--duration: expected more than 0".into());
    }
    let key = arguments.key.as_deref().map(Key::load).transpose()?;
    let ending = running::ending()?;
    let child = match arguments.connect {
        Some(_) => None,
        None if arguments.apart => Some(process::apart(|| Child::start(arguments))?),
        None => Some(Child::start(arguments)?),
    };
    let address = match (&arguments.connect, &child) {
        (Some(address), _) => address.clone(),
        (None, Some(child)) => child.address().clone(),
        (None, None) => unreachable!("one of them"),
    };
    let load = Load {
        process: child.as_ref().map(Child::process).or_else(|| process::listening(&address)),
        address,
        key,
        flows: arguments.flows as usize,
        connections: (arguments.connections as usize).min(arguments.flows as usize),
        period: arguments.period,
        duration: arguments.duration,
        flood: arguments.flood,
        ending,
    };
    let measured = load.run()?;
    if load.ending.load(Ordering::Relaxed) {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let batch = child.as_ref().and_then(Child::mean_batch);
    let result = result(arguments, &load, &measured, batch);
    if arguments.json {
        output::print(&serde_json::to_string_pretty(&result)?)?;
    } else {
        output::print(&table(&result))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn result(arguments: &Arguments, load: &Load, measured: &Measured, batch: Option<f64>) -> serde_json::Value {
    let seconds = measured.seconds;
    let ms = |quantile: f64| measured.latency.value_at_quantile(quantile) as f64 / 1e6;
    let rate = measured.answered as f64 / seconds;
    let mut result = json!({
        "address": load.address.to_string(),
        "flows": load.flows,
        "connections": load.connections,
        "period_ms": load.period.as_secs_f64() * 1e3,
        "seconds": seconds,
        "decisions": measured.answered,
        "decisions_per_s": rate,
        "fallbacks": measured.ruled,
        "latency_ms": {
            "p50": ms(0.5), "p90": ms(0.9), "p99": ms(0.99), "p999": ms(0.999),
            "max": measured.latency.max() as f64 / 1e6,
        },
    });
    if let Some(usage) = &measured.usage {
        result["cpu_share"] = json!(usage.cpu / seconds);
        result["decisions_per_cpu_s"] = json!(measured.served as f64 / usage.cpu.max(1e-9));
        result["memory_mb"] = json!(usage.memory / 1e6);
        result["memory_peak_mb"] = json!(usage.memory_peak / 1e6);
    }
    if let Some(batch) = batch {
        result["mean_batch"] = json!(batch);
    }
    if arguments.connect.is_none() {
        result["policy"] = json!(arguments.policy);
        result["max_wait_ms"] = json!(arguments.max_wait);
    }
    if let Some(kind) = arguments.flood {
        let kind = format!("{kind:?}").to_lowercase();
        result["flood"] = json!({
            "kind": kind, "sent": measured.flooded.sent, "answered": measured.flooded.answered,
        });
    }
    result
}

fn table(result: &serde_json::Value) -> String {
    let number = |value: &serde_json::Value, digits: usize| {
        value.as_f64().map_or_else(|| "unknown".to_owned(), |number| format!("{number:.digits$}"))
    };
    let latency = &result["latency_ms"];
    let rows = [
        ("decisions/s", number(&result["decisions_per_s"], 0)),
        ("decisions/s per core of the service", number(&result["decisions_per_cpu_s"], 0)),
        ("mean batch", number(&result["mean_batch"], 1)),
        ("latency p50 / p99 / p99.9 / max, ms", {
            ["p50", "p99", "p999", "max"].map(|name| number(&latency[name], 3)).join(" / ")
        }),
        ("answered by the local rule instead", number(&result["fallbacks"], 0)),
        ("CPU of the service, share of a core", number(&result["cpu_share"], 4)),
        ("memory of the service, MB", number(&result["memory_mb"], 1)),
    ];
    rows.map(|(name, value)| format!("{name:<38}{value}")).join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration("30ms"), Ok(Duration::from_millis(30)));
        assert_eq!(duration("1.5s"), Ok(Duration::from_millis(1500)));
        assert_eq!(duration("0"), Ok(Duration::ZERO));
        for wrong in ["30", "ms", "-1s", "2h", "61min", "NaNs", "infs"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
