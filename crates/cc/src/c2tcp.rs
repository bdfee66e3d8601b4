//! C2TCP (Abbasloo et al., "Cellular controlled delay TCP", IFIP Networking 2018): CUBIC, under a condition on the
//! round-trip time.

use crate::{
    Ack, AnyController, Congestion, Connection, Controller, Cubic, CubicConfig, HandOver, Loss, LostPacket,
    MILLISECOND, Nanos, Parameter, Rtt, SECOND, Scheme, Signal, Successor,
};

/// CUBIC looks at no sample in this time after congestion avoidance has begun, and so the condition does not either
/// (`bictcp_acked` of Linux 4.13).
const BLIND: Nanos = SECOND;

/// What a user can set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct C2tcpConfig {
    /// Round-trip time up to which the condition is good.
    pub target: Nanos,
    /// For so long it may be bad before the first reduction.
    pub interval: Nanos,
    /// Packets that each acknowledgement counts for besides `target / RTT` while the condition is good.
    pub alpha: f64,
}

impl C2tcpConfig {
    /// What holds unless a user sets it.
    pub const DEFAULT: Self = Self { target: 100 * MILLISECOND, interval: 100 * MILLISECOND, alpha: 0.0 };
}

impl Default for C2tcpConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// C2TCP as a scheme.
pub(crate) const SCHEME: Scheme = Scheme {
    name: "c2tcp",
    title: "C2TCP",
    kind: "hybrid",
    year: 2018,
    reference: "Abbasloo et al., IFIP Networking 2018; C2TCP-IFIP",
    parameters: &[
        Parameter {
            name: "target",
            default: C2tcpConfig::DEFAULT.target as f64 / SECOND as f64,
            min: 0.001,
            max: 100.0,
            unit: "s",
            doc: "round-trip time that is acceptable",
        },
        Parameter {
            name: "interval",
            default: C2tcpConfig::DEFAULT.interval as f64 / SECOND as f64,
            min: 0.001,
            max: 100.0,
            unit: "s",
            doc: "above the target before the window falls to one packet",
        },
        Parameter::packets(
            "alpha",
            C2tcpConfig::DEFAULT.alpha,
            "counted with each acknowledgement, besides target / RTT",
        ),
    ],
    build: |values, mss| {
        let (target, interval) = (values.time("target"), values.time("interval"));
        AnyController::C2tcp(C2tcp::new(C2tcpConfig { target, interval, alpha: values.get("alpha") }, mss))
    },
};

/// C2TCP, version 1, as in its authors' patch of Linux 4.13.1 (`C2TCP-IFIP`): [`Cubic`] as in Linux, to which each
/// acknowledgement with a sample of the round-trip time adds one of two things, unless congestion avoidance has begun less
/// than a second ago. Samples are whole ms.
///
/// * **Good**, up to the target: it counts for `max(alpha + ⌊target / RTT⌋, 1)` packets more; the law below begins anew.
/// * **Bad**, above: once that has been so for an interval, `ssthresh` is what CUBIC makes of a loss (`W_max` and the epoch
///   likewise), and the window one packet. The n-th time is followed by the next after `interval / √n`, of which `CoDel`'s
///   one step of Newton's method for each n makes 1, 0.5, 0.563 and 0.488 intervals at first.
///
/// The patch adds what counts more to `snd_cwnd_cnt`, in which CUBIC's congestion avoidance counts too. There a packet is
/// added to the window when the count reaches the one number, `w`, that CUBIC has worked out, or the other, the window, that
/// the condition compares it with; either starts it anew. So `a` acknowledged packets and `e` that they count for more
/// grow the window by `(a + e) / min(w, cwnd)`. Here windows are real numbers, and with CUBIC's own growth `g = a / w`:
///
/// * in congestion avoidance the window grows by `(a + e) max(g / a, 1 / cwnd)`: where CUBIC is steep by `1 + e` times as
///   much as CUBIC, and by `1 + e` packets in a round trip where it is flat; at most by `a`, for CUBIC adds no more than one
///   packet at a time when it finds the count above `w`;
/// * in slow start by `e / cwnd` on top.
///
/// Reductions are no losses: nothing is repaired, and what is in flight drains while the window, in slow start, grows
/// towards `ssthresh`, for 0.7 round trips or so; if that is longer than the interval, one reduction follows another, as
/// with the default above 143 ms. While a loss is repaired Linux overrides the window, so that a reduction in that time
/// moves what the repair ends at. A loss that is taken back after a reduction takes back that one too (`loss_cwnd`).
///
/// Differences from the patch: its CUBIC is of Linux 4.13, this one of today, see [`Cubic`]. It grows by the condition
/// whether or not the window is used, and while data are missing; here a window grows only where CUBIC's does. Times
/// other than the samples are ns, not ms, and the law is in real numbers.
#[derive(Clone, Debug)]
pub struct C2tcp {
    config: C2tcpConfig,
    mss: f64,
    cubic: Cubic,
    /// The condition is bad.
    bad: Option<Bad>,
}

