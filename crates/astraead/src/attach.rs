//! `astraea attach`: the policy becomes a congestion controller of this kernel.

use std::path::PathBuf;
use std::process::ExitCode;

use astraea_kernel::{Attachment, Decider, Place, layout};
use astraea_policy::{Policy, shipped};
use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::{metrics, output, running};

/// Register a policy as the TCP congestion controller `astraea` of this kernel, or give the running one another policy
#[derive(Args)]
pub(crate) struct Arguments {
    /// Policy file, or the name of a shipped policy
    #[arg(long, default_value = "astraea", value_name = "FILE|NAME")]
    policy: String,
    /// Who decides: the program in the kernel, or this process
    #[arg(long, value_enum, default_value_t = Mode::InKernel)]
    mode: Mode,
    /// Stay, and detach when told to end (implied by --mode agent)
    #[arg(long)]
    foreground: bool,
    /// Serve Prometheus metrics at this address (implies --foreground)
    #[arg(long, value_name = "ADDRESS:PORT")]
    metrics: Option<std::net::SocketAddr>,
    /// Name by which sockets choose the controller
    #[arg(long, default_value = "astraea", hide = true)]
    name: String,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Mode {
    InKernel,
    Agent,
}

/// Where the controller of that name is.
pub(crate) fn place(name: &str) -> Place {
    let directory = Place::default().directory;
    Place { name: name.to_owned(), directory: directory.with_file_name(name) }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let (policy, hash) = policy(&arguments.policy)?;
    let laid = layout::policy(&policy, hash)?;
    let decider = if arguments.mode == Mode::Agent { Decider::Agent } else { Decider::Kernel };
    let stays = arguments.foreground || arguments.metrics.is_some() || decider == Decider::Agent;
    let place = place(&arguments.name);
    // Before anything is registered: an address that is taken is no reason to leave a controller behind.
    let server = arguments.metrics.map(metrics::Server::bind).transpose()?;
    let attached = match Attachment::open(&place) {
        Ok(attached) if !stays => {
            attached.swap(&laid)?;
            attached.set_decider(decider)?;
            attached
        }
        Ok(_) | Err(_) => Attachment::attach(&place, &laid, decider)?,
    };
    output::print(&format!("{} runs {} ({hash:016x}), decided {}", place.name, layout::name(&laid), decider.name()));
    if !stays {
        return Ok(ExitCode::SUCCESS);
    }
    running::until_told_to_end(attached, (decider == Decider::Agent).then_some(&policy), server)
}

/// The policy of a shipped name or a file, and the hash of its bytes.
fn policy(name: &str) -> Result<(Policy, u64), Failure> {
    if let Some(bytes) = shipped::file(name) {
        return Ok((Policy::from_bytes(bytes)?, layout::hash(bytes)));
    }
    let path = PathBuf::from(name);
    if !path.exists() && !name.contains(['/', '.']) {
        let names: Vec<_> = shipped::names().collect();
        return Err(format!("--policy {name}: neither a file nor one of {}", names.join(", ")).into());
    }
    let policy = Policy::load(&path)?;
    let hash = layout::hash(&policy.to_bytes());
    Ok((policy, hash))
}
