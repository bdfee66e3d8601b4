//! Orca's sender: CUBIC, and what multiplies its window.

use std::sync::Arc;

use astraea_cc::{Ack, Congestion, Controller, Cubic, CubicConfig, Loss, LostPacket, MILLISECOND, Nanos, Rtt};

use super::policy::OrcaPolicy;
use super::report::{History, Tally};
use crate::Scratch;

/// Time between reports in the paper.
pub const PERIOD: Nanos = 20 * MILLISECOND;

/// Time until the next look where there was nothing to report, and in the start-up.
const POLL: Nanos = 2 * MILLISECOND;

/// Growth with each look in the start-up.
const START_GAIN: f64 = 1.1;

/// An action of 1 multiplies the window by four.
const DOUBLINGS: f64 = 2.0;

/// Smallest window in packets that an action leaves (`sysctl_tcp_bbr_init_cwnd` of Orca's kernel).
const LEAST: f64 = 4.0;

/// Largest window in packets that an action or the start-up leads to, where nothing else is asked for: what a socket's buffer
/// of 4 MiB holds, which the authors' `setup.sh` asks for.
pub const MOST: f64 = 2900.0;

/// What decides how a sender looks at its flow, besides its policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// Reports in an observation.
    pub reports: usize,
    /// Time between reports in ns.
    pub period: Nanos,
    /// Largest window in packets that an action or the start-up leads to.
    pub most: f64,
}

/// What answers a report.
pub trait Answer {
    /// The action, in -1..=1, for an observation ([`History::values`]); `None` if [`Orca::act`] will bring it.
    fn answer(&mut self, observation: &[f32]) -> Option<f64>;
}

/// A policy at work on one flow.
#[derive(Clone, Debug)]
pub struct Actor {
    policy: Arc<OrcaPolicy>,
    scratch: Scratch,
}

impl Answer for Actor {
    fn answer(&mut self, observation: &[f32]) -> Option<f64> {
        Some(self.policy.act(observation, &mut self.scratch))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// CUBIC's window has not exceeded its threshold yet.
    Starting,
    /// The newest report has no answer yet.
    Asking,
    /// It has, or there was none since the start-up.
    Answered,
}

/// A flow under Orca (Abbasloo, Yen and Chao, SIGCOMM 2020).
///
/// CUBIC sets the window, acknowledgement by acknowledgement. Once a period, of 20 ms in the paper, the policy sees what the
/// sender has measured since, and multiplies the window by 4^a; CUBIC goes on from there, with its threshold, its epoch and its
/// last loss as they were.
///
/// Pinned is what the authors' sender and kernel do (`Soheil-ab/Orca`, commit cafaf9a: `src/orca-server-mahimahi.cc`,
/// `rl-module/envwrapper.py` and the patch of Linux 4.13):
///
/// * Until CUBIC's window exceeds its threshold for the first time the policy is not asked. The window grows by a tenth
///   instead with each look, every 2 ms, that finds a round-trip time measured, besides CUBIC's slow start. That is 17 times
///   as much in a round trip of 60 ms, and fills any buffer; what the Astraea paper measured of Orca in short buffers (its
///   figures 19a and 19c) comes of it.
/// * A report is due a period after the one before, or with the first look, every 2 ms, that finds a round-trip time. What a look
///   finds beside that, losses and delivery rates, it forgets (`deepcc_get_info`): a timeout seldom shows in a report.
/// * The factor is a whole number of percent, the product a whole number of packets, both rounded down, and four packets at
///   least. CUBIC's own fraction of a packet stays (`snd_cwnd_cnt`).
/// * While a loss is repaired, actions change nothing: the proportional reduction sets the window anew with each
///   acknowledgement, and ends at CUBIC's threshold.
/// * Packets are paced at a window, or at what is in flight if that is more, per smoothed round-trip time.
/// * No action, and no growth of the start-up, makes a window larger than [`MOST`] packets, unless another bound is given.
/// * The smallest round-trip time and the largest throughput of the flow are never forgotten.
///
/// What differs:
///
/// * Answers come at once. There sender and policy look for each other's messages every 10 ms, so that an action is late by
///   as much, and reports are 20 to 40 ms apart: with 30 ms their policy comes somewhat closer to what was published of it.
/// * The kernel counts headers in the pacing rate and not in the throughput; here neither has them. It sets the rate with
///   the acknowledgement after an action; here it changes with the window. While a loss is repaired it takes for in flight
///   what is acknowledged out of order or lost, too, and reports the reduction's window, here CUBIC's.
/// * Features end at the bounds of [`FEATURES`](super::FEATURES), where theirs has one for the pacing rate alone.
/// * CUBIC is that of today's Linux.
///
/// Neither the paper nor the authors' code says anything of what follows:
///
/// * An action that raises the window counts for nothing where the application had less to send, nor does the start-up.
/// * There are no reports of times in which nothing is in flight; the one that follows is longer.
#[derive(Clone, Debug)]
pub struct Orca<A = Actor> {
    cubic: Cubic,
    answer: A,
    terms: Terms,
    tally: Tally,
    history: History,
    /// When the next look is due, unless nothing is in flight.
    next: Option<Nanos>,
    stage: Stage,
    /// The application had enough to send since the report before the newest.
    may_raise: bool,
    in_recovery: bool,
    in_flight: u64,
    /// Round-trip times of the flow in ns: smoothed, and the smallest.
    smoothed: Nanos,
    smallest: Nanos,
}

impl Orca {
    /// A connection that begins under a policy, with segments of `mss` payload bytes (at least 1); the policy never makes
    /// the window larger than `most` packets.
    pub fn of(policy: Arc<OrcaPolicy>, most: f64, mss: u32) -> Self {
        let terms = Terms { reports: policy.history(), period: policy.period(), most };
        Self::new(Actor { policy, scratch: Scratch::default() }, terms, mss)
    }
}

impl<A: Answer> Orca<A> {
    /// A connection that begins, with segments of `mss` payload bytes (at least 1).
    pub fn new(answer: A, terms: Terms, mss: u32) -> Self {
        Self {
            cubic: Cubic::new(CubicConfig::LINUX, mss.max(1)),
            answer,
            terms,
            tally: Tally::default(),
            history: History::new(terms.reports),
            next: None,
            stage: Stage::Starting,
            may_raise: true,
            in_recovery: false,
            in_flight: 0,
            smoothed: 0,
            smallest: 0,
        }
    }