#[derive(Clone, Copy, Debug)]
struct Bad {
    /// When the window is reduced next, …
    next: Nanos,
    /// … how often it will then have been, …
    count: f64,
    /// … and what `1 / √count` is taken for.
    inverse: f64,
}

impl Bad {
    /// The window is reduced.
    fn advance(&mut self, now: Nanos, interval: Nanos) {
        self.next = now + (interval as f64 * self.inverse) as Nanos;
        self.count += 1.0;
        self.inverse *= (3.0 - self.count * self.inverse * self.inverse) / 2.0;
    }
}

impl C2tcp {
    /// A connection that begins, with segments of `mss` payload bytes (at least 1).
    pub fn new(config: C2tcpConfig, mss: u32) -> Self {
        let cubic = Cubic::new(CubicConfig::LINUX, mss.max(1));
        Self { config, mss: f64::from(mss.max(1)), cubic, bad: None }
    }

    /// CUBIC, which holds the window.
    pub fn cubic(&self) -> &Cubic {
        &self.cubic
    }

    /// Looks at a sample; returns the packets that its acknowledgement counts for more.
    fn look(&mut self, ack: &Ack, sample: Nanos) -> f64 {
        let C2tcpConfig { target, interval, alpha } = self.config;
        let ms = sample / MILLISECOND;
        if ms * MILLISECOND <= target {
            self.bad = None;
            return (alpha + (target / MILLISECOND / ms.max(1)) as f64).max(1.0);
        }
        match &mut self.bad {
            None => self.bad = Some(Bad { next: ack.now.saturating_add(interval), count: 1.0, inverse: 1.0 }),
            Some(bad) if ack.now > bad.next => {
                bad.advance(ack.now, interval);
                self.reduce(ack);
            }
            Some(_) => {}
        }
        0.0
    }

    fn reduce(&mut self, ack: &Ack) {
        let event = Congestion { now: ack.now, signal: Signal::Loss, flight_size: u64::MAX, sent_at: ack.sent_at };
        self.cubic.on_congestion(&event);
        if !ack.in_recovery {
            self.cubic.set_window(1.0);
        }
    }

    /// Adds `extra` packets to the count, after CUBIC has grown from `before` by an acknowledgement.
    fn grow(&mut self, ack: &Ack, before: f64, extra: f64) {
        let window = self.cubic.window();
        let grown = if before < self.cubic.ssthresh() {
            window + (extra / window).min(1.0)
        } else {
            let acked = ack.acked as f64 / self.mss;
            let steep = ((window - before) / acked).max(1.0 / before);
            before + ((acked + extra) * steep).min(acked)
        };
        self.cubic.set_window(grown.max(window));
    }
}

impl Controller for C2tcp {
    #[inline]
    fn on_sent(&mut self, now: Nanos, bytes: u64, in_flight: u64) {
        self.cubic.on_sent(now, bytes, in_flight);
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        let sees = self.cubic.epoch_start().is_none_or(|start| ack.now.saturating_sub(start) >= BLIND);
        let extra = match ack.rtt {
            Some(sample) if sees => self.look(ack, sample),
            _ => 0.0,
        };
        let before = self.cubic.window();
        self.cubic.on_ack(ack, rtt);
        let grows = ack.acked > 0 && !ack.in_recovery && !ack.hole_open && self.cubic.may_grow();
        if extra > 0.0 && grows {
            self.grow(ack, before, extra);
        }
    }

