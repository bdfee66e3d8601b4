//! Compound TCP (draft-sridharan-tcpm-ctcp-02): Reno, and a window on top of it that grows fast until a queue builds.

use crate::delay::{DelayRounds, RoundDelay};
use crate::{Ack, AnyController, Congestion, Controller, Nanos, NewReno, Parameter, Rtt, Scheme};

/// α and k of the increase `α win^k`, in packets per round trip; k = 3/4.
const ALPHA: f64 = 0.125;

/// ζ of the draft (η elsewhere): packets of `dwnd` given up per packet that waits in the queue.
const ZETA: f64 = 1.0;

/// Window in packets below which the delay-based part rests (as in the Linux module, release 1.3).
const LOW_WINDOW: f64 = 38.0;

/// Smallest loss-based part after a loss, in segments (RFC 5681).
const MIN_WINDOW: u64 = 2;

/// Tuning of γ: part of the queue that a Reno flow would have had before a loss, …
const TUNING_SHARE: f64 = 0.75;
/// … weight of that in the new γ (as in the Linux module; the ns-3 model keeps 0.8 of the old value) …
const TUNING_GAIN: f64 = 0.25;
/// … and bounds of γ in packets.
const TUNING_RANGE: (f64, f64) = (5.0, 30.0);

/// What a user can set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompoundConfig {
    /// Packets of the flow's own in the queue from which the delay-based part shrinks (γ).
    pub gamma: f64,
    /// Adapt γ to the buffer: a queue too short for γ would overflow before the delay-based part gives way.
    pub tuning: bool,
}

impl CompoundConfig {
    /// The draft's γ, which stays.
    pub const DEFAULT: Self = Self { gamma: 30.0, tuning: false };
}

impl Default for CompoundConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Compound TCP as a scheme.
pub(crate) const SCHEME: Scheme = Scheme {
    name: "compound",
    title: "Compound",
    kind: "hybrid",
    year: 2006,
    reference: "Tan, Song, Zhang and Sridharan 2006; draft-sridharan-tcpm-ctcp-02",
    parameters: &[
        Parameter::packets(
            "gamma",
            CompoundConfig::DEFAULT.gamma,
            "own packets in the queue from which the delay-based part shrinks",
        ),
        Parameter::switch(
            "tuning",
            CompoundConfig::DEFAULT.tuning,
            "adapt gamma to the buffer, within 5 to 30 packets",
        ),
    ],
    build: |values, mss| {
        let config = CompoundConfig { gamma: values.get("gamma"), tuning: values.switch("tuning") };
        AnyController::Compound(Compound::new(config, mss))
    },
};

/// Compound TCP: the window `win = cwnd + dwnd` has a loss-based part, Reno's, and a delay-based one.
///
/// Once per round trip, with `diff = win (1 − base / RTT)` packets in the queue (RTT is the smallest sample of the
/// round trip, base the smallest of all):
///
/// * `diff < γ`: `dwnd += max(α win^k − 1, 0)`, so that `win` grows by `α win^k` together with Reno's packet (α = 1/8,
///   k = 3/4);
/// * `diff ≥ γ`: `dwnd = max(dwnd − ζ diff, 0)` (ζ = 1, γ = 30 packets). What is left in the end is Reno.
///
/// [`NewReno`] holds `win`, and `cwnd` is what of it is not `dwnd`:
///
/// * Reno's part grows by one segment per `win` acknowledged.
/// * A loss or a mark halves `win` (β = 1/2) and `cwnd`: `dwnd = max(win (1 − β) − cwnd / 2, 0)`, with `win` before it.
/// * In slow start, after a timeout and after a restart from idle `dwnd` is 0.
/// * `dwnd` stays while a loss is repaired, and does not grow by a round trip in which the window never held the
///   sender back.
///
/// The pinned variant is draft -02 with what release 1.3 of the Linux module (Andrew, Castellani and Hemminger) adds:
/// below 38 packets `dwnd` stays, so that a path that never lets the window grow above sees [`NewReno`] exactly. The
/// draft's law alone would already be Reno's below 16 packets, where `α win^k < 1`. Unlike the module, `dwnd` changes
/// at the end of a round trip rather than in portions during the next. After a timeout the base is the smoothed
/// round-trip time (ns-3 model, citing the draft); it is kept over idle times.
///
/// Tuning of γ, off unless asked for: before a loss a Reno flow of `cwnd` would have had `cwnd (1 − base / RTT)`
/// packets in the queue; each loss moves γ by a quarter of the way towards 3/4 of it, within 5 to 30 packets.
#[derive(Clone, Debug)]
pub struct Compound {
    config: CompoundConfig,
    mss: f64,
    /// Holds the whole window.
    reno: NewReno,
    /// The delay-based part of it, in payload bytes.
    dwnd: u64,
    /// Both before the last reduction, for when it turns out to have been spurious.
    undo: (u64, u64),
    rounds: DelayRounds,
    /// Share of the window that waited in the queue in the last round trip.
    queued: Option<f64>,
    srtt: Nanos,
}

