//! What a service counts, for Prometheus.

use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Transport {
    transport: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Why {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Policy {
    name: String,
    form: &'static str,
    version: String,
}

/// The metrics of a service; clones share them.
#[derive(Clone, Debug)]
pub(super) struct Metrics {
    stream: Counter,
    datagram: Counter,
    dropped: Family<Why, Counter>,
    reloads: Family<Outcome, Counter>,
    policy: Family<Policy, Gauge>,
    pub(super) decisions: Counter,
    pub(super) batch: Histogram,
    pub(super) latency: Histogram,
    flows: Gauge,
    sessions: Gauge,
    connections: Gauge,
    pub(super) busy: Counter<f64, AtomicU64>,
}

impl Metrics {
    /// New metrics, and the registry that shows them.
    pub(super) fn new() -> (Self, Registry) {
        let requests = Family::<Transport, Counter>::default();
        let of = |transport| requests.get_or_create_owned(&Transport { transport });
        let metrics = Self {
            stream: of("unix"),
            datagram: of("udp"),
            dropped: Family::default(),
            reloads: Family::default(),
            policy: Family::default(),
            decisions: Counter::default(),
            batch: Histogram::new([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0]),
            latency: Histogram::new([
                25e-6, 50e-6, 100e-6, 200e-6, 300e-6, 500e-6, 700e-6, 1e-3, 1.5e-3, 2e-3, 3e-3, 5e-3, 10e-3, 30e-3, 0.1,
            ]),
            flows: Gauge::default(),
            sessions: Gauge::default(),
            connections: Gauge::default(),
            busy: Counter::default(),
        };
        let mut registry = Registry::with_prefix("astraea_serve");
        let shown = metrics.clone();
        registry.register("messages", "Messages received, by transport", requests);
        registry.register("decisions", "Decisions sent", shown.decisions);
        registry.register("dropped", "Messages without effect and requests without decision, by reason", shown.dropped);
        registry.register("batch_size", "Decisions evaluated together", shown.batch);
        registry.register(
            "latency_seconds",
            "From the first request of a turn to the answers of the turn: what a request waited, at most",
            shown.latency,
        );
        registry.register("flows", "Flows known", shown.flows);
        registry.register("sessions", "Sessions known", shown.sessions);
        registry.register("connections", "Connections open", shown.connections);
        registry.register("busy_seconds", "Time between requests and answers", shown.busy);
        registry.register("reloads", "Times the policy was read again, by result", shown.reloads);
        registry.register("policy", "1 for the policy that is served", shown.policy);
        (metrics, registry)
    }

    /// Messages came.
    pub(super) fn messages(&self, datagrams: bool, count: u64) {
        if datagrams { &self.datagram } else { &self.stream }.inc_by(count);
    }

    /// Something had no effect.
    pub(super) fn drop(&self, reason: &'static str, count: u64) {
        self.dropped.get_or_create(&Why { reason }).inc_by(count);
    }

    /// The policy was read again.
    pub(super) fn reload(&self, result: &'static str) {
        self.reloads.get_or_create(&Outcome { result }).inc();
    }

    /// So much is known now.
    pub(super) fn know(&self, flows: usize, sessions: usize, connections: usize) {
        for (gauge, count) in [(&self.flows, flows), (&self.sessions, sessions), (&self.connections, connections)] {
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// A policy is served.
    pub(super) fn serve(&self, name: &str, form: &'static str, version: u64) {
        self.policy.clear();
        self.policy.get_or_create(&Policy { name: name.to_owned(), form, version: format!("{version:016x}") }).set(1);
    }
}

/// All metrics as `OpenMetrics` text.
pub(super) fn text(registry: &Registry) -> String {
    let mut text = String::new();
    encode(&mut text, registry).expect("writing to a string cannot fail");
    text
}
