//! A flow whose scheme is chosen anew, interval by interval.

use std::sync::Arc;

use astraea_cc::{Ack, AnyController, Congestion, Connection, Controller, HandOver, Loss, LostPacket, Nanos, Rtt};

use super::candidate::{CANDIDATES, candidate};
use super::choice::{Caution, Choose, Judge};
use super::interval::{Interval, Kind, Tally};
use super::policy::SelectorPolicy;

/// The scheme that a flow begins with: CUBIC, as Linux does where nobody chose another one.
const FIRST: usize = 1;

/// Pacing rate of schemes that ask for none, in windows per smoothed round-trip time, below half of the slow-start threshold and
/// above it (`tcp_pacing_ss_ratio`, `tcp_pacing_ca_ratio`).
const PACING: [f64; 2] = [2.0, 1.2];

/// A flow under a selector: Antelope (Zhou et al., ICNP 2021) or HACC (Peng et al.), by the kind of its policy.
///
/// A scheme of [`CANDIDATES`] sets window and pacing rate. When an interval has ended the selector may put another one in its
/// place, which finds window and slow-start threshold as they are and nothing else ([`HandOver`]).
///
/// Antelope is pinned to the authors' code (`antelopeproject/antelope`, commit 24dfe7b: `recvAndSetCC.py`, `getTrainData.py`):
///
/// * An interval is 21 acknowledgements. The models see of each: the smallest round-trip time, the mean deviation and the mean
///   of the smoothed one, the delay that the reward counts, throughput, losses and the mean pacing rate.
/// * The prediction that is largest counts at once in the first interval, and later when it was the same one before.
/// * Once BBR has been at work the flow stays paced, as in Linux (`SK_PACING_NEEDED`): at 1.2 windows, or what is in flight if
///   that is more, per smoothed round-trip time, and at two below half of the threshold. That is also the pacing rate that the
///   models see of a scheme without one.
///
/// What differs:
///
/// * Their models are trained with the delay that the reward counts in the fourth place and see a constant 0 there when they
///   choose (`maxRTT` is never set); here they see what they were trained with.
/// * They take the smoothed round-trip time and its mean deviation as the kernel holds them, eight and four times as large; here
///   both are what they are. So delay counts for three intervals less here ([`Interval::delay`]).
/// * Their reward has packets over bytes, and no limit; here nothing but delivery at the pacing rate is worth 1, the most there
///   is. Their times are whole milliseconds.
/// * Flows to one destination share a memory of what was chosen and begin with the scheme that it holds; here each flow begins
///   with CUBIC. Their sixth scheme, Vegas, has no name where it is to be set (`transfer_cc.c`).
/// * A change of the scheme while a loss is repaired ends Linux's proportional reduction only for BBR, as here; but where a
///   repair ends after BBR has gone, the window becomes the threshold there, and stays here.
///
/// HACC follows its paper, which has no code. Its models see table 1 (of throughput, what is delivered) and the reward is
/// equation 1 ([`Interval::reward`]). Where the paper has no numbers they are ours: an interval is a round trip, 10 ms at least;
/// a lost packet costs five, counted as a rate; a data unit, with which delta doubles, is an interval, and delta stays at 1024;
/// the decision module takes the path for another one when the average of throughput, round-trip time or smallest round-trip
/// time has become 1.5 times as large or small as it was at its last decision, or the share lost differs by 2 points, and they
/// have come to rest; the scheme changes when another one is worth the price alpha more.
#[derive(Debug)]
pub struct Selector<C = Judge> {
    kind: Kind,
    mss: u32,
    chooser: C,
    candidate: AnyController,
    current: usize,
    decisions: u64,
    switches: u64,
    tally: Tally,
    newest: Interval,
    connection: Connection,
    /// An interval has ended, and the choice is due.
    due: Option<Nanos>,
    asks: bool,
    /// BBR has been at work.
    paced: bool,
}

impl Selector {
    /// A flow that begins, under a policy, with segments of `mss` payload bytes.
    pub fn of(policy: Arc<SelectorPolicy>, caution: Caution, mss: u32) -> Self {
        Self::new(policy.kind(), Judge::new(policy, caution), mss)
    }
}

impl<C: Choose> Selector<C> {
    /// A flow that begins, whose schemes `chooser` chooses after intervals of this kind.
    pub fn new(kind: Kind, chooser: C, mss: u32) -> Self {
        Self {
            kind,
            mss,
            chooser,
            candidate: candidate(FIRST, mss),
            current: FIRST,
            decisions: 0,
            switches: 0,
            tally: Tally::default(),
            newest: Interval::default(),
            connection: Connection::default(),
            due: None,
            asks: false,
            paced: false,
        }
    }

    /// What chooses.
    pub fn chooser(&self) -> &C {
        &self.chooser
    }

    /// The scheme at work, as an index into [`CANDIDATES`].
    pub fn current(&self) -> usize {
        self.current
    }

    /// Choices so far, whether or not they changed the scheme.
    pub fn decisions(&self) -> u64 {
        self.decisions
    }

    /// How often the scheme has changed.
    pub fn switches(&self) -> u64 {
        self.switches
    }

