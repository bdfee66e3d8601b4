//! What a QUIC stack reports, turned into what a controller expects.
//!
//! Both adapters end here, so that what a controller is told does not depend on the stack. All byte counts are UDP
//! payload: that is what QUIC stacks count, and what their windows bound (RFC 9002 §7).

use astraea_cc::{
    Ack, AnyController, Congestion, Controller, Loss, LostPacket, MILLISECOND, MIN_RTO, Nanos, RateSampler, Reduction,
    Rtt, SendStamp, Signal,
};

/// Pacing that fell behind by no more than this is caught up: the timers of the stacks are this coarse.
const CATCH_UP: Nanos = 2 * MILLISECOND;

/// Periods that a controller's timer may be behind before those in between are skipped.
const MOST_TIMERS: u32 = 256;

/// What the driver must get back when the packet is acknowledged or lost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stamp {
    pub(crate) send: SendStamp,
    /// Bytes that had been sent when this packet had been.
    pub(crate) end: u64,
}

/// Losses that one detection has revealed so far.
#[derive(Clone, Copy, Debug)]
struct PendingLoss {
    now: Nanos,
    bytes: u64,
    /// Send time of the newest of them.
    sent_at: Nanos,
    /// In flight when the detection began.
    flight_size: u64,
    persistent: bool,
}

/// One connection's controller and the accounts that it needs.
pub(crate) struct Driver {
    controller: AnyController,
    mss: u64,
    rtt: Rtt,
    /// Round-trip sample that belongs to the acknowledgement in progress.
    sample: Option<Nanos>,
    sampler: RateSampler,
    in_flight: u64,
    /// Bytes sent.
    sent: u64,
    /// Bytes acknowledged, lost or given up.
    settled: u64,
    /// Bytes sent up to the newest acknowledged packet.
    acked_end: u64,
    loss: Option<PendingLoss>,
    /// When the present recovery period began, or the last one.
    recovery_start: Option<Nanos>,
    in_recovery: bool,
    /// How the window goes down, for controllers that leave it to the transport.
    reduction: Option<Reduction>,
    /// A retransmission may leave although the window is full (RFC 9002 §7.3.2).
    repair: bool,
    cwnd_limited: bool,
    last_sent_at: Nanos,
    /// Earliest time at which pacing lets the next packet go.
    next_send: Nanos,
}

impl Driver {
    /// A connection with packets of at most `mss` bytes.
    pub(crate) fn new(controller: AnyController, mss: u32) -> Self {
        Self {
            controller,
            mss: u64::from(mss),
            rtt: Rtt::default(),
            sample: None,
            sampler: RateSampler::default(),
            in_flight: 0,
            sent: 0,
            settled: 0,
            acked_end: 0,
            loss: None,
            recovery_start: None,
            in_recovery: false,
            reduction: None,
            repair: false,
            cwnd_limited: false,
            last_sent_at: 0,
            next_send: 0,
        }
    }

    /// Congestion window in bytes, at least one packet.
    pub(crate) fn cwnd(&mut self) -> u64 {
        self.settle();
        self.window()
    }

    fn window(&self) -> u64 {
        // Another scheme may have taken over since the reduction began.
        let reduction = self.reduction.filter(|_| self.controller.reduces_proportionally());
        reduction.map_or_else(|| self.controller.cwnd(), |reduction| reduction.window()).max(self.mss)
    }

    /// Bytes in flight.
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Whether the window has no room for another packet.
    pub(crate) fn is_full(&mut self) -> bool {
        self.in_flight + self.mss > self.cwnd() && self.in_flight > 0
    }

    /// Whether a retransmission may leave nevertheless.
    pub(crate) fn wants_repair(&mut self) -> bool {
        self.settle();
        self.repair
    }

    /// The rate that the controller wants, in bit/s.
    pub(crate) fn pacing_rate(&mut self) -> Option<f64> {
        self.settle();
        self.controller.pacing_rate()
    }

