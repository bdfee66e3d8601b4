//! `astraea attach`: the policy becomes a congestion controller of this kernel.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use astraea_kernel::{Attachment, Decider, Place, layout, sysctl};
use astraea_policy::{AgentConfig, Policy, shipped};
use astraea_serve::{Address, Client, Key};
use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::running::Agent;
use crate::{metrics, output, running};

/// How long finding the service may take.
const PATIENCE: Duration = Duration::from_secs(1);

/// Register a policy as the TCP congestion controller `astraea` of this kernel, or give the running one another policy
#[derive(Args)]
pub(crate) struct Arguments {
    /// Policy file, or the name of a shipped policy
    #[arg(long, default_value = "astraea", value_name = "FILE|NAME")]
    policy: String,
    /// Who decides: the program in the kernel, or this process
    #[arg(long, value_enum, default_value_t = Mode::InKernel)]
    mode: Mode,
    /// With --mode agent: ask the inference service at this address, unix:PATH or udp:HOST:PORT, which must serve the policy
    #[arg(long, value_name = "ADDRESS")]
    decide: Option<Address>,
    /// File with the key that is shared with a service beyond this host
    #[arg(long, value_name = "FILE", requires = "decide")]
    key: Option<PathBuf>,
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
    let agent = match (arguments.mode, &arguments.decide) {
        (Mode::InKernel, None) => None,
        (Mode::InKernel, Some(_)) => {
            return Err("--decide: only an agent asks a service; expected --mode agent with it".into());
        }
        (Mode::Agent, address) => {
            let client = address.as_ref().map(|address| client(arguments, address, &policy)).transpose()?;
            Some(Agent { policy, client })
        }
    };
    // Before anything is registered: an address that is taken is no reason to leave a controller behind.
    let server = arguments.metrics.map(metrics::bind).transpose()?;
    // Before it too: who is interrupted while it attaches detaches what it has attached.
    let ending = stays.then(running::ending).transpose()?;
    let attach = if stays { Attachment::attach } else { Attachment::renew };
    let attached = attach(&place, &laid, decider)?;
    if let Err(error) = sysctl::renew_default(&place.name) {
        let name = &place.name;
        output::complain(&format!(
            "{}: {error}; expected to be told {name} again, since what it has of that name was detached",
            sysctl::PATH
        ));
    }
    let says = format!("{} runs {} ({hash:016x}), decided {}", place.name, layout::name(&laid), decider.name());
    // It does, whether anybody can be told or not.
    let _ = output::print(&says);
    match ending {
        Some(ending) => running::until_told_to_end(attached, agent, server, &ending),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// A client of the service, which must be there and serve this policy. It may take half a period for an answer, so that there
/// is time to decide here if none comes.
fn client(arguments: &Arguments, address: &Address, policy: &Policy) -> Result<Client, Failure> {
    let key = arguments.key.as_deref().map(Key::load).transpose()?;
    let config = AgentConfig::of(policy.metadata());
    let mut client = Client::new(address.clone(), key, Duration::from_nanos(config.period / 2), config);
    let waited = client.wait(PATIENCE).and_then(|_| client.check_policy(&arguments.policy, policy));
    waited.map_err(|error| format!("--decide: {error}"))?;
    Ok(client)
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