    /// The reports so far.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Whether the newest report has no answer yet.
    pub fn asks(&self) -> bool {
        self.stage == Stage::Asking
    }

    /// Answers a report that has no answer yet: multiplies the window by 4^a (clipped to a quarter and four).
    pub fn act(&mut self, action: f64) {
        if !self.asks() {
            return;
        }
        self.stage = Stage::Answered;
        let factor = libm::exp2(DOUBLINGS * action.clamp(-1.0, 1.0));
        self.multiply((100.0 * factor).floor() / 100.0);
    }

    fn multiply(&mut self, factor: f64) {
        let whole = self.cubic.window().floor();
        let multiplied = (factor * whole).floor().max(LEAST);
        if self.in_recovery || multiplied > whole && !self.may_raise {
            return;
        }
        self.cubic.set_window((multiplied + self.cubic.window().fract()).min(self.terms.most.max(whole)));
    }

    /// The start-up is over once CUBIC's window has exceeded its threshold, as it does when a loss is repaired.
    fn has_started(&self) -> bool {
        self.in_recovery || self.cubic.ssthresh().floor() < self.cubic.window().floor()
    }
}

impl<A: Answer> Controller for Orca<A> {
    #[inline]
    fn on_sent(&mut self, now: Nanos, bytes: u64, in_flight: u64) {
        self.in_flight = in_flight;
        if self.smoothed == 0 && self.next.is_none() {
            self.tally = Tally::since(now);
        }
        self.next.get_or_insert(now + self.terms.period);
        self.cubic.on_sent(now, bytes, in_flight);
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        (self.smoothed, self.smallest) = (rtt.smoothed(), rtt.min().unwrap_or(0));
        self.in_flight = ack.in_flight;
        self.in_recovery = ack.in_recovery;
        self.tally.app_limited |= ack.rate.app_limited;
        self.tally.samples += u32::from(ack.rtt.is_some());
        if let Some(rate) = ack.rate.bit_rate() {
            self.tally.on_rate(rate);
        }
        self.cubic.on_ack(ack, rtt);
    }

    fn on_packet_lost(&mut self, packet: &LostPacket) {
        self.cubic.on_packet_lost(packet);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.tally.lost += loss.lost;
        self.in_flight = loss.in_flight;
        self.cubic.on_loss(loss);
    }

    fn on_congestion(&mut self, event: &Congestion) {
        self.in_recovery = true;
        self.cubic.on_congestion(event);
    }

