//! The sending end of a flow: what to send, when it was lost, and when to worry.
//!
//! Packet numbers are unique per transmission, as in QUIC, so every acknowledgement gives an unambiguous round-trip
//! sample; what TCP does with sequence numbers, SACK and timestamps comes to the same. Loss is declared by packet and
//! time threshold (RFC 9002 §6.1). A tail is probed after two round trips (RFC 8985 §7), and after a retransmission
//! timeout (RFC 6298) everything in flight is taken to be lost, until an acknowledgement of something sent before the
//! timeout shows that it was spurious (in the spirit of RFC 5682).

use std::collections::VecDeque;

use astraea_cc::{Ack, Controller, MIN_RTO, Nanos, RateSampler, Reduction, Rtt, Signal};

use self::copies::Copies;
use self::missing::Missing;
use crate::monitor::Interval;
use crate::pacer::{Pacer, Wait};
use crate::scoreboard::{Scoreboard, Sent, State};
use crate::source::Source;

/// Packets that must have overtaken one that is declared lost (RFC 9002 §6.1.1).
const PACKET_THRESHOLD: u64 = 3;

/// Largest number of doublings of the retransmission timeout.
const MAX_BACKOFF: u32 = 8;

/// "No deadline", "no timer armed".
pub(crate) const NEVER: Nanos = Nanos::MAX;

/// Why there is nothing to send now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// The window is full.
    Window,
    /// Pacing allows the next packet at that time.
    Pacing(Nanos),
    /// The application has no data.
    Application,
}

/// A packet to be put on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transmission {
    pub(crate) number: u64,
    pub(crate) segment: u32,
    pub(crate) payload: u16,
}

/// Data that must be sent again.
#[derive(Clone, Copy)]
struct Repair {
    /// Packet that carried it last.
    number: u64,
    segment: u32,
    payload: u16,
}

/// A tail-loss probe on its way.
#[derive(Clone, Copy)]
struct Probe {
    number: u64,
    /// Packet whose data it repeats.
    original: u64,
}

/// Sums over one acknowledgement.
#[derive(Default)]
pub(crate) struct AckBatch {
    acked: u64,
    ce_marked: u64,
    newest: Option<u64>,
    stamped: Nanos,
    /// The oldest of what was missing when the window began to go down is among it.
    advanced: bool,
}

impl AckBatch {
    /// Of an acknowledgement with this time stamp.
    #[inline]
    pub(crate) fn stamped(stamped: Nanos) -> Self {
        Self { stamped, ..Self::default() }
    }

    /// Whether nothing was acknowledged that had not been before.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.newest.is_none()
    }
}

/// Counters of a sender over its life.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SenderStats {
    pub(crate) sent: u64,
    pub(crate) retransmitted: u64,
    pub(crate) lost: u64,
    pub(crate) spurious: u64,
    pub(crate) timeouts: u64,
    pub(crate) rtt_sum: u64,
    pub(crate) rtt_count: u64,
}

pub(crate) struct Sender<C> {
    pub(crate) cc: C,
    pub(crate) rtt: Rtt,
    pub(crate) stats: SenderStats,
    /// Sums since the present monitoring period began.
    pub(crate) interval: Interval,
    mss: u64,
    /// How long the receiver may delay an acknowledgement.
    max_ack_delay: Nanos,
    board: Scoreboard,
    sampler: RateSampler,
    in_flight: u64,
    /// What the controller answered when last asked.
    cwnd: u64,
    pacing_rate: Option<f64>,
    /// One more than the largest acknowledged packet number.
    acked_end: u64,
    /// Losses of packets in `recovery_start..recovery_end` belong to the present congestion event, later ones to the next.
    recovery_start: u64,
    recovery_end: u64,
    /// Packets of the present congestion event that are still believed lost.
    event_losses: u32,
    in_recovery: bool,
    /// Whether it is for a loss, not for a mark.
    repairing: bool,
    /// How the window goes down, for controllers that leave it to the transport.
    reduction: Option<Reduction>,
    /// Segments that had not been acknowledged when it began, and have not been since.
    missing: Missing,
    repairs: VecDeque<Repair>,
    next_segment: u32,
    pacer: Pacer,
    cwnd_limited: bool,
    /// Last time at which new data was acknowledged, a probe sent, or the first packet after idleness.
    progress_at: Nanos,
    last_sent_at: Nanos,
    backoff: u32,
    probe: Option<Probe>,
    /// When the time threshold will declare the next packet lost.
    loss_time: Nanos,
    /// Packets below this number were given up by the last retransmission timeout, the first of a series.
    timeout_end: u64,
    /// Segments that were sent more than once and have been acknowledged.
    copies: Copies,
}