    /// Smoothed round-trip time, if there is one.
    #[cfg(feature = "quinn")]
    pub(crate) fn smoothed_rtt(&self) -> Option<Nanos> {
        self.rtt.has_sample().then(|| self.rtt.smoothed())
    }

    /// When pacing lets the next packet go; `None` for an unpaced controller.
    pub(crate) fn next_departure(&mut self) -> Option<Nanos> {
        self.pacing_rate().map(|_| self.next_send)
    }

    /// Whether pacing separates the next packet from the last.
    pub(crate) fn must_pause(&mut self) -> bool {
        self.next_departure().is_some_and(|time| time > self.last_sent_at)
    }

    /// Packets of `bytes` in all left. `app_limited`: there is nothing more to send, and the window has room.
    pub(crate) fn on_sent(&mut self, now: Nanos, bytes: u64, app_limited: bool) -> Stamp {
        self.settle();
        self.run_timers(now);
        let idle = self.in_flight == 0;
        let was_full = self.cwnd_limited;
        if idle && self.sent > 0 {
            let silence = now.saturating_sub(self.last_sent_at);
            if silence > self.rtt.retransmission_timeout(MIN_RTO) {
                self.controller.on_idle_restart(now, silence);
            }
        }
        let send = self.sampler.on_sent(now, bytes, self.in_flight);
        self.in_flight += bytes;
        self.sent += bytes;
        self.last_sent_at = now;
        self.repair = false;
        if let Some(reduction) = &mut self.reduction {
            reduction.on_sent(bytes);
        }
        self.controller.on_sent(now, bytes, self.in_flight);
        if let Some(rate) = self.controller.pacing_rate() {
            // What fell behind because a timer was late is caught up, not what the window or the application held back.
            let from = if idle || was_full { now } else { now.saturating_sub(CATCH_UP) };
            self.next_send = self.next_send.max(from).saturating_add((bytes as f64 * 8e9 / rate) as Nanos);
        }
        self.cwnd_limited |= self.is_full();
        if app_limited {
            self.on_app_limited();
        }
        Stamp { send, end: self.sent }
    }

    /// The application has nothing more to send.
    pub(crate) fn on_app_limited(&mut self) {
        self.sampler.on_app_limited(self.in_flight);
    }

    /// The acknowledgement in progress gives this round-trip time.
    pub(crate) fn on_rtt(&mut self, sample: Nanos) {
        self.rtt.update(sample);
        self.sample = Some(sample);
    }

    /// `acked` bytes are acknowledged for the first time, `newest` is the last sent of their packets, and `marked` of
    /// them carried a mark. `in_flight` is what remains, if the stack says so. Call after [`on_rtt`](Self::on_rtt) and
    /// [`on_lost`](Self::on_lost).
    pub(crate) fn on_ack(&mut self, now: Nanos, acked: u64, newest: &Stamp, marked: u64, in_flight: Option<u64>) {
        self.run_timers(now);
        // A stack does not say which data are missing: whatever shows no further loss is safe.
        let safe = self.loss.is_none();
        let flight_size = self.loss.map_or(self.in_flight, |loss| loss.flight_size);
        let was_full = self.cwnd_limited || flight_size + self.mss > self.window();
        self.in_flight -= acked.min(self.in_flight);
        self.settled += acked;
        if let Some(bytes) = in_flight {
            self.set_in_flight(bytes);
        }
        self.acked_end = self.acked_end.max(newest.end);
        self.sampler.on_delivered(now, acked);
        let rate = self.sampler.sample(&newest.send, self.rtt.min().unwrap_or(0));
        self.settle();
        let sent_at = newest.send.sent_at;
        if self.in_recovery && (self.is_after_recovery_start(sent_at) || self.in_flight == 0) {
            self.in_recovery = false;
            self.reduction = None;
        }
        if marked > 0 && self.is_after_recovery_start(sent_at) {
            self.begin_recovery(now, Signal::Ecn, flight_size, sent_at);
        }
        let ack = Ack {
            now,
            acked,
            sent_at,
            rtt: self.sample.take(),
            rate,
            in_flight: self.in_flight,
            cwnd_limited: was_full,
            in_recovery: self.in_recovery,
            hole_open: self.settled < self.acked_end,
            // QUIC's acknowledgements say how long they were held back, not when they left.
            stamped: None,
            ce_marked: marked,
        };
        self.cwnd_limited = false;
        self.controller.on_ack(&ack, &self.rtt);
        if let Some(reduction) = &mut self.reduction {
            reduction.on_ack(acked, self.in_flight, safe, self.mss);
        }
    }

