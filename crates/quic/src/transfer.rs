//! Transfers over s2n-quic whose traffic is recorded, for trials on emulated links.
//!
//! Every flow is a connection of its own, between two sockets that the caller has made: where they are bound, in which
//! network namespace and to which address, decides the path. The sender writes one stream of known content, which the
//! receiver compares; both ends live in this process, on two threads.
//!
//! Packets fill a path of 1500 bytes: 1472 bytes of UDP payload, of which [`PAYLOAD`] are the application's, while TCP
//! with timestamps carries 1448.

mod endpoint;
mod flow;
mod pattern;
mod precise;
mod probe;

use std::io;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use astraea_cc::Nanos;
use astraea_sim::{AckConfig, FlowSlot, FlowStats, SourceConfig};

use nix::time::{ClockId, clock_gettime};

use crate::Scheme;
use endpoint::Identity;
use flow::{Record, receive, send};

/// UDP payload of a full packet: 1500 bytes less IPv4 and UDP headers.
pub const DATAGRAM: u32 = 1472;

/// Application data in it, less short header (1), connection identifier (4), packet number (2), tag (16), and type,
/// stream and offset of the one frame inside (6; RFC 9000 §17.3, §19.8, RFC 9001 §5.3).
pub const PAYLOAD: u32 = 1443;

/// Longest wait before the cancel flag is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// One flow. Times in ns since the trial began.
#[derive(Debug)]
pub struct FlowPlan {
    /// Its congestion control.
    pub scheme: Scheme,
    /// Bound to the address that it sends from.
    pub sender: UdpSocket,
    /// Bound to the address that it sends to; no other flow has the same.
    pub receiver: UdpSocket,
    /// When it has data.
    pub start: Nanos,
    /// When it stops sending; `None` for the end of the trial.
    pub stop: Option<Nanos>,
    /// How long before its start it connects.
    pub lead: Nanos,
    /// How long an acknowledgement travels on an idle path.
    pub way_back: Nanos,
    /// Where its data comes from.
    pub source: SourceConfig,
    /// How its receiver acknowledges; only `every` and `timeout_ns` have an effect.
    pub ack: AckConfig,
    /// Whether its packets are ECN-capable.
    pub ecn: bool,
}

/// All flows of a trial.
#[derive(Debug)]
pub struct Plan {
    /// Length of the trial in ns.
    pub duration: Nanos,
    /// Length of a recording slot in ns.
    pub slot: Nanos,
    /// Seed of everything that is random.
    pub seed: u64,
    /// The flows.
    pub flows: Vec<FlowPlan>,
    /// What each of the two threads does first, for example raise its priority.
    pub on_thread: fn(),
}

/// How the life of a flow went.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Counters; what only the network knows is zero.
    pub stats: FlowStats,
    /// When it ended, if before the trial did.
    pub ended_at: Option<Nanos>,
    /// What went wrong, in one line.
    pub failure: Option<String>,
    /// Series by slot, up to the last in which something happened; windows in bytes of the simulator's segments.
    pub slots: Vec<FlowSlot>,
}

/// What a trial came to.
#[derive(Clone, Debug)]
pub struct Report {
    /// Of each flow.
    pub flows: Vec<Outcome>,
    /// CPU time in ns of the thread with all senders, the kernel's work for it included.
    pub sender_cpu: Nanos,
    /// The same for the receivers.
    pub receiver_cpu: Nanos,
}

/// When a trial began, and how far it is.
#[derive(Clone, Copy, Debug)]
struct Clock {
    zero: Instant,
}

impl Clock {
    /// ns since the trial began, 0 before.
    fn now(self) -> Nanos {
        self.zero.elapsed().as_nanos() as Nanos
    }

    /// Whether that time of the trial has come.
    fn is_after(self, ns: Nanos) -> bool {
        Instant::now() >= self.zero + Duration::from_nanos(ns)
    }

    /// The time `ns` after the beginning, or before it by `lead`.
    fn at(self, ns: Nanos, lead: Nanos) -> tokio::time::Instant {
        let time = self.zero + Duration::from_nanos(ns);
        time.checked_sub(Duration::from_nanos(lead)).unwrap_or(time).into()
    }
}

/// Runs the flows of a trial that begins at `zero`, until its end or until `cancel` is set.
///
/// # Errors
/// If threads or sockets are refused. A flow that fails is not an error; its outcome says so.
pub fn run(plan: Plan, zero: Instant, cancel: &AtomicBool) -> io::Result<Report> {
    let clock = Clock { zero };
    let end = clock.at(plan.duration, 0);
    let on_thread = plan.on_thread;
    let identity = Identity::new()?;
    let ends: Vec<_> = plan
        .flows
        .into_iter()
        .enumerate()
        .map(|(index, flow)| {
            let rng = astraea_sim::source::generator(plan.seed, index);
            let record = Record::new(flow.source.clone(), plan.slot, plan.duration, rng);
            (Arc::new(flow), Arc::new(Mutex::new(record)))
        })
        .collect();
    // Receivers listen before anyone connects.
    let (ready, listening) = std::sync::mpsc::channel::<()>();
    let (sender_cpu, receiver_cpu) = std::thread::scope(|scope| {
        let receivers = scope.spawn(|| {
            on_thread();
            on_a_runtime(end, cancel, || {
                let tasks: io::Result<Vec<_>> = ends
                    .iter()
                    .map(|(flow, record)| {
                        let server = endpoint::server(flow, &identity)?;
                        Ok(receive(server, flow.clone(), record.clone(), clock))
                    })
                    .collect();
                drop(ready);
                tasks
            })
        });
        let _ = listening.recv();
        let senders = scope.spawn(|| {
            on_thread();
            on_a_runtime(end, cancel, || {
                let start = |(flow, record): &(Arc<FlowPlan>, Arc<Mutex<Record>>)| {
                    let client = endpoint::client(flow, &identity, record, clock)?;
                    Ok(send(client, flow.clone(), record.clone(), clock))
                };
                ends.iter().map(start).collect()
            })
        });
        let [senders, receivers] =
            [senders, receivers].map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        io::Result::Ok((senders?, receivers?))
    })?;
    let now = clock.now();
    let flows = ends.iter().map(|(flow, record)| flow::lock(record).outcome(flow.start, now)).collect();
    Ok(Report { flows, sender_cpu, receiver_cpu })
}

/// Runs the tasks that `start` makes on this thread, until `end` or until `cancel` is set; returns the thread's CPU
/// time in ns.
fn on_a_runtime<T: Future<Output = ()> + 'static>(
    end: tokio::time::Instant,
    cancel: &AtomicBool,
    start: impl FnOnce() -> io::Result<Vec<T>>,
) -> io::Result<Nanos> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    let ran = runtime.block_on(local.run_until(async {
        let _tasks: Vec<_> = start()?.into_iter().map(tokio::task::spawn_local).collect();
        while !cancel.load(Ordering::Relaxed) && tokio::time::Instant::now() < end {
            tokio::time::sleep_until(end.min(tokio::time::Instant::now() + LOOK_EVERY)).await;
        }
        Ok(())
    }));
    drop(local);
    runtime.shutdown_background();
    let cpu = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    ran.map(|()| Duration::from(cpu).as_nanos() as Nanos)
}