    /// The newest interval that has ended.
    pub fn newest(&self) -> &Interval {
        &self.newest
    }

    /// Whether the newest interval waits for a choice.
    pub fn asks(&self) -> bool {
        self.asks
    }

    /// Goes on under the scheme of that index.
    ///
    /// # Panics
    /// If there is none.
    pub fn act(&mut self, choice: usize) {
        assert!(choice < CANDIDATES.len(), "choice {choice}, expected less than {}", CANDIDATES.len());
        self.asks = false;
        self.decisions += 1;
        if choice == self.current {
            return;
        }
        let left = self.leaves();
        self.candidate = candidate(choice, self.mss);
        self.candidate.successor_mut().expect("a candidate is one").take_over(left, &self.connection);
        self.current = choice;
        self.switches += 1;
        self.paced |= self.candidate.pacing_rate().is_some();
    }

    /// What the scheme at work would leave to another one.
    #[inline]
    fn leaves(&self) -> HandOver {
        self.candidate.successor().expect("a candidate is one").hand_over()
    }

    /// The scheme's pacing rate, or what Linux would pace it at.
    #[inline]
    fn kernels_pacing(&self) -> f64 {
        self.candidate.pacing_rate().unwrap_or_else(|| {
            let HandOver { cwnd, ssthresh } = self.leaves();
            let gain = PACING[usize::from(cwnd >= ssthresh / 2)];
            gain * cwnd.max(self.connection.in_flight) as f64 * 8e9 / self.connection.rtt.smoothed().max(1) as f64
        })
    }
}

impl<C: Choose> Controller for Selector<C> {
    #[inline]
    fn on_sent(&mut self, now: Nanos, bytes: u64, in_flight: u64) {
        (self.connection.now, self.connection.in_flight) = (now, in_flight);
        self.candidate.on_sent(now, bytes, in_flight);
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        self.connection = Connection {
            now: ack.now,
            rtt: *rtt,
            delivered: ack.rate.total_delivered,
            in_flight: ack.in_flight,
            in_recovery: ack.in_recovery,
        };
        self.candidate.on_ack(ack, rtt);
        let pacing = if rtt.has_sample() { self.kernels_pacing() } else { 0.0 };
        if let Some(interval) = self.tally.on_ack(self.kind, ack, rtt, pacing) {
            self.newest = interval;
            self.due = Some(ack.now);
        }
    }

    fn on_packet_lost(&mut self, packet: &LostPacket) {
        self.candidate.on_packet_lost(packet);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.tally.on_loss(loss.lost);
        self.connection.in_flight = loss.in_flight;
        self.candidate.on_loss(loss);
    }

    fn on_congestion(&mut self, event: &Congestion) {
        self.connection.in_recovery = true;
        self.candidate.on_congestion(event);
    }

    fn reduces_proportionally(&self) -> bool {
        self.candidate.reduces_proportionally()
    }

    fn on_timeout(&mut self, now: Nanos, flight_size: u64) {
        self.tally.on_loss(flight_size);
        (self.connection.in_flight, self.connection.in_recovery) = (0, false);
        self.candidate.on_timeout(now, flight_size);
    }

    fn on_spurious_congestion(&mut self, now: Nanos) {
        self.connection.in_recovery = false;
        self.candidate.on_spurious_congestion(now);
    }

    fn on_idle_restart(&mut self, now: Nanos, idle: Nanos) {
        self.candidate.on_idle_restart(now, idle);
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.due
    }

    /// The choice is made once the acknowledgement has been dealt with.
    fn on_timer(&mut self, now: Nanos) {
        (self.connection.now, self.due, self.asks) = (now, None, true);
        if let Some(choice) = self.chooser.choose(&self.newest, self.current) {
            self.act(choice);
        }
    }

    #[inline]
    fn cwnd(&self) -> u64 {
        self.candidate.cwnd()
    }

