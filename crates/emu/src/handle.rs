//! Processes by a descriptor instead of their number, which may be another one's by the time a signal is sent.

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// A process, also after it has ended.
pub(crate) struct Handle(OwnedFd);

impl Handle {
    /// The process that has this number now.
    pub(crate) fn open(pid: u32) -> io::Result<Self> {
        // SAFETY: the call takes numbers, and the descriptor that it returns is nobody else's.
        unsafe {
            let descriptor = libc::syscall(libc::SYS_pidfd_open, pid.cast_signed(), 0);
            if descriptor < 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Self(OwnedFd::from_raw_fd(descriptor as RawFd)))
        }
    }

    /// Kills it, and never another one.
    pub(crate) fn kill(&self) -> io::Result<()> {
        let nothing = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: the call takes numbers, and a pointer that may be null.
        let answer =
            unsafe { libc::syscall(libc::SYS_pidfd_send_signal, self.0.as_raw_fd(), libc::SIGKILL, nothing, 0) };
        if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Waits until it has ended, for so long at most.
    pub(crate) fn wait(&self, patience: Duration) {
        let timeout = PollTimeout::try_from(patience).unwrap_or(PollTimeout::ZERO);
        // Whoever waits looks again afterwards.
        let _ = poll(&mut [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)], timeout);
    }
}
