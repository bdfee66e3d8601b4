//! `astraead bench-quic`: rate and CPU time of a QUIC connection over the loopback device, without emulated links.

use std::net::UdpSocket;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use astraea_quic::Scheme;
use astraea_quic::transfer::{self, FlowPlan, Plan};
use astraea_sim::{AckConfig, SourceConfig};
use serde_json::json;

use crate::failure::Failure;
use crate::output::print;

/// Time for the handshake.
const LEAD: Duration = Duration::from_millis(300);

/// Options of `astraead bench-quic`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Scheme of the connection
    #[arg(long, value_name = "SCHEME", default_value = "cubic")]
    cc: String,
    /// Length of the transfer in seconds
    #[arg(long, value_name = "S", default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=3600))]
    seconds: u64,
    /// Packets for each acknowledgement
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=255))]
    ack_every: u32,
}

/// Transfers for some seconds and prints one line of JSON.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let scheme = Scheme::named(&arguments.cc, &[])?;
    let flow = FlowPlan {
        scheme,
        sender: UdpSocket::bind("127.0.0.1:0")?,
        receiver: UdpSocket::bind("127.0.0.1:0")?,
        start: 0,
        stop: None,
        lead: LEAD.as_nanos() as u64,
        way_back: 0,
        source: SourceConfig::Bulk,
        ack: AckConfig { every: arguments.ack_every, ..AckConfig::default() },
        ecn: false,
    };
    let length = Duration::from_secs(arguments.seconds);
    let plan =
        Plan { duration: length.as_nanos() as u64, slot: 10_000_000, seed: 1, flows: vec![flow], on_thread: || () };
    let report = transfer::run(plan, Instant::now() + LEAD, &AtomicBool::new(false))?;
    let [flow] = &report.flows[..] else { unreachable!("one was asked for") };
    if let Some(failure) = &flow.failure {
        return Err(Failure::from(format!("the transfer failed: {failure}")));
    }
    let bits = flow.stats.delivered_bytes as f64 * 8.0;
    let core = |cpu: u64| bits * 1e3 / cpu as f64;
    let found = json!({
        "cc": arguments.cc,
        "seconds": arguments.seconds,
        "mbps": bits / length.as_secs_f64() / 1e6,
        "mbps_per_sender_core": core(report.sender_cpu),
        "mbps_per_receiver_core": core(report.receiver_cpu),
        "sender_cpu": report.sender_cpu as f64 / length.as_nanos() as f64,
        "receiver_cpu": report.receiver_cpu as f64 / length.as_nanos() as f64,
        "sent_packets": flow.stats.sent,
        "lost_packets": flow.stats.declared_lost,
        "rtt_min_us": flow.stats.rtt_min.map(|rtt| rtt as f64 / 1e3),
    });
    print(&found.to_string())?;
    Ok(ExitCode::SUCCESS)
}
