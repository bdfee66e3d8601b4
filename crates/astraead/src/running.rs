//! A process that stays with the controller: it serves metrics, answers flows as their agent, and detaches at the end.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use astraea_kernel::{Attachment, agent};
use astraea_policy::Policy;
use astraea_serve::Client;
use astraea_serve::page::Page;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::failure::Failure;
use crate::metrics;

/// How often the flag of the signals is looked at.
const TICK: Duration = Duration::from_millis(100);

/// Who answers the flows' records.
pub(crate) struct Agent {
    pub(crate) policy: Policy,
    /// The service that is asked first, if any.
    pub(crate) client: Option<Client>,
}

/// The signals that a process ignores, a bit for each, by its status in /proc.
fn ignored(status: &str) -> u64 {
    let bits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    bits.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0)
}

/// A flag that is set when the process is interrupted or told to end, or its terminal is closed.
pub(crate) fn ending() -> Result<Arc<AtomicBool>, Failure> {
    let ending = Arc::new(AtomicBool::new(false));
    let ignored = ignored(&std::fs::read_to_string("/proc/self/status").unwrap_or_default());
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        // `nohup` and background jobs of scripts are not meant to hear of the terminal.
        if matches!(signal, SIGINT | SIGTERM) || ignored >> (signal - 1) & 1 == 0 {
            signal_hook::flag::register(signal, ending.clone())?;
        }
    }
    Ok(ending)
}

/// Stays until the flag is set, then detaches. With an agent it answers the flows' records itself.
pub(crate) fn until_told_to_end(
    attached: Attachment,
    agent: Option<Agent>,
    page: Option<Page>,
    ending: &AtomicBool,
) -> Result<ExitCode, Failure> {
    let attached = Arc::new(attached);
    let stayed = page.map_or(Ok(()), |page| metrics::serve(page, &attached)).and_then(|()| match agent {
        Some(Agent { policy, client: Some(mut client) }) => {
            agent::ask(&attached, &policy, &mut client, ending).map_err(Failure::from)
        }
        Some(Agent { policy, client: None }) => agent::answer(&attached, &policy, ending).map_err(Failure::from),
        None => {
            while !ending.load(Ordering::Relaxed) && attached.is_there() {
                std::thread::sleep(TICK);
            }
            Ok(())
        }
    });
    attached.end()?;
    stayed.map(|()| ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_is_read() {
        assert_eq!(ignored("SigBlk:\t0000000000000002\nSigIgn:\t0000000000001001\n"), 1 << 12 | 1 << (SIGHUP - 1));
        assert_eq!(ignored(""), 0);
    }
}
