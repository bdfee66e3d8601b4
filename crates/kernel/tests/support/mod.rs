//! What tests of the controller share: whether they can run here, a controller of their own, and flows over a link.
#![allow(dead_code, reason = "each test uses a part")]

#[path = "../../../emu/tests/machine/mod.rs"]
mod machine;
pub(crate) mod transfer;

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use astraea_emu::{Config, Emulator, Route, receiver_address, sender_address};
use astraea_kernel::intf::Policy;
use astraea_kernel::{Attachment, Decider, Place, layout, system};

/// Whether the tests of this file cannot run here; what is missing is printed.
pub(crate) fn cannot_run() -> bool {
    let cannot = machine::skipped(machine::missing_for_controllers());
    let checked = system::check();
    assert_eq!(checked.is_err(), cannot, "{checked:?}");
    cannot
}

/// A shipped policy as the program takes it.
pub(crate) fn shipped(name: &str) -> Box<Policy> {
    layout::policy(&shipped_policy(name), 1).unwrap()
}

/// A shipped policy.
pub(crate) fn shipped_policy(name: &str) -> astraea_policy::Policy {
    astraea_policy::Policy::from_bytes(astraea_policy::shipped::file(name).unwrap()).unwrap()
}

/// A BPF file system and a controller's name that nobody else has; removed at the end.
pub(crate) struct Own {
    pub(crate) place: Place,
    root: PathBuf,
}

impl Own {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!("astr{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let root = std::env::temp_dir().join(&name);
        std::fs::create_dir(&root).unwrap();
        assert!(system::mount(&root), "cannot mount a BPF file system at {}", root.display());
        Self { place: Place { directory: root.join("astraea"), name }, root }
    }

    pub(crate) fn attach(&self, policy: &str) -> Attachment {
        Attachment::attach(&self.place, &shipped(policy), Decider::Kernel).unwrap()
    }

    pub(crate) fn name(&self) -> &str {
        &self.place.name
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = Attachment::detach(&self.place);
        let _ = Command::new("umount").arg(&self.root).status();
        let _ = std::fs::remove_dir(&self.root);
    }
}

/// Does something with no rights but these, in a thread of its own.
pub(crate) fn with_rights<T: Send>(rights: &[u32], work: impl FnOnce() -> T + Send) -> T {
    let half =
        |from: u32| rights.iter().filter(|bit| **bit >> 5 == from).fold(0_u32, |bits, bit| bits | 1 << (bit & 31));
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            // _LINUX_CAPABILITY_VERSION_3 and this thread; effective, permitted and inheritable, twice 32 bits.
            let (header, data) = ([0x2008_0522_u32, 0], [half(0), half(0), 0, half(1), half(1), 0]);
            // SAFETY: both are as long as this version has them.
            let code = unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), data.as_ptr()) };
            assert_eq!(code, 0, "{}", io::Error::last_os_error());
            work()
        });
        worker.join().unwrap()
    })
}

/// Does something in a network namespace that has a loopback device and nothing else.
pub(crate) fn in_a_network_of_its_own(work: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| {
            // SAFETY: of this thread only.
            assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0, "{}", io::Error::last_os_error());
            assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
            work();
        });
        worker.join().unwrap();
    });
}

/// Chooses a socket's congestion controller.
pub(crate) fn choose(socket: &impl std::os::fd::AsRawFd, name: &str) -> io::Result<()> {
    // SAFETY: the name is as long as is said.
    let code = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            name.as_ptr().cast(),
            name.len() as libc::socklen_t,
        )
    };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The kernel's figures of a connection.
pub(crate) fn info(socket: &TcpStream) -> libc::tcp_info {
    // SAFETY: the structure is plain and as long as is said.
    unsafe {
        let mut info: libc::tcp_info = std::mem::zeroed();
        let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
        let code = libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut length,
        );
        assert_eq!(code, 0);
        info
    }
}

