//! A controller that begins with the flow's data and writes down what becomes of it.

use std::sync::{Arc, Mutex};

use astraea_cc::{
    Ack, AnyController, Congestion, ConstantWindow, Controller, INITIAL_WINDOW, Loss, LostPacket, MSS, Nanos, Rtt,
};

use super::flow::{Record, lock};
use super::{Clock, DATAGRAM, PAYLOAD};
use crate::Scheme;

/// The controller of a flow, which does not see the handshake: a trial's flow begins with its data.
pub(super) struct Probe {
    scheme: Scheme,
    controller: AnyController,
    begun: bool,
    rtt: Rtt,
    mss: u32,
    /// When the flow has data, in ns since the trial began.
    start: Nanos,
    record: Arc<Mutex<Record>>,
    clock: Clock,
}

impl Probe {
    pub(super) fn new(scheme: Scheme, mss: u32, start: Nanos, record: Arc<Mutex<Record>>, clock: Clock) -> Self {
        let handshake = ConstantWindow::new(u64::from(INITIAL_WINDOW * mss));
        let controller = AnyController::ConstantWindow(handshake);
        Self { scheme, controller, begun: false, rtt: Rtt::default(), mss, start, record, clock }
    }

    /// Bytes of this connection's packets as bytes of the simulator's, so that both make the same number of packets.
    fn in_segments(&self, bytes: u64) -> f32 {
        bytes as f32 * MSS as f32 / self.mss as f32
    }
}

impl Controller for Probe {
    fn on_sent(&mut self, now: Nanos, bytes: u64, in_flight: u64) {
        if !self.begun && self.clock.is_after(self.start) {
            self.begun = true;
            self.controller = self.scheme.controller(self.mss);
        }
        self.controller.on_sent(now, bytes, in_flight);
        if self.begun {
            lock(&self.record).stats.sent += 1;
        }
    }

    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        if !self.begun {
            self.controller.on_ack(ack, rtt);
            return;
        }
        if let Some(sample) = ack.rtt {
            self.rtt.update(sample);
        }
        self.controller.on_ack(ack, &self.rtt);
        let (cwnd, in_flight) = (self.in_segments(self.controller.cwnd()), self.in_segments(ack.in_flight));
        let record = &mut *lock(&self.record);
        let slot = record.slot(self.clock.now());
        slot.cwnd = cwnd;
        slot.in_flight = in_flight;
        slot.pacing = self.controller.pacing_rate().unwrap_or(0.0) as f32;
        if let Some(sample) = ack.rtt {
            slot.rtt_sum += sample;
            slot.rtt_count += 1;
            record.stats.rtt_sum += sample;
            record.stats.rtt_count += 1;
            record.stats.rtt_min = Some(record.stats.rtt_min.map_or(sample, |least| least.min(sample)));
        }
        record.stats.acked_bytes += ack.acked * u64::from(PAYLOAD) / u64::from(DATAGRAM);
    }

    fn on_packet_lost(&mut self, packet: &LostPacket) {
        self.controller.on_packet_lost(packet);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.controller.on_loss(loss);
        if self.begun {
            let packets = loss.lost.div_ceil(u64::from(self.mss));
            let record = &mut *lock(&self.record);
            record.slot(self.clock.now()).lost += packets as u32;
            record.stats.declared_lost += packets;
            record.stats.retransmitted += packets;
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        self.controller.on_congestion(event);
    }

    fn reduces_proportionally(&self) -> bool {
        self.controller.reduces_proportionally()
    }

    fn on_timeout(&mut self, now: Nanos, flight_size: u64) {
        self.controller.on_timeout(now, flight_size);
        if self.begun {
            lock(&self.record).stats.timeouts += 1;
        }
    }

    fn on_spurious_congestion(&mut self, now: Nanos) {
        self.controller.on_spurious_congestion(now);
    }

    fn on_idle_restart(&mut self, now: Nanos, idle: Nanos) {
        self.controller.on_idle_restart(now, idle);
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.controller.next_timer()
    }

    fn on_timer(&mut self, now: Nanos) {
        self.controller.on_timer(now);
    }

    fn cwnd(&self) -> u64 {
        self.controller.cwnd()
    }

    fn pacing_rate(&self) -> Option<f64> {
        self.controller.pacing_rate()
    }
}
