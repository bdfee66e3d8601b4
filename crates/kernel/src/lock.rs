//! One process at a time attaches, changes or detaches.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// Released when dropped.
pub(crate) struct Lock(#[expect(dead_code, reason = "closing it is what unlocks")] File);

impl Lock {
    /// What attaching and detaching may take on a busy machine, and more.
    const PATIENCE: Duration = Duration::from_secs(20);

    /// Locks a directory, which is what its path says now, whatever is mounted there later.
    pub(crate) fn take(directory: &Path) -> Result<Self> {
        let failed = |error: io::Error| Error::system(format!("cannot lock {}", directory.display()), &error);
        let file = File::open(directory).map_err(failed)?;
        let until = Instant::now() + Self::PATIENCE;
        // Whoever may open the directory can hold it for ever.
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::WouldBlock) if Instant::now() < until => thread::sleep(Duration::from_millis(20)),
                Err(TryLockError::WouldBlock) => return Err(failed(io::Error::other("another process holds it"))),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
    }
}