impl<C: Controller> Sender<C> {
    /// `burst` is what [`Pacer`] lets go together.
    pub(crate) fn new(cc: C, mss: u32, max_ack_delay: Nanos, burst: Nanos) -> Self {
        Self {
            cc,
            rtt: Rtt::default(),
            stats: SenderStats::default(),
            interval: Interval::new(0, 0),
            mss: u64::from(mss),
            max_ack_delay,
            board: Scoreboard::default(),
            sampler: RateSampler::default(),
            in_flight: 0,
            cwnd: 0,
            pacing_rate: None,
            acked_end: 0,
            recovery_start: 0,
            recovery_end: 0,
            event_losses: 0,
            in_recovery: false,
            repairing: false,
            reduction: None,
            missing: Missing::default(),
            repairs: VecDeque::new(),
            next_segment: 0,
            pacer: Pacer::new(burst),
            cwnd_limited: false,
            progress_at: 0,
            last_sent_at: 0,
            backoff: 0,
            probe: None,
            loss_time: NEVER,
            timeout_end: 0,
            copies: Copies::default(),
        }
    }

    /// Payload bytes in flight.
    #[inline]
    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Payload bytes acknowledged.
    pub(crate) fn delivered(&self) -> u64 {
        self.sampler.delivered()
    }

    /// Whether everything that was ever sent has been acknowledged.
    pub(crate) fn is_idle(&self) -> bool {
        self.in_flight == 0 && self.repairs.is_empty()
    }

    /// Asks the controller for its window and rate.
    #[inline]
    pub(crate) fn refresh(&mut self) {
        self.cwnd = match self.reduction {
            // Another scheme may have taken over since the reduction began.
            Some(reduction) if self.cc.reduces_proportionally() => reduction.window(),
            _ => self.cc.cwnd(),
        };
        self.pacing_rate = self.cc.pacing_rate();
    }

    /// The window in bytes and the pacing rate in bit/s that hold at present.
    #[inline]
    pub(crate) fn allowance(&self) -> (u64, Option<f64>) {
        (self.cwnd, self.pacing_rate)
    }

    /// The next packet, if window, pacing and application allow one.
    #[inline]
    pub(crate) fn next_packet(&mut self, now: Nanos, source: &mut Source) -> Result<Transmission, Blocked> {
        let repair = self.repairs.front().copied();
        let payload = repair.map_or_else(|| source.next_payload(self.mss), |r| u64::from(r.payload));
        if payload == 0 {
            if self.in_flight < self.cwnd {
                self.sampler.on_app_limited(self.in_flight);
            }
            return Err(Blocked::Application);
        }
        if self.in_flight + payload > self.cwnd && self.in_flight > 0 {
            self.cwnd_limited = true;
            return Err(Blocked::Window);
        }
        if let Some(rate) = self.pacing_rate {
            let room = self.cwnd.saturating_sub(self.in_flight);
            self.pacer.take(now, rate, payload, self.cwnd, room).map_err(|wait| match wait {
                Wait::Until(time) => Blocked::Pacing(time),
                Wait::ForRoom => Blocked::Window,
            })?;
        }
        if let Some(repair) = repair {
            self.repairs.pop_front();
            return Ok(self.repeat(now, repair));
        }
        source.take(payload);
        let segment = self.next_segment;
        self.next_segment = segment.wrapping_add(1);
        Ok(self.transmit(now, segment, payload as u16, false))
    }

    /// Sends data again.
    fn repeat(&mut self, now: Nanos, repair: Repair) -> Transmission {
        self.stats.retransmitted += 1;
        if let Some(original) = self.board.get_mut(repair.number) {
            original.copied = true;
        }
        self.transmit(now, repair.segment, repair.payload, true)
    }