impl Compound {
    /// A connection that begins, with segments of `mss` payload bytes (at least 1).
    pub fn new(config: CompoundConfig, mss: u32) -> Self {
        Self {
            config,
            mss: f64::from(mss.max(1)),
            reno: NewReno::new(mss),
            dwnd: 0,
            undo: (0, 0),
            rounds: DelayRounds::default(),
            queued: None,
            srtt: 0,
        }
    }

    /// Delay-based part of the window in payload bytes.
    pub fn dwnd(&self) -> u64 {
        self.dwnd
    }

    /// γ in packets.
    pub fn gamma(&self) -> f64 {
        self.config.gamma
    }

    /// Slow-start threshold in payload bytes, `u64::MAX` before the first congestion.
    pub fn ssthresh(&self) -> u64 {
        self.reno.ssthresh()
    }

    /// A round trip has ended: the law of the delay-based part.
    fn adjust(&mut self, round: &RoundDelay) {
        let queued = 1.0 - round.base as f64 / round.rtt as f64;
        self.queued = Some(queued);
        let win = self.reno.cwnd() as f64 / self.mss;
        if self.reno.in_slow_start() || win < LOW_WINDOW {
            return;
        }
        let diff = win * queued;
        let dwnd = if diff >= self.config.gamma {
            self.dwnd.saturating_sub((ZETA * diff * self.mss + 0.5) as u64)
        } else if round.cwnd_limited {
            // win^(3/4) by square roots, which are the same on every machine.
            let increase = (ALPHA * (win * win.sqrt()).sqrt() - 1.0).max(0.0);
            self.dwnd + (increase * self.mss + 0.5) as u64
        } else {
            self.dwnd
        };
        let win = self.reno.cwnd() - self.dwnd + dwnd;
        self.dwnd = dwnd;
        // A window that gives way to a queue is not in slow start for that.
        self.reno.set_window(win, self.reno.ssthresh().min(win));
    }

    fn tune(&mut self, cwnd: u64) {
        if let (true, Some(queued)) = (self.config.tuning, self.queued.take()) {
            let sample = TUNING_SHARE * queued * cwnd as f64 / self.mss;
            let gamma = self.config.gamma + TUNING_GAIN * (sample - self.config.gamma);
            self.config.gamma = gamma.clamp(TUNING_RANGE.0, TUNING_RANGE.1);
        }
    }
}

