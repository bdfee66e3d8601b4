//! One connection's bytes: requests in parts, answers that wait for room.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use crate::client::transport::split;
use crate::wire::WireError;

/// Bytes that are read from a connection in one turn: a peer that sends more waits for the others. These are 178 requests,
/// a tenth of a millisecond's work.
pub(super) const SHARE: usize = 1 << 15;

/// Why a connection ends.
#[derive(Debug)]
pub(super) enum Ended {
    /// The peer has closed it, or is gone.
    Gone,
    /// What came is no message: there is no telling where the next one begins.
    Wire(WireError),
}

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    stream: UnixStream,
    input: Vec<u8>,
    output: Vec<u8>,
    /// Since when answers have been waiting.
    blocked: Option<Instant>,
}

impl Connection {
    pub(super) fn new(stream: UnixStream) -> Self {
        Self { stream, input: Vec::new(), output: Vec::new(), blocked: None }
    }

    /// Makes the connection one that nobody waits for.
    pub(super) fn prepare(&self) -> io::Result<()> {
        self.stream.set_nonblocking(true)
    }

    /// Reads a share, and hands over each whole message. Returns whether there may be more.
    pub(super) fn read(&mut self, buffer: &mut [u8], message: impl FnMut(&[u8])) -> Result<bool, Ended> {
        let read = match self.stream.read(buffer) {
            Ok(0) => return Err(Ended::Gone),
            Ok(read) => read,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(false),
            Err(_) => return Err(Ended::Gone),
        };
        let bytes = &buffer[..read];
        if self.input.is_empty() {
            let used = split(bytes, message).map_err(Ended::Wire)?;
            self.input.extend(&bytes[used..]);
        } else {
            self.input.extend(bytes);
            let used = split(&self.input, message).map_err(Ended::Wire)?;
            self.input.drain(..used);
        }
        Ok(read == buffer.len())
    }

    /// Adds an answer to those to be sent.
    pub(super) fn push(&mut self, answer: &[u8]) {
        self.output.extend(answer);
    }

    /// Sends what there is room for. While something is left nothing is read from the peer: whoever does not take answers
    /// gets no more, and what waits is bounded by what one share can ask for.
    pub(super) fn flush(&mut self, now: Instant) -> Result<(), Ended> {
        let mut sent = 0;
        while sent < self.output.len() {
            match self.stream.write(&self.output[sent..]) {
                Ok(0) => return Err(Ended::Gone),
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return Err(Ended::Gone),
            }
        }
        self.output.drain(..sent);
        self.blocked =
            if self.output.is_empty() { None } else { Some(self.blocked.filter(|_| sent == 0).unwrap_or(now)) };
        Ok(())
    }

    /// Since when the peer has not taken its answers, if it does not.
    pub(super) fn blocked(&self) -> Option<Instant> {
        self.blocked
    }

    /// The peer's user and process, as the system knows them.
    pub(super) fn credentials(&self) -> io::Result<(u32, i32)> {
        use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
        let found = getsockopt(&self.stream, PeerCredentials)?;
        Ok((found.uid(), found.pid()))
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
