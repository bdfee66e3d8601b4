//! `astraea status`: what the controller in the kernel does.

use std::process::ExitCode;
use std::time::Duration;

use astraea_kernel::{Attachment, View, intf, layout};
use clap::Args;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::{attach, output};

/// What a flow runs, by the kernel's number of the reason: the policy, or CUBIC for some reason.
pub(crate) fn runs(reason: u32) -> &'static str {
    match reason {
        intf::REASON_NONE => "policy",
        intf::REASON_NO_POLICY => "no policy",
        intf::REASON_MISMATCH => "mismatch",
        intf::REASON_DETACHED => "detached",
        intf::REASON_SILENT => "silent agent",
        intf::REASON_OUTSIDE => "outside domain",
        _ => "unknown",
    }
}

/// The reasons why a flow runs CUBIC.
pub(crate) const REASONS: std::ops::Range<u32> = intf::REASON_NONE + 1..intf::REASONS;

/// Time over which rates are taken.
const INTERVAL: Duration = Duration::from_millis(500);

/// Show the policy that runs, flows, decisions and changes to CUBIC
#[derive(Args)]
pub(crate) struct Arguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Name by which sockets choose the controller
    #[arg(long, default_value = "astraea", hide = true)]
    name: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let attached = Attachment::open(&attach::place(&arguments.name))?;
    let before = attached.counters()?;
    std::thread::sleep(INTERVAL);
    let status = status(&attached, &before)?;
    if arguments.json {
        output::print(&format!("{status:#}"))?;
    } else {
        output::print(&table(&status))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn status(attached: &Attachment, before: &intf::Counters) -> Result<Value, Failure> {
    let (policy, now, flows) = (attached.policy()?, attached.counters()?, attached.flows()?);
    let per_second = |count: u64| count as f64 / INTERVAL.as_secs_f64();
    let mean = |total: u64, count: u64| total.checked_div(count).map_or(Value::Null, Value::from);
    let fallbacks: serde_json::Map<_, _> =
        REASONS.map(|reason| (runs(reason).to_owned(), json!(now.fallbacks[reason as usize]))).collect();
    Ok(json!({
        "name": attached.place().name,
        "version": env!("CARGO_PKG_VERSION"),
        "policy": {
            "name": layout::name(&policy),
            "hash": format!("{:016x}", policy.hash),
            "shape": layout::shape(&policy),
        },
        "mode": attached.decider()?.name(),
        "decisions": now.decisions,
        "decisions_per_s": per_second(now.decisions - before.decisions),
        "decision_ns": mean(now.decision_ns, now.decisions),
        "decision_ns_max": now.decision_ns_max,
        "actions": now.actions,
        "records_dropped": now.dropped,
        "flows_opened": now.opened,
        "flows_without_memory": now.failed,
        "timeouts": now.timeouts,
        "packets_acked": now.acked,
        "packets_lost": now.lost,
        "fallbacks": fallbacks,
        "returns": now.returns,
        "flows": flows.iter().map(flow).collect::<Vec<_>>(),
    }))
}

fn flow(flow: &View) -> Value {
    let v = &flow.view;
    let packets_per_s = v.rate as f64 / 65536.0;
    json!({
        "id": v.flow,
        "local_port": flow.local_port,
        "peer": std::net::SocketAddr::from(flow.peer).to_string(),
        "runs": runs(v.reason),
        "window_packets": v.window as f64 / f64::from(1 << 20),
        "rate_packets_per_s": packets_per_s,
        "srtt_ms": v.srtt as f64 / 1e6,
        "base_rtt_ms": v.base as f64 / 1e6,
        "packets_acked": v.acked,
        "packets_lost": v.lost,
        "decisions": v.decisions,
    })
}

fn table(status: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let number = |value: &Value| format!("{:.1}", value.as_f64().unwrap_or(0.0));
    let policy = &status["policy"];
    let mut lines = vec![
        format!("{} {}, decided {}", text(&status["name"]), text(&status["version"]), text(&status["mode"])),
        format!("policy     {} {} ({})", text(&policy["name"]), text(&policy["shape"]), text(&policy["hash"])),
        format!(
            "decisions  {} ({}/s), {} ns each",
            status["decisions"],
            number(&status["decisions_per_s"]),
            status["decision_ns"].as_u64().map_or("-".to_owned(), |ns| ns.to_string())
        ),
    ];
    let fallbacks = status["fallbacks"].as_object().into_iter().flatten();
    let counted: Vec<_> =
        fallbacks.filter(|(_, count)| **count != json!(0)).map(|(name, n)| format!("{name} {n}")).collect();
    let counted = if counted.is_empty() { "none".to_owned() } else { counted.join(", ") };
    lines.push(format!("fallbacks  {counted}; back {}", status["returns"]));
    lines.push(format!(
        "packets    {} arrived, {} lost ({}), {} timeouts",
        status["packets_acked"],
        status["packets_lost"],
        lost(status),
        status["timeouts"]
    ));
    let flows: Vec<_> = status["flows"].as_array().into_iter().flatten().collect();
    lines.push(format!("flows      {} ({} so far)", flows.len(), status["flows_opened"]));
    if !flows.is_empty() {
        lines.push(format!(
            "{:>8} {:<28} {:<14} {:>9} {:>10} {:>9} {:>9} {:>7}",
            "id", "peer", "runs", "window", "packets/s", "srtt ms", "base ms", "lost"
        ));
    }
    for flow in flows {
        lines.push(format!(
            "{:>8} {:<28} {:<14} {:>9} {:>10} {:>9} {:>9} {:>7}",
            text(&flow["id"]),
            text(&flow["peer"]),
            text(&flow["runs"]),
            number(&flow["window_packets"]),
            number(&flow["rate_packets_per_s"]),
            number(&flow["srtt_ms"]),
            number(&flow["base_rtt_ms"]),
            lost(flow)
        ));
    }
    lines.join("\n") + "\n"
}

/// The share of packets that were lost of those whose fate is known; a dash if there is none.
fn lost(of: &Value) -> String {
    let (acked, lost) = (of["packets_acked"].as_f64().unwrap_or(0.0), of["packets_lost"].as_f64().unwrap_or(0.0));
    if acked + lost == 0.0 { "-".to_owned() } else { format!("{:.2}%", 100.0 * lost / (acked + lost)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_of_the_kernel_has_a_name() {
        let names: Vec<_> = REASONS.map(runs).collect();
        assert_eq!(names, ["no policy", "mismatch", "detached", "silent agent", "outside domain"]);
        assert_eq!((runs(intf::REASON_NONE), runs(intf::REASONS)), ("policy", "unknown"));
    }
}