    /// A packet of `bytes`, or several of which it is the last, are declared lost. `persistent`: everything sent for
    /// several probe timeouts is (RFC 9002 §7.6).
    pub(crate) fn on_lost(&mut self, now: Nanos, bytes: u64, packet: &SendStamp, persistent: bool) {
        let sent_at = packet.sent_at;
        if self.loss.is_some_and(|loss| loss.now != now) {
            self.settle();
        }
        self.run_timers(now);
        let flight_size = self.in_flight;
        let loss = self.loss.get_or_insert(PendingLoss { now, bytes: 0, sent_at, flight_size, persistent });
        loss.bytes += bytes;
        loss.sent_at = loss.sent_at.max(sent_at);
        loss.persistent |= persistent;
        self.in_flight -= bytes.min(self.in_flight);
        self.settled += bytes;
        self.sampler.on_lost(bytes);
        if !persistent {
            self.controller.on_packet_lost(&LostPacket {
                now,
                bytes,
                sent_at,
                sent_in_flight: packet.in_flight,
                lost_since: self.sampler.lost() - packet.lost,
                app_limited: packet.app_limited,
            });
        }
    }

    /// `bytes` are no longer in flight, but neither arrived nor lost.
    pub(crate) fn on_discarded(&mut self, bytes: u64) {
        self.in_flight -= bytes.min(self.in_flight);
        self.settled += bytes;
    }

    /// The stack says what is in flight: packets that only acknowledge were counted as sent, but never are.
    pub(crate) fn set_in_flight(&mut self, bytes: u64) {
        self.in_flight = bytes;
        self.settled = self.sent - bytes.min(self.sent);
    }

    /// Reports losses once the detection that revealed them is complete.
    pub(crate) fn settle(&mut self) {
        let Some(loss) = self.loss.take() else { return };
        let PendingLoss { now, bytes, sent_at, flight_size, persistent } = loss;
        if persistent {
            self.recovery_start = Some(now);
            // It is repaired in slow start.
            self.in_recovery = false;
            self.reduction = None;
            self.next_send = now;
            // All that was in flight is taken to be lost, these packets with it.
            self.controller.on_timeout(now, flight_size);
            return;
        }
        self.controller.on_loss(&Loss { now, lost: bytes, in_flight: self.in_flight });
        if self.is_after_recovery_start(sent_at) {
            self.begin_recovery(now, Signal::Loss, flight_size, sent_at);
        }
    }

    fn is_after_recovery_start(&self, sent_at: Nanos) -> bool {
        self.recovery_start.is_none_or(|start| sent_at > start)
    }

    fn begin_recovery(&mut self, now: Nanos, signal: Signal, flight_size: u64, sent_at: Nanos) {
        self.recovery_start = Some(now);
        self.in_recovery = self.in_flight > 0;
        self.repair = signal == Signal::Loss;
        self.controller.on_congestion(&Congestion { now, signal, flight_size, sent_at });
        self.reduction = (self.in_recovery && self.controller.reduces_proportionally())
            .then(|| Reduction::new(flight_size, self.controller.cwnd(), self.in_flight, self.mss));
    }

    /// Calls the controller's timer for every time that has come. The stacks give an adapter no timer, so this happens
    /// at the next event; the controller is told the time that it asked for.
    fn run_timers(&mut self, now: Nanos) {
        for _ in 0..MOST_TIMERS {
            match self.controller.next_timer() {
                Some(time) if time <= now => self.controller.on_timer(time),
                _ => return,
            }
        }
        self.controller.on_timer(now);
    }
}

#[cfg(test)]
mod tests;
