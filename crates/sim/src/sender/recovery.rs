//! What the sender does about losses: detection, tail probes, retransmission timeouts, and taking them back.

use std::collections::VecDeque;

use astraea_cc::{Congestion, Controller, Loss, LostPacket, MILLISECOND, MIN_RTO, Nanos, Reduction, Signal};

use super::{MAX_BACKOFF, NEVER, PACKET_THRESHOLD, Probe, Repair, Sender, Transmission};
use crate::scoreboard::{Sent, State};

/// Least time threshold (`kGranularity` of RFC 9002 §6.1.2).
const GRANULARITY: Nanos = MILLISECOND;

impl<C: Controller> Sender<C> {
    /// Declares lost what was sent long enough before the newest acknowledged packet (RFC 9002 §6.1).
    pub(super) fn detect_losses(&mut self, now: Nanos, flight_size: u64) {
        let threshold = (self.rtt.smoothed().max(self.rtt.latest()) * 9 / 8).max(GRANULARITY);
        let mut lost_bytes = 0;
        let mut new_losses = 0;
        let mut event = None;
        self.loss_time = NEVER;
        for number in self.board.base()..self.acked_end {
            let sent = *self.board.get(number);
            if sent.state != State::InFlight {
                continue;
            }
            let due = sent.stamp.sent_at + threshold;
            if number + PACKET_THRESHOLD >= self.acked_end && due > now {
                self.loss_time = due;
                break;
            }
            self.give_up(number, sent);
            lost_bytes += u64::from(sent.payload);
            self.cc.on_packet_lost(&LostPacket {
                now,
                bytes: u64::from(sent.payload),
                sent_at: sent.stamp.sent_at,
                sent_in_flight: sent.stamp.in_flight,
                lost_since: self.sampler.lost() - sent.stamp.lost,
                app_limited: sent.stamp.app_limited,
            });
            if number >= self.recovery_end {
                new_losses += 1;
                event = Some(sent.stamp.sent_at);
            } else if number >= self.recovery_start {
                self.event_losses += 1;
            }
        }
        self.board.advance();
        if lost_bytes == 0 {
            return;
        }
        self.interval.lost += lost_bytes;
        self.cc.on_loss(&Loss { now, lost: lost_bytes, in_flight: self.in_flight });
        if let Some(sent_at) = event {
            self.begin_recovery(now, Signal::Loss, flight_size, sent_at);
            self.event_losses = new_losses;
        }
    }

    /// Takes a packet out of flight and schedules its data for retransmission.
    fn give_up(&mut self, number: u64, sent: Sent) {
        if let Some(entry) = self.board.get_mut(number) {
            entry.state = State::Lost;
        }
        self.in_flight -= u64::from(sent.payload);
        self.sampler.on_lost(u64::from(sent.payload));
        self.stats.lost += 1;
        // A probe is a retransmission already.
        if self.probe.is_none_or(|probe| probe.original != number) {
            self.repairs.push_back(Repair { number, segment: sent.segment, payload: sent.payload });
        }
    }

    pub(super) fn begin_recovery(&mut self, now: Nanos, signal: Signal, flight_size: u64, sent_at: Nanos) {
        let next = self.board.next();
        // A mark is never taken back, whatever becomes of packets lost in the same round trip.
        self.recovery_start = if signal == Signal::Loss { self.recovery_end } else { next };
        self.recovery_end = next;
        self.in_recovery = !self.is_idle();
        self.repairing = self.in_recovery && signal == Signal::Loss;
        // Only the last reduction can be taken back, and that is no longer the timeout's.
        self.timeout_end = 0;
        self.cc.on_congestion(&Congestion { now, signal, flight_size, sent_at });
        self.reduction = (self.in_recovery && self.cc.reduces_proportionally())
            .then(|| Reduction::new(flight_size, self.cc.cwnd(), self.in_flight, self.mss));
        if self.reduction.is_some() {
            self.note_missing();
        }
    }

    /// Notes what is in flight or has to be sent again.
    fn note_missing(&mut self) {
        let board = &self.board;
        let sent = (board.base()..board.next()).map(|number| board.get(number));
        let in_flight = sent.filter(|sent| sent.state == State::InFlight).map(|sent| sent.segment);
        self.missing.note(in_flight.chain(self.repairs.iter().map(|repair| repair.segment)));
    }

    /// A packet that was given up has arrived after all.
    #[cold]
    pub(super) fn on_late_ack(&mut self, now: Nanos, number: u64, segment: u32) {
        self.stats.spurious += 1;
        // It need not be sent again.
        self.repairs.retain(|repair| repair.segment != segment);
        if number < self.timeout_end {
            self.undo_timeout(now);
        } else if (self.recovery_start..self.recovery_end).contains(&number) && self.event_losses > 0 {
            self.event_losses -= 1;
            if self.event_losses == 0 {
                self.undo_recovery(now);
            }
        }
    }

