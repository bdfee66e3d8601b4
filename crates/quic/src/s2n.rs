//! Adapter for s2n-quic.
//!
//! The stack reports packets and asks for a window and for the earliest departure of the next packet, so that both the
//! window and the pacing rate of a controller take effect.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use astraea_cc::Nanos;
use s2n_quic::provider::congestion_controller::{
    self, CongestionController, PathInfo, Publisher, RandomGenerator, RttEstimator, Timestamp,
};

use crate::Scheme;
use crate::driver::{Driver, Stamp};

/// The stack takes what is less than a millisecond ahead for the present (RFC 9002 §6.1.2, `kGranularity`); pacing is to
/// be finer than that.
pub(crate) const GRANULARITY: Duration = Duration::from_micros(999);

/// Gives each connection of an endpoint a controller: `.with_congestion_controller(Endpoint::new(scheme))?`.
#[derive(Debug)]
pub struct Endpoint {
    scheme: Scheme,
}

impl Endpoint {
    /// All connections under this scheme.
    pub fn new(scheme: Scheme) -> Self {
        Self { scheme }
    }
}

impl congestion_controller::Endpoint for Endpoint {
    type CongestionController = Adapter;

    fn new_congestion_controller(&mut self, path: PathInfo<'_>) -> Adapter {
        Adapter::new(&self.scheme, path.max_datagram_size)
    }
}

/// A connection's controller. A clone is the same controller: the stack clones when a connection moves to another path.
#[derive(Clone)]
pub struct Adapter(Arc<Mutex<State>>);

struct State {
    driver: Driver,
    /// Time 0 of the controller.
    epoch: Option<Timestamp>,
    mss: u16,
    /// Packets with congestion-experienced marks that the acknowledgement in progress reports.
    marked: u64,
}

impl State {
    fn nanos(&mut self, time: Timestamp) -> Nanos {
        since(*self.epoch.get_or_insert(time), time)
    }
}

/// Time between two events in ns. (The stack's own method for this never returns 0.)
fn since(earlier: Timestamp, later: Timestamp) -> Nanos {
    if later > earlier { (later - earlier).as_nanos() as Nanos } else { 0 }
}

impl Adapter {
    fn new(scheme: &Scheme, mss: u16) -> Self {
        let driver = Driver::new(scheme.controller(u32::from(mss)), u32::from(mss));
        Self(Arc::new(Mutex::new(State { driver, epoch: None, mss, marked: 0 })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut state = self.state();
        let (cwnd, in_flight) = (state.driver.cwnd(), state.driver.in_flight());
        f.debug_struct("Adapter").field("cwnd", &cwnd).field("in_flight", &in_flight).finish()
    }
}

impl CongestionController for Adapter {
    type PacketInfo = PacketInfo;

    fn congestion_window(&self) -> u32 {
        self.state().driver.cwnd().try_into().unwrap_or(u32::MAX)
    }

    fn bytes_in_flight(&self) -> u32 {
        self.state().driver.in_flight().try_into().unwrap_or(u32::MAX)
    }

    fn is_congestion_limited(&self) -> bool {
        self.state().driver.is_full()
    }

    fn requires_fast_retransmission(&self) -> bool {
        self.state().driver.wants_repair()
    }

    fn on_packet_sent<Pub: Publisher>(
        &mut self,
        time_sent: Timestamp,
        sent_bytes: usize,
        app_limited: Option<bool>,
        _rtt_estimator: &RttEstimator,
        _publisher: &mut Pub,
    ) -> PacketInfo {
        let state = &mut *self.state();
        let now = state.nanos(time_sent);
        // Packets that only acknowledge count nothing. A handshake says nothing about what the path could carry.
        let stamp = if sent_bytes == 0 {
            Stamp::default()
        } else {
            state.driver.on_sent(now, sent_bytes as u64, app_limited.unwrap_or(true))
        };
        PacketInfo(stamp)
    }

    fn on_rtt_update<Pub: Publisher>(
        &mut self,
        time_sent: Timestamp,
        now: Timestamp,
        _rtt_estimator: &RttEstimator,
        _publisher: &mut Pub,
    ) {
        self.state().driver.on_rtt(since(time_sent, now));
    }

    fn on_ack<Pub: Publisher>(
        &mut self,
        _newest_acked_time_sent: Timestamp,
        bytes_acknowledged: usize,
        newest_acked_packet_info: PacketInfo,
        _rtt_estimator: &RttEstimator,
        _random_generator: &mut dyn RandomGenerator,
        ack_receive_time: Timestamp,
        _publisher: &mut Pub,
    ) {
        let state = &mut *self.state();
        let now = state.nanos(ack_receive_time);
        let acked = bytes_acknowledged as u64;
        // The stack counts marked packets, not their bytes.
        let marked = (std::mem::take(&mut state.marked) * u64::from(state.mss)).min(acked);
        state.driver.on_ack(now, acked, &newest_acked_packet_info.0, marked, None);
    }

    fn on_packet_lost<Pub: Publisher>(
        &mut self,
        lost_bytes: u32,
        packet_info: PacketInfo,
        persistent_congestion: bool,
        _new_loss_burst: bool,
        _random_generator: &mut dyn RandomGenerator,
        timestamp: Timestamp,
        _publisher: &mut Pub,
    ) {
        let state = &mut *self.state();
        let now = state.nanos(timestamp);
        state.driver.on_lost(now, u64::from(lost_bytes), &packet_info.0.send, persistent_congestion);
    }

    fn on_explicit_congestion<Pub: Publisher>(&mut self, ce_count: u64, _time: Timestamp, _publisher: &mut Pub) {
        // The acknowledgement that brought the count is reported next.
        self.state().marked += ce_count;
    }

    /// Controllers keep the segment that they began with, in which their windows count.
    fn on_mtu_update<Pub: Publisher>(&mut self, max_data_size: u16, _publisher: &mut Pub) {
        self.state().mss = max_data_size;
    }

    fn on_packet_discarded<Pub: Publisher>(&mut self, bytes_sent: usize, _publisher: &mut Pub) {
        self.state().driver.on_discarded(bytes_sent as u64);
    }

    fn earliest_departure_time(&self) -> Option<Timestamp> {
        let state = &mut *self.state();
        let departure = state.driver.next_departure()?;
        // Rounded down, as the clock's microseconds are.
        Some(state.epoch? + Duration::from_micros(departure / 1000) + GRANULARITY)
    }

    /// A batch ends where pacing wants a pause.
    fn send_quantum(&self) -> Option<usize> {
        self.state().driver.must_pause().then_some(0)
    }
}

/// What the stack keeps with each packet for its controller.
#[derive(Clone, Copy, Debug, Default)]
pub struct PacketInfo(Stamp);

#[cfg(test)]
mod tests;
