//! The window: bandwidth-delay products within the bounds of the model.

use super::{Bbr3, Bbr3State, PROBE_RTT_CWND_GAIN};
use crate::{Ack, INITIAL_WINDOW, MILLISECOND};

/// Least packets in flight, for receivers that acknowledge every other packet (`MinPipeCwnd`).
pub(super) const MINIMUM: u64 = 4;

/// Largest send quantum in bytes, and the smallest in packets (`SetSendQuantum`).
const LARGEST_QUANTUM: u64 = 65_536;
const SMALLEST_QUANTUM: u64 = 2;

/// Packets that UP may have in flight in addition.
const UP_PACKETS: u64 = 2;

/// What is being repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    None,
    /// Losses, while the transport says so.
    Losses,
    /// All that was in flight at a timeout, until so many payload bytes have been delivered.
    Timeout {
        until: u64,
    },
}

impl Bbr3 {
    /// `SaveCwnd`.
    pub(super) fn save_cwnd(&mut self) {
        let modulated = self.repair != Repair::None || self.state == Bbr3State::ProbeRtt;
        self.saved_cwnd = if modulated { self.saved_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    /// `RestoreCwnd`.
    pub(super) fn restore_cwnd(&mut self) {
        self.cwnd = self.cwnd.max(self.saved_cwnd);
    }

    /// Payload bytes that fill the path at this bandwidth in bit/s, and the initial window before a sample.
    pub(super) fn bdp(&self, bandwidth: f64) -> u64 {
        match self.min_rtt.get() {
            Some(rtt) => (bandwidth * rtt as f64 / 8e9) as u64,
            None => u64::from(INITIAL_WINDOW) * self.mss,
        }
    }

    /// `BDPMultiple`.
    fn products(&self, bandwidth: f64, gain: f64) -> u64 {
        let gain = if self.min_rtt.get().is_some() { gain } else { 1.0 };
        (self.bdp(bandwidth) as f64 * gain) as u64
    }

    /// `QuantizationBudget`, in payload bytes.
    fn with_budget(&self, inflight: u64) -> u64 {
        let quantum = (self.pacing_rate / 8e9 * MILLISECOND as f64) as u64;
        let quantum = quantum.min(LARGEST_QUANTUM).max(SMALLEST_QUANTUM * self.mss);
        let inflight = inflight.max(quantum).max(MINIMUM * self.mss);
        if self.state == Bbr3State::Up { inflight + UP_PACKETS * self.mss } else { inflight }
    }

    /// `Inflight`, in payload bytes.
    pub(super) fn inflight(&self, bandwidth: f64, gain: f64) -> u64 {
        self.with_budget(self.products(bandwidth, gain))
    }

    /// `TargetInflight`, in payload bytes.
    pub(super) fn target_inflight(&self) -> u64 {
        self.bdp(self.bandwidth).min(self.cwnd)
    }

    /// `ProbeRTTCwnd`, in payload bytes.
    pub(super) fn probe_rtt_cwnd(&self) -> u64 {
        self.products(self.bandwidth, PROBE_RTT_CWND_GAIN).max(MINIMUM * self.mss)
    }

    /// `SetCwnd`.
    #[inline]
    pub(super) fn set_cwnd(&mut self, ack: &Ack) {
        let repaired = match self.repair {
            Repair::None => false,
            Repair::Losses => !ack.in_recovery,
            Repair::Timeout { until } => self.delivered >= until,
        };
        if repaired {
            self.repair = Repair::None;
            self.restore_cwnd();
        }
        let extra = self.aggregation.extra();
        let most = self.with_budget(self.products(self.bandwidth, self.state.cwnd_gain()) + extra);
        if self.full_bandwidth.reached {
            self.cwnd = (self.cwnd + ack.acked).min(most);
        } else if self.cwnd < most || self.delivered < u64::from(INITIAL_WINDOW) * self.mss {
            self.cwnd += ack.acked;
        }
        self.cwnd = self.cwnd.max(MINIMUM * self.mss);
        if self.state == Bbr3State::ProbeRtt {
            self.cwnd = self.cwnd.min(self.probe_rtt_cwnd());
        }
        self.bound_cwnd();
    }

    /// `BoundCwndForModel`.
    fn bound_cwnd(&mut self) {
        let cap = match self.state {
            Bbr3State::Down | Bbr3State::Refill | Bbr3State::Up => self.long_term.inflight,
            Bbr3State::Cruise | Bbr3State::ProbeRtt => self.inflight_with_headroom(),
            Bbr3State::Startup | Bbr3State::Drain => u64::MAX,
        };
        let cap = cap.min(self.short_term.inflight).max(MINIMUM * self.mss);
        self.cwnd = self.cwnd.min(cap);
    }
}
