//! Metrics for Prometheus, in its text format.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use astraea_kernel::intf::Counters;
use astraea_kernel::{Attachment, View, layout};
use astraea_serve::page::{Format, Page};

use crate::failure::Failure;
use crate::status::{REASONS, runs};

/// Listens at an address.
pub(crate) fn bind(address: SocketAddr) -> Result<Page, Failure> {
    Page::bind(address).map_err(|error| format!("--metrics {address}: {error}").into())
}

/// Answers scrapers until the process ends.
pub(crate) fn serve(page: Page, attached: &Arc<Attachment>) -> Result<(), Failure> {
    let attached = Arc::clone(attached);
    page.serve(Format::Prometheus, move || text(&attached).map_err(|error| error.to_string()))?;
    Ok(())
}

fn text(attached: &Attachment) -> Result<String, astraea_kernel::Error> {
    let (policy, counters, flows) = (attached.policy()?, attached.counters()?, attached.flows()?);
    let mut text = String::new();
    let labels = format!("policy=\"{}\",hash=\"{:016x}\"", escaped(&layout::name(&policy)), policy.hash);
    writeln!(text, "# HELP astraea_policy_info The policy that runs.\n# TYPE astraea_policy_info gauge")
        .expect("a string");
    writeln!(text, "astraea_policy_info{{{labels}}} 1").expect("a string");
    render(&mut text, &counters, &flows);
    Ok(text)
}

/// A label's value as the exposition format has it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn render(text: &mut String, counters: &Counters, flows: &[View]) {
    let mut metric = |name: &str, kind: &str, help: &str, values: &[(String, f64)]| {
        writeln!(text, "# HELP astraea_{name} {help}\n# TYPE astraea_{name} {kind}").expect("a string");
        for (labels, value) in values {
            writeln!(text, "astraea_{name}{labels} {value}").expect("a string");
        }
    };
    let plain = |value: f64| [(String::new(), value)];
    let c = counters;
    metric("flows", "gauge", "Flows that use the controller.", &plain(flows.len() as f64));
    metric("flows_opened_total", "counter", "Flows so far.", &plain(c.opened as f64));
    metric(
        "flows_without_memory_total",
        "counter",
        "Flows that run CUBIC for want of memory.",
        &plain(c.failed as f64),
    );
    metric("periods_total", "counter", "Monitoring periods.", &plain(c.periods as f64));
    metric("decisions_total", "counter", "Decisions of the policy in the kernel.", &plain(c.decisions as f64));
    metric("decision_seconds_total", "counter", "Time spent on them.", &plain(c.decision_ns as f64 / 1e9));
    metric("actions_total", "counter", "Answers of the agent that were carried out.", &plain(c.actions as f64));
    metric("records_dropped_total", "counter", "Records that found the agent's ring full.", &plain(c.dropped as f64));
    metric("packets_acked_total", "counter", "Packets that arrived.", &plain(c.acked as f64));
    metric("packets_lost_total", "counter", "Packets that TCP gave up.", &plain(c.lost as f64));
    metric("timeouts_total", "counter", "Retransmission timeouts.", &plain(c.timeouts as f64));
    metric("returns_total", "counter", "Changes from CUBIC back to the policy.", &plain(c.returns as f64));
    let by_reason = |count: &dyn Fn(u32) -> f64| -> Vec<(String, f64)> {
        REASONS.map(|reason| (format!("{{reason=\"{}\"}}", runs(reason)), count(reason))).collect()
    };
    metric(
        "fallbacks_total",
        "counter",
        "Changes to CUBIC.",
        &by_reason(&|reason| c.fallbacks[reason as usize] as f64),
    );
    let on_cubic = |reason: u32| flows.iter().filter(|flow| flow.view.reason == reason).count() as f64;
    metric("flows_on_cubic", "gauge", "Flows that run CUBIC now.", &by_reason(&on_cubic));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_any_kind_is_a_label() {
        assert_eq!(escaped("a \"b\"\\c\nd"), r#"a \"b\"\\c\nd"#);
    }

    #[test]
    fn every_counter_has_its_line() {
        let mut counters = *astraea_kernel::intf::zeroed::<Counters>();
        counters.decisions = 7;
        counters.fallbacks[astraea_kernel::intf::REASON_SILENT as usize] = 3;
        let mut text = String::new();
        render(&mut text, &counters, &[]);
        assert!(text.contains("\nastraea_decisions_total 7\n"), "{text}");
        assert!(text.contains("\nastraea_fallbacks_total{reason=\"silent agent\"} 3\n"), "{text}");
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (_, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
}
