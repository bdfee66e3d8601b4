//! One trial: namespaces, emulated links, flows, and what came of them.

use std::io;
use std::net::SocketAddrV4;
use std::sync::atomic::AtomicBool;

use astraea_cc::{MILLISECOND, MSS, Nanos};
use astraea_emu::{DEVICE, Emulator, Report, Route, receiver_address, sender_address};
use astraea_quic::transfer::{DATAGRAM, PAYLOAD};
use astraea_sim::{Config, DelayConfig, FlowConfig, LinkConfig, RateConfig};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::flow::FlowOutcome;
use crate::flows::{Flows, FlowsError, Outcome};
use crate::job::{Job, Schemes};
use crate::plan::{FlowPlan, Plan};
use crate::priority::promptly;
use crate::quic;
use crate::quickack;
use crate::scheme::{self, Chosen};
use crate::socket::READY;

/// Port that the receiver listens on.
pub(crate) const PORT: u16 = 5001;

/// Allowance in ns for what a connection takes beyond its round trip.
const SLACK: Nanos = 5 * MILLISECOND;

/// Rate in bit/s that stands for a link whose rate is not constant when it is about how much data to keep ready.
const SOME_RATE: f64 = 1e8;

/// Parameters of the namespaces: nothing is remembered from one connection to the next, and buffers are never what
/// limits a flow, as the simulator has none.
const PARAMETERS: [(&str, &str); 3] = [
    ("ipv4/tcp_no_metrics_save", "1"),
    ("ipv4/tcp_rmem", "4096 4194304 536870912"),
    ("ipv4/tcp_wmem", "4096 4194304 536870912"),
];

/// Why a trial could not be run.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The kernel has not got a scheme.
    #[error(
        "scheme {name}: this kernel has no congestion control {kernel}; `{fix}` may bring it, or use --backend sim"
    )]
    Scheme {
        /// In `--cc`.
        name: String,
        /// In the kernel.
        kernel: String,
        /// A command.
        fix: &'static str,
    },
    /// The links cannot be emulated.
    #[error(transparent)]
    Emulator(#[from] astraea_emu::Error),
    /// The flows cannot be run.
    #[error(transparent)]
    Flows(#[from] FlowsError),
    /// The kernel refused something else.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The kernel's answer.
        error: io::Error,
    },
}

/// What a trial came to.
pub struct Trial {
    /// Of each flow.
    pub flows: Vec<FlowOutcome>,
    /// Longest time in ns for which the flows were not looked after, of which data kept ready covers 20 ms.
    pub held_up: Nanos,
    /// Of the links.
    pub report: Report,
    /// What a full packet carries.
    pub packet: Payload,
}

impl Trial {
    /// Why the trial is unfaithful, one line for each reason; empty if it can be believed.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = self.report.problems();
        if self.held_up > READY {
            let (ms, ready) = (self.held_up as f64 / 1e6, READY / MILLISECOND);
            problems.push(format!("the flows waited {ms:.1} ms for the processor, expected {ready} ms or less"));
        }
        problems
    }
}

/// Bytes in a full packet.
#[derive(Clone, Copy, Debug)]
pub struct Payload {
    /// What the links count: the payload of TCP or UDP.
    pub carried: u32,
    /// The application's part of it.
    pub data: u32,
}

impl Payload {
    const TCP: Self = Self { carried: MSS, data: MSS };
    const QUIC: Self = Self { carried: DATAGRAM, data: PAYLOAD };
}

/// Whether a trial could be run here and now, as far as can be told without running it.
///
/// # Errors
/// What is missing.
pub fn check(job: &Job) -> Result<(), TrialError> {
    let Schemes::Kernel(schemes) = &job.schemes else { return Ok(()) };
    let available = scheme::available();
    match schemes.iter().find(|scheme| !available.contains(&scheme.kernel)) {
        Some(Chosen { name, kernel, fix, .. }) => {
            Err(TrialError::Scheme { name: name.clone(), kernel: kernel.clone(), fix })
        }
        None => Ok(()),
    }
}

