//! `astraead serve`: the inference service.

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use astraea_serve::{Address, Config, Control, Key, Limits, Service, Source};
use clap::{Args, ValueEnum};
use nix::sys::signal::{SigSet, Signal};
use tracing::Level;

use crate::failure::Failure;

/// Answer the requests of many senders: one process decides for all of them.
///
/// SIGHUP reads the policy again, SIGTERM answers what has come and ends.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Where to listen, unix:PATH or udp:HOST:PORT; may be repeated. Sockets that systemd hands over come on top.
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<Address>,
    /// Policy to serve: one that is shipped, or a file.
    #[arg(long, default_value = "astraea", value_name = "POLICY")]
    policy: String,
    /// File with the shared key of UDP messages, 64 hexadecimal digits; needed beyond loopback.
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Longest wait for a batch, in ms.
    #[arg(long, default_value_t = 5.0, value_name = "MS", value_parser = milliseconds)]
    max_wait: f64,
    /// Most states evaluated together.
    #[arg(long, default_value_t = Limits::default().batch as u64, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 16))]
    max_batch: u64,
    /// Most flows that are remembered.
    #[arg(long, default_value_t = Limits::default().flows as u64, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    max_flows: u64,
    /// Most flows of one peer. [default: as many as of all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 24))]
    max_flows_per_peer: Option<u64>,
    /// After so many s without a word a flow is forgotten.
    #[arg(long, default_value_t = Limits::default().expiry, value_name = "S", value_parser = clap::value_parser!(u32).range(1..=86400))]
    expiry: u32,
    /// Permissions of sockets in the file system, octal.
    #[arg(long, default_value = "660", value_name = "MODE", value_parser = mode)]
    mode: u32,
    /// Let only this user, by number, connect to sockets in the file system; may be repeated.
    #[arg(long, value_name = "UID")]
    user: Vec<u32>,
    /// Where Prometheus finds metrics, under /metrics.
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<SocketAddr>,
    /// Form of the log, which goes to standard error.
    #[arg(long, default_value = "text", value_name = "FORM")]
    log: Log,
    /// Least level that is logged.
    #[arg(long, default_value = "info", value_name = "LEVEL")]
    log_level: Level,
}

#[derive(Clone, Copy, ValueEnum)]
enum Log {
    Text,
    Json,
}

fn milliseconds(text: &str) -> Result<f64, String> {
    let found: Option<f64> = text.parse().ok().filter(|ms| (0.0..=1000.0).contains(ms));
    found.ok_or_else(|| "expected 0 to 1000".to_owned())
}

fn mode(text: &str) -> Result<u32, String> {
    let found = u32::from_str_radix(text, 8).ok().filter(|mode| *mode <= 0o777);
    found.ok_or_else(|| "expected permissions like 660".to_owned())
}

/// Serves until SIGTERM or SIGINT.
pub(crate) fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let limits = Limits {
        flows: arguments.max_flows as usize,
        flows_per_peer: arguments.max_flows_per_peer.unwrap_or(arguments.max_flows) as usize,
        batch: arguments.max_batch as usize,
        expiry: arguments.expiry,
        ..Limits::default()
    };
    let config = Config {
        key: arguments.key.as_deref().map(Key::load).transpose()?,
        max_wait: Duration::from_secs_f64(arguments.max_wait / 1e3),
        limits,
        mode: arguments.mode,
        users: arguments.user,
        metrics: arguments.metrics,
        ..Config::new(Source::new(&arguments.policy), arguments.listen)
    };
    let logs = tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        // On a full disk the service goes on without a log.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal())
        .with_max_level(arguments.log_level);
    match arguments.log {
        Log::Text => logs.with_target(false).init(),
        Log::Json => logs.json().flatten_event(true).init(),
    }
    // It may come through a pipe. Signals end the wait for it, as they are not held back yet.
    let loaded = config.policy.load()?;
    // Before any thread begins, so that the one below is the only one that gets them.
    let signals = SigSet::from_iter([Signal::SIGHUP, Signal::SIGTERM, Signal::SIGINT]);
    signals.thread_block()?;
    let (service, control) = Service::bind_with(config, loaded)?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || obey(signals, &control))?;
    service.run()?;
    Ok(ExitCode::SUCCESS)
}

fn obey(signals: SigSet, control: &Control) {
    while let Ok(signal) = signals.wait() {
        match signal {
            Signal::SIGHUP => control.reload(),
            _ => control.stop(),
        }
    }
}
