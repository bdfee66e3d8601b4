//! TCP sockets as trials need them.

use std::io;
use std::mem::size_of_val;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

use astraea_cc::Nanos;
use nix::errno::Errno;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, Backlog, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, accept4, bind, connect,
    getpeername, getsockname, listen, recv, send, setsockopt, socket, sockopt,
};

/// A connection's bytes that are waiting to be sent are worth this time in ns at the path's rate …
pub(crate) const READY: Nanos = 20_000_000;
/// … but at least this many, so that the application is not what limits a flow,
const LEAST_UNSENT: f64 = 65_536.0;
/// … and at most this many, so that a thousand flows do not fill the memory.
const MOST_UNSENT: f64 = 4_194_304.0;

/// What reading or writing came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    /// That many bytes.
    Bytes(usize),
    /// Nothing can be moved at present.
    Blocked,
    /// The other end has finished.
    End,
}

fn stream() -> io::Result<OwnedFd> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    Ok(socket(AddressFamily::Inet, SockType::Stream, flags, SockProtocol::Tcp)?)
}

fn set_int(socket: &OwnedFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let length = size_of_val(&value) as libc::socklen_t;
    // SAFETY: the kernel reads `length` bytes of `value`.
    let result = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A listener on `address`, a new socket of the namespace that this thread is in.
pub(crate) fn listener(address: SocketAddrV4) -> io::Result<OwnedFd> {
    let socket = stream()?;
    setsockopt(&socket, sockopt::ReuseAddr, &true)?;
    bind(socket.as_raw_fd(), &SockaddrIn::from(address))?;
    listen(&socket, Backlog::MAXCONN)?;
    Ok(socket)
}

/// Where a socket is bound.
pub(crate) fn local_address(socket: &OwnedFd) -> io::Result<SocketAddrV4> {
    let address: SockaddrIn = getsockname(socket.as_raw_fd())?;
    Ok(address.into())
}

/// The next connection that is waiting at a listener, and where it comes from.
pub(crate) fn accept(listener: &OwnedFd) -> io::Result<Option<(OwnedFd, Ipv4Addr)>> {
    match accept4(listener.as_raw_fd(), SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC) {
        Ok(fd) => {
            // SAFETY: a descriptor that the kernel has just made for us alone.
            let socket = unsafe { OwnedFd::from_raw_fd(fd) };
            match getpeername::<SockaddrIn>(fd) {
                Ok(peer) => Ok(Some((socket, peer.ip()))),
                Err(Errno::ENOTCONN) => Ok(None),
                Err(error) => Err(error.into()),
            }
        }
        Err(Errno::EAGAIN | Errno::ECONNABORTED | Errno::EINTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Begins to connect from `from` to `to` under the congestion control `scheme`, a new socket of the namespace that this
/// thread is in. `rate` in bit/s says how much data to keep ready.
pub(crate) fn connecting(from: Ipv4Addr, to: SocketAddrV4, scheme: &str, rate: f64) -> io::Result<OwnedFd> {
    let socket = stream()?;
    setsockopt(&socket, sockopt::TcpCongestion, &scheme.into())?;
    let unsent = (rate / 8.0 * READY as f64 / 1e9).clamp(LEAST_UNSENT, MOST_UNSENT) as libc::c_int;
    set_int(&socket, libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, unsent)?;
    bind(socket.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(from, 0)))?;
    match connect(socket.as_raw_fd(), &SockaddrIn::from(to)) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(socket),
        Err(error) => Err(error.into()),
    }
}

/// The error that a connection has met, if any.
pub(crate) fn error_of(socket: &OwnedFd) -> Option<io::Error> {
    match nix::sys::socket::getsockopt(&socket.as_fd(), sockopt::SocketError) {
        Ok(0) => None,
        Ok(code) => Some(io::Error::from_raw_os_error(code)),
        Err(error) => Some(error.into()),
    }
}

/// Closes a connection at once: what has not been sent never will be.
pub(crate) fn abort(socket: OwnedFd) {
    // A connection that is gone already needs no reset.
    let _ = setsockopt(&socket, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 });
    drop(socket);
}

/// Hands data to a connection.
pub(crate) fn write(socket: &OwnedFd, data: &[u8]) -> io::Result<Moved> {
    moved(send(socket.as_raw_fd(), data, MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL))
}

/// Takes up to `room.len()` bytes from a connection; their content is not copied.
pub(crate) fn discard(socket: &OwnedFd, room: &mut [u8]) -> io::Result<Moved> {
    match moved(recv(socket.as_raw_fd(), room, MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_TRUNC))? {
        Moved::Bytes(0) => Ok(Moved::End),
        other => Ok(other),
    }
}

fn moved(result: nix::Result<usize>) -> io::Result<Moved> {
    match result {
        Ok(bytes) => Ok(Moved::Bytes(bytes)),
        Err(Errno::EAGAIN | Errno::EINTR) => Ok(Moved::Blocked),
        Err(error) => Err(error.into()),
    }
}
