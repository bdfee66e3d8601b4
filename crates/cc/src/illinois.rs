//! TCP Illinois (Liu, Basar and Srikant 2008): losses say when the window shrinks, the queueing delay by how much, and how
//! fast it grows.

use crate::{
    Ack, AnyController, Congestion, Connection, Controller, HandOver, Nanos, NewReno, Parameter, Rtt, Scheme, Successor,
};

/// Packets per round trip by which the window grows without a queue, and with one that is full (`ALPHA_MAX`, `ALPHA_MIN`).
const ALPHA: (f64, f64) = (10.0, 0.3);
/// Parts of the window that a loss takes without a queue, and with a long one (`BETA_MIN`, `BETA_MAX`).
const BETA: (f64, f64) = (0.125, 0.5);
/// Both as Reno has them (`ALPHA_BASE`, `BETA_BASE`).
const RENO: (f64, f64) = (1.0, 0.5);

/// Smallest window after a loss, in segments (Linux).
const MIN_WINDOW: f64 = 2.0;

/// What a user can set, by its names in Linux.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IllinoisConfig {
    /// Window in packets below which the scheme is Reno.
    pub win_thresh: f64,
    /// Round trips without a queue, once there has been one, before the window grows fastest again.
    pub theta: u32,
}

impl IllinoisConfig {
    /// Linux's values.
    pub const DEFAULT: Self = Self { win_thresh: 15.0, theta: 5 };
}

impl Default for IllinoisConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Illinois as a scheme.
pub(crate) const SCHEME: Scheme = Scheme {
    name: "illinois",
    title: "Illinois",
    kind: "hybrid",
    year: 2008,
    reference: "Liu, Basar and Srikant 2008; Linux",
    parameters: &[
        Parameter::packets("win_thresh", IllinoisConfig::DEFAULT.win_thresh, "window below which it is Reno"),
        Parameter {
            name: "theta",
            default: IllinoisConfig::DEFAULT.theta as f64,
            min: 1.0,
            max: 100.0,
            unit: "round trips",
            doc: "without a queue before the window grows fastest again",
        },
    ],
    build: |values, mss| {
        let config = IllinoisConfig { win_thresh: values.get("win_thresh"), theta: values.get("theta") as u32 };
        AnyController::Illinois(Illinois::new(config, mss))
    },
};

/// Illinois as in Linux (`tcp_illinois.c`): per round trip the window grows by α packets, and a loss takes β of it.
///
/// With the end of a round trip both follow from `da`, the mean queueing delay of its samples, and `dm`, the largest that
/// the connection has seen (each above the smallest sample of all):
///
/// * `α = 10` if `da ≤ d1 = dm / 100`; above, `α = 10 D / (D + (10 / 0.3 − 1) (da − d1))` with `D = dm − d1`, which is 0.3
///   where `da = dm`. Once it has been above, it takes five such round trips (θ) to come back to 10; α rests until then.
///   They need not be consecutive.
/// * `β = 1/8` if `da ≤ dm / 10`, `1/2` if `da ≥ 8 dm / 10`, and between them a straight line.
/// * With fewer than 15 packets in the window α is 1 and β is 1/2, as for Reno; and so after a timeout until the next
///   round trip has ended. At the beginning α is 10 and β is 1/2.
///
/// Round trips do not end while a loss is repaired, but its samples count in the one that ends afterwards. [`NewReno`]
/// holds the window: slow start is its own, and a loss or a mark leaves `w (1 − β)`, two segments at least, from the
/// window rather than from the flight. A reduction that was unfounded is taken back as `tcp_reno_undo_cwnd` does, and a
/// pause halves the window with every retransmission timeout that passes.
///
/// Differences from Linux: α, β and the window are not truncated to 1/128, 1/64 and whole packets, and delays are ns rather
/// than µs. Growth is counted exactly, by `α` bytes for each that is acknowledged, where Linux begins to count anew with each
/// packet that the window has grown, and with 15 to 30 packets grows up to a third more slowly for that. Samples have no
/// bound, in Linux 3.3 s. A second timeout in a row reduces nothing further, as everywhere here.
#[derive(Clone, Debug)]
pub struct Illinois {
    config: IllinoisConfig,
    mss: f64,
    /// Holds the window.
    reno: NewReno,
    alpha: f64,
    beta: f64,
    delays: Delays,
    /// The present round trip ends when something is acknowledged that was sent at this time or later.
    round: Nanos,
    /// There has been a queue since α was last set to its largest value, …
    queued: bool,
    /// … and so many round trips without one.
    clear: u32,
}

