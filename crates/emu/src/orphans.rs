//! Processes that outlived their emulation.
//!
//! Namespaces and devices need no cleaning up: the kernel does it. But a process that was started inside by another one
//! can outlive an emulator that was killed with `kill -9`, in a namespace that leads nowhere. Processes carry a mark in
//! their environment that says whose they are; those whose emulator has gone are killed by the next one. Who has a process
//! left in the namespace that notices the emulator's end need not wait for that ([`Namespace::kill_all`]).
//!
//! [`Namespace::kill_all`]: crate::Namespace::kill_all

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use crate::handle::Handle;

/// Name of the variable: `PID-NAMESPACE:PID:START`.
const MARK: &str = "ASTRAEA_EMULATOR";

/// How long processes that were killed may take to end, and may start others.
const PATIENCE: Duration = Duration::from_secs(2);

/// The mark of this process's children, as name and value.
pub(crate) fn mark() -> (&'static str, String) {
    let pid = std::process::id();
    (MARK, format!("{}:{pid}:{}", pid_namespace().unwrap_or(0), started(pid).unwrap_or(0)))
}

/// Kills what is left of emulations whose process has gone; returns how many processes that were. Those of other
/// process-number namespaces (containers) are left alone, as their numbers mean nothing here, and so is everything in
/// the caller's own network namespace.
pub fn kill_orphans() -> usize {
    let (Some(pid_namespace), Some(here)) = (pid_namespace(), network_of("thread-self")) else { return 0 };
    let is_orphan = |pid: u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).ok()?;
        let value = environment
            .split(|byte| *byte == 0)
            .find_map(|variable| std::str::from_utf8(variable).ok()?.strip_prefix(MARK)?.strip_prefix('='))?;
        let mut parts = value.split(':').map(str::parse::<u64>);
        let (namespace, owner, start) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
        let orphan = namespace == pid_namespace && started(owner as u32) != Some(start);
        (orphan && network_of(&pid.to_string())? != here).then_some(())
    };
    kill_where(|pid| is_orphan(pid).is_some())
}

/// Kills the processes in the network namespace with that inode number, but for this one.
pub(crate) fn kill_all_in(network: u64) {
    kill_where(|pid| network_of(&pid.to_string()) == Some(network));
}

/// Kills the processes of which `is_meant` holds, this one excepted, until there are no more: they may start others before
/// they end. Returns how many that were.
fn kill_where(is_meant: impl Fn(u32) -> bool) -> usize {
    let deadline = Instant::now() + PATIENCE;
    let mut killed = 0;
    loop {
        let others = processes().filter(|pid| *pid != std::process::id());
        let found = others.filter_map(|pid| {
            // Opened before it is looked at: if it ends in between, the number may be another's, but nobody is killed.
            let process = Handle::open(pid).ok()?;
            (is_meant(pid) && process.kill().is_ok()).then_some(process)
        });
        let found: Vec<Handle> = found.collect();
        killed += found.len();
        for process in &found {
            process.wait(deadline.saturating_duration_since(Instant::now()));
        }
        if found.is_empty() || Instant::now() >= deadline {
            return killed;
        }
    }
}

/// Numbers of all processes.
fn processes() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn pid_namespace() -> Option<u64> {
    Some(fs::metadata("/proc/self/ns/pid").ok()?.ino())
}

fn network_of(process: &str) -> Option<u64> {
    Some(fs::metadata(format!("/proc/{process}/ns/net")).ok()?.ino())
}

/// When a process started, in clock ticks since boot; with its number this names it for ever. `None` if it has gone.
fn started(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command's name, in parentheses, may hold anything. A zombie has gone as well.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18)?.parse().ok() }
}
