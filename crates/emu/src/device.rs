//! TUN devices with segmentation offload, and the addresses and routes of a namespace.
//!
//! Everything is done by ioctls on the calling thread's namespace. They are older than netlink and enough here: one
//! address per device, one route per prefix. A prefix on the loopback device makes every address in it local, which
//! is how a namespace gets an address for each of thousands of flows.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::libc;

use crate::error::Error;
use crate::namespace::Namespace;

/// Bytes of the virtio header in front of every packet.
pub(crate) const VNET_HEADER: usize = 10;

/// Packets that may wait in a device for the emulator. The kernel's 500 overflow above about 400 Mbit/s, unseen.
const QUEUE_LENGTH: libc::c_int = 20_000;

/// Bytes of the largest IP packet on a link.
pub(crate) const MTU: libc::c_int = 1500;

// From <linux/if_tun.h>: the kernel may leave checksums to us, and hand over super-packets of TCP, also with ECN. It
// must not hand over those of UDP, which are not split here.
const OFFLOADS: libc::c_ulong =
    (libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN) as libc::c_ulong;

mod ioctl {
    use nix::libc;
    nix::ioctl_write_int!(tun_set_iff, b'T', 202);
    nix::ioctl_write_int!(tun_set_offload, b'T', 208);
    nix::ioctl_write_ptr!(tun_set_header_size, b'T', 216, libc::c_int);
}

/// One end of an emulated network.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
    namespace: Namespace,
}

