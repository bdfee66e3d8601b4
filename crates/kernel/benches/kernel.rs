//! What the controller costs on this machine, as JSON: `cargo bench -p astraea-kernel -- [decision|attach|cpu|many] …`.
//!
//! Needs root. Nothing else should run meanwhile; processor time is that of the whole machine.

#[path = "../tests/support/mod.rs"]
mod support;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use astraea_kernel::intf::{self, PROBE_DECIDE, Probe};
use astraea_kernel::probe::Prober;
use astraea_kernel::{Attachment, Decider, layout};
use astraea_policy::fixed::calibration;
use astraea_policy::{Activation, FixedNetwork, Form, Layer, Metadata, Network, Policy};
use serde_json::{Value, json};

use support::{Flow, Own, cannot_run, link, shipped, shipped_policy, socket};

/// One group of figures.
type Measure = fn() -> Value;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let all: [(&str, Measure); 4] = [("decision", decision), ("attach", attach), ("cpu", cpu), ("many", many)];
    if cannot_run() {
        return;
    }
    let mut results = serde_json::Map::new();
    for (name, measure) in all {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            results.insert(name.to_owned(), measure());
        }
    }
    let _ = writeln!(std::io::stdout(), "{:#}", Value::from(results));
}

/// Sorted values as their median, 99th percentile and smallest.
fn summary(mut values: Vec<f64>) -> Value {
    values.sort_by(f64::total_cmp);
    json!({"least": values[0], "median": values[values.len() / 2], "p99": values[values.len() * 99 / 100]})
}

/// A network of these sizes for the state of the default policy.
fn sized(sizes: &[usize]) -> Policy {
    let layer = |pair: &[usize]| {
        let weights = (0..pair[0] * pair[1]).map(|index| (index as f32 * 0.37).sin() / (pair[0] as f32).sqrt());
        Layer { inputs: pair[0], weights: weights.collect(), bias: vec![0.1; pair[1]] }
    };
    let network = Network::new(sizes.windows(2).map(layer).collect(), Activation::Relu).expect("a network");
    let metadata = Metadata { form: Form::Guided, alpha: 0.04, period: 30_000_000, notes: [].into() };
    Policy::new(network, metadata).expect("a policy")
}

/// Time of one answer of the network in the kernel, in µs, and of a whole period with measuring, law and rules.
fn decision() -> Value {
    let shapes: [(&str, Policy); 3] = [
        ("astraea 25-64-32-1", shipped_policy("astraea")),
        ("small 25-32-16-1", sized(&[25, 32, 16, 1])),
        ("full 25-256-128-64-1", sized(&[25, 256, 128, 64, 1])),
    ];
    let mut results = serde_json::Map::new();
    for (name, policy) in shapes {
        let form = policy.metadata().form;
        let fixed = FixedNetwork::new(policy.network(), form);
        let laid = layout::policy(&policy, 0).expect("it fits");
        let mut prober = Prober::new(&laid).expect("the program loads");
        let ask = |now: u64, index: u64| {
            let mut probe = *intf::zeroed::<Probe>();
            (probe.kind, probe.now) = (PROBE_DECIDE, now);
            let state = fixed.state(&calibration(form, index));
            probe.state[..state.len()].copy_from_slice(&state);
            probe
        };
        let mut network: Vec<_> = (0..20_000).map(|index| ask(0, index)).collect();
        prober.feed(&mut network).expect("it runs");
        let mut begin = *intf::zeroed::<Probe>();
        (begin.kind, begin.now, begin.value, begin.acked) = (intf::PROBE_BEGIN, 1_000_000, 200 << 20, 1448);
        let mut loss = begin;
        (loss.kind, loss.value) = (intf::PROBE_LOSS, 100);
        let mut events = vec![begin, loss];
        for period in 1..10_000_u64 {
            let now = 1_000_000 + 30_000_000 * period;
            let mut ack = *intf::zeroed::<Probe>();
            (ack.kind, ack.now, ack.acked, ack.used) = (intf::PROBE_ACK, now - 1, 250, 250);
            (ack.rtt, ack.srtt) = (33_000_000 + period % 7 * 100_000, 33_000_000);
            (ack.delivered, ack.prior_delivered) = (250 * period as u32, 250 * period as u32 - 250);
            events.extend([ack, ask(now, period)]);
        }
        prober.feed(&mut events).expect("it runs");
        let micros = |events: &[Probe], kind: u32| {
            summary(events.iter().filter(|event| event.kind == kind).map(|event| event.ns as f64 / 1e3).collect())
        };
        results.insert(
            name.to_owned(),
            json!({
                "network_us": micros(&network, PROBE_DECIDE),
                "period_us": micros(&events, PROBE_DECIDE),
                "acknowledgement_us": micros(&events, intf::PROBE_ACK),
            }),
        );
    }
    let prober = Prober::new(&shipped("astraea")).expect("the program loads");
    let costs = prober.costs().expect("the kernel tells");
    let costs: Vec<_> = costs.iter().map(|c| json!({"name": c.name, "size": c.size, "verified": c.verified})).collect();
    results.insert("verifier".to_owned(), costs.into());
    results.into()
}

