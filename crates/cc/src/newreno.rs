//! `NewReno` (RFC 5681, RFC 6582) with the initial window of RFC 6928.

use crate::window_use::WindowUse;
use crate::{
    Ack, AnyController, Congestion, Connection, Controller, HandOver, INITIAL_WINDOW, MIN_RTO, Nanos, Rtt, Scheme,
    Signal,
};

/// `NewReno` as a scheme.
pub(crate) const SCHEME: Scheme = Scheme {
    name: "newreno",
    title: "NewReno",
    kind: "classic",
    year: 1999,
    reference: "RFC 5681, RFC 6582",
    parameters: &[],
    build: |_, mss| AnyController::NewReno(NewReno::new(mss)),
};

/// How often Linux halves a window after an idle time: once for every timeout that has passed (`tcp_cwnd_restart`).
pub(crate) fn halvings(idle: Nanos, rto: Nanos) -> u32 {
    (idle.saturating_sub(1) / rto.max(1)).min(60) as u32
}

/// `NewReno`: one segment more per round trip, half as much after a loss.
///
/// * Slow start (RFC 5681 §3.1): one byte per byte acknowledged, so that delayed acknowledgements do not slow it
///   down. This is appropriate byte counting (RFC 3465) without its limit L, as in Linux: no controller here can
///   cause the burst that L guards against, since a retransmission that fills a hole acknowledges only itself.
/// * Congestion avoidance (§3.1): one segment per window acknowledged, counted exactly in bytes.
/// * Loss or mark (§3.1 equation 4, RFC 3168 §6.1.2): `ssthresh` = half of the flight, at least two segments, and the
///   window continues from there. The inflation by duplicate acknowledgements of RFC 6582 belongs to a transport
///   without selective acknowledgements; here the transport counts what is in flight.
/// * Timeout (§3.1): one segment. `ssthresh` stays when the same data times out again.
/// * Idle for longer than a retransmission timeout (§4.1): at most the initial window.
/// * The window grows only when it held the sender back, for a whole flight and in slow start from half of the window, as in
///   Linux (`tcp_is_cwnd_limited`), and not while a loss is repaired.
#[derive(Clone, Debug)]
pub struct NewReno {
    mss: u64,
    window: Window,
    usage: WindowUse,
    /// Before the last reduction, for when it turns out to have been spurious.
    undo: Option<Window>,
    /// Nothing has been acknowledged since the last timeout.
    timed_out: bool,
    rto: Nanos,
}

/// All quantities in payload bytes.
#[derive(Clone, Copy, Debug)]
struct Window {
    cwnd: u64,
    ssthresh: u64,
    /// Acknowledged in congestion avoidance and not yet turned into growth.
    credit: u64,
}

impl NewReno {
    /// A connection that begins, with segments of `mss` payload bytes (at least 1).
    pub fn new(mss: u32) -> Self {
        let mss = u64::from(mss.max(1));
        let cwnd = u64::from(INITIAL_WINDOW) * mss;
        Self {
            mss,
            window: Window { cwnd, ssthresh: u64::MAX, credit: 0 },
            usage: WindowUse::default(),
            undo: None,
            timed_out: false,
            rto: Rtt::default().retransmission_timeout(MIN_RTO),
        }
    }

    /// Slow-start threshold in payload bytes, `u64::MAX` before the first congestion.
    pub fn ssthresh(&self) -> u64 {
        self.window.ssthresh
    }

    /// Whether the window is below the slow-start threshold.
    #[inline]
    pub(crate) fn in_slow_start(&self) -> bool {
        self.window.cwnd < self.window.ssthresh
    }

    /// Whether the last thing that happened is a timeout: another one reduces nothing further.
    pub(crate) fn has_timed_out(&self) -> bool {
        self.timed_out
    }

    /// For a scheme that moves the window by a rule of its own and leaves the rest to Reno; in payload bytes.
    pub(crate) fn set_window(&mut self, cwnd: u64, ssthresh: u64) {
        self.window.cwnd = cwnd;
        self.window.ssthresh = ssthresh;
    }

    /// Takes a connection over, for a scheme that leaves the window to Reno.
    pub(crate) fn resume(&mut self, from: HandOver, connection: &Connection) {
        self.set_window(from.cwnd, from.ssthresh);
        self.rto = connection.rtt.retransmission_timeout(MIN_RTO);
    }

    /// After an idle time, for a scheme that does as Linux: the window is halved with every timeout that has passed, down to
    /// the initial one, and three quarters of it are the threshold at least.
    pub(crate) fn restart_by_halves(&mut self, idle: Nanos) {
        let Window { cwnd, ssthresh, .. } = &mut self.window;
        let least = (*cwnd).min(u64::from(INITIAL_WINDOW) * self.mss);
        *ssthresh = (*ssthresh).max(*cwnd / 4 * 3);
        *cwnd = (*cwnd >> halvings(idle, self.rto)).max(least);
    }

