//! The stack's endpoints: what both ends of a flow agree on.

use std::fmt::Display;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nix::sys::socket::{setsockopt, sockopt};
use s2n_quic::provider::connection_id::default::Format;
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::rustls;
use s2n_quic::{Client, Server};

use super::flow::Record;
use super::precise::Provider;
use super::probe::Probe;
use super::{Clock, FlowPlan};
use crate::{Scheme, s2n};

/// Name in the certificate.
pub(super) const NAME: &str = "astraea";

/// Size of IP packets.
const MTU: u16 = 1500;

/// Flow control never holds a sender back: more than any path in use has in flight.
const WINDOW: u64 = 1 << 30;

/// Data that the stack takes from the application before it is acknowledged.
const SEND_BUFFER: u32 = 1 << 28;

/// Of each socket, so that a receiver that is called late loses nothing.
const SOCKET_BUFFER: usize = 1 << 25;

/// Bounds of the round-trip time that is assumed before the first is measured, so that a packet of the handshake that is
/// lost costs a flow no second.
const FIRST_RTT: [Duration; 2] = [Duration::from_millis(10), Duration::from_millis(333)];

/// Nobody is disconnected for being silent.
const PATIENCE: Duration = Duration::from_hours(1);

/// A certificate and its key, made for this process.
pub(super) struct Identity {
    certificate: String,
    key: String,
}

impl Identity {
    pub(super) fn new() -> io::Result<Self> {
        let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).map_err(other)?;
        Ok(Self { certificate: made.cert.pem(), key: made.signing_key.serialize_pem() })
    }
}

fn other(error: impl Display) -> io::Error {
    io::Error::other(error.to_string())
}

/// The sender of a flow.
pub(super) fn client(
    flow: &FlowPlan,
    identity: &Identity,
    record: &Arc<Mutex<Record>>,
    clock: Clock,
) -> io::Result<Client> {
    let (scheme, start, record) = (flow.scheme.clone(), flow.start, record.clone());
    let scheme = Scheme::custom(move |mss| Probe::new(scheme.clone(), mss, start, record.clone(), clock));
    let tls = rustls::Client::builder().with_certificate(identity.certificate.as_str()).map_err(other)?;
    let limits = limits(flow)?.with_max_send_buffer_size(SEND_BUFFER).map_err(other)?;
    Client::builder()
        .with_tls(tls.build().map_err(other)?)
        .map_err(other)?
        .with_io(sockets(&flow.sender)?)
        .map_err(other)?
        .with_limits(limits)
        .map_err(other)?
        .with_connection_id(identifiers()?)
        .map_err(other)?
        .with_congestion_controller(s2n::Endpoint::new(scheme))
        .map_err(other)?
        .start()
        .map_err(other)
}

/// The receiver of a flow.
pub(super) fn server(flow: &FlowPlan, identity: &Identity) -> io::Result<Server> {
    let tls = rustls::Server::builder()
        .with_certificate(identity.certificate.as_str(), identity.key.as_str())
        .map_err(other)?;
    let server = Server::builder()
        .with_tls(tls.build().map_err(other)?)
        .map_err(other)?
        .with_io(sockets(&flow.receiver)?)
        .map_err(other)?
        .with_limits(limits(flow)?)
        .map_err(other)?
        .with_connection_id(identifiers()?)
        .map_err(other)?
        .start()
        .map_err(other)?;
    if !flow.ecn {
        // A receiver that cannot see the marks tells its sender so, and that stops sending packets that can be marked.
        setsockopt(&flow.receiver.as_fd(), sockopt::IpRecvTos, &false)?;
    }
    Ok(server)
}

/// Where the receiver of a flow listens.
pub(super) fn address(flow: &FlowPlan) -> io::Result<SocketAddr> {
    flow.receiver.local_addr()
}

fn limits(flow: &FlowPlan) -> io::Result<Limits> {
    let every = u8::try_from(flow.ack.every).unwrap_or(u8::MAX);
    let first_rtt = Duration::from_nanos(2 * flow.way_back);
    let limits = Limits::new()
        .with_data_window(WINDOW)
        .and_then(|limits| limits.with_unidirectional_data_window(WINDOW))
        .and_then(|limits| limits.with_initial_round_trip_time(first_rtt.clamp(FIRST_RTT[0], FIRST_RTT[1])))
        .and_then(|limits| limits.with_max_idle_timeout(PATIENCE))
        .and_then(|limits| limits.with_ack_elicitation_interval(every))
        .and_then(|limits| limits.with_max_ack_delay(Duration::from_nanos(flow.ack.timeout_ns)));
    limits.map_err(other)
}

/// Identifiers no longer than what tells connections of one endpoint apart.
fn identifiers() -> io::Result<Format> {
    let short = Format::builder().with_len(4).map_err(other)?;
    short.build().map_err(other)
}

fn sockets(socket: &UdpSocket) -> io::Result<Provider> {
    // Beyond the system's limit where that is permitted.
    if setsockopt(&socket.as_fd(), sockopt::RcvBufForce, &SOCKET_BUFFER).is_err() {
        setsockopt(&socket.as_fd(), sockopt::RcvBuf, &SOCKET_BUFFER)?;
    }
    Provider::new(socket.try_clone()?, MTU)
}
