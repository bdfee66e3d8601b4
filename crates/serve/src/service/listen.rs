//! Listening sockets: made, handed over by systemd, or found stale.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, ErrorKind};
use std::net::UdpSocket;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt as _, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::libc::{O_NOFOLLOW, O_NONBLOCK};
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrLike, SockaddrStorage, UnixAddr, bind, getsockname, getsockopt,
    listen, socket, sockopt,
};
use nix::unistd::geteuid;

use super::datagrams::Datagrams;
use super::error::ServiceError;
use crate::Address;
use crate::auth::plain;
use crate::client::transport::stream;

/// A socket that peers send to.
#[derive(Debug)]
pub(super) enum Listener {
    /// Peers connect.
    Unix(UnixListener, Option<Place>),
    /// Peers send datagrams, of which each peer has its share.
    Udp(Box<Datagrams>),
}

/// A socket's name in the file system, which is removed with it.
#[derive(Debug)]
pub(super) struct Place {
    path: PathBuf,
    mode: u32,
    inode: u64,
    lock: Lock,
}

/// A file that only one service can hold. It tells a stale socket from one that is being set up.
#[derive(Debug)]
struct Lock {
    path: PathBuf,
    file: File,
}

impl Lock {
    /// `None` if another service holds it. What else lies there stays as it is.
    fn take(path: PathBuf) -> io::Result<Option<Self>> {
        loop {
            let mut options = OpenOptions::new();
            // Its own alone: who may open it could hold it. A link that lies there leads elsewhere, a FIFO waits for a reader.
            options.create(true).truncate(false).write(true).mode(0o600).custom_flags(O_NOFOLLOW | O_NONBLOCK);
            let file = options.open(&path);
            let found = file.as_ref().map_or_else(|_| fs::symlink_metadata(&path), File::metadata);
            if found.is_ok_and(|found| !is_lock(&found)) {
                let what = "is no lock that a service has left behind, expected none or an empty file that its user alone can open";
                return Err(io::Error::other(format!("{} {what}", path.display())));
            }
            let file = file?;
            if file.try_lock().is_err() {
                return Ok(None);
            }
            // Its holder may have removed it between the two calls.
            if leads_to(&path, &file) {
                return Ok(Some(Self { path, file }));
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if leads_to(&self.path, &self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether a file looks as a lock does, and not like somebody else's.
fn is_lock(found: &Metadata) -> bool {
    found.is_file() && found.len() == 0 && found.uid() == geteuid().as_raw() && found.mode() & 0o7077 == 0
}

/// Whether a path leads to an open file.
fn leads_to(path: &Path, file: &File) -> bool {
    fs::metadata(path).is_ok_and(|found| file.metadata().is_ok_and(|held| found.ino() == held.ino()))
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.is_there() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Place {
    /// Whether the name still is that of this socket.
    fn is_there(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|found| found.ino() == self.inode)
    }
}

impl Listener {
    /// Binds an address. `mode` are the permissions of a socket in the file system.
    pub(super) fn bind(address: &Address, mode: u32) -> Result<Self, ServiceError> {
        let failed = |error: io::Error| ServiceError::Listen { address: address.clone(), reason: plain(&error) };
        match address {
            Address::Udp(socket) => {
                let socket = UdpSocket::bind(socket).map_err(|error| match error.kind() {
                    ErrorKind::AddrInUse => ServiceError::Taken(address.clone()),
                    _ => failed(error),
                })?;
                Self::of_datagrams(socket).map_err(failed)
            }
            Address::Unix(path) => {
                let mut lock = path.clone().into_os_string();
                lock.push(".lock");
                let lock =
                    Lock::take(lock.into()).map_err(failed)?.ok_or_else(|| ServiceError::Taken(address.clone()))?;
                match fs::symlink_metadata(path) {
                    Err(error) if error.kind() == ErrorKind::NotFound => {}
                    Err(error) => return Err(failed(error)),
                    Ok(found) if !found.file_type().is_socket() => return Err(ServiceError::NoSocket(address.clone())),
                    Ok(_) => match stream(path) {
                        // No other error says that nobody has it any more.
                        Err(Errno::ECONNREFUSED) => fs::remove_file(path).map_err(failed)?,
                        Ok(_) | Err(Errno::EAGAIN) => return Err(ServiceError::Taken(address.clone())),
                        Err(Errno::EPROTOTYPE) => return Err(ServiceError::OtherSocket(address.clone())),
                        Err(error) => return Err(failed(error.into())),
                    },
                }
                let (listener, inode) = named(path, mode).map_err(failed)?;
                Ok(Self::Unix(listener, Some(Place { path: path.clone(), mode, inode, lock })))
            }
        }
    }

    fn of_datagrams(socket: UdpSocket) -> io::Result<Self> {
        Ok(Self::Udp(Box::new(Datagrams::new(socket)?)))
    }

    /// The sockets that systemd hands over (`sd_listen_fds(3)`), with what can be said of their addresses.
    pub(super) fn handed_over() -> Result<Vec<(Self, String, bool)>, ServiceError> {
        let failed = |error: io::Error| ServiceError::Activation(plain(&error));
        let sockets = sd_notify::listen_fds().map_err(failed)?;
        sockets
            .map(|socket| {
                // SAFETY: systemd opened it for this process, and nobody else has asked for it.
                Self::of_socket(unsafe { OwnedFd::from_raw_fd(socket) }).map_err(failed)
            })
            .collect()
    }

    fn of_socket(socket: OwnedFd) -> io::Result<(Self, String, bool)> {
        let (kind, name) =
            (getsockopt(&socket, sockopt::SockType)?, getsockname::<SockaddrStorage>(socket_fd(&socket))?);
        match (name.family(), kind) {
            (Some(AddressFamily::Unix), SockType::Stream) => {
                let listener = UnixListener::from(socket);
                listener.set_nonblocking(true)?;
                let path = listener.local_addr()?.as_pathname().map(|path| path.display().to_string());
                Ok((Self::Unix(listener, None), format!("unix:{}", path.unwrap_or_default()), false))
            }
            (Some(AddressFamily::Inet | AddressFamily::Inet6), SockType::Datagram) => {
                let socket = UdpSocket::from(socket);
                let address = Address::Udp(socket.local_addr()?);
                Ok((Self::of_datagrams(socket)?, address.to_string(), address.is_remote()))
            }
            _ => Err(io::Error::other("one of them is neither a UNIX stream socket nor a UDP socket")),
        }
    }

    /// Whether the socket has lost its name in the file system.
    pub(super) fn is_lost(&self) -> bool {
        matches!(self, Self::Unix(_, Some(place)) if !place.is_there())
    }

    /// Gives a socket that has lost its name a new one, unless somebody else has taken that.
    pub(super) fn restore(&mut self) -> io::Result<()> {
        let Self::Unix(listener, Some(place)) = self else { return Ok(()) };
        let (fresh, inode) = named(&place.path, place.mode)?;
        if fs::metadata(&place.lock.path).is_err()
            && let Ok(Some(lock)) = Lock::take(place.lock.path.clone())
        {
            place.lock = lock;
        }
        (*listener, place.inode) = (fresh, inode);
        Ok(())
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Unix(listener, _) => listener.as_fd(),
            Self::Udp(datagrams) => datagrams.as_fd(),
        }
    }
}

fn socket_fd(socket: &OwnedFd) -> std::os::fd::RawFd {
    use std::os::fd::AsRawFd;
    socket.as_raw_fd()
}

/// A listening socket of that name. Nobody can connect before it has its permissions.
fn named(path: &Path, mode: u32) -> io::Result<(UnixListener, u64)> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let socket = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    bind(socket_fd(&socket), &UnixAddr::new(path)?)?;
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    listen(&socket, Backlog::MAXCONN)?;
    Ok((UnixListener::from(socket), fs::metadata(path)?.ino()))
}
