//! One connection's bytes: requests in parts, answers that wait for room.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use nix::sys::socket::{getsockopt, setsockopt, sockopt};

use crate::client::transport::split;
use crate::wire::WireError;

/// Bytes that are read from a connection in one turn: a peer that sends more waits for the others. These are 178 requests,
/// a tenth of a millisecond's work.
pub(super) const SHARE: usize = 1 << 15;

/// Bytes of answers that the system keeps for a connection; what it needs to keep them counts too, so it is told half.
const ANSWERS: usize = 1 << 15;

/// Bytes of room that a connection keeps, whether it needs them or not.
const KEPT: usize = 1 << 12;

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
    /// Whose it is, as the system knows it, and when it was last read from.
    pub(super) user: u32,
    pub(super) heard: Instant,
}

impl Connection {
    /// The connection of a user, at present.
    pub(super) fn new(stream: UnixStream, user: u32, now: Instant) -> Self {
        Self { stream, input: Vec::new(), output: Vec::new(), blocked: None, user, heard: now }
    }

    /// Makes the connection one that nobody waits for, and for which the system keeps few answers.
    pub(super) fn prepare(&self) -> io::Result<()> {
        setsockopt(&self.stream, sockopt::SndBuf, &ANSWERS)?;
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
        give_back(&mut self.input);
        Ok(read == buffer.len())
    }

    /// Adds an answer to those to be sent.
    pub(super) fn push(&mut self, answer: &[u8]) {
        self.output.extend(answer);
    }

    /// Bytes of answers that wait.
    pub(super) fn unsent(&self) -> usize {
        self.output.len()
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
        give_back(&mut self.output);
        self.blocked =
            if self.output.is_empty() { None } else { Some(self.blocked.filter(|_| sent == 0).unwrap_or(now)) };
        Ok(())
    }

    /// Since when the peer has not taken its answers, if it does not.
    pub(super) fn blocked(&self) -> Option<Instant> {
        self.blocked
    }
}

/// The user and process at the other end, as the system knows them.
pub(super) fn credentials(stream: &UnixStream) -> io::Result<(u32, i32)> {
    let found = getsockopt(stream, sockopt::PeerCredentials)?;
    Ok((found.uid(), found.pid()))
}

/// Room that a burst has left empty is given back, beyond what a connection usually needs: there are thousands.
fn give_back(bytes: &mut Vec<u8>) {
    if bytes.capacity() > KEPT && bytes.len() < bytes.capacity() / 2 {
        bytes.shrink_to_fit();
    }
}

impl AsFd for Connection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
