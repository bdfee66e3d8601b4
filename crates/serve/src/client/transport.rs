//! The client's end of a connection; nothing here blocks but [`Transport::wait`].

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, connect, socket};

use crate::Address;
use crate::wire::{LONGEST, WireError, length};

/// Bytes that may wait to be sent; a service that takes no more is as good as none.
const MOST_WAITING: usize = 1 << 18;

#[derive(Debug)]
enum Socket {
    Stream(UnixStream),
    Datagram(UdpSocket),
}

/// A connection.
#[derive(Debug)]
pub(super) struct Transport {
    socket: Socket,
    output: Vec<u8>,
    input: Vec<u8>,
    buffer: Vec<u8>,
}

impl Transport {
    pub(super) fn connect(address: &Address) -> io::Result<Self> {
        let socket = match address {
            Address::Unix(path) => Socket::Stream(stream(path).map_err(|error| match error {
                Errno::EAGAIN => io::Error::new(ErrorKind::WouldBlock, "it accepts no connection"),
                other => other.into(),
            })?),
            Address::Udp(address) => {
                let any = match address {
                    SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
                    SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
                };
                let socket = UdpSocket::bind(any)?;
                socket.connect(address)?;
                socket.set_nonblocking(true)?;
                Socket::Datagram(socket)
            }
        };
        Ok(Self { socket, output: Vec::new(), input: Vec::new(), buffer: vec![0; 1 << 16] })
    }

    /// Sends a message, now or with the next [`flush`](Self::flush); one that there is no room for is lost.
    pub(super) fn send(&mut self, message: &[u8]) -> io::Result<()> {
        match &self.socket {
            Socket::Stream(_) if self.output.len() < MOST_WAITING => self.output.extend(message),
            Socket::Stream(_) => {}
            Socket::Datagram(socket) => match socket.send(message) {
                // Nobody is there, or no room: what a lost datagram is.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                sent => return sent.map(drop),
            },
        }
        Ok(())
    }

    /// Sends as much as there is room for.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let Socket::Stream(stream) = &mut self.socket else { return Ok(()) };
        while !self.output.is_empty() {
            match stream.write(&self.output) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(sent) => drop(self.output.drain(..sent)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Hands over each whole message that has come.
    pub(super) fn receive(&mut self, mut message: impl FnMut(&[u8])) -> io::Result<()> {
        loop {
            let read = match &mut self.socket {
                Socket::Stream(stream) => stream.read(&mut self.buffer),
                Socket::Datagram(socket) => socket.recv(&mut self.buffer),
            };
            let read = match read {
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if self.is_datagram() && error.kind() == ErrorKind::ConnectionRefused => continue,
                Err(error) => return Err(error),
            };
            if self.is_datagram() {
                message(&self.buffer[..read.min(LONGEST + 1)]);
            } else if read == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            } else {
                self.input.extend(&self.buffer[..read]);
                let used = split(&self.input, &mut message).map_err(|_| io::Error::from(ErrorKind::InvalidData))?;
                self.input.drain(..used);
                if read < self.buffer.len() {
                    return Ok(());
                }
            }
        }
    }

    /// Waits until something has come, there is room to send what waits, or the time has passed.
    pub(super) fn wait(&self, time: Duration) {
        let mut interest = PollFlags::POLLIN;
        interest.set(PollFlags::POLLOUT, !self.output.is_empty());
        // Rounded up: a wait that ends early would be repeated at once.
        let milliseconds = time.as_micros().div_ceil(1000).min(60_000) as u16;
        // A signal ends the wait, which the caller checks anyway.
        let _ = poll(&mut [PollFd::new(self.as_fd(), interest)], PollTimeout::from(milliseconds));
    }

    pub(super) fn is_datagram(&self) -> bool {
        matches!(self.socket, Socket::Datagram(_))
    }
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Stream(stream) => stream.as_fd(),
            Socket::Datagram(socket) => socket.as_fd(),
        }
    }
}

/// A connection to a socket in the file system. Blocking, it would wait for as long as a service that has stopped accepts nobody.
pub(crate) fn stream(path: &Path) -> Result<UnixStream, Errno> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let stream = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    connect(stream.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(stream.into())
}

/// Hands over each whole message at the front of a stream. Returns how many bytes they are.
pub(crate) fn split(bytes: &[u8], mut message: impl FnMut(&[u8])) -> Result<usize, WireError> {
    let mut used = 0;
    while let Some(length) = length(&bytes[used..])?.filter(|length| used + length <= bytes.len()) {
        message(&bytes[used..used + length]);
        used += length;
    }
    Ok(used)
}