    fn reduces_proportionally(&self) -> bool {
        self.cubic.reduces_proportionally()
    }

    fn on_timeout(&mut self, now: Nanos, flight_size: u64) {
        self.tally.lost += flight_size;
        (self.in_recovery, self.in_flight) = (false, 0);
        self.cubic.on_timeout(now, flight_size);
    }

    fn on_spurious_congestion(&mut self, now: Nanos) {
        self.in_recovery = false;
        self.cubic.on_spurious_congestion(now);
    }

    fn on_idle_restart(&mut self, now: Nanos, idle: Nanos) {
        self.cubic.on_idle_restart(now, idle);
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.next
    }

    fn on_timer(&mut self, now: Nanos) {
        if self.tally.samples == 0 {
            self.tally.forget();
            self.next = (self.in_flight > 0).then_some(now + POLL);
            return;
        }
        let tally = std::mem::replace(&mut self.tally, Tally::since(now));
        self.may_raise = !tally.app_limited;
        if self.stage == Stage::Starting && !self.has_started() {
            self.next = Some(now + POLL);
            self.multiply(START_GAIN);
            return;
        }
        self.next = Some(now + self.terms.period);
        let mut report = tally.report(now);
        report.window = self.cubic.window();
        report.pacing = self.pacing_rate().unwrap_or(0.0);
        report.rtt_ratio = self.smallest as f64 / self.smoothed as f64;
        self.history.push(&report);
        self.stage = Stage::Asking;
        if let Some(action) = self.answer.answer(self.history.values()) {
            self.act(action);
        }
    }

    #[inline]
    fn cwnd(&self) -> u64 {
        self.cubic.cwnd()
    }