    fn on_packet_lost(&mut self, packet: &LostPacket) {
        self.cubic.on_packet_lost(packet);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.cubic.on_loss(loss);
    }

    fn on_congestion(&mut self, event: &Congestion) {
        self.cubic.on_congestion(event);
    }

    fn reduces_proportionally(&self) -> bool {
        self.cubic.reduces_proportionally()
    }

    fn on_timeout(&mut self, now: Nanos, flight_size: u64) {
        self.cubic.on_timeout(now, flight_size);
    }

    fn on_spurious_congestion(&mut self, now: Nanos) {
        self.cubic.on_spurious_congestion(now);
    }

    fn on_idle_restart(&mut self, now: Nanos, idle: Nanos) {
        self.cubic.on_idle_restart(now, idle);
    }

    #[inline]
    fn cwnd(&self) -> u64 {
        self.cubic.cwnd()
    }
}

impl Successor for C2tcp {
    fn hand_over(&self) -> HandOver {
        self.cubic.hand_over()
    }

    fn take_over(&mut self, from: HandOver, connection: &Connection) {
        self.cubic.take_over(from, connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;
    const MS: Nanos = MILLISECOND;

    fn ack(now: Nanos, rtt: Nanos) -> Ack {
        Ack { now, acked: MSS, sent_at: now.saturating_sub(rtt), rtt: Some(rtt), cwnd_limited: true, ..Ack::default() }
    }

    /// In slow start with so many packets; the threshold is far away.
    fn starting(packets: f64) -> C2tcp {
        let mut c2tcp = C2tcp::new(C2tcpConfig::default(), MSS as u32);
        c2tcp.cubic.set_window(packets);
        c2tcp
    }

    /// In congestion avoidance since 1 s with so many packets, where the cubic is flat.
    fn flat(packets: u64) -> C2tcp {
        let mut c2tcp = starting(0.0);
        c2tcp.cubic.continue_from(packets * MSS);
        acknowledge(&mut c2tcp, SECOND, 200 * MS);
        assert_eq!(c2tcp.cubic.epoch_start(), Some(SECOND));
        c2tcp.cubic.set_window(packets as f64);
        c2tcp
    }

    /// The window after an acknowledgement.
    fn acknowledge(c2tcp: &mut C2tcp, now: Nanos, rtt: Nanos) -> f64 {
        let mut estimate = Rtt::default();
        estimate.update(rtt);
        c2tcp.on_ack(&ack(now, rtt), &estimate);
        c2tcp.cubic.window()
    }

    /// How much of a packet an acknowledgement adds to CUBIC's in slow start, where CUBIC adds one.
    fn more(config: C2tcpConfig, rtt: Nanos) -> f64 {
        let mut c2tcp = C2tcp { config, ..starting(100.0) };
        (acknowledge(&mut c2tcp, SECOND, rtt) - 101.0) * 101.0
    }

    #[test]
    fn what_an_acknowledgement_counts_for() {
        let config = C2tcpConfig::default();
        let table = [(100.999, 1.0), (101.0, 0.0), (51.0, 1.0), (50.9, 2.0), (20.0, 5.0), (1.0, 100.0), (0.2, 100.0)];
        for (ms, extra) in table {
            let found = more(config, (ms * MS as f64) as Nanos);
            assert!((found - extra).abs() < 1e-9, "{ms} ms: {found}");
        }
        let found = more(C2tcpConfig { alpha: 3.0, ..config }, 40 * MS);
        assert!((found - 5.0).abs() < 1e-9, "{found}");
        let found = more(C2tcpConfig { target: MS / 2, ..config }, MS / 4);
        assert!((found - 1.0).abs() < 1e-9, "one at least: {found}");
    }

    /// After the first second of congestion avoidance, at 40 ms: two packets more for the one acknowledged.
    #[test]
    fn growth_where_cubic_is_flat_and_where_it_is_steep() {
        // A second after the flat point CUBIC wants 0.4 · 1.04³ = 0.45 packets more in a window of 400, less than one; then
        // 0.4 · 5.04³ = 51; then half of the window, which three times over would be more than what is acknowledged.
        let mut c2tcp = flat(400);
        c2tcp.config.target = 80 * MS;
        for (now, expected) in [(2, 3.0 / 400.0), (6, 3.0 * 0.4 * 5.04_f64.powi(3) / 400.0), (14, 1.0)] {
            let now = now * SECOND;
            c2tcp.cubic.set_window(400.0);
            let grown = acknowledge(&mut c2tcp, now, 40 * MS) - 400.0;
            assert!((grown - expected).abs() < 1e-6, "{grown} after {now} ns, not {expected}");
        }
    }

    #[test]
    fn nothing_in_the_first_second_of_congestion_avoidance() {
        let mut c2tcp = flat(100);
        let mut cubic = c2tcp.cubic.clone();
        let mut estimate = Rtt::default();
        estimate.update(40 * MS);
        for (now, same) in [(SECOND + MS, true), (2 * SECOND - 1, true), (2 * SECOND, false)] {
            cubic.on_ack(&ack(now, 40 * MS), &estimate);
            assert_eq!(acknowledge(&mut c2tcp, now, 40 * MS) == cubic.window(), same, "{now}");
        }
    }

    /// More than 100 ms after the first bad sample, and then after 100, 50 and 56.25 ms.
    #[test]
    fn reductions_by_the_law_of_codel() {
        let mut c2tcp = starting(100.0);
        let mut reduced = Vec::new();
        for tenth in 0..5000 {
            c2tcp.cubic.set_window(100.0);
            if acknowledge(&mut c2tcp, SECOND + tenth * MS / 10, 150 * MS) < 50.0 {
                reduced.push(tenth);
                // One packet, and the acknowledgement grows it in slow start.
                assert!((c2tcp.cubic.window() - 2.0).abs() < 1e-9 && (c2tcp.cubic.ssthresh() - 70.0).abs() < 1e-9);
            }
            // As if slow start went on.
            assert_eq!(c2tcp.cubic.epoch_start(), None);
            c2tcp = C2tcp { bad: c2tcp.bad, ..starting(100.0) };
            if reduced.len() == 4 {
                break;
            }
        }
        assert_eq!(reduced, [1001, 2002, 2503, 3066]);
    }

    #[test]
    fn a_good_sample_begins_anew() {
        let mut c2tcp = starting(100.0);
        for ms in [0, 50, 99] {
            acknowledge(&mut c2tcp, SECOND + ms * MS, 150 * MS);
        }
        assert!(acknowledge(&mut c2tcp, SECOND + 100 * MS, 90 * MS) > 100.0);
        for ms in [101, 150, 201] {
            assert!(acknowledge(&mut c2tcp, SECOND + ms * MS, 150 * MS) > 100.0, "{ms}");
        }
        assert!(acknowledge(&mut c2tcp, SECOND + 202 * MS, 150 * MS) < 3.0);
    }

    #[test]
    fn a_reduction_while_a_loss_is_repaired_moves_its_end() {
        let mut c2tcp = starting(100.0);
        let loss = Congestion { now: SECOND, signal: Signal::Loss, flight_size: 0, sent_at: 0 };
        c2tcp.on_congestion(&loss);
        for ms in [0, 101] {
            let ack = Ack { in_recovery: true, ..ack(SECOND + ms * MS, 150 * MS) };
            c2tcp.on_ack(&ack, &Rtt::default());
        }
        assert!((c2tcp.cubic.window() - 49.0).abs() < 1e-9, "{}", c2tcp.cubic.window());
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut c2tcp = starting(100.0);
        c2tcp.on_ack(&Ack { cwnd_limited: false, ..ack(SECOND, 40 * MS) }, &Rtt::default());
        assert_eq!(c2tcp.cwnd(), 100 * MSS);
    }
}