impl Tun {
    /// Creates the device in the calling thread's namespace. It goes when the value is dropped, or the process ends.
    ///
    /// # Errors
    /// If the rights or the driver are missing, or the name is taken ([`Error::is_taken`]).
    pub fn create(name: &str) -> Result<Self, Error> {
        let path = "/dev/net/tun";
        let open = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path);
        let file = match open {
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV | libc::ENXIO)) => {
                return Err(Error::NoTun);
            }
            other => other.map_err(|error| Error::system(path, error))?,
        };
        let tun = Self { file, name: name.to_owned(), namespace: Namespace::current()? };
        tun.configure().map_err(|error| Error::system(format!("creating the TUN device {name}"), error))?;
        Ok(tun)
    }

    fn configure(&self) -> io::Result<()> {
        let mut request = request(&self.name);
        // A device of that name, even one that nobody uses at present, is somebody else's.
        let flags = libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR | libc::IFF_TUN_EXCL;
        request.ifr_ifru.ifru_flags = flags as libc::c_short;
        let fd = self.file.as_raw_fd();
        // SAFETY: the requests take a pointer to an ifreq, a plain number and a pointer to an int, all alive.
        unsafe {
            ioctl::tun_set_iff(fd, (&raw const request) as libc::c_ulong)?;
            ioctl::tun_set_header_size(fd, &const { VNET_HEADER as u8 }.into())?;
            ioctl::tun_set_offload(fd, OFFLOADS)?;
        }
        let device = Interface::new(&self.name)?;
        device.set(libc::SIOCSIFTXQLEN, |r| r.ifr_ifru.ifru_metric = QUEUE_LENGTH)?;
        device.set(libc::SIOCSIFMTU, |r| r.ifr_ifru.ifru_mtu = MTU)?;
        quiet(&self.name);
        device.up()
    }

    /// Its name in its namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives it an address and the one at its far end; call in its namespace.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn set_addresses(&self, local: Ipv4Addr, peer: Ipv4Addr) -> Result<(), Error> {
        let set = || {
            let device = Interface::new(&self.name)?;
            device.set(libc::SIOCSIFADDR, |r| r.ifr_ifru.ifru_addr = socket_address(local))?;
            device.set(libc::SIOCSIFDSTADDR, |r| r.ifr_ifru.ifru_dstaddr = socket_address(peer))
        };
        set().map_err(|error| Error::system(format!("address {local} of device {}", self.name), error))
    }

    /// Sends packets for `prefix`/`bits` into the device; call in its namespace.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn add_route(&self, prefix: Ipv4Addr, bits: u32) -> Result<(), Error> {
        let add = || Interface::new(&self.name)?.add_route(prefix, bits, 0);
        add().map_err(|error| Error::system(format!("route to {prefix}/{bits} by device {}", self.name), error))
    }

    /// Refuses packets for `prefix`/`bits` that have no better route, in the calling thread's namespace.
    ///
    /// # Errors
    /// What the kernel answers.
    pub fn reject(prefix: Ipv4Addr, bits: u32) -> Result<(), Error> {
        let add = || Interface::new("lo")?.add_route(prefix, bits, libc::RTF_REJECT);
        add().map_err(|error| Error::system(format!("route to {prefix}/{bits}"), error))
    }

    /// Gives it an IPv6 address, with its prefix of `bits` reached through it; call in its namespace.
    ///
    /// # Errors
    /// What the kernel answers, for example that it has no IPv6.
    pub fn set_address_v6(&self, local: Ipv6Addr, bits: u32) -> Result<(), Error> {
        let set = || Interface::new(&self.name)?.add_address_v6(local, bits);
        set().map_err(|error| Error::system(format!("address {local} of device {}", self.name), error))
    }

    /// Packets that the device itself dropped, in either direction.
    ///
    /// # Errors
    /// If `/proc` is not mounted.
    pub fn dropped(&self) -> io::Result<u64> {
        let table = self.namespace.run(|| fs::read_to_string("/proc/thread-self/net/dev"))?;
        let line = table.lines().find_map(|line| line.trim_start().strip_prefix(&self.name)?.strip_prefix(':'));
        let counters: Vec<u64> =
            line.unwrap_or_default().split_whitespace().filter_map(|word| word.parse().ok()).collect();
        // Receive: bytes packets errs drop …; transmit: from the ninth column on.
        match (counters.get(3), counters.get(11)) {
            (Some(receive), Some(transmit)) => Ok(receive + transmit),
            _ => Err(io::Error::new(io::ErrorKind::NotFound, "no counters of the device in /proc/net/dev")),
        }
    }

    /// Reads a packet with its virtio header, if one waits.
    #[inline]
    pub(crate) fn read(&self, buffer: &mut [u8]) -> nix::Result<usize> {
        nix::unistd::read(&self.file, buffer)
    }

    /// Writes a packet that is put together from parts, the first with the virtio header.
    #[inline]
    pub(crate) fn write(&self, parts: &[io::IoSlice<'_>]) -> nix::Result<usize> {
        nix::sys::uio::writev(&self.file, parts)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Keeps the kernel from sending IPv6 solicitations of its own into the device.
fn quiet(name: &str) {
    for (key, value) in [("addr_gen_mode", "1"), ("router_solicitations", "0"), ("accept_dad", "0")] {
        // Where there is no IPv6 there is nothing to keep quiet.
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{name}/{key}"), value);
    }
}

/// Brings up the loopback device of the calling thread's namespace.
pub(crate) fn loopback_up() -> io::Result<()> {
    Interface::new("lo")?.up()
}

/// Makes every address of `prefix`/`bits` local to the calling thread's namespace.
pub(crate) fn own_prefix(prefix: Ipv4Addr, bits: u32) -> io::Result<()> {
    let device = Interface::new("lo:1")?;
    device.set(libc::SIOCSIFADDR, |r| r.ifr_ifru.ifru_addr = socket_address(prefix))?;
    device.set(libc::SIOCSIFNETMASK, |r| r.ifr_ifru.ifru_netmask = socket_address(mask(bits)))
}

/// A device of the calling thread's namespace, and a socket to ask for changes of it.
struct Interface<'a> {
    name: &'a str,
    socket: OwnedFd,
}

impl<'a> Interface<'a> {
    fn new(name: &'a str) -> io::Result<Self> {
        Ok(Self { name, socket: control_socket(libc::AF_INET)? })
    }

    /// Makes a request with what `fill` puts into it.
    fn set(&self, code: libc::c_ulong, fill: impl FnOnce(&mut libc::ifreq)) -> io::Result<()> {
        let mut request = request(self.name);
        fill(&mut request);
        control(&self.socket, code, &mut request)
    }

    fn up(&self) -> io::Result<()> {
        self.set(libc::SIOCSIFFLAGS, |r| r.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short)
    }

    fn add_route(&self, prefix: Ipv4Addr, bits: u32, flags: libc::c_ushort) -> io::Result<()> {
        let mut device: Vec<libc::c_char> = self.name.bytes().map(character).chain([0]).collect();
        // SAFETY: all-zero bytes are a valid rtentry.
        let mut route: libc::rtentry = unsafe { std::mem::zeroed() };
        route.rt_dst = socket_address(prefix);
        route.rt_genmask = socket_address(mask(bits));
        route.rt_flags = libc::RTF_UP | flags;
        route.rt_dev = device.as_mut_ptr();
        control(&self.socket, libc::SIOCADDRT, &mut route)
    }

    fn add_address_v6(&self, address: Ipv6Addr, bits: u32) -> io::Result<()> {
        let socket = control_socket(libc::AF_INET6)?;
        let mut index = request(self.name);
        control(&self.socket, libc::SIOCGIFINDEX, &mut index)?;
        // SAFETY: SIOCGIFINDEX has set this member of the union.
        let ifr6_ifindex = unsafe { index.ifr_ifru.ifru_ifindex };
        let ifr6_addr = libc::in6_addr { s6_addr: address.octets() };
        let mut request = libc::in6_ifreq { ifr6_addr, ifr6_prefixlen: bits, ifr6_ifindex };
        control(&socket, libc::SIOCSIFADDR, &mut request)
    }
}

fn control_socket(family: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: the call takes numbers, and the descriptor that it returns is nobody else's.
    unsafe {
        let socket = libc::socket(family, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(socket)) }
    }
}

/// An ioctl of the interface or routing family, all of which take a pointer to a structure.
fn control<T>(socket: &OwnedFd, code: libc::c_ulong, argument: &mut T) -> io::Result<()> {
    // SAFETY: every caller passes the structure that its code takes, and it is alive.
    let answer = unsafe { libc::ioctl(socket.as_raw_fd(), code, std::ptr::from_mut(argument)) };
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A request about the device `name`, which is cut to what fits.
fn request(name: &str) -> libc::ifreq {
    // SAFETY: all-zero bytes are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(name.bytes()) {
        *to = character(from);
    }
    request
}

/// The address as the old interface takes it.
fn socket_address(address: Ipv4Addr) -> libc::sockaddr {
    // SAFETY: all-zero bytes are a valid sockaddr.
    let mut socket: libc::sockaddr = unsafe { std::mem::zeroed() };
    socket.sa_family = libc::AF_INET as libc::sa_family_t;
    for (to, from) in socket.sa_data[2..].iter_mut().zip(address.octets()) {
        *to = character(from);
    }
    socket
}

/// A byte as C has it, signed or not.
fn character(byte: u8) -> libc::c_char {
    libc::c_char::from_ne_bytes([byte])
}

fn mask(bits: u32) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::MAX.checked_shl(32 - bits).unwrap_or(0))
}
