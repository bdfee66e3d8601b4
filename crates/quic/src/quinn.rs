//! Adapter for quinn.
//!
//! A controller of quinn sets a window and nothing else; quinn paces at 1.25 windows per smoothed round trip. A
//! controller's pacing rate therefore takes effect as a bound on the window: rate times smoothed round-trip time.

use std::any::Any;
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use astraea_cc::{Nanos, SendStamp};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

use crate::Scheme;
use crate::driver::{Driver, Stamp};

/// Batches of sent packets that are remembered. Those of packets that only acknowledge are never acknowledged themselves.
const MOST_BATCHES: usize = 16_384;

/// Smallest window that a pacing rate may impose, in packets.
const LEAST_PACKETS: u64 = 2;

/// Gives each connection a controller: `transport.congestion_controller_factory(Arc::new(Factory::new(scheme)))`.
#[derive(Debug)]
pub struct Factory {
    scheme: Scheme,
}

impl Factory {
    /// All connections under this scheme.
    pub fn new(scheme: Scheme) -> Self {
        Self { scheme }
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Adapter::new(&self.scheme, now, current_mtu))
    }
}

/// A connection's controller. A clone is the same controller: the stack clones when a connection moves to another path.
#[derive(Clone)]
pub struct Adapter(Arc<Mutex<State>>);

/// Packets that left together.
struct Batch {
    sent: Instant,
    stamp: Stamp,
    /// Bytes sent before it, and of it acknowledged.
    begin: u64,
    acked: u64,
}

/// What an acknowledgement has brought; losses that it reveals are reported by the stack after it, to controllers before.
#[derive(Default)]
struct PendingAck {
    now: Nanos,
    acked: u64,
    newest: Option<(Instant, Stamp)>,
    marked: u64,
    /// Bytes in flight and whether the application has no more, once all packets have been reported.
    done: Option<(u64, bool)>,
}

struct State {
    driver: Driver,
    epoch: Instant,
    mss: u64,
    initial_window: u64,
    batches: VecDeque<Batch>,
    largest_acked: Option<u64>,
    pending: PendingAck,
}

impl Adapter {
    fn new(scheme: &Scheme, now: Instant, mtu: u16) -> Self {
        let mut driver = Driver::new(scheme.controller(u32::from(mtu)), u32::from(mtu));
        let initial_window = driver.cwnd();
        let batches = VecDeque::new();
        let (mss, pending) = (u64::from(mtu), PendingAck::default());
        let state = State { driver, epoch: now, mss, initial_window, batches, largest_acked: None, pending };
        Self(Arc::new(Mutex::new(state)))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn nanos(&self, time: Instant) -> Nanos {
        time.saturating_duration_since(self.epoch).as_nanos() as Nanos
    }

    /// The packets that left at that time.
    fn batch(&mut self, sent: Instant) -> Option<&mut Batch> {
        let place = self.batches.partition_point(|batch| batch.sent < sent);
        self.batches.get_mut(place).filter(|batch| batch.sent == sent)
    }

    /// A packet is acknowledged, of the batch that left at `sent`.
    fn on_acked_packet(&mut self, now: Instant, sent: Instant, bytes: u64) {
        self.settle();
        self.pending.now = self.nanos(now);
        self.pending.acked += bytes;
        let Some(batch) = self.batch(sent) else { return };
        batch.acked += bytes;
        // Packets of a batch are acknowledged in order, unless one of them is lost.
        let stamp = Stamp { end: (batch.begin + batch.acked).min(batch.stamp.end), ..batch.stamp };
        if self.pending.newest.is_none_or(|(newest, _)| newest <= sent) {
            self.pending.newest = Some((sent, stamp));
        }
    }

    /// Reports the acknowledgement once everything about it is known.
    fn settle(&mut self) {
        let Some((in_flight, app_limited)) = self.pending.done.take() else { return };
        let PendingAck { now, acked, newest, marked, .. } = std::mem::take(&mut self.pending);
        let Some((_, stamp)) = newest else { return };
        self.driver.on_ack(now, acked, &stamp, marked, Some(in_flight));
        if app_limited {
            self.driver.on_app_limited();
        }
    }

    fn window(&mut self) -> u64 {
        self.settle();
        let cwnd = self.driver.cwnd();
        let (rate, rtt) = (self.driver.pacing_rate(), self.driver.smoothed_rtt());
        let paced = rate.zip(rtt).map_or(u64::MAX, |(rate, rtt)| (rate / 8e9 * rtt as f64) as u64);
        cwnd.min(paced.max(LEAST_PACKETS * self.mss))
    }
}

impl Controller for Adapter {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        let state = &mut *self.state();
        state.settle();
        let time = state.nanos(now);
        let stamp = state.driver.on_sent(time, bytes, false);
        // Quinn sends several batches under one time, which is all that an acknowledgement will name: they are one.
        if let Some(last) = state.batches.back_mut().filter(|last| last.sent == now) {
            last.stamp.end = stamp.end;
            return;
        }
        if state.batches.len() == MOST_BATCHES {
            state.batches.pop_front();
        }
        state.batches.push_back(Batch { sent: now, begin: stamp.end - bytes, stamp, acked: 0 });
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, _app_limited: bool, _rtt: &RttEstimator) {
        self.state().on_acked_packet(now, sent, bytes);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest_packet_num_acked: Option<u64>) {
        let state = &mut *self.state();
        let advanced = largest_packet_num_acked > state.largest_acked;
        state.largest_acked = state.largest_acked.max(largest_packet_num_acked);
        if let Some((sent, _)) = state.pending.newest {
            state.pending.done = Some((in_flight, app_limited));
            if advanced {
                state.driver.on_rtt(now.saturating_duration_since(sent).as_nanos() as Nanos);
            }
            // Nothing older than twice this round trip is still to be acknowledged as the newest.
            let oldest = sent.checked_sub(now.saturating_duration_since(sent)).unwrap_or(state.epoch);
            let keep = state.batches.partition_point(|batch| batch.sent < oldest);
            state.batches.drain(..keep);
        } else {
            state.driver.set_in_flight(in_flight);
        }
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent_congestion: bool, lost_bytes: u64) {
        let state = &mut *self.state();
        let (time, sent_at) = (state.nanos(now), state.nanos(sent));
        if lost_bytes == 0 {
            // The stack says that there are marks, not how many.
            state.pending.marked = state.mss.min(state.pending.acked);
        } else {
            // The stack names the last of them only.
            let last =
                state.batch(sent).map_or(SendStamp { sent_at, ..SendStamp::default() }, |batch| batch.stamp.send);
            state.driver.on_lost(time, lost_bytes, &last, is_persistent_congestion);
            if let Some((in_flight, _)) = &mut state.pending.done {
                *in_flight -= lost_bytes.min(*in_flight);
            }
        }
    }

    /// Controllers keep the segment that they began with, in which their windows count.
    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.state().mss = u64::from(new_mtu);
    }

    /// quinn sends while what is in flight stays *below* this, hence one byte more.
    fn window(&self) -> u64 {
        self.state().window().saturating_add(1)
    }

    fn metrics(&self) -> ControllerMetrics {
        let state = &mut *self.state();
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = state.window();
        metrics.pacing_rate = state.driver.pacing_rate().map(|rate| rate as u64);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.state().initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl fmt::Debug for Adapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut state = self.state();
        let (cwnd, in_flight) = (state.window(), state.driver.in_flight());
        f.debug_struct("Adapter").field("cwnd", &cwnd).field("in_flight", &in_flight).finish()
    }
}

#[cfg(test)]
mod tests;