/// Samples of the round-trip time.
#[derive(Clone, Copy, Debug)]
struct Delays {
    /// Of the connection.
    smallest: Nanos,
    largest: Nanos,
    /// Of the round trip.
    sum: Nanos,
    count: u64,
}

impl Delays {
    const NONE: Self = Self { smallest: Nanos::MAX, largest: 0, sum: 0, count: 0 };

    #[inline]
    fn add(&mut self, sample: Nanos) {
        self.smallest = self.smallest.min(sample);
        self.largest = self.largest.max(sample);
        self.sum = self.sum.saturating_add(sample);
        self.count += 1;
    }

    /// Mean queueing delay of the round trip, if there was a sample, and the largest of the connection.
    fn queueing(&self) -> Option<(Nanos, Nanos)> {
        let mean = self.sum.checked_div(self.count)?;
        Some((mean.saturating_sub(self.smallest), self.largest - self.smallest))
    }
}

impl Illinois {
    /// A connection that begins, with segments of `mss` payload bytes (at least 1).
    pub fn new(config: IllinoisConfig, mss: u32) -> Self {
        Self {
            config,
            mss: f64::from(mss.max(1)),
            reno: NewReno::new(mss),
            alpha: ALPHA.0,
            beta: RENO.1,
            delays: Delays::NONE,
            round: 0,
            queued: false,
            clear: 0,
        }
    }

    /// Growth in packets per round trip.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Part of the window that a loss takes.
    pub fn beta(&self) -> f64 {
        self.beta
    }

    /// Slow-start threshold in payload bytes, `u64::MAX` before the first congestion.
    pub fn ssthresh(&self) -> u64 {
        self.reno.ssthresh()
    }

    fn begin_round(&mut self, now: Nanos) {
        self.round = now;
        (self.delays.sum, self.delays.count) = (0, 0);
    }

    /// A round trip has ended.
    fn adjust(&mut self) {
        if (self.reno.cwnd() as f64) < self.config.win_thresh * self.mss {
            (self.alpha, self.beta) = RENO;
        } else if let Some((mean, largest)) = self.delays.queueing() {
            self.alpha = self.growth(mean, largest);
            self.beta = decrease(mean, largest);
        }
    }

    fn growth(&mut self, mean: Nanos, largest: Nanos) -> f64 {
        let none = largest / 100;
        if mean <= none {
            if self.queued {
                self.clear += 1;
                if self.clear < self.config.theta {
                    return self.alpha;
                }
                (self.queued, self.clear) = (false, 0);
            }
            return ALPHA.0;
        }
        self.queued = true;
        let (range, above) = ((largest - none) as f64, (mean - none) as f64);
        ALPHA.0 * range / (range + above * (ALPHA.0 - ALPHA.1) / ALPHA.1)
    }

    /// What a loss leaves of the window.
    fn reduced(&self) -> u64 {
        let window = self.reno.cwnd() as f64 * (1.0 - self.beta);
        window.max(MIN_WINDOW * self.mss) as u64
    }
}

/// β of a mean and a largest queueing delay.
fn decrease(mean: Nanos, largest: Nanos) -> f64 {
    let (low, high) = (largest / 10, largest.saturating_mul(8) / 10);
    if mean <= low {
        BETA.0
    } else if mean >= high {
        BETA.1
    } else {
        BETA.0 + (BETA.1 - BETA.0) * (mean - low) as f64 / (high - low) as f64
    }
}

impl Controller for Illinois {
    #[inline]
    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        if let Some(sample) = ack.rtt {
            self.delays.add(sample);
        }
        self.reno.note(ack, rtt);
        if ack.in_recovery || ack.hole_open {
            return;
        }
        if ack.sent_at >= self.round {
            self.adjust();
            self.begin_round(ack.now);
        }
        let alpha = self.alpha;
        self.reno.grow(ack, |acked| (alpha * acked as f64) as u64);
    }

    fn on_congestion(&mut self, event: &Congestion) {
        let reduced = self.reduced();
        self.reno.on_congestion(event);
        self.reno.set_window(reduced, reduced);
    }

    fn reduces_proportionally(&self) -> bool {
        true
    }

    fn on_timeout(&mut self, now: Nanos, flight_size: u64) {
        let ssthresh = if self.reno.has_timed_out() { self.reno.ssthresh() } else { self.reduced() };
        self.reno.on_timeout(now, flight_size);
        self.reno.set_window(self.reno.cwnd(), ssthresh);
        (self.alpha, self.beta) = RENO;
        (self.queued, self.clear) = (false, 0);
        self.begin_round(now);
    }

    fn on_spurious_congestion(&mut self, _now: Nanos) {
        self.reno.undo_to_the_larger();
    }

    fn on_idle_restart(&mut self, _now: Nanos, idle: Nanos) {
        self.reno.restart_by_halves(idle);
    }

    #[inline]
    fn cwnd(&self) -> u64 {
        self.reno.cwnd()
    }
}