    #[inline]
    fn pacing_rate(&self) -> Option<f64> {
        let window = self.cubic.cwnd().max(self.in_flight);
        (self.smoothed > 0).then(|| window as f64 * 8e9 / self.smoothed as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use astraea_cc::{RateSample, Signal};

    const MSS: u64 = 1000;

    /// Always the same answer.
    struct Always(f64);

    impl Answer for Always {
        fn answer(&mut self, _observation: &[f32]) -> Option<f64> {
            Some(self.0)
        }
    }

    struct Flow<A> {
        sender: Orca<A>,
        rtt: Rtt,
        in_recovery: bool,
        app_limited: bool,
    }

    impl<A: Answer> Flow<A> {
        fn new(answer: A) -> Self {
            let sender = Orca::new(answer, Terms { reports: 1, period: PERIOD, most: 5000.0 }, MSS as u32);
            Self { sender, rtt: Rtt::default(), in_recovery: false, app_limited: false }
        }

        /// One packet is sent, and one acknowledged `rtt` ms after it was sent, at a rate of 8 Mbit/s.
        fn ack(&mut self, at: f64, rtt: f64) -> Ack {
            self.rtt.update(ms(rtt));
            let window = self.sender.cwnd();
            self.sender.on_sent(ms(at), MSS, window);
            let rate = RateSample {
                delivered: MSS,
                interval: MILLISECOND,
                app_limited: self.app_limited,
                ..RateSample::default()
            };
            let ack = Ack {
                now: ms(at),
                acked: MSS,
                sent_at: ms(at - rtt),
                rtt: Some(ms(rtt)),
                rate,
                in_flight: window - MSS,
                cwnd_limited: true,
                in_recovery: self.in_recovery,
                ..Ack::default()
            };
            self.sender.on_ack(&ack, &self.rtt);
            ack
        }

        /// Lets the look come that is due, which must be at `at` ms.
        fn look(&mut self, at: f64) {
            assert_eq!(self.sender.next_timer(), Some(ms(at)));
            self.sender.on_timer(ms(at));
        }

        /// The window in packets.
        fn window(&self) -> f64 {
            self.sender.cubic.window()
        }

        fn lose(&mut self, at: f64) -> Congestion {
            let flight_size = self.sender.cwnd();
            let event = Congestion { now: ms(at), signal: Signal::Loss, flight_size, sent_at: ms(at - 40.0) };
            self.sender.on_loss(&Loss { now: ms(at), lost: MSS, in_flight: flight_size - MSS });
            self.sender.on_congestion(&event);
            self.in_recovery = true;
            event
        }
    }

    fn ms(milliseconds: f64) -> Nanos {
        (milliseconds * MILLISECOND as f64) as Nanos
    }

    /// A flow that is out of its start-up and has asked for nothing yet, at 100 ms, with a window of 100 packets.
    fn under_way<A: Answer>(answer: A) -> Flow<A> {
        let mut flow = Flow::new(answer);
        flow.sender.next = Some(ms(120.0));
        flow.sender.stage = Stage::Answered;
        flow.sender.tally = Tally::since(ms(100.0));
        flow.sender.cubic.continue_from(100 * MSS);
        flow
    }

    #[test]
    fn the_start_up_grows_by_a_tenth_with_each_look_until_the_window_is_above_its_threshold() {
        let mut flow = Flow::new(Always(1.0));
        assert_eq!((flow.sender.next_timer(), flow.sender.pacing_rate()), (None, None));
        flow.sender.on_sent(0, MSS, MSS);
        // Nothing has come back after 20 ms; from then on there is a look every 2 ms.
        flow.look(20.0);
        flow.ack(21.0, 21.0);
        assert_eq!(flow.window(), 11.0, "slow start");
        flow.look(22.0);
        assert_eq!(flow.window(), 12.0, "a tenth more, in whole packets");
        flow.look(24.0);
        assert_eq!(flow.window(), 12.0, "nothing was measured since");
        flow.sender.cubic.continue_from(12 * MSS);
        flow.ack(25.0, 21.0);
        flow.look(26.0);
        assert_eq!((flow.window().floor(), flow.sender.history().newest().samples), (13.0, 0), "not above it yet");
        flow.ack(27.0, 21.0);
        flow.look(28.0);
        // The first report, and the first answer: four times as much.
        assert_eq!((flow.window().floor(), flow.sender.history().newest().samples), (52.0, 1));
        assert_eq!(flow.sender.next_timer(), Some(ms(48.0)));
    }

    #[test]
    fn a_loss_ends_the_start_up() {
        let mut flow = Flow::new(Always(1.0));
        flow.ack(0.0, 21.0);
        flow.lose(1.0);
        flow.ack(2.0, 21.0);
        flow.look(20.0);
        assert_eq!(flow.sender.history().newest().samples, 2);
        // … and until it is repaired, answers change nothing.
        assert!((flow.window() - 0.7 * 11.0).abs() < 1e-9, "{}", flow.window());
        flow.in_recovery = false;
        flow.ack(39.0, 21.0);
        flow.look(40.0);
        assert_eq!(flow.window().floor(), 28.0);
    }

    #[test]
    fn actions_are_powers_of_four_in_whole_percent_and_packets() {
        let after = |action: f64, window: f64| {
            let mut flow = under_way(Always(0.0));
            flow.sender.cubic.set_window(window);
            flow.sender.stage = Stage::Asking;
            flow.sender.act(action);
            flow.sender.act(action);
            flow.window()
        };
        assert_eq!((after(1.0, 100.0), after(-1.0, 100.0), after(0.5, 100.0)), (400.0, 25.0, 200.0));
        assert_eq!((after(7.0, 100.0), after(-7.0, 100.0)), (400.0, 25.0), "clipped");
        // 4^0.1 is 1.1487: 114 %, of 57 packets 64.98. The fraction of a packet is CUBIC's own.
        assert_eq!(after(0.1, 57.25), 64.25);
        assert_eq!(after(0.0, 57.25), 57.25);
        assert_eq!((after(-1.0, 10.0), after(0.0, 2.0)), (4.0, 4.0), "four at least");
        assert_eq!(after(1.0, 3000.0), 5000.0, "no more than asked for");
        assert_eq!(after(0.1, 7000.0), 7000.0, "what CUBIC has come to stays");
    }

    #[test]
    fn without_actions_it_is_cubic() {
        let mut flow = under_way(Always(0.0));
        let mut cubic = flow.sender.cubic.clone();
        let (mut at, mut seen) = (100.0, vec![]);
        for packet in 0..20_000 {
            at += 0.5;
            if flow.sender.next_timer() <= Some(ms(at)) {
                flow.sender.on_timer(flow.sender.next_timer().unwrap());
            }
            if packet % 3000 == 2999 {
                let event = flow.lose(at);
                cubic.on_congestion(&event);
            }
            if packet % 3000 == 100 {
                flow.in_recovery = false;
            }
            cubic.on_sent(ms(at), MSS, flow.sender.cwnd());
            let ack = flow.ack(at, 40.0);
            cubic.on_ack(&ack, &flow.rtt);
            assert_eq!(flow.sender.cwnd(), cubic.cwnd(), "packet {packet}");
            seen.push(cubic.cwnd());
        }
        assert!(seen.iter().max() > Some(&(100 * MSS)) && seen.iter().min() < Some(&(80 * MSS)));
    }

    #[test]
    fn a_report_by_hand() {
        let mut flow = under_way(Always(0.0));
        flow.ack(101.0, 40.0);
        flow.ack(110.0, 60.0);
        flow.sender.on_loss(&Loss { now: ms(111.0), lost: 5 * MSS, in_flight: 90 * MSS });
        flow.look(120.0);
        let report = flow.sender.history().newest();
        let smoothed = flow.rtt.smoothed();
        assert_eq!((report.throughput, report.loss, report.samples), (8e6, 2e6, 2));
        assert_eq!((report.length, report.window), (ms(20.0), flow.window()));
        assert_eq!(report.rtt_ratio, ms(40.0) as f64 / smoothed as f64);
        assert_eq!(report.pacing, flow.sender.cwnd() as f64 * 8e9 / smoothed as f64);
        // What is in flight decides where that is more than the window.
        flow.sender.on_sent(ms(121.0), MSS, 200 * MSS);
        assert_eq!(flow.sender.pacing_rate(), Some(200.0 * MSS as f64 * 8e9 / smoothed as f64));
    }

    #[test]
    fn the_first_report_counts_from_the_start_of_the_flow_and_forgets_what_came_without_a_round_trip() {
        let mut flow = Flow::new(Always(0.0));
        flow.sender.on_sent(ms(5000.0), MSS, MSS);
        flow.lose(5010.0);
        assert_eq!(flow.sender.history().newest().length, 0);
        flow.look(5020.0);
        flow.sender.on_loss(&Loss { now: ms(5021.0), lost: 4 * MSS, in_flight: MSS });
        flow.ack(5021.0, 21.0);
        flow.look(5022.0);
        let report = flow.sender.history().newest();
        // The packet lost at 5010 ms is forgotten, the time since 5000 ms is not.
        assert_eq!((report.length, report.loss), (ms(22.0), 4.0 * MSS as f64 * 8.0 / 0.022));
    }

    #[test]
    fn a_loss_that_no_acknowledgement_has_shown_is_repaired_too() {
        let mut flow = under_way(Always(1.0));
        flow.ack(101.0, 40.0);
        flow.lose(110.0);
        let window = flow.window();
        flow.look(120.0);
        assert_eq!(flow.window(), window);
        flow.sender.on_spurious_congestion(ms(125.0));
        flow.in_recovery = false;
        flow.ack(126.0, 40.0);
        flow.look(140.0);
        assert!(flow.window() > 2.0 * window);
    }

    #[test]
    fn an_application_that_pauses_raises_no_window_and_is_not_looked_at() {
        let mut flow = under_way(Always(0.5));
        flow.app_limited = true;
        flow.ack(101.0, 40.0);
        let window = flow.window();
        flow.look(120.0);
        assert_eq!(flow.window(), window);
        // The last one has come back: the look that finds nothing is the last.
        let mut ack = flow.ack(125.0, 40.0);
        flow.look(140.0);
        (ack.in_flight, ack.acked, ack.rtt, ack.rate.app_limited) = (0, 0, None, false);
        flow.sender.on_ack(&ack, &flow.rtt);
        flow.look(160.0);
        assert_eq!(flow.sender.next_timer(), None);
        // What follows is one report, however long the pause was.
        flow.app_limited = false;
        flow.ack(1000.0, 40.0);
        flow.look(1020.0);
        assert_eq!(flow.sender.history().newest().length, ms(1020.0 - 140.0));
        assert_eq!(flow.window().floor(), 2.0 * window.floor());
        // A smaller window is taken even so.
        let mut flow = under_way(Always(-0.5));
        flow.app_limited = true;
        flow.ack(101.0, 40.0);
        flow.look(120.0);
        assert_eq!(flow.window().floor(), 50.0);
    }

    #[test]
    fn an_answer_may_come_later() {
        struct Later;
        impl Answer for Later {
            fn answer(&mut self, _observation: &[f32]) -> Option<f64> {
                None
            }
        }
        let mut flow = under_way(Later);
        flow.ack(101.0, 40.0);
        flow.look(120.0);
        assert!(flow.sender.asks());
        flow.sender.act(-0.5);
        assert!(!flow.sender.asks());
        assert_eq!(flow.window().floor(), 50.0);
    }
}
