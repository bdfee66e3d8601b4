//! A congestion controller that carries out a policy's actions.

use astraea_cc::{Ack, Congestion, Controller, INITIAL_WINDOW, MILLISECOND, Nanos, Rtt};

use crate::action;

/// A window that actions change once a monitoring period, with a start-up of its own and pacing at `cwnd / srtt`.
///
/// # Start-up
///
/// Actions of a few per cent would need seconds to find the bandwidth, so a flow begins with slow start, paced at twice
/// `cwnd / srtt`, and the policy takes over at the first sign of a queue or a loss: eight acknowledgements in a row
/// whose round trip exceeds the smallest by an eighth of it, at least 4 ms and at most 16 ms (the thresholds of RFC 9406
/// §4.2), or a congestion event, which also halves the window.
///
/// # Afterwards
///
/// Losses are the policy's business: they do not change the window. A retransmission timeout collapses it to the floor
/// of two packets, from where the policy goes on.
#[derive(Clone, Debug)]
pub struct AgentController {
    /// Payload bytes, a real number.
    cwnd: f64,
    floor: f64,
    cap: f64,
    srtt: Nanos,
    starting: bool,
    /// Acknowledgements in a row that showed a queue.
    queued: u32,
}

impl AgentController {
    const SAMPLES: u32 = 8;
    const STARTUP_GAIN: f64 = 2.0;

    /// A controller for segments of `mss` payload bytes whose window never exceeds `cap` payload bytes.
    pub fn new(mss: u32, cap: f64) -> Self {
        let mss = f64::from(mss);
        let floor = action::FLOOR * mss;
        Self { cwnd: f64::from(INITIAL_WINDOW) * mss, floor, cap: cap.max(floor), srtt: 0, starting: true, queued: 0 }
    }

    /// Whether slow start still runs: the policy is not asked.
    pub fn is_starting(&self) -> bool {
        self.starting
    }

    /// Window in payload bytes, not rounded.
    pub fn window(&self) -> f64 {
        self.cwnd
    }

    /// Changes the window by an action in -1..=1 (clipped), see [`action::scaled`].
    pub fn act(&mut self, action: f64, alpha: f64) {
        self.set_window(action::scaled(self.cwnd, action.clamp(-1.0, 1.0), alpha));
    }

    fn set_window(&mut self, cwnd: f64) {
        self.cwnd = cwnd.clamp(self.floor, self.cap);
    }

    fn shows_queue(sample: Nanos, min: Nanos) -> bool {
        sample >= min + (min / 8).clamp(4 * MILLISECOND, 16 * MILLISECOND)
    }
}

impl Controller for AgentController {
    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        self.srtt = rtt.smoothed();
        if !self.starting {
            return;
        }
        if !ack.rate.app_limited {
            self.set_window(self.cwnd + ack.acked as f64);
        }
        let queued = ack.rtt.zip(rtt.min()).is_some_and(|(sample, min)| Self::shows_queue(sample, min));
        self.queued = if queued { self.queued + 1 } else { 0 };
        self.starting = self.queued < Self::SAMPLES && self.cwnd < self.cap;
    }

    fn on_congestion(&mut self, _event: &Congestion) {
        if self.starting {
            self.starting = false;
            self.set_window(self.cwnd / 2.0);
        }
    }

    fn on_timeout(&mut self, _now: Nanos, _flight_size: u64) {
        self.starting = false;
        self.cwnd = self.floor;
    }

    fn cwnd(&self) -> u64 {
        self.cwnd as u64
    }

    fn pacing_rate(&self) -> Option<f64> {
        let gain = if self.starting { Self::STARTUP_GAIN } else { 1.0 };
        (self.srtt > 0).then(|| gain * self.cwnd * 8e9 / self.srtt as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use astraea_cc::{RateSample, Signal};

    const MSS: u32 = 1000;

    struct Flow {
        controller: AgentController,
        rtt: Rtt,
    }

    impl Flow {
        fn new(cap: f64) -> Self {
            Self { controller: AgentController::new(MSS, cap), rtt: Rtt::default() }
        }

        fn ack(&mut self, rtt_ms: Nanos) {
            let sample = rtt_ms * MILLISECOND;
            self.rtt.update(sample);
            let ack = Ack {
                now: 0,
                acked: 1000,
                sent_at: 0,
                rtt: Some(sample),
                rate: RateSample::default(),
                in_flight: 0,
                cwnd_limited: true,
                in_recovery: false,
                hole_open: false,
                ce_marked: 0,
            };
            self.controller.on_ack(&ack, &self.rtt);
        }
    }

    const LOSS: Congestion = Congestion { now: 0, signal: Signal::Loss, flight_size: 0, sent_at: 0 };

    #[test]
    fn slow_start_ends_after_eight_late_acknowledgements() {
        let mut flow = Flow::new(1e9);
        assert_eq!(flow.controller.pacing_rate(), None);
        flow.ack(40);
        assert_eq!(flow.controller.cwnd(), 11_000);
        // Twice 11 kB in 40 ms.
        assert_eq!(flow.controller.pacing_rate(), Some(4.4e6));
        // An eighth of 40 ms is 5 ms: 44 ms is no queue, 45 ms is.
        for _ in 0..7 {
            flow.ack(45);
        }
        flow.ack(44);
        for _ in 0..7 {
            flow.ack(45);
        }
        assert!(flow.controller.is_starting());
        flow.ack(45);
        assert!(!flow.controller.is_starting());
        let window = flow.controller.window();
        flow.ack(45);
        assert_eq!(flow.controller.window(), window, "from now on only actions change the window");
    }

    #[test]
    fn slow_start_ends_with_a_loss_or_at_the_cap() {
        let mut flow = Flow::new(1e9);
        flow.controller.on_congestion(&LOSS);
        assert!(!flow.controller.is_starting());
        assert_eq!(flow.controller.window(), 5_000.0);
        flow.controller.on_congestion(&LOSS);
        assert_eq!(flow.controller.window(), 5_000.0, "later losses are the policy's business");

        let mut flow = Flow::new(10_500.0);
        flow.ack(40);
        assert!(!flow.controller.is_starting());
        assert_eq!(flow.controller.window(), 10_500.0);
    }

    #[test]
    fn actions_keep_fractions_and_respect_floor_and_cap() {
        let mut flow = Flow::new(1e9);
        flow.ack(40);
        flow.controller.on_timeout(0, 0);
        assert_eq!(flow.controller.window(), 2_000.0);
        flow.controller.act(1.0, 0.025);
        assert_eq!(flow.controller.window(), 2_050.0);
        assert_eq!(flow.controller.pacing_rate(), Some(2_050.0 * 8.0 / 0.04));
        flow.controller.act(-7.0, 0.025);
        assert!((flow.controller.window() - 2_000.0).abs() < 1e-9, "an action is clipped to -1..=1");
        flow.controller.act(-1.0, 0.025);
        assert_eq!(flow.controller.window(), 2_000.0);
        let mut capped = AgentController::new(MSS, 10_100.0);
        capped.act(1.0, 0.025);
        assert_eq!(capped.window(), 10_100.0);
    }
}
