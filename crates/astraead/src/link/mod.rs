//! `astraea link`: a shell, or a command, behind an emulated link.

mod addresses;
mod log;
mod meter;
mod options;
mod shell;
mod units;

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process::ExitCode;

use astraea_emu::{Config, Namespace, Route, Routing, Running, Tun, kill_orphans, monotonic};

use crate::failure::Failure;
use addresses::Block;
use log::Log;
use meter::Meter;
use options::Sides;
use shell::Signals;

/// Start a shell, or a command, behind an emulated link
///
/// The link leads to the network of the caller, whose own routing decides where packets go from there. Inside, the
/// variable `ASTRAEA_BASE` (and `MAHIMAHI_BASE`) is the address of the caller's end. Links nest. Needs root.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    sides: Sides,
    /// Write logs in Mahimahi's format to FILE.up and FILE.down
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Show throughput, queue and drops in one line on the terminal, even if the command writes there as well
    #[arg(long, overrides_with = "no_meter")]
    meter: bool,
    /// Show no such line
    #[arg(long)]
    no_meter: bool,
    /// Seed of random losses and delays
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// The command and its arguments (default: $SHELL)
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs the command behind the link; its exit status is ours.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let links = arguments.sides.links()?;
    if !nix::unistd::geteuid().is_root() {
        return Err("link: needs root to make network namespaces and devices; try: sudo astraea link …".into());
    }
    let signals = Signals::take()?;
    kill_orphans();
    let outside = Tun::create(&format!("astr{}", std::process::id()))?;
    let claim = addresses::claim(&outside)?;
    let namespace = Namespace::new()?;
    let inside = inside_end(&namespace, claim.block)?;
    let logs = arguments.log.iter().flat_map(|base| (0..2).map(|side| Log::create(base, side, &links[side])));
    let logs = logs.collect::<Result<Vec<_>, _>>()?;

    let mut command = shell::command(&arguments.command);
    let base = claim.block.outside().to_string();
    command.env("ASTRAEA_BASE", &base).env("MAHIMAHI_BASE", &base);
    namespace.attach(&mut command)?;
    let config = Config {
        links: links.into(),
        routes: vec![Route { path: vec![0], return_path: vec![1], extra_delay_ns: 0 }],
        routing: Routing::Single,
        seed: arguments.seed,
        log: arguments.log.is_some(),
        ..Config::default()
    };
    let running = Running::start(config, inside, outside)?;
    let wants_meter = arguments.meter || (!arguments.no_meter && meter::fits(!arguments.command.is_empty()));
    let meter = wants_meter.then(Meter::new);
    supervise(command, &signals, &namespace, running, logs, meter)
}

/// The device inside, as the way to everywhere; packets of nested links are forwarded.
fn inside_end(namespace: &Namespace, block: Block) -> Result<Tun, Failure> {
    namespace.sysctl("ipv4/ip_forward", "1")?;
    let made = namespace.run(|| {
        Ok(Tun::create("astr0").and_then(|tun| {
            tun.set_addresses(block.inside(), block.outside())?;
            tun.add_route(Ipv4Addr::UNSPECIFIED, 0)?;
            Tun::reject(block.first, block.bits)?;
            Ok(tun)
        }))
    });
    Ok(made??)
}

/// Runs the command to its end, and takes everything down.
fn supervise(
    mut command: std::process::Command,
    signals: &Signals,
    namespace: &Namespace,
    running: Running,
    mut logs: Vec<Log>,
    mut meter: Option<Meter>,
) -> Result<ExitCode, Failure> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().map_err(|error| format!("{program}: cannot be started: {error}"))?;
    let status = shell::wait(&mut child, signals, || {
        if let Some(meter) = &mut meter {
            meter.show(&running);
        }
        take_logs(&running, &mut logs);
        logs.iter_mut().try_for_each(|log| log.write_until(monotonic().saturating_sub(running.epoch())))
    });
    drop(meter);
    namespace.kill_all();
    let status = status.inspect_err(|_| {
        let _ = child.kill().and_then(|()| child.wait());
    })?;
    let stopped = running.stop();
    for passage in &stopped.log {
        if let Some(log) = logs.get_mut(passage.link) {
            log.add(passage);
        }
    }
    logs.into_iter().try_for_each(|log| log.finish(stopped.elapsed_ns))?;
    for problem in stopped.problems() {
        eprintln!("astraea: link: unfaithful: {problem}");
    }
    Ok(shell::exit_code(status))
}

fn take_logs(running: &Running, logs: &mut [Log]) {
    if logs.is_empty() {
        return;
    }
    for passage in running.take_log() {
        logs[passage.link].add(&passage);
    }
}
