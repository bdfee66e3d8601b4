//! An emulation between two namespaces of its own.

use std::net::Ipv4Addr;

use astraea_sim::Nanos;

use crate::config::{Config, Routing};
use crate::device::{Tun, own_prefix};
use crate::error::Error;
use crate::live::LiveLink;
use crate::namespace::Namespace;
use crate::orphans::kill_orphans;
use crate::report::Report;
use crate::running::Running;

/// Prefix of the senders' addresses, and of the receivers': 16 bits each, inside the namespaces only.
const SENDERS: u8 = 77;
const RECEIVERS: u8 = 78;

/// Name of the device in each namespace, behind which the other one is.
pub const DEVICE: &str = "astr0";

/// Senders in one namespace, receivers in another, and the emulated network between them. Nothing leads out of it.
///
/// Every flow has addresses of its own, which give it its route: bind the socket of flow `i` to
/// [`sender_address(i)`](sender_address) and connect it to [`receiver_address(i)`](receiver_address).
pub struct Emulator {
    running: Running,
    senders: Namespace,
    receivers: Namespace,
}

/// The address of a flow's sender.
pub fn sender_address(flow: usize) -> Ipv4Addr {
    address(SENDERS, flow)
}

/// The address of a flow's receiver.
pub fn receiver_address(flow: usize) -> Ipv4Addr {
    address(RECEIVERS, flow)
}

fn address(network: u8, flow: usize) -> Ipv4Addr {
    let [high, low] = (flow as u16 + 1).to_be_bytes();
    Ipv4Addr::new(10, network, high, low)
}

impl Emulator {
    /// Makes the namespaces and starts. Time 0 of the links is `lead_ns` after this returns, or a moment before.
    ///
    /// # Errors
    /// If rights or the TUN driver are missing, or the configuration is inconsistent.
    pub fn start(mut config: Config) -> Result<Self, Error> {
        config.routing = Routing::ByAddress;
        config.validate()?;
        let senders = Namespace::new()?;
        let receivers = Namespace::new()?;
        // Who has no rights cannot tell whose emulation has gone.
        kill_orphans();
        let senders_device = end(&senders, SENDERS, RECEIVERS)?;
        let receivers_device = end(&receivers, RECEIVERS, SENDERS)?;
        let running = Running::start(config, senders_device, receivers_device)?;
        Ok(Self { running, senders, receivers })
    }

    /// Where senders live.
    pub fn senders(&self) -> &Namespace {
        &self.senders
    }

    /// Where receivers live.
    pub fn receivers(&self) -> &Namespace {
        &self.receivers
    }

    /// Time 0 of the links on the monotonic clock, in ns.
    pub fn epoch(&self) -> Nanos {
        self.running.epoch()
    }

    /// A link's counters, at most some tens of milliseconds old.
    ///
    /// # Panics
    /// If there is no such link.
    pub fn link(&self, link: usize) -> LiveLink {
        self.running.link(link)
    }

    /// Stops and removes the devices; the namespaces go with the last process inside.
    ///
    /// # Panics
    /// If a thread of the emulation has panicked.
    pub fn stop(self) -> Report {
        self.running.stop()
    }
}

/// The device of one end: all addresses of `own` are local, and those of `other` are behind it.
fn end(namespace: &Namespace, own: u8, other: u8) -> Result<Tun, Error> {
    let made = namespace.run(|| {
        own_prefix(Ipv4Addr::new(10, own, 0, 1), 16)?;
        Ok(Tun::create(DEVICE).and_then(|tun| {
            tun.add_route(Ipv4Addr::new(10, other, 0, 0), 16)?;
            Ok(tun)
        }))
    });
    made.map_err(|error| Error::system("addresses of a namespace", error))?
}