/// Time to lay out a policy, to load and register it, and to detach it again, in ms.
fn attach() -> Value {
    let own = Own::new();
    let policy = shipped_policy("astraea");
    let (mut lay, mut load, mut detach) = (vec![], vec![], vec![]);
    for _ in 0..20 {
        let step = |times: &mut Vec<f64>, work: &mut dyn FnMut()| {
            let start = Instant::now();
            work();
            times.push(start.elapsed().as_secs_f64() * 1e3);
        };
        let mut laid = None;
        step(&mut lay, &mut || laid = Some(layout::policy(&policy, 1).expect("it fits")));
        let laid = laid.expect("laid out above");
        step(&mut load, &mut || drop(Attachment::attach(&own.place, &laid, Decider::Kernel).expect("it attaches")));
        step(&mut detach, &mut || Attachment::detach(&own.place).expect("it detaches"));
    }
    json!({"quantise_ms": summary(lay), "attach_ms": summary(load), "detach_ms": summary(detach)})
}

/// Seconds that the processors were busy so far.
fn busy() -> f64 {
    let text = std::fs::read_to_string("/proc/stat").expect("Linux has it");
    let fields: Vec<f64> =
        text.lines().next().expect("all processors").split_whitespace().skip(1).flat_map(str::parse).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal
    (fields[0] + fields[1] + fields[2] + fields[5] + fields[6]) / 100.0
}

/// Runs work of a scheme and of CUBIC in turns and compares the busy time per byte.
fn against_cubic(name: &str, rounds: usize, mut work: impl FnMut(&str) -> u64) -> Value {
    let mut seconds = [vec![], vec![]];
    for _ in 0..rounds {
        for (scheme, seconds) in ["cubic", name].into_iter().zip(&mut seconds) {
            let before = busy();
            let bytes = work(scheme);
            seconds.push((busy() - before) / (bytes as f64 / 1e9));
        }
    }
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let (cubic, astraea) = (least(&seconds[0]), least(&seconds[1]));
    json!({"cubic_s_per_GB": cubic, "astraea_s_per_GB": astraea, "ratio": astraea / cubic, "rounds": seconds})
}

fn seconds(variable: &str, default: u64) -> Duration {
    Duration::from_secs(std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default))
}

/// One flow over 100 Mbit/s and 30 ms: emulator and receiver are in the busy time of both schemes.
fn cpu() -> Value {
    let own = Own::new();
    let attached = own.attach("astraea");
    let result = against_cubic(own.name(), 3, |scheme| {
        let emulator = link(1e8, Duration::from_millis(15), 375_000, 1);
        let flow = Flow::start(&emulator, 0, scheme, Duration::ZERO, seconds("SECONDS", 20));
        flow.finish().expect("the connection is not reset").0
    });
    drop(attached);
    result
}

/// A thousand flows over loopback, 1 Mbit/s each, driven by the program although loopback is outside the domain. They are
/// limited by the application, so most stay in slow start and the network is rarely asked.
fn many() -> Value {
    const FLOWS: usize = 1000;
    let own = Own::new();
    let mut policy = shipped("astraea");
    (policy.domain.rtt_min, policy.domain.rate_max) = (0, u64::MAX);
    let attached = Attachment::attach(&own.place, &policy, Decider::Kernel).expect("it attaches");
    let run = |scheme: &str| {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = listener.local_addr().expect("bound");
        let pairs: Vec<(TcpStream, TcpStream)> = (0..FLOWS)
            .map(|_| {
                let sender = socket(to, scheme).and_then(|socket| socket.connect(None, to)).expect("a connection");
                (sender, listener.accept().expect("the other end").0)
            })
            .collect();
        let data = vec![1; 12_500];
        let mut buffer = vec![0; 1 << 16];
        let (start, length, mut bytes) = (Instant::now(), seconds("SECONDS", 10), 0);
        let mut tick = 0_u32;
        while start.elapsed() < length {
            for (mut sender, mut receiver) in pairs.iter().map(|(sender, receiver)| (sender, receiver)) {
                sender.write_all(&data).expect("room");
                let mut left = data.len();
                while left > 0 {
                    left -= receiver.read(&mut buffer).expect("data");
                }
                bytes += data.len() as u64;
            }
            tick += 1;
            std::thread::sleep((start + tick * Duration::from_millis(100)).saturating_duration_since(Instant::now()));
        }
        bytes
    };
    let result = against_cubic(own.name(), 3, run);
    let counters = attached.counters().expect("they are read");
    json!({"cost": result, "decisions": counters.decisions, "flows_without_memory": counters.failed})
}