impl Successor for Illinois {
    fn hand_over(&self) -> HandOver {
        HandOver { cwnd: self.reno.cwnd(), ssthresh: self.reno.ssthresh() }
    }

    /// Window and threshold are there, the delays are not (`tcp_illinois_init`).
    fn take_over(&mut self, from: HandOver, connection: &Connection) {
        self.reno.resume(from, connection);
        self.begin_round(connection.now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MILLISECOND, SECOND, Signal};

    const MSS: u64 = 1000;
    const BASE: Nanos = 100 * MILLISECOND;

    fn ack(now: Nanos, acked: u64, sent_at: Nanos, rtt: Nanos) -> Ack {
        Ack { now, acked, sent_at, rtt: Some(rtt), cwnd_limited: true, ..Ack::default() }
    }

    /// Congestion avoidance with `packets`, on a path whose round trip takes 100 ms, and once took 200.
    fn at(packets: u64) -> Illinois {
        let mut illinois = Illinois::new(IllinoisConfig::default(), MSS as u32);
        illinois.reno.set_window(packets * MSS, packets * MSS);
        (illinois.delays.smallest, illinois.delays.largest) = (BASE, 2 * BASE);
        illinois
    }

    /// A round trip with these samples, in ms, in which nothing is acknowledged, so that the window stays; (α, β).
    fn round(illinois: &mut Illinois, samples: &[u64]) -> (f64, f64) {
        let now = illinois.round + SECOND;
        let (last, others) = samples.split_last().expect("a sample");
        for ms in others {
            illinois.on_ack(&ack(now, 0, illinois.round - 1, ms * MILLISECOND), &Rtt::default());
        }
        illinois.on_ack(&ack(now, 0, now, last * MILLISECOND), &Rtt::default());
        (illinois.alpha(), illinois.beta())
    }

    fn loss() -> Congestion {
        Congestion { now: SECOND, signal: Signal::Loss, flight_size: 0, sent_at: 0 }
    }

    /// `dm` is 100 ms: `d1` is 1 ms, and 99 ms above it α is 10 · 99 / (99 + 99 · 9.7 / 0.3) = 10 / 33.33. At 10 ms:
    /// 990 / (99 + 9 · 32.33) = 2.538. At 45 ms β is 1/8 + 3/8 · 35/70.
    #[test]
    fn growth_and_decrease_by_the_delay() {
        let table = [
            (0, 10.0, 0.125),
            (1, 10.0, 0.125),
            (2, 990.0 / (99.0 + 97.0 / 3.0), 0.125),
            (10, 990.0 / (99.0 + 291.0), 0.125),
            (45, 990.0 / (99.0 + 44.0 * 97.0 / 3.0), 0.3125),
            (80, 990.0 / (99.0 + 79.0 * 97.0 / 3.0), 0.5),
            (100, 0.3, 0.5),
        ];
        for (ms, alpha, beta) in table {
            let found = round(&mut at(100), &[100 + ms]);
            assert!((found.0 - alpha).abs() < 1e-9 && (found.1 - beta).abs() < 1e-9, "{ms} ms: {found:?}");
        }
    }

    #[test]
    fn the_mean_of_a_round_trip_counts() {
        let mut illinois = at(100);
        illinois.round = SECOND;
        assert_eq!(round(&mut illinois, &[100, 145, 190]), round(&mut at(100), &[145]));
        // A sample longer than any before moves the scale: 100 of 200 ms, and β is 1/8 + 3/8 · 80/140.
        let (_, beta) = round(&mut at(100), &[300]);
        assert_eq!(beta, 0.5);
        illinois.delays.largest = 3 * BASE;
        assert!((round(&mut illinois, &[200]).1 - (0.125 + 0.375 * 80.0 / 140.0)).abs() < 1e-9);
    }

    #[test]
    fn a_connection_that_never_saw_a_queue_grows_fastest() {
        let mut illinois = Illinois::new(IllinoisConfig::default(), MSS as u32);
        illinois.reno.set_window(100 * MSS, 100 * MSS);
        assert_eq!((illinois.alpha(), illinois.beta()), (10.0, 0.5));
        assert_eq!(round(&mut illinois, &[100]), (10.0, 0.125));
    }

    #[test]
    fn after_a_queue_five_round_trips_without_one() {
        let mut illinois = at(100);
        let slow = round(&mut illinois, &[150]).0;
        assert!(slow < 1.0);
        for _ in 0..3 {
            assert_eq!(round(&mut illinois, &[100]), (slow, 0.125));
        }
        // A queue in between does not begin the count anew.
        let slower = round(&mut illinois, &[160]).0;
        assert_eq!(round(&mut illinois, &[100]).0, slower);
        assert_eq!(round(&mut illinois, &[100]).0, 10.0);
        assert_eq!(round(&mut illinois, &[100]).0, 10.0);
    }

    #[test]
    fn below_fifteen_packets_it_is_reno() {
        assert_eq!(round(&mut at(14), &[100]), (1.0, 0.5));
        assert_eq!(round(&mut at(15), &[100]), (10.0, 0.125));
    }

    /// 10 packets acknowledged count as 100: one packet more; 20 of them at 0.3 do not make 101, and 320 less do.
    #[test]
    fn alpha_packets_per_window() {
        let mut illinois = at(100);
        illinois.round = SECOND;
        let acknowledge = |illinois: &mut Illinois, packets: u64| {
            illinois.on_ack(&ack(SECOND, packets * MSS, 0, BASE), &Rtt::default());
            illinois.cwnd() / MSS
        };
        assert_eq!([9, 1].map(|packets| acknowledge(&mut illinois, packets)), [100, 101]);
        illinois.alpha = 0.3;
        assert_eq!([336, 1].map(|packets| acknowledge(&mut illinois, packets)), [101, 102]);
    }

    #[test]
    fn a_loss_takes_beta_of_the_window() {
        for (beta, left) in [(0.125, 70), (0.5, 40)] {
            let mut illinois = at(80);
            illinois.beta = beta;
            illinois.on_congestion(&loss());
            assert_eq!((illinois.cwnd(), illinois.ssthresh()), (left * MSS, left * MSS));
            // The threshold was 80, which is more than three quarters of the window.
            illinois.on_spurious_congestion(SECOND);
            assert_eq!((illinois.cwnd(), illinois.ssthresh()), (80 * MSS, 80 * MSS));
        }
        let mut small = at(3);
        small.on_congestion(&loss());
        assert_eq!(small.cwnd(), 2 * MSS);
    }

    /// Not while it is repaired; the samples of that time count in the round trip that ends with the repair.
    #[test]
    fn a_repair_ends_no_round_trip() {
        let mut illinois = at(100);
        let repair = Ack { in_recovery: true, ..ack(SECOND, MSS, SECOND, 2 * BASE) };
        illinois.on_ack(&repair, &Rtt::default());
        assert_eq!((illinois.alpha(), illinois.cwnd()), (10.0, 100 * MSS));
        assert_eq!(round(&mut illinois, &[100]), round(&mut at(100), &[150]));
    }

    #[test]
    fn a_timeout_begins_as_reno() {
        let mut illinois = at(80);
        round(&mut illinois, &[100]);
        illinois.on_timeout(SECOND, 80 * MSS);
        assert_eq!((illinois.cwnd(), illinois.ssthresh()), (MSS, 70 * MSS));
        assert_eq!((illinois.alpha(), illinois.beta()), RENO);
        illinois.on_timeout(3 * SECOND, MSS);
        assert_eq!((illinois.cwnd(), illinois.ssthresh()), (MSS, 70 * MSS));
        illinois.on_spurious_congestion(4 * SECOND);
        assert_eq!((illinois.cwnd(), illinois.ssthresh()), (80 * MSS, 80 * MSS));
    }

    /// The timeout is 1 s.
    #[test]
    fn a_pause_halves_the_window_with_every_timeout() {
        let mut illinois = at(80);
        illinois.on_idle_restart(9 * SECOND, 2 * SECOND);
        assert_eq!((illinois.cwnd(), illinois.ssthresh()), (40 * MSS, 80 * MSS));
    }
}