    /// The last reduction was unfounded, for a scheme that does as Linux (`tcp_reno_undo_cwnd`): window and threshold are
    /// at least what they were, and the threshold three quarters of that window.
    pub(crate) fn undo_to_the_larger(&mut self) {
        if let Some(before) = self.undo.take() {
            let window = &mut self.window;
            window.cwnd = window.cwnd.max(before.cwnd);
            window.ssthresh = window.ssthresh.max(before.ssthresh).max(before.cwnd / 4 * 3);
        }
    }

    /// Takes note of an acknowledgement without growing by it.
    #[inline]
    pub(crate) fn note(&mut self, ack: &Ack, rtt: &Rtt) {
        self.rto = rtt.retransmission_timeout(MIN_RTO);
        self.timed_out &= ack.acked == 0;
        self.usage.on_ack(ack, self.window.cwnd, self.mss);
    }

    /// Grows by an acknowledgement that has been noted; in congestion avoidance `credit` says for how many bytes it counts.
    #[inline]
    pub(crate) fn grow(&mut self, ack: &Ack, credit: impl FnOnce(u64) -> u64) {
        if ack.hole_open || !self.usage.allows_growth(self.window.cwnd, self.in_slow_start()) {
            return;
        }
        let window = &mut self.window;
        let mut acked = ack.acked;
        if window.cwnd < window.ssthresh {
            let growth = acked.min(window.ssthresh - window.cwnd);
            window.cwnd += growth;
            acked -= growth;
        }
        // Slow start needs no such test: a loss leaves the window at ssthresh, and after a timeout it must grow.
        if ack.in_recovery {
            return;
        }
        window.credit += credit(acked);
        while window.credit >= window.cwnd {
            window.credit -= window.cwnd;
            window.cwnd += self.mss;
        }
    }

    /// Remembers the window and sets `ssthresh` to half of the flight (RFC 5681 equation 4). What is in flight beyond
    /// the window, because an earlier reduction has yet to drain, does not count.
    fn reduce(&mut self, flight_size: u64) {
        self.undo = Some(self.window);
        self.window.ssthresh = (flight_size.min(self.window.cwnd) / 2).max(2 * self.mss);
        self.window.credit = 0;
    }
}

