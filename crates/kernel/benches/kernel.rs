//! What the controller costs on this machine, as JSON: `cargo bench -p astraea-kernel -- [decision|attach|cpu|many] …`.
//!
//! Needs root, and two processors for `cpu` and `many`. Nothing else should run meanwhile.

#[path = "../tests/support/mod.rs"]
mod support;

use std::io::Write as _;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use astraea_kernel::intf::{self, PROBE_DECIDE, Probe};
use astraea_kernel::probe::Prober;
use astraea_kernel::{Attachment, Decider, layout};
use astraea_policy::fixed::calibration;
use astraea_policy::{Activation, FixedNetwork, Form, Layer, Metadata, Network, Policy};
use serde_json::{Value, json};

use support::{Flow, Own, cannot_run, link, shipped, shipped_policy};

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
    let shapes: [(&str, Policy); 5] = [
        ("astraea 25-64-32-1", shipped_policy("astraea")),
        ("small 25-32-16-1", sized(&[25, 32, 16, 1])),
        ("full 25-256-128-64-1", sized(&[25, 256, 128, 64, 1])),
        ("astraea-pure 40-128-64-1, wide", shipped_policy("astraea-pure")),
        ("astraea-paper 40-256-128-64-1, wide", shipped_policy("astraea-paper")),
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

/// The processor that is the sending host's alone; the links and the receivers have the other.
const SENDING: usize = 0;
const OTHER: usize = 1;

/// What a scheme's flows cost the sending host.
#[derive(Clone, Copy)]
struct Load {
    flows: usize,
    rate: f64,
    delay: Duration,
    /// Flows leave slow start before what they cost is counted.
    warm_up: Duration,
    counted: Duration,
}

impl Load {
    /// Seconds of the sending host's processor for each gigabyte.
    fn measure(self, scheme: &str) -> f64 {
        host::keep_to(OTHER);
        let buffer = (self.rate / 8.0 * 2.0 * self.delay.as_secs_f64()) as u64;
        let emulator = link(self.rate, self.delay, buffer, self.flows);
        emulator.senders().run(|| host::receive_on(SENDING)).expect("packets can be steered");
        let stop = self.warm_up + self.counted + Duration::from_millis(200);
        let prepare = || host::keep_to(SENDING);
        let start = |index| Flow::prepared(&emulator, index, scheme, Duration::ZERO, stop, prepare);
        let flows: Vec<_> = (0..self.flows).map(start).collect();
        let received = || flows.iter().map(|flow| flow.received.load(Ordering::Relaxed)).sum::<u64>();
        std::thread::sleep(self.warm_up);
        let (before, idle, begin) = (received(), host::idle(SENDING), Instant::now());
        std::thread::sleep(self.counted);
        let (after, busy) = (received(), begin.elapsed().as_secs_f64() - (host::idle(SENDING) - idle));
        for flow in flows {
            flow.finish().expect("the connection is not reset");
        }
        busy / ((after - before) as f64 / 1e9)
    }

    /// A policy and CUBIC in turns. The least of each is compared, since other work only ever adds.
    fn against_cubic(self, name: &str, rounds: usize) -> Value {
        let mut seconds = [vec![], vec![]];
        for _ in 0..rounds {
            for (scheme, seconds) in ["cubic", name].into_iter().zip(&mut seconds) {
                seconds.push(self.measure(scheme));
            }
        }
        let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
        let (cubic, astraea) = (least(&seconds[0]), least(&seconds[1]));
        json!({"cubic_s_per_GB": cubic, "astraea_s_per_GB": astraea, "ratio": astraea / cubic, "rounds": seconds})
    }
}

fn seconds(variable: &str, default: u64) -> Duration {
    Duration::from_secs(std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default))
}

/// A controller beside CUBIC: what it costs the sending host, and how often it decided.
fn cost(load: Load, rounds: usize) -> Value {
    let own = Own::new();
    let attached = own.attach("astraea");
    let cost = load.against_cubic(own.name(), rounds);
    let counters = attached.counters().expect("they are read");
    json!({"cost": cost, "decisions": counters.decisions, "periods": counters.periods, "flows_without_memory": counters.failed})
}

/// One flow over 100 Mbit/s and 30 ms.
fn cpu() -> Value {
    let (rate, delay, counted) = (1e8, Duration::from_millis(15), seconds("SECONDS", 30));
    cost(Load { flows: 1, rate, delay, warm_up: Duration::from_secs(3), counted }, 3)
}

/// A thousand flows over 500 Mbit/s and 100 ms, four packets each.
fn many() -> Value {
    let (rate, delay, counted) = (5e8, Duration::from_millis(50), seconds("SECONDS", 15));
    cost(Load { flows: 1000, rate, delay, warm_up: Duration::from_secs(6), counted }, 3)
}

/// One machine as two hosts: a processor for the senders' connections, another for everything else.
mod host {
    use std::io;

    /// Keeps this thread, and those that it starts from now on, to a processor.
    pub(crate) fn keep_to(processor: usize) {
        // SAFETY: the set is plain and as long as is said; 0 is this thread.
        let code = unsafe {
            let mut set: libc::cpu_set_t = std::mem::zeroed();
            libc::CPU_SET(processor, &mut set);
            libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
        };
        assert_eq!(code, 0, "two processors are needed");
    }

    /// Lets a processor receive the packets of this thread's network namespace, which another one brings.
    pub(crate) fn receive_on(processor: usize) -> io::Result<()> {
        let folder = std::env::temp_dir().join(format!("astraea-sys-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let path = std::ffi::CString::new(folder.as_os_str().as_encoded_bytes())?;
        // SAFETY: all strings end in a zero; no data is passed. The view of a namespace's devices is mounted for a moment.
        let mounted = unsafe { libc::mount(c"sysfs".as_ptr(), path.as_ptr(), c"sysfs".as_ptr(), 0, std::ptr::null()) };
        let queue = folder.join("class/net").join(astraea_emu::DEVICE).join("queues/rx-0/rps_cpus");
        let written = std::fs::write(queue, format!("{:x}", 1 << processor));
        if mounted == 0 {
            // SAFETY: as above.
            unsafe { libc::umount2(path.as_ptr(), libc::MNT_DETACH) };
        }
        std::fs::remove_dir(&folder)?;
        written
    }

    /// Seconds that a processor has been idle so far: the one figure of /proc/stat that is not counted in ticks.
    pub(crate) fn idle(processor: usize) -> f64 {
        let text = std::fs::read_to_string("/proc/stat").expect("Linux has it");
        let name = format!("cpu{processor} ");
        let line = text.lines().find(|line| line.starts_with(&name)).expect("a line for each processor");
        let fields: Vec<f64> = line.split_whitespace().skip(1).flat_map(str::parse).collect();
        // user, nice, system, idle, iowait
        (fields[3] + fields[4]) / 100.0
    }
}
