//! Network namespaces without names.
//!
//! A namespace lives as long as something holds it: the file descriptor in [`Namespace`], a thread or a process inside.
//! It has no name under `/run/netns`, so there is nothing to remove: whichever way the process ends, `kill -9`
//! included, the kernel takes the namespace and its devices away (for processes inside see [`kill_orphans`]).
//! To look inside:
//! `nsenter --net=/proc/PID/fd/N`, see [`Namespace::path`].

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};

use crate::error::Error;
use crate::orphans;

/// A network namespace; it goes when this and the last process inside have gone.
#[derive(Debug)]
pub struct Namespace {
    file: OwnedFd,
}

impl Namespace {
    /// A new, empty namespace, whose loopback device is up.
    ///
    /// # Errors
    /// If the rights are missing.
    pub fn new() -> Result<Self, Error> {
        let what = "creating a network namespace";
        let made = in_new_thread(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            let file = File::open(CURRENT)?;
            crate::device::loopback_up()?;
            Ok(OwnedFd::from(file))
        });
        made.map(|file| Self { file }).map_err(|error| Error::system(what, error))
    }

    /// The namespace of the calling thread.
    ///
    /// # Errors
    /// If `/proc` is not mounted.
    pub fn current() -> Result<Self, Error> {
        let file = File::open(CURRENT).map_err(|error| Error::system(CURRENT, error))?;
        Ok(Self { file: file.into() })
    }

    /// The number by which the kernel tells it from others, as long as it lives.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn number(&self) -> io::Result<u64> {
        Ok(nix::sys::stat::fstat(&self.file)?.st_ino)
    }

    /// Kills every process inside, the caller excepted: what a command has left in the background when its network goes.
    pub fn kill_all(&self) {
        let Ok(number) = self.number() else { return };
        orphans::kill_all_in(number);
    }

    /// A path that names the namespace for other processes while this one lives.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    /// Moves the calling thread into the namespace, for good: sockets that it opens from now on, and processes and
    /// threads that it starts, are inside.
    ///
    /// # Errors
    /// If the rights are missing.
    pub fn enter(&self) -> io::Result<()> {
        setns(self.file.as_fd(), CloneFlags::CLONE_NEWNET).map_err(io::Error::from)
    }

    /// Runs `work` on a thread of its own inside the namespace.
    ///
    /// # Errors
    /// If there can be no thread, the namespace cannot be entered, or what `work` returns.
    ///
    /// # Panics
    /// If `work` does.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        in_new_thread(|| {
            self.enter()?;
            work()
        })
    }

    /// Makes `command` start inside the namespace, without blocked signals, and be killed when the *thread* that starts it ends (and so with the
    /// process, however it ends).
    ///
    /// # Errors
    /// If there are no more file descriptors.
    pub fn attach(&self, command: &mut Command) -> io::Result<()> {
        let file = self.file.try_clone()?;
        let (mark, owner) = orphans::mark();
        command.env(mark, owner);
        // SAFETY: between fork and exec only system calls are made, on values that are owned by the closure.
        unsafe {
            command.pre_exec(move || {
                prctl::set_pdeathsig(Signal::SIGKILL)?;
                pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None)?;
                setns(file.as_fd(), CloneFlags::CLONE_NEWNET).map_err(io::Error::from)
            });
        }
        Ok(())
    }

    /// Sets a parameter under `/proc/sys/net` for this namespace alone, for example `ipv4/tcp_no_metrics_save`.
    ///
    /// # Errors
    /// If the kernel has no such parameter for a namespace, or refuses the value.
    pub fn sysctl(&self, key: &str, value: &str) -> Result<(), Error> {
        let path = format!("/proc/sys/net/{key}");
        let written = self.run(|| fs::write(&path, value));
        written.map_err(|error| Error::system(format!("{path} = {value}"), error))
    }
}

/// The network namespace of the calling thread.
const CURRENT: &str = "/proc/thread-self/ns/net";

/// Runs `work` on a new thread, whose namespace may change without consequence for others.
fn in_new_thread<T: Send>(work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        // Where the system has no room for a thread that is an error like any other.
        let thread = std::thread::Builder::new().spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