/// A socket bound to an address, with the controller of that name.
pub(crate) fn socket(from: SocketAddr, name: &str) -> io::Result<Socket> {
    // SAFETY: a new socket, owned from here on.
    let socket = unsafe {
        let family = if from.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let descriptor = libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        if descriptor < 0 {
            return Err(io::Error::last_os_error());
        }
        Socket(std::os::fd::OwnedFd::from_raw_fd(descriptor))
    };
    choose(&socket.0, name)?;
    Ok(socket)
}

/// Ends a connection at once; the socket can be connected again.
pub(crate) fn disconnect(stream: TcpStream) -> io::Result<Socket> {
    // SAFETY: the structure is plain and as long as is said.
    let code = unsafe {
        let mut nobody: libc::sockaddr = std::mem::zeroed();
        nobody.sa_family = libc::AF_UNSPEC as u16;
        libc::connect(stream.as_raw_fd(), &raw const nobody, size_of_val(&nobody) as u32)
    };
    if code == 0 { Ok(Socket(stream.into())) } else { Err(io::Error::last_os_error()) }
}

/// Sets an option of a socket.
pub(crate) fn option(socket: &impl std::os::fd::AsRawFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: the value is as long as is said.
    let code = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, (&raw const value).cast(), size_of::<i32>() as u32)
    };
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// An option of a socket.
pub(crate) fn value(socket: &impl std::os::fd::AsRawFd, level: i32, name: i32) -> io::Result<i32> {
    let (mut value, mut length) = (0_i32, size_of::<i32>() as u32);
    // SAFETY: the value is as long as is said.
    let code = unsafe { libc::getsockopt(socket.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut length) };
    if code == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

/// A socket that is not connected yet.
pub(crate) struct Socket(std::os::fd::OwnedFd);

impl Socket {
    pub(crate) fn option(&self, level: i32, name: i32, value: i32) -> io::Result<()> {
        option(&self.0, level, name, value)
    }

    fn call(
        &self,
        address: SocketAddr,
        call: unsafe extern "C" fn(i32, *const libc::sockaddr, u32) -> i32,
    ) -> io::Result<()> {
        // SAFETY: the structures are as long as is said.
        let code = unsafe {
            match address {
                SocketAddr::V4(v4) => {
                    let mut a: libc::sockaddr_in = std::mem::zeroed();
                    a.sin_family = libc::AF_INET as u16;
                    a.sin_port = v4.port().to_be();
                    a.sin_addr.s_addr = u32::from_ne_bytes(v4.ip().octets());
                    call(self.0.as_raw_fd(), (&raw const a).cast(), size_of_val(&a) as u32)
                }
                SocketAddr::V6(v6) => {
                    let mut a: libc::sockaddr_in6 = std::mem::zeroed();
                    a.sin6_family = libc::AF_INET6 as u16;
                    a.sin6_port = v6.port().to_be();
                    a.sin6_addr.s6_addr = v6.ip().octets();
                    call(self.0.as_raw_fd(), (&raw const a).cast(), size_of_val(&a) as u32)
                }
            }
        };
        if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    pub(crate) fn connect(self, from: Option<SocketAddr>, to: SocketAddr) -> io::Result<TcpStream> {
        if let Some(from) = from {
            self.call(from, libc::bind)?;
        }
        self.call(to, libc::connect)?;
        Ok(TcpStream::from(self.0))
    }
}

/// Both ends of a connection over the emulator's first route, whose listener something is done to first.
pub(crate) fn connected(emulator: &Emulator, name: &str, prepare: impl FnOnce(&TcpListener)) -> (TcpStream, TcpStream) {
    let to = SocketAddr::from((receiver_address(0), 5001));
    let from = SocketAddr::from((sender_address(0), 0));
    let listener = emulator.receivers().run(|| TcpListener::bind(to)).unwrap();
    prepare(&listener);
    let sender = emulator.senders().run(|| socket(from, name)?.connect(Some(from), to)).unwrap();
    (sender, listener.accept().unwrap().0)
}

/// A link of so many bit/s, a one-way delay and a buffer in bytes, for so many flows.
pub(crate) fn link(rate: f64, delay: Duration, buffer: u64, flows: usize) -> Emulator {
    let (rate, delay) =
        (serde_json::json!({"constant": rate}), serde_json::json!({"constant": delay.as_nanos() as u64}));
    emulator(serde_json::json!({"name": "link", "rate": rate, "delay": delay, "limit": {"bytes": buffer}}), flows)
}

/// A link as a scenario has it, for so many flows.
pub(crate) fn emulator(link: serde_json::Value, flows: usize) -> Emulator {
    let links = vec![serde_json::from_value(link).unwrap()];
    let routes = vec![Route { path: vec![0], ..Route::default() }; flows];
    Emulator::start(Config { links, routes, ..Config::default() }).unwrap()
}

/// What a flow over a link delivered.
pub(crate) struct Flow {
    pub(crate) received: Arc<AtomicU64>,
    sender: std::thread::JoinHandle<io::Result<libc::tcp_info>>,
    receiver: std::thread::JoinHandle<io::Result<u64>>,
}

impl Flow {
    /// Sends from `start` to `stop` after now, as flow number `index` of the link.
    pub(crate) fn start(emulator: &Emulator, index: usize, name: &str, start: Duration, stop: Duration) -> Self {
        Self::prepared(emulator, index, name, start, stop, || {})
    }

    /// The same with a sender's thread that does something first.
    pub(crate) fn prepared(
        emulator: &Emulator,
        index: usize,
        name: &str,
        start: Duration,
        stop: Duration,
        first: impl FnOnce() + Send + 'static,
    ) -> Self {
        let to = SocketAddr::from((receiver_address(index), 5001));
        let from = SocketAddr::from((sender_address(index), 0));
        let listener = emulator.receivers().run(|| TcpListener::bind(to)).unwrap();
        let unconnected = emulator.senders().run(|| socket(from, name)).unwrap();
        let received = Arc::new(AtomicU64::new(0));
        let count = received.clone();
        let begin = Instant::now();
        let receiver = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept()?;
            let mut buffer = vec![0; 1 << 18];
            loop {
                let length = stream.read(&mut buffer)?;
                if length == 0 {
                    return Ok(count.load(Ordering::Relaxed));
                }
                count.fetch_add(length as u64, Ordering::Relaxed);
            }
        });
        let sender = std::thread::spawn(move || {
            first();
            std::thread::sleep(start);
            let mut stream = unconnected.connect(Some(from), to)?;
            let data = vec![0x5a; 1 << 16];
            while begin.elapsed() < stop {
                stream.write_all(&data)?;
            }
            Ok(info(&stream))
        });
        Self { received, sender, receiver }
    }

    /// Waits for the end: bytes received, and the sender's figures when it stopped.
    pub(crate) fn finish(self) -> io::Result<(u64, libc::tcp_info)> {
        let info = self.sender.join().expect("a sender does not panic")?;
        Ok((self.receiver.join().expect("a receiver does not panic")?, info))
    }
}

/// Whether nothing of a path is left.
pub(crate) fn gone(path: &Path) -> bool {
    !path.exists()
}

/// A connection's end that drops whatever arrives, as if it had been lost, until this goes.
pub(crate) struct Deaf<'a>(&'a TcpStream);

impl<'a> Deaf<'a> {
    pub(crate) fn new(stream: &'a TcpStream) -> io::Result<Self> {
        // A socket filter of one instruction, which takes no byte of any packet.
        let mut nothing = libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 };
        let program = libc::sock_fprog { len: 1, filter: &raw mut nothing };
        // SAFETY: the structure is as long as is said and points to one instruction.
        let code = unsafe {
            libc::setsockopt(
                stream.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ATTACH_FILTER,
                (&raw const program).cast(),
                size_of_val(&program) as libc::socklen_t,
            )
        };
        if code == 0 { Ok(Self(stream)) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Deaf<'_> {
    fn drop(&mut self) {
        let _ = option(self.0, libc::SOL_SOCKET, libc::SO_DETACH_FILTER, 0);
    }
}
