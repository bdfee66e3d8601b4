//! A process inside the link's namespace that outlives the link for a moment, to end what is left there.
//!
//! After `kill -9` nobody else would. The kernel kills the command with its parent, but forgets that if the command takes
//! other rights (`PR_SET_PDEATHSIG` in prctl(2)), and it never holds for what the command has started.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitCode, Stdio};

use astraea_emu::Namespace;
use nix::sys::prctl;
use nix::sys::signal::SigSet;
use nix::unistd::getppid;

use crate::failure::Failure;

/// The process. It ends with this value, or with the process that has it.
pub(super) struct Guard(Child);

impl Guard {
    /// Starts one in a namespace.
    pub(super) fn start(namespace: &Namespace) -> io::Result<Self> {
        let mut command = Command::new("/proc/self/exe");
        command.arg0("astraea-guard").args(["guard", &namespace.number()?.to_string()]);
        // The terminal's signals are not for it, and it is nothing that a link around this one has left behind.
        command.process_group(0).env_clear();
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        namespace.run(|| command.spawn()).map(Self)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // Closes its input, by which it knows.
        let _ = self.0.wait();
    }
}

/// What a guard is told.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Number of the network namespace that it is started in
    namespace: u64,
}

/// Waits until nobody can write to standard input, and kills everything else in this network namespace.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let namespace = Namespace::current()?;
    // Whoever starts this by mistake would lose what shares the network with them: the link itself is outside.
    let parent = fs::metadata(format!("/proc/{}/ns/net", getppid())).map(|found| found.ino());
    if namespace.number()? != arguments.namespace || parent.is_ok_and(|parent| parent == arguments.namespace) {
        return Err("guard: expected to be started by a link, in its network namespace".into());
    }
    // A request to end is for the link.
    SigSet::all().thread_block()?;
    prctl::set_name(c"astraea-guard")?;
    // Nothing is ever written; an error is an end, too.
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
    namespace.kill_all();
    Ok(ExitCode::SUCCESS)
}
