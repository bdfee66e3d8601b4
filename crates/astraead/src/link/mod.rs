//! `astraea link`: a shell, or a command, behind an emulated link.

mod addresses;
pub(crate) mod guard;
mod log;
mod meter;
mod options;
mod report;
mod shell;
mod terminal;
mod units;

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::net::Ipv4Addr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use astraea_emu::{Config, Namespace, Report, Route, Routing, Running, Tun, kill_orphans, monotonic};

use crate::failure::{Failure, USER_ERROR};
use crate::output;
use addresses::Block;
use guard::Guard;
use log::Log;
use meter::Meter;
use options::Sides;
use shell::Signals;
use terminal::Terminal;

/// Start a shell, or a command, behind an emulated link
///
/// The link leads to the network of the caller, whose own routing decides where packets go from there. Inside, the
/// variable `ASTRAEA_BASE` is the address of the caller's end, and `MAHIMAHI_BASE` that of the outermost link's. Links
/// nest. Needs root.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    sides: Sides,
    /// Write logs in Mahimahi's format to FILE.up and FILE.down
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Write what the link did, and how late its packets were, to FILE as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
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
    if arguments.command.first().is_some_and(|program| program.is_empty()) {
        return Err("link: the command has no name; expected a program after --, or nothing for a shell".into());
    }
    let signals = Signals::take()?;
    let (block, outside) = addresses::claim()?;
    kill_orphans();
    let namespace = Namespace::new()?;
    let inside = inside_end(&namespace, block)?;
    let _guard = Guard::start(&namespace).map_err(|error| format!("link: starting a process: {error}"))?;
    let logs = arguments.log.iter().flat_map(|base| (0..2).map(|side| Log::create(base, side, &links[side])));
    let logs = logs.collect::<Result<Vec<_>, _>>()?;

    let mut command = shell::command(&arguments.command);
    let base = block.outside().to_string();
    // In nested shells Mahimahi's variable stays that of the outermost.
    let outermost = std::env::var("MAHIMAHI_BASE").unwrap_or_else(|_| base.clone());
    command.env("ASTRAEA_BASE", base).env("MAHIMAHI_BASE", outermost);
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
    let mut attended = Attended { running, logs, meter: wants_meter.then(Meter::new) };
    let program = command.get_program().to_string_lossy().into_owned();
    let terminal = Terminal::remember();
    // The command's work is not to be lost to a report that cannot be written.
    let unwritten = |error: io::Error| {
        let path = arguments.report.as_deref().unwrap_or(Path::new(""));
        format!("report {}: {error}", path.display())
    };
    let open = |path| OpenOptions::new().create(true).append(true).open(path);
    let written = arguments.report.as_ref().map(open).transpose().map_err(unwritten)?;
    let mut child = command.spawn().map_err(|error| format!("{program}: cannot be started: {error}"))?;
    let status = shell::wait(&mut child, &signals, || attended.look());
    namespace.kill_all();
    if let Some(terminal) = terminal {
        let killed = status.as_ref().is_ok_and(|status| status.signal().is_some());
        terminal.take_back(killed);
    }
    let (mut report, mut incomplete) = attended.finish();
    let status = status?;
    for problem in report.problems() {
        output::complain(&format!("link: unfaithful: {problem}"));
    }
    if let Some(mut file) = written {
        let text = format!("{:#}\n", report::json(&mut report));
        // What was there is replaced; a pipe has nothing to cut off.
        let _ = file.set_len(0);
        incomplete.extend(file.write_all(text.as_bytes()).err().map(unwritten));
    }
    for problem in &incomplete {
        output::complain(problem);
    }
    // What the command says of itself comes first.
    let is_failure = status.success() && !incomplete.is_empty();
    Ok(if is_failure { ExitCode::from(USER_ERROR) } else { shell::exit_code(status) })
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

/// A link, and what is written about it while it runs.
struct Attended {
    running: Running,
    logs: Vec<Log>,
    meter: Option<Meter>,
}

impl Attended {
    /// Called now and then.
    fn look(&mut self) {
        if let Some(meter) = &mut self.meter {
            meter.show(&self.running);
        }
        if self.logs.is_empty() {
            return;
        }
        let passages = self.running.take_log();
        for passage in &passages {
            self.logs[passage.link].add(passage);
        }
        let now = monotonic().saturating_sub(self.running.epoch());
        self.logs.iter_mut().for_each(|log| log.write_until(now));
    }

    /// Takes the link down and completes the logs; a line for each that is not complete.
    fn finish(self) -> (Report, Vec<String>) {
        drop(self.meter);
        let report = self.running.stop();
        let mut logs = self.logs;
        for passage in &report.log {
            if let Some(log) = logs.get_mut(passage.link) {
                log.add(passage);
            }
        }
        let incomplete = logs.into_iter().filter_map(|log| log.finish(report.elapsed_ns).err()).collect();
        (report, incomplete)
    }
}
