//! A service that is started to be loaded.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use astraea_serve::Address;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, mkdtemp};

use super::Arguments;
use crate::failure::Failure;

/// The service; it ends when this is dropped.
pub(super) struct Child {
    process: std::process::Child,
    address: Address,
    metrics: SocketAddr,
    directory: PathBuf,
}

impl Child {
    pub(super) fn start(arguments: &Arguments) -> Result<Self, Failure> {
        // Another container may have a process of the same number, and the same temporary directory.
        let directory = mkdtemp(&std::env::temp_dir().join("astraea-bench-XXXXXX"))?;
        // Free a moment ago is all that can be known of a port.
        let metrics = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
        let address = if arguments.udp {
            Address::Udp(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
        } else {
            Address::Unix(directory.join("serve.sock"))
        };
        let expiry = (3 * arguments.period.as_secs()).max(10).to_string();
        // Those of a flood among them.
        let flows = (arguments.flows + 4096).to_string();
        let mut command = Command::new(std::env::current_exe()?);
        // It does not outlive this process, whatever that ends by.
        // SAFETY: prctl(2) is safe between fork and exec.
        unsafe { command.pre_exec(|| Ok(prctl::set_pdeathsig(Signal::SIGTERM)?)) };
        let process = command
            .args(["serve", "--listen", &address.to_string(), "--metrics", &metrics.to_string()])
            .args(["--policy", &arguments.policy, "--max-wait", &arguments.max_wait])
            .args(["--max-flows", &flows, "--expiry", &expiry, "--log-level", "warn"])
            .stdin(Stdio::null())
            .spawn()?;
        Ok(Self { process, address, metrics, directory })
    }

    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    pub(super) fn process(&self) -> i32 {
        self.process.id().cast_signed()
    }

    /// Mean size of the batches so far, from the metrics.
    pub(super) fn mean_batch(&self) -> Option<f64> {
        let mut stream = TcpStream::connect(self.metrics).ok()?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let value = |name: &str| -> Option<f64> {
            let line = text.lines().find(|line| line.starts_with(name))?;
            line.split_whitespace().nth(1)?.parse().ok()
        };
        Some(value("astraea_serve_batch_size_sum")? / value("astraea_serve_batch_size_count")?)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = kill(Pid::from_raw(self.process()), Signal::SIGTERM);
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}