/// Runs a trial; it ends early when `cancel` is set. The calling thread ends up in another network namespace.
///
/// `lateness_limit` in ns is what one packet in a thousand may exceed before the trial counts as unfaithful.
///
/// # Errors
/// What is missing or was refused. A flow that fails is not an error.
pub fn run(job: &Job, seed: u64, lateness_limit: Nanos, cancel: &AtomicBool) -> Result<Trial, TrialError> {
    check(job)?;
    // A flow needs two open files until the trial ends, and the usual limit is 1024.
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
    let config = &job.config;
    let lead = config.flows.iter().map(|flow| lead(job, flow).saturating_sub(flow.start_ns)).max().unwrap_or(0);
    let emulator = Emulator::start(astraea_emu::Config {
        links: config.links.clone(),
        routes: config.flows.iter().map(route).collect(),
        slot_ns: config.slot_ns,
        duration_ns: config.duration_ns,
        lead_ns: lead + SLACK,
        seed,
        lateness_limit_ns: lateness_limit,
        prompt: true,
        ..astraea_emu::Config::default()
    })?;
    let (flows, held_up, packet) = match &job.schemes {
        Schemes::Kernel(schemes) => {
            let Outcome { flows, held_up } = tcp(job, schemes, seed, &emulator, cancel)?;
            (flows, held_up, Payload::TCP)
        }
        Schemes::Quic(schemes) => {
            let flows = quic::run(job, schemes, seed, &emulator, cancel).map_err(system("QUIC connections"))?;
            (flows, 0, Payload::QUIC)
        }
    };
    Ok(Trial { flows, held_up, report: emulator.stop(), packet })
}

/// Runs the flows as TCP connections. The calling thread ends up in the senders' network namespace.
fn tcp(
    job: &Job,
    schemes: &[Chosen],
    seed: u64,
    emulator: &Emulator,
    cancel: &AtomicBool,
) -> Result<Outcome, TrialError> {
    for namespace in [emulator.senders(), emulator.receivers()] {
        for (key, value) in PARAMETERS {
            namespace.sysctl(key, value)?;
        }
    }
    emulator.receivers().enter().map_err(system("entering a network namespace"))?;
    let prompt = job.config.flows.iter().enumerate().filter(|(_, flow)| flow.ack.every == 1);
    quickack::towards(prompt.map(|(index, _)| sender_address(index)), DEVICE)
        .map_err(system("routes to the senders"))?;
    let flows = Flows::listen(plan(job, schemes, seed))?;
    promptly();
    emulator.senders().enter().map_err(system("entering a network namespace"))?;
    Ok(flows.run(emulator.epoch(), cancel)?)
}

/// How long before its start a flow connects.
fn lead(job: &Job, flow: &FlowConfig) -> Nanos {
    let (out, back) = one_way_delays(&job.config, flow);
    match job.schemes {
        Schemes::Kernel(_) => out + back + SLACK / 2,
        Schemes::Quic(_) => quic::lead(out + back),
    }
}

fn system(what: &'static str) -> impl Fn(io::Error) -> TrialError {
    move |error| TrialError::System { what, error }
}

fn route(flow: &FlowConfig) -> Route {
    Route { path: flow.path.clone(), return_path: flow.return_path.clone(), extra_delay_ns: flow.extra_delay_ns }
}

/// What the two ends have to do. All flows go to one listener, at the address of the first flow's receiver.
fn plan(job: &Job, schemes: &[Chosen], seed: u64) -> Plan {
    let config = &job.config;
    let flows = config.flows.iter().zip(schemes).enumerate().map(|(index, (flow, scheme))| {
        let (_, back) = one_way_delays(config, flow);
        FlowPlan {
            scheme: scheme.clone(),
            from: sender_address(index),
            to: None,
            start: flow.start_ns,
            stop: flow.stop_ns,
            lead: lead(job, flow),
            way_back: back,
            rate: flow.path.iter().map(|link| rate(&config.links[*link])).fold(f64::INFINITY, f64::min),
            source: flow.source.clone(),
            ecn: flow.ecn,
        }
    });
    Plan {
        duration: config.duration_ns,
        slot: config.slot_ns,
        seed,
        receiver: SocketAddrV4::new(receiver_address(0), PORT),
        flows: flows.collect(),
    }
}

fn rate(link: &LinkConfig) -> f64 {
    match link.rate {
        RateConfig::Constant(rate) => rate,
        _ => SOME_RATE,
    }
}

/// Delays in ns of a flow's ways out and back at its start, on idle links.
pub(crate) fn one_way_delays(config: &Config, flow: &FlowConfig) -> (Nanos, Nanos) {
    let of = |path: &[usize]| -> Nanos {
        path.iter().map(|link| propagation(&config.links[*link].delay, flow.start_ns)).sum()
    };
    let out = of(&flow.path);
    let back = if flow.return_path.is_empty() { out } else { of(&flow.return_path) };
    (out + flow.extra_delay_ns, back + flow.extra_delay_ns)
}

fn propagation(delay: &DelayConfig, at: Nanos) -> Nanos {
    match delay {
        DelayConfig::Constant(delay) => *delay,
        DelayConfig::Schedule(steps) => {
            steps.iter().take_while(|(from, _)| *from <= at).last().map_or(0, |(_, delay)| *delay)
        }
    }
}