    #[inline]
    fn transmit(&mut self, now: Nanos, segment: u32, payload: u16, copied: bool) -> Transmission {
        let idle = self.in_flight == 0;
        if idle {
            self.restart(now);
        }
        let stamp = self.sampler.on_sent(now, u64::from(payload), self.in_flight);
        let number = self.board.push(Sent { stamp, segment, payload, state: State::InFlight, copied });
        self.in_flight += u64::from(payload);
        self.last_sent_at = now;
        self.stats.sent += 1;
        self.interval.sent += u64::from(payload);
        if let Some(reduction) = &mut self.reduction {
            reduction.on_sent(u64::from(payload));
        }
        self.cc.on_sent(now, u64::from(payload), self.in_flight);
        Transmission { number, segment, payload }
    }

    #[cold]
    fn restart(&mut self, now: Nanos) {
        let idle = now - self.last_sent_at;
        if self.stats.sent > 0 && self.backoff == 0 && idle > self.rtt.retransmission_timeout(MIN_RTO) {
            self.cc.on_idle_restart(now, idle);
        }
        self.progress_at = now;
    }

    /// One packet is acknowledged; `wire` is the lower half of its number.
    #[inline]
    pub(crate) fn ack_packet(&mut self, now: Nanos, wire: u32, marked: bool, batch: &mut AckBatch) {
        let number = self.board.expand(wire);
        let Some(sent) = self.board.get_mut(number) else { return };
        let payload = u64::from(sent.payload);
        match sent.state {
            State::Acked => return,
            State::InFlight => self.in_flight -= payload,
            State::Lost => {}
        }
        let (was_lost, segment) = (sent.state == State::Lost, sent.segment);
        sent.state = State::Acked;
        // Data count once, whichever of the packets that carried them come.
        let fresh = if sent.copied && !self.copies.is_first(segment, self.next_segment) { 0 } else { payload };
        batch.advanced |= self.missing.remove(segment);
        self.sampler.on_delivered(now, fresh);
        batch.acked += fresh;
        if marked {
            batch.ce_marked += payload;
        }
        batch.newest = batch.newest.max(Some(number));
        if was_lost {
            self.on_late_ack(now, number, segment);
        }
    }

    /// All packets of an acknowledgement have been reported.
    #[inline]
    pub(crate) fn finish_ack(&mut self, now: Nanos, batch: &AckBatch) {
        let Some(newest) = batch.newest else { return };
        self.acked_end = self.acked_end.max(newest + 1);
        let stamp = self.board.get(newest).stamp;
        let sample = now - stamp.sent_at;
        self.rtt.update(sample);
        self.stats.rtt_sum += sample;
        self.stats.rtt_count += 1;
        self.progress_at = now;
        self.backoff = 0;
        let rate = self.sampler.sample(&stamp, self.rtt.min().unwrap_or(0));

        self.board.advance();
        let flight_size = self.in_flight + batch.acked;
        let lost_before = self.stats.lost;
        if self.board.base() < self.acked_end {
            self.detect_losses(now, flight_size);
        } else {
            self.loss_time = NEVER;
        }
        if self.probe.is_some() {
            self.check_probe();
        }
        if self.in_recovery && (self.acked_end > self.recovery_end || self.is_idle()) {
            self.end_recovery();
        }
        if batch.ce_marked > 0 && newest >= self.recovery_end {
            self.begin_recovery(now, Signal::Ecn, flight_size, stamp.sent_at);
        }
        self.interval.on_ack(batch.acked, sample);
        let ack = Ack {
            now,
            acked: batch.acked,
            sent_at: stamp.sent_at,
            rtt: Some(sample),
            rate,
            in_flight: self.in_flight,
            cwnd_limited: self.cwnd_limited,
            in_recovery: self.in_recovery,
            hole_open: self.board.base() < self.acked_end,
            stamped: Some(batch.stamped),
            ce_marked: batch.ce_marked,
        };
        self.cwnd_limited = false;
        self.cc.on_ack(&ack, &self.rtt);
        if let Some(reduction) = &mut self.reduction {
            let safe = batch.advanced && self.stats.lost == lost_before;
            reduction.on_ack(batch.acked, self.in_flight, safe, self.mss);
        }
    }
}

mod copies;
mod missing;
mod recovery;

#[cfg(test)]
mod tests;
