//! The flows of a trial as QUIC connections.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use astraea_cc::{MILLISECOND, Nanos};
use astraea_emu::{Emulator, Namespace, monotonic, receiver_address, sender_address};
use astraea_quic::Scheme;
use astraea_quic::transfer::{self, FlowPlan, Outcome, Plan};

use crate::flow::FlowOutcome;
use crate::job::Job;
use crate::priority::promptly;
use crate::trial::{PORT, one_way_delays};

/// Allowance in ns for the processor's part of a handshake, with many connections at once.
const HANDSHAKE: Nanos = 100 * MILLISECOND;

/// How long before its start a flow connects, on a path with that idle round trip: the first flight must be back, and
/// the end of the handshake acknowledged.
pub(crate) fn lead(round_trip: Nanos) -> Nanos {
    2 * round_trip + HANDSHAKE
}

/// Runs the flows between the namespaces of an emulation.
pub(crate) fn run(
    job: &Job,
    schemes: &[Scheme],
    seed: u64,
    emulator: &Emulator,
    cancel: &AtomicBool,
) -> io::Result<Vec<FlowOutcome>> {
    let config = &job.config;
    let mut flows = Vec::with_capacity(schemes.len());
    for (index, (flow, scheme)) in config.flows.iter().zip(schemes).enumerate() {
        let (out, back) = one_way_delays(config, flow);
        flows.push(FlowPlan {
            scheme: scheme.clone(),
            sender: bind(emulator.senders(), sender_address(index), 0)?,
            receiver: bind(emulator.receivers(), receiver_address(index), PORT)?,
            start: flow.start_ns,
            stop: flow.stop_ns,
            lead: lead(out + back),
            way_back: back,
            source: flow.source.clone(),
            ack: flow.ack,
            ecn: flow.ecn,
        });
    }
    let plan = Plan { duration: config.duration_ns, slot: config.slot_ns, seed, flows, on_thread: promptly };
    let report = transfer::run(plan, instant(emulator.epoch()), cancel)?;
    Ok(report.flows.into_iter().map(FlowOutcome::from).collect())
}

impl From<Outcome> for FlowOutcome {
    fn from(Outcome { stats, ended_at, failure, slots }: Outcome) -> Self {
        Self { stats, ended_at, failure, slots }
    }
}

fn bind(namespace: &Namespace, address: Ipv4Addr, port: u16) -> io::Result<UdpSocket> {
    namespace.run(|| UdpSocket::bind((address, port)))
}

/// A time of the monotonic clock in ns, which is the clock of `Instant` on Linux.
fn instant(at: Nanos) -> Instant {
    let (present, now) = (Instant::now(), monotonic());
    if at >= now {
        present + Duration::from_nanos(at - now)
    } else {
        present.checked_sub(Duration::from_nanos(now - at)).unwrap_or(present)
    }
}