    #[inline]
    fn pacing_rate(&self) -> Option<f64> {
        if self.paced && self.connection.rtt.has_sample() {
            Some(self.kernels_pacing())
        } else {
            self.candidate.pacing_rate()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use astraea_cc::{MILLISECOND, RateSample};

    const MSS: u64 = 1000;

    /// Chooses what it is told to.
    struct Told(Vec<usize>);

    impl Choose for Told {
        fn choose(&mut self, _interval: &Interval, current: usize) -> Option<usize> {
            Some(self.0.pop().unwrap_or(current))
        }
    }

    struct Flow<C> {
        selector: Selector<C>,
        rtt: Rtt,
        now: Nanos,
        delivered: u64,
    }

    impl<C: Choose> Flow<C> {
        fn new(chooser: C) -> Self {
            let selector = Selector::new(Kind::Antelope, chooser, MSS as u32);
            Self { selector, rtt: Rtt::default(), now: 0, delivered: 0 }
        }

        /// So many packets are acknowledged, one a millisecond, 40 ms after they were sent, by a window that is full.
        fn acks(&mut self, packets: u32) {
            for _ in 0..packets {
                self.now += MILLISECOND;
                self.rtt.update(40 * MILLISECOND);
                let window = self.selector.cwnd();
                self.selector.on_sent(self.now, MSS, window);
                self.delivered += MSS;
                let rate = RateSample {
                    delivered: 40 * MSS,
                    interval: 40 * MILLISECOND,
                    prior_delivered: self.delivered.saturating_sub(40 * MSS),
                    total_delivered: self.delivered,
                    ..RateSample::default()
                };
                let ack = Ack {
                    now: self.now,
                    acked: MSS,
                    sent_at: self.now.saturating_sub(40 * MILLISECOND),
                    rtt: Some(40 * MILLISECOND),
                    rate,
                    in_flight: window - MSS,
                    cwnd_limited: true,
                    ..Ack::default()
                };
                self.selector.on_ack(&ack, &self.rtt);
                if let Some(due) = self.selector.next_timer() {
                    assert_eq!(due, self.now);
                    self.selector.on_timer(due);
                }
            }
        }
    }

    #[test]
    fn a_choice_counts_after_the_interval_and_the_window_stays() {
        // Vegas, and then what it is.
        let mut flow = Flow::new(Told(vec![5, 5]));
        flow.acks(20);
        assert_eq!((flow.selector.current(), flow.selector.cwnd()), (FIRST, 30 * MSS));
        flow.acks(1);
        assert_eq!((flow.selector.current(), flow.selector.cwnd(), flow.selector.switches()), (5, 31 * MSS, 1));
        assert!(matches!(flow.selector.candidate, AnyController::Vegas(_)));
        flow.acks(21);
        assert_eq!((flow.selector.switches(), flow.selector.newest().index), (1, 1));
    }

    #[test]
    fn a_flow_that_bbr_had_stays_paced() {
        let mut flow = Flow::new(Told(vec![1, 0]));
        flow.acks(20);
        assert_eq!(flow.selector.pacing_rate(), None);
        flow.acks(1);
        assert_eq!(flow.selector.current(), 0);
        let window = flow.selector.cwnd();
        // BBR: 2.885 windows in a round trip, less 1 %.
        let first = window as f64 * 8e9 / 40e6 * 2.885 * 0.99;
        assert!((flow.selector.pacing_rate().unwrap() / first - 1.0).abs() < 1e-9);
        flow.acks(21);
        assert_eq!(flow.selector.current(), 1);
        // CUBIC without a threshold: two windows.
        let window = flow.selector.cwnd() as f64;
        assert_eq!(flow.selector.pacing_rate(), Some(2.0 * window * 8e9 / 40e6));
    }

    #[test]
    fn whatever_follows_bbr_is_paced() {
        let mut flow = Flow::new(Told(vec![2, 5, 0]));
        flow.acks(3 * 21);
        assert_eq!((flow.selector.current(), flow.selector.switches()), (2, 3));
        assert!(matches!(flow.selector.candidate, AnyController::Illinois(_)));
        assert!(flow.selector.candidate.pacing_rate().is_none() && flow.selector.pacing_rate().is_some());
    }

    #[test]
    fn what_a_timeout_takes_for_lost_is_lost_in_the_interval() {
        let mut flow = Flow::new(Told(vec![]));
        flow.acks(10);
        flow.selector.on_loss(&Loss { now: flow.now, lost: 2 * MSS, in_flight: 9 * MSS });
        flow.selector.on_timeout(flow.now, 9 * MSS);
        assert_eq!(flow.selector.cwnd(), MSS, "the scheme's own answer");
        flow.acks(11);
        assert_eq!(flow.selector.newest().lost, 11 * MSS);
        flow.acks(21);
        assert_eq!(flow.selector.newest().lost, 0);
    }

    #[test]
    fn the_models_see_the_pacing_rate_that_linux_would_have() {
        let mut flow = Flow::new(Told(vec![]));
        flow.acks(21);
        // Two windows a round trip: the window grew from 11 to 31 packets.
        let newest = flow.selector.newest();
        assert!((newest.pacing_peak - 2.0 * 31.0 * MSS as f64 * 8e9 / 40e6).abs() < 1e-3, "{newest:?}");
        assert!((newest.pacing - 2.0 * 21.0 * MSS as f64 * 8e9 / 40e6).abs() < 1e-3, "{newest:?}");
        // Past half of the threshold, 1.2.
        let from = HandOver { cwnd: 31 * MSS, ssthresh: 60 * MSS };
        flow.selector
            .candidate
            .successor_mut()
            .unwrap()
            .take_over(from, &Connection { rtt: flow.rtt, ..Connection::default() });
        assert_eq!(flow.selector.kernels_pacing().round(), 7_440_000.0, "31 packets in 40 ms, a fifth more");
    }

    #[test]
    fn a_choice_may_come_later() {
        struct Later;
        impl Choose for Later {
            fn choose(&mut self, _interval: &Interval, _current: usize) -> Option<usize> {
                None
            }
        }
        let mut flow = Flow::new(Later);
        flow.acks(21);
        assert!(flow.selector.asks());
        flow.selector.act(4);
        assert!(!flow.selector.asks());
        assert_eq!((flow.selector.current(), flow.selector.next_timer()), (4, None));
    }
}