impl Controller for Compound {
    #[inline]
    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        self.srtt = rtt.smoothed();
        self.reno.on_ack(ack, rtt);
        if let Some(round) = self.rounds.on_ack(ack) {
            self.adjust(&round);
        }
    }

    fn on_congestion(&mut self, event: &Congestion) {
        let cwnd = self.reno.cwnd() - self.dwnd;
        self.undo = (self.reno.cwnd(), self.dwnd);
        self.tune(cwnd);
        self.reno.on_congestion(event);
        self.dwnd = self.reno.cwnd().saturating_sub((cwnd / 2).max(MIN_WINDOW * self.mss as u64));
    }

    fn reduces_proportionally(&self) -> bool {
        true
    }

    fn on_timeout(&mut self, now: Nanos, flight_size: u64) {
        if !self.reno.has_timed_out() {
            self.undo = (self.reno.cwnd(), self.dwnd);
        }
        self.reno.on_timeout(now, flight_size);
        self.dwnd = 0;
        self.rounds.reset_base((self.srtt > 0).then_some(self.srtt));
    }

    fn on_spurious_congestion(&mut self, now: Nanos) {
        self.reno.on_spurious_congestion(now);
        let (win, dwnd) = self.undo;
        if self.reno.cwnd() == win {
            self.dwnd = dwnd;
        }
    }

    fn on_idle_restart(&mut self, now: Nanos, idle: Nanos) {
        let win = self.reno.cwnd();
        self.reno.on_idle_restart(now, idle);
        if self.reno.cwnd() < win {
            self.dwnd = 0;
        }
    }

    #[inline]
    fn cwnd(&self) -> u64 {
        self.reno.cwnd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MILLISECOND, SECOND, Signal};

    const MSS: u64 = 1000;
    const BASE: Nanos = 100 * MILLISECOND;

    fn ack(now: Nanos, sent_at: Nanos, rtt: Nanos) -> Ack {
        Ack { now, sent_at, rtt: Some(rtt), cwnd_limited: true, ..Ack::default() }
    }

    fn loss(now: Nanos, packets: u64) -> Congestion {
        Congestion { now, signal: Signal::Loss, flight_size: packets * MSS, sent_at: 0 }
    }

    /// Congestion avoidance without a queue, with a window of `win` packets of which `dwnd` are delay-based.
    fn at(win: u64, dwnd: u64, config: CompoundConfig) -> Compound {
        let mut compound = Compound::new(config, MSS as u32);
        compound.reno.set_window(win * MSS, win * MSS);
        compound.dwnd = dwnd * MSS;
        compound.rounds.reset_base(Some(BASE));
        compound
    }

    /// A round trip that acknowledges nothing, so that Reno's part stays; (window, `dwnd`) in packets.
    fn round(compound: &mut Compound, rtt: Nanos) -> (f64, f64) {
        let mut srtt = Rtt::default();
        srtt.update(rtt);
        compound.on_ack(&ack(10 * SECOND, 10 * SECOND, rtt), &srtt);
        (compound.cwnd() as f64 / 1e3, compound.dwnd() as f64 / 1e3)
    }

    /// 1000^(3/4) / 8 - 1 = 21.228, 256^(3/4) / 8 - 1 = 7, 38^(3/4) / 8 - 1 = 0.913.
    #[test]
    fn the_increase_without_a_queue() {
        for (win, increase) in [(1000, 21.228), (256, 7.0), (38, 0.913), (37, 0.0)] {
            let mut compound = at(win, 0, CompoundConfig::default());
            assert_eq!(round(&mut compound, BASE), (win as f64 + increase, increase), "{win}");
        }
        let mut unused = at(1000, 0, CompoundConfig::default());
        unused.on_ack(&Ack { cwnd_limited: false, ..ack(SECOND, SECOND, BASE) }, &Rtt::default());
        assert_eq!(unused.cwnd(), 1000 * MSS);
    }

    /// 200 packets at 125 ms: 40 of them wait. At 117 ms: 29.06, less than 30.
    #[test]
    fn the_decrease_by_what_waits() {
        let config = CompoundConfig::default();
        let mut compound = at(200, 50, config);
        assert_eq!(round(&mut compound, 125 * MILLISECOND), (160.0, 10.0));
        // 160 at 125 ms: 32, more than there is.
        assert_eq!(round(&mut compound, 125 * MILLISECOND), (150.0, 0.0));
        assert!(!compound.reno.in_slow_start());
        // The rest is Reno's, and stays.
        assert_eq!(round(&mut compound, 200 * MILLISECOND), (150.0, 0.0));
        assert!(round(&mut at(200, 50, config), 117 * MILLISECOND).1 > 50.0);
    }

    #[test]
    fn a_segment_per_window_belongs_to_reno() {
        let mut compound = at(200, 50, CompoundConfig::default());
        compound.on_ack(&Ack { acked: 200 * MSS, sent_at: 0, hole_open: false, ..ack(1, 0, BASE) }, &Rtt::default());
        let grown = compound.cwnd() - compound.dwnd();
        assert_eq!(grown, 151 * MSS);
    }

    #[test]
    fn a_loss_halves_both_parts() {
        let mut compound = at(200, 120, CompoundConfig::default());
        compound.on_congestion(&loss(SECOND, 200));
        assert_eq!((compound.cwnd(), compound.dwnd()), (100 * MSS, 60 * MSS));
        compound.on_spurious_congestion(SECOND);
        assert_eq!((compound.cwnd(), compound.dwnd()), (200 * MSS, 120 * MSS));
        // Half of what was in flight, if that was less: 70 / 2 = 35 less than Reno's 40.
        compound.on_congestion(&loss(SECOND, 70));
        assert_eq!((compound.cwnd(), compound.dwnd()), (35 * MSS, 0));
    }

    #[test]
    fn timeouts_in_a_row_are_undone_together() {
        let mut compound = at(200, 120, CompoundConfig::default());
        compound.on_timeout(SECOND, 200 * MSS);
        compound.on_timeout(3 * SECOND, 200 * MSS);
        compound.on_spurious_congestion(4 * SECOND);
        assert_eq!((compound.cwnd(), compound.dwnd()), (200 * MSS, 120 * MSS));
    }

    #[test]
    fn a_timeout_and_a_restart_leave_nothing_of_it() {
        let mut compound = at(200, 120, CompoundConfig::default());
        round(&mut compound, 110 * MILLISECOND);
        compound.on_timeout(SECOND, 200 * MSS);
        assert_eq!((compound.cwnd(), compound.dwnd()), (MSS, 0));
        // Its smoothed round-trip time is the new base: no queue at 110 ms.
        compound.reno.set_window(256 * MSS, 256 * MSS);
        assert_eq!(round(&mut compound, 110 * MILLISECOND), (263.0, 7.0));
        compound.on_idle_restart(SECOND, SECOND);
        assert_eq!((compound.cwnd(), compound.dwnd()), (10 * MSS, 0));
    }

    /// Reno's 80 packets at 125 ms: 16 wait, 3/4 of them are 12, and 30 + (12 - 30) / 4 = 25.5.
    #[test]
    fn tuning_follows_the_queue_that_reno_would_have_had() {
        let mut compound = at(120, 40, CompoundConfig { tuning: true, ..CompoundConfig::default() });
        // 24 wait: below γ, so dwnd grows by 3.53 packets, and Reno's part is the same.
        round(&mut compound, 125 * MILLISECOND);
        compound.on_congestion(&loss(SECOND, 200));
        assert!((compound.gamma() - 25.5).abs() < 1e-9, "{}", compound.gamma());
        for _ in 0..20 {
            round(&mut compound, BASE);
            compound.on_congestion(&loss(SECOND, 200));
        }
        assert_eq!(compound.gamma(), 5.0);
        let mut fixed = at(120, 40, CompoundConfig::default());
        round(&mut fixed, 125 * MILLISECOND);
        fixed.on_congestion(&loss(SECOND, 200));
        assert_eq!(fixed.gamma(), 30.0);
    }
}
