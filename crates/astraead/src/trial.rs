//! `astraead trial`: one trial of a scenario on real traffic, for `astraea run --backend kernel` and `--backend quic`.

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use astraea_kernel::{Temporary, layout};
use astraea_testbed::{Job, Schemes, Traffic, document, trial};
use nix::libc;
use nix::sys::prctl;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

use crate::failure::{Failure, INTERRUPTED};

/// Set by signals that ask for an end.
static CANCEL: AtomicBool = AtomicBool::new(false);

/// Options of `astraead trial`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Seed of everything that is random
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// One packet in a thousand may be so late before the trial counts as unfaithful
    #[arg(long, value_name = "NS", default_value_t = 2_000_000)]
    lateness_limit: u64,
    /// Carry the data over QUIC, under any scheme, instead of the kernel's TCP
    #[arg(long)]
    quic: bool,
    /// Say whether the trial could be run, and leave
    #[arg(long)]
    check: bool,
}

/// Reads a trial from standard input and writes what came of it to standard output (`astraea_testbed::document`).
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    // Nothing that the trial makes outlives this process; so that it does not outlive its caller either, whenever that ends:
    prctl::set_pdeathsig(Signal::SIGKILL)?;
    let mut json = String::new();
    io::stdin().read_to_string(&mut json)?;
    let traffic = if arguments.quic { Traffic::Quic } else { Traffic::Tcp };
    let mut job = Job::parse(&json, traffic)?;
    let _controllers = bring_policies(&mut job)?;
    if arguments.check {
        trial::check(&job)?;
        return Ok(ExitCode::SUCCESS);
    }
    stop_on_signals()?;
    let done = trial::run(&job, arguments.seed, arguments.lateness_limit, &CANCEL)?;
    if CANCEL.load(Ordering::Relaxed) {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    document::write(&job, done, &mut out)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Registers the policies of flows, for this process alone: what is attached on this host, if anything is, may be another one
/// and may change at any time. Flows of the same policy share it.
fn bring_policies(job: &mut Job) -> Result<Vec<Temporary>, Failure> {
    let Schemes::Kernel(schemes) = &mut job.schemes else { return Ok(Vec::new()) };
    let mut controllers: Vec<(String, Temporary)> = Vec::new();
    for scheme in schemes {
        let Some(policy) = &scheme.policy else { continue };
        if controllers.iter().all(|(name, _)| *name != scheme.name) {
            let failed = |error: astraea_kernel::Error| format!("scheme {}: {error}", scheme.name);
            let laid = layout::policy(policy, layout::hash(&policy.to_bytes())).map_err(failed)?;
            controllers.push((scheme.name.clone(), Temporary::register(&laid).map_err(failed)?));
        }
        let registered = controllers.iter().find(|(name, _)| *name == scheme.name);
        scheme.kernel = registered.map_or_else(String::new, |(_, controller)| controller.name().to_owned());
    }
    Ok(controllers.into_iter().map(|(_, controller)| controller).collect())
}

extern "C" fn cancel(_: libc::c_int) {
    CANCEL.store(true, Ordering::Relaxed);
}

fn stop_on_signals() -> nix::Result<()> {
    let action = SigAction::new(SigHandler::Handler(cancel), SaFlags::SA_RESTART, SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: the handler only stores to an atomic.
        unsafe { sigaction(signal, &action) }?;
    }
    Ok(())
}