    pub(super) fn end_recovery(&mut self) {
        self.in_recovery = false;
        self.repairing = false;
        self.reduction = None;
    }

    /// The last reduction was unfounded: another loss among the same packets is a congestion event of its own.
    fn undo_recovery(&mut self, now: Nanos) {
        self.recovery_end = self.recovery_start;
        self.end_recovery();
        self.cc.on_spurious_congestion(now);
    }

    /// The last timeout was spurious: what it gave up and has not been sent again is in flight after all.
    fn undo_timeout(&mut self, now: Nanos) {
        let timeout_end = std::mem::take(&mut self.timeout_end);
        let mut kept = VecDeque::new();
        for repair in std::mem::take(&mut self.repairs) {
            match self.board.get_mut(repair.number) {
                Some(sent) if repair.number < timeout_end && sent.state == State::Lost => {
                    sent.state = State::InFlight;
                    self.in_flight += u64::from(repair.payload);
                    self.board.reopen(repair.number);
                    self.stats.lost -= 1;
                    // It may have been counted in a period before.
                    self.interval.lost = self.interval.lost.saturating_sub(u64::from(repair.payload));
                }
                _ => kept.push_back(repair),
            }
        }
        self.repairs = kept;
        self.undo_recovery(now);
    }

    /// A probe has done its work when it, or a later packet, or its original is acknowledged. If the original is not, the
    /// probe's acknowledgement has shown that it was lost (RFC 8985 §7.4).
    pub(super) fn check_probe(&mut self) {
        let Some(probe) = self.probe else { return };
        let original = self.board.get_mut(probe.original).map(|sent| sent.state);
        if self.acked_end > probe.number || original != Some(State::InFlight) {
            self.probe = None;
        }
    }

    /// When [`on_deadline`](Self::on_deadline) must be called unless something happens before.
    #[inline]
    pub(crate) fn deadline(&self) -> Nanos {
        if self.in_flight == 0 {
            return NEVER;
        }
        self.loss_time.min(self.probe_time()).min(self.timeout_time())
    }

    /// When a tail is probed: two round trips after the last sign of life, and instead of a timeout that would come before
    /// (RFC 8985 §7.2).
    #[inline]
    fn probe_time(&self) -> Nanos {
        if self.probe.is_some() || self.repairing || self.backoff > 0 || !self.rtt.has_sample() {
            return NEVER;
        }
        let since = self.progress_at.max(self.last_sent_at);
        (since + 2 * self.rtt.smoothed().max(MILLISECOND) + self.max_ack_delay).min(self.timeout_time())
    }

    #[inline]
    fn timeout_time(&self) -> Nanos {
        self.progress_at + ((self.rtt.retransmission_timeout(MIN_RTO) + self.max_ack_delay) << self.backoff)
    }

    /// The deadline has come; returns a probe if one is to be sent at once, whatever the window.
    pub(crate) fn on_deadline(&mut self, now: Nanos) -> Option<Transmission> {
        if self.loss_time <= now {
            let flight_size = self.in_flight;
            self.detect_losses(now, flight_size);
            return None;
        }
        if self.probe_time() <= now {
            return self.send_probe(now);
        }
        if self.timeout_time() <= now {
            self.on_timeout(now);
        }
        None
    }

    /// Repeats the newest packet in flight, and gives the probe the time of a retransmission timeout (RFC 8985 §7.3).
    fn send_probe(&mut self, now: Nanos) -> Option<Transmission> {
        let original =
            (self.board.base()..self.board.next()).rev().find(|n| self.board.get(*n).state == State::InFlight)?;
        let sent = *self.board.get(original);
        self.progress_at = now;
        let again = Repair { number: original, segment: sent.segment, payload: sent.payload };
        let transmission = self.repeat(now, again);
        self.probe = Some(Probe { number: transmission.number, original });
        Some(transmission)
    }

    fn on_timeout(&mut self, now: Nanos) {
        let flight_size = self.in_flight;
        for number in self.board.base()..self.board.next() {
            let sent = *self.board.get(number);
            if sent.state == State::InFlight {
                self.give_up(number, sent);
            }
        }
        self.board.advance();
        self.interval.lost += flight_size;
        self.stats.timeouts += 1;
        // Of several in a row it is the first that can be taken back, by what had been sent before it: an acknowledgement
        // of what it sent again says nothing against it.
        if self.backoff == 0 {
            self.timeout_end = self.board.next();
            self.recovery_start = self.recovery_end;
        }
        self.recovery_end = self.board.next();
        self.event_losses = 0;
        // The earliest data go first (RFC 6298 (5.4)), whichever packet carried them last.
        let next = self.next_segment;
        self.repairs.make_contiguous().sort_by_key(|repair| repair.segment.wrapping_sub(next));
        // It is repaired in slow start.
        self.end_recovery();
        self.probe = None;
        self.loss_time = NEVER;
        self.progress_at = now;
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
        self.pacer.release(now);
        self.cc.on_timeout(now, flight_size);
    }
}
