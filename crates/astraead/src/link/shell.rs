//! The command behind the link, and signals on the way to it.

use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill, pthread_sigmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;

/// How long a command that was asked to end may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Signals that are taken as they come, instead of ending the process at once.
pub(super) struct Signals(SignalFd);

impl Signals {
    /// Blocks them in this thread and in those that it starts; a command starts without blocked signals. So is
    /// `SIGTTOU`: while a shell behind the link has the terminal, this process may still write to it, and take it back.
    /// And `SIGXFSZ`: a log that may not grow is one that cannot be written, and no reason to end.
    pub(super) fn take() -> io::Result<Self> {
        let set: SigSet =
            [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGCHLD].into_iter().collect();
        let blocked: SigSet = set.iter().chain([Signal::SIGTTOU, Signal::SIGXFSZ]).collect();
        pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&blocked), None)?;
        Ok(Self(SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?))
    }

    /// The next signal, if one comes before `timeout` ends.
    fn next(&self, timeout: PollTimeout) -> io::Result<Option<Signal>> {
        let mut inputs = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
        poll(&mut inputs, timeout)?;
        let read = self.0.read_signal()?;
        Ok(read.and_then(|signal| Signal::try_from(signal.ssi_signo.cast_signed()).ok()))
    }
}

/// The command, or the user's shell.
pub(super) fn command(words: &[OsString]) -> Command {
    let Some((program, arguments)) = words.split_first() else {
        return Command::new(std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into()));
    };
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// Waits for the command, calling `tick` ten times a second. Ctrl-C is the command's own business, which gets it from the
/// terminal; a request to end is passed on, and enforced if it is not followed.
pub(super) fn wait(child: &mut Child, signals: &Signals, mut tick: impl FnMut()) -> Result<ExitStatus, String> {
    let problem = |error: io::Error| format!("waiting for the command: {error}");
    let mut deadline: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait().map_err(problem)? {
            return Ok(status);
        }
        tick();
        match signals.next(PollTimeout::from(100_u8)).map_err(problem)? {
            Some(signal @ (Signal::SIGTERM | Signal::SIGHUP)) => {
                // It may have ended meanwhile.
                let _ = kill(Pid::from_raw(child.id().cast_signed()), signal);
                deadline.get_or_insert_with(|| Instant::now() + PATIENCE);
            }
            _ if deadline.is_some_and(|deadline| Instant::now() > deadline) => child.kill().map_err(problem)?,
            _ => {}
        }
    }
}

/// The command's exit status as a shell gives it.
pub(super) fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