impl Controller for NewReno {
    #[inline]
    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        self.note(ack, rtt);
        self.grow(ack, |acked| acked);
    }

    fn on_congestion(&mut self, event: &Congestion) {
        self.reduce(event.flight_size);
        self.window.cwnd = self.window.ssthresh;
        if event.signal == Signal::Ecn {
            self.undo = None;
        }
    }

    fn reduces_proportionally(&self) -> bool {
        true
    }

    fn on_timeout(&mut self, _now: Nanos, flight_size: u64) {
        if !self.timed_out {
            self.reduce(flight_size);
        }
        self.window.cwnd = self.mss;
        self.timed_out = true;
    }

    fn on_spurious_congestion(&mut self, _now: Nanos) {
        if let Some(before) = self.undo.take()
            && self.window.cwnd < before.cwnd
        {
            self.window = before;
        }
    }

    fn on_idle_restart(&mut self, _now: Nanos, idle: Nanos) {
        if idle > self.rto {
            self.window.cwnd = self.window.cwnd.min(u64::from(INITIAL_WINDOW) * self.mss);
            self.window.credit = 0;
        }
    }

    #[inline]
    fn cwnd(&self) -> u64 {
        self.window.cwnd
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MILLISECOND;
    use crate::SECOND;

    const MSS: u64 = 1000;

    fn ack(packets: u64) -> Ack {
        Ack { now: SECOND, acked: packets * MSS, cwnd_limited: true, ..Ack::default() }
    }

    fn congestion(packets: u64, signal: Signal) -> Congestion {
        Congestion { now: SECOND, signal, flight_size: packets * MSS, sent_at: 0 }
    }

    /// In slow start with a window of `packets`, at least ten of them.
    fn at(packets: u64) -> NewReno {
        let mut reno = NewReno::new(MSS as u32);
        reno.on_ack(&ack(packets - 10), &Rtt::default());
        assert_eq!(reno.cwnd(), packets * MSS);
        reno
    }

    #[test]
    fn a_delayed_acknowledgement_counts_what_it_covers() {
        let mut reno = NewReno::new(MSS as u32);
        for _ in 0..5 {
            reno.on_ack(&ack(2), &Rtt::default());
        }
        assert_eq!(reno.cwnd(), 20 * MSS);
    }

    #[test]
    fn a_loss_halves_the_flight_then_one_segment_per_window() {
        let mut reno = at(40);
        reno.on_congestion(&congestion(30, Signal::Loss));
        assert_eq!((reno.cwnd(), reno.ssthresh()), (15 * MSS, 15 * MSS));
        for packet in 1..=15 + 16 {
            reno.on_ack(&ack(1), &Rtt::default());
            let grown = u64::from(packet >= 15) + u64::from(packet >= 15 + 16);
            assert_eq!(reno.cwnd(), (15 + grown) * MSS, "packet {packet}");
        }
    }

    #[test]
    fn what_slow_start_leaves_goes_to_congestion_avoidance() {
        let mut reno = at(40);
        reno.on_timeout(SECOND, 40 * MSS);
        // 19 to reach the threshold of 20, then 20 + 21 for two more segments.
        reno.on_ack(&ack(19 + 20 + 21), &Rtt::default());
        assert_eq!(reno.cwnd(), 22 * MSS);
    }

    #[test]
    fn the_window_grows_only_when_it_is_used_and_nothing_is_repaired() {
        let mut reno = at(40);
        // Half of it is in flight.
        reno.on_ack(&Ack { cwnd_limited: false, sent_at: SECOND, ..ack(20) }, &Rtt::default());
        assert_eq!(reno.cwnd(), 40 * MSS);
        reno.on_ack(&Ack { hole_open: true, ..ack(40) }, &Rtt::default());
        assert_eq!(reno.cwnd(), 40 * MSS);
        reno.on_congestion(&congestion(40, Signal::Loss));
        reno.on_ack(&Ack { in_recovery: true, ..ack(40) }, &Rtt::default());
        assert_eq!(reno.cwnd(), 20 * MSS);
    }

    /// Messages of 12 packets, each acknowledged before the next.
    #[test]
    fn a_message_longer_than_the_window_opens_it() {
        let mut reno = NewReno::new(MSS as u32);
        for message in 1..=3 {
            let sent_at = message * SECOND;
            for left in (0..12).rev() {
                let now = sent_at + SECOND / 2;
                // Only the first does not fit: its last two packets leave with the first acknowledgement.
                let cwnd_limited = message == 1 && left == 11;
                let in_flight = if cwnd_limited { 9 } else { left } * MSS;
                reno.on_ack(&Ack { now, sent_at, in_flight, cwnd_limited, ..ack(1) }, &Rtt::default());
            }
            // Once 24 packets fit, 12 are half of them.
            assert_eq!(reno.cwnd(), [22, 24, 24][message as usize - 1] * MSS, "after message {message}");
        }
    }

    #[test]
    fn a_timeout_leaves_one_segment_and_its_repetition_keeps_the_threshold() {
        let mut reno = at(40);
        reno.on_timeout(SECOND, 40 * MSS);
        assert_eq!((reno.cwnd(), reno.ssthresh()), (MSS, 20 * MSS));
        reno.on_timeout(3 * SECOND, MSS);
        assert_eq!((reno.cwnd(), reno.ssthresh()), (MSS, 20 * MSS));
        // Slow start works while the transport still repairs the losses.
        reno.on_ack(&Ack { in_recovery: true, ..ack(1) }, &Rtt::default());
        assert_eq!(reno.cwnd(), 2 * MSS);
        // New data was acknowledged, so the next timeout counts again, with the floor of two segments.
        reno.on_timeout(5 * SECOND, 2 * MSS);
        assert_eq!((reno.cwnd(), reno.ssthresh()), (MSS, 2 * MSS));
    }

    #[test]
    fn a_spurious_loss_is_undone_but_not_a_mark() {
        let mut reno = at(40);
        reno.on_congestion(&congestion(40, Signal::Loss));
        reno.on_spurious_congestion(SECOND);
        assert_eq!((reno.cwnd(), reno.ssthresh()), (40 * MSS, u64::MAX));
        reno.on_congestion(&congestion(40, Signal::Ecn));
        reno.on_spurious_congestion(SECOND);
        assert_eq!((reno.cwnd(), reno.ssthresh()), (20 * MSS, 20 * MSS));
    }

    #[test]
    fn a_long_idle_period_restarts_from_the_initial_window() {
        let mut rtt = Rtt::default();
        rtt.update(100 * MILLISECOND);
        let mut reno = at(40);
        reno.on_ack(&ack(0), &rtt);
        reno.on_idle_restart(SECOND, 300 * MILLISECOND);
        assert_eq!(reno.cwnd(), 40 * MSS);
        reno.on_idle_restart(SECOND, 301 * MILLISECOND);
        assert_eq!(reno.cwnd(), 10 * MSS);
    }
}
