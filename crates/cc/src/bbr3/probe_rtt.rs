//! The minimum round-trip time, and the state that looks for it.

use super::{Bbr3, Bbr3State};
use crate::{Ack, MILLISECOND, Nanos, SECOND};

/// Age at which the minimum no longer counts (`MinRTTFilterLen`).
const WINDOW: Nanos = 10 * SECOND;

/// Time without a smaller sample after which it is looked for (`ProbeRTTInterval`).
const INTERVAL: Nanos = 5 * SECOND;

/// Least time with half a bandwidth-delay product in flight (`ProbeRTTDuration`).
const DURATION: Nanos = 200 * MILLISECOND;

/// A round-trip sample and when it was taken.
#[derive(Clone, Copy, Debug)]
struct Stamped {
    rtt: Nanos,
    at: Nanos,
}

/// Smallest samples of 10 s and of 5 s.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinRtt {
    min: Option<Stamped>,
    /// `probe_rtt_min_delay` and `probe_rtt_min_stamp`.
    recent: Option<Stamped>,
}

impl MinRtt {
    #[inline]
    pub(super) fn get(&self) -> Option<Nanos> {
        self.min.map(|min| min.rtt)
    }

    /// `UpdateMinRTT`; true if it is time to look for a smaller one.
    #[inline]
    fn update(&mut self, now: Nanos, sample: Option<Nanos>) -> bool {
        let expired = self.recent.is_some_and(|recent| now > recent.at + INTERVAL);
        if let Some(rtt) = sample
            && (expired || self.recent.is_none_or(|recent| rtt < recent.rtt))
        {
            self.recent = Some(Stamped { rtt, at: now });
        }
        if let Some(recent) = self.recent
            && self.min.is_none_or(|min| recent.rtt < min.rtt || now > min.at + WINDOW)
        {
            self.min = self.recent;
        }
        expired
    }
}

/// Progress of `ProbeRTT`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ProbeRtt {
    done_at: Option<Nanos>,
    round_done: bool,
}

impl Bbr3 {
    /// `UpdateMinRTT` and `CheckProbeRTT`.
    #[inline]
    pub(super) fn update_min_rtt(&mut self, ack: &Ack) {
        let expired = self.min_rtt.update(ack.now, ack.rtt);
        if expired && self.state != Bbr3State::ProbeRtt && !self.idle_restart {
            self.save_cwnd();
            self.state = Bbr3State::ProbeRtt;
            self.probe_rtt.done_at = None;
            self.cycle.phase = super::probe_bw::AckPhase::ProbeStopping;
            self.start_round();
        }
        if self.state == Bbr3State::ProbeRtt {
            self.hold(ack);
        }
        if ack.rate.delivered > 0 {
            self.idle_restart = false;
        }
    }

    /// `HandleProbeRTT`.
    fn hold(&mut self, ack: &Ack) {
        self.held_back.extend(ack);
        if self.probe_rtt.done_at.is_some() {
            self.probe_rtt.round_done |= self.round_start;
            if self.probe_rtt.round_done {
                self.check_probe_rtt_done(ack.now);
            }
        } else if ack.in_flight <= self.probe_rtt_cwnd() {
            self.probe_rtt = ProbeRtt { done_at: Some(ack.now + DURATION), round_done: false };
            self.start_round();
        }
    }

    /// `CheckProbeRTTDone` and `ExitProbeRTT`.
    pub(super) fn check_probe_rtt_done(&mut self, now: Nanos) {
        if self.probe_rtt.done_at.is_none_or(|done_at| now <= done_at) {
            return;
        }
        if let Some(recent) = &mut self.min_rtt.recent {
            recent.at = now;
        }
        self.restore_cwnd();
        self.short_term = super::ShortTerm::default();
        if self.full_bandwidth.reached {
            self.start_down(now);
            self.state = Bbr3State::Cruise;
        } else {
            self.state = Bbr3State::Startup;
        }
    }
}
