//! What a flow measures: sums over a monitoring period, and rates over about a round trip.

use astraea_cc::{Ack, MILLISECOND, Nanos};

use crate::backlog::Signals;
use crate::state::Measurement;

/// Ends of periods that are remembered.
const ENDS: usize = 64;

/// Shortest time over which the rate and the loss of the backlog state are taken.
const SHORTEST: Nanos = 60 * MILLISECOND;

/// Packets that a rate is taken over if the memory allows: with fewer, the count is mostly rounding.
const PACKETS: u64 = 4;

/// Packets that a share of lost ones is taken over if the memory allows.
const LOSS_PACKETS: u64 = 200;

/// Sums since the flow started, at the end of a period.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    time: Nanos,
    acked: u64,
    lost: u64,
    /// Window in packets from then on.
    window: f64,
}

/// Collects what acknowledgements and losses tell.
#[derive(Clone, Debug)]
pub(super) struct Monitor {
    mss: f64,
    acked: u64,
    lost: u64,
    in_flight: u64,
    /// Payload bytes in flight before the newest acknowledgement, and the most of them in this period.
    before_ack: u64,
    most: u64,
    /// Whether the application, and not the network, has ever limited the flow.
    app_limited: bool,
    srtt: Nanos,
    rtt_sum: u64,
    rtt_count: u64,
    rtt_min: Nanos,
    lifetime_min: Nanos,
    ends: [Totals; ENDS],
    closed: usize,
}

/// A closed period.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Period {
    /// Length in ns.
    pub length: Nanos,
    /// Smallest round-trip time in ns, if an acknowledgement came.
    pub rtt_min: Option<Nanos>,
    /// Mean round-trip time in ns, if an acknowledgement came.
    pub rtt_mean: Option<f64>,
    /// Payload bytes acknowledged.
    pub acked: u64,
    /// Payload bytes declared lost.
    pub lost: u64,
    /// Most payload bytes in flight before an acknowledgement of it, or before the last one that there was.
    pub in_flight: u64,
    /// Whether the application has ever limited the flow.
    pub app_limited: bool,
}

/// What happened lately, over about a round trip.
#[derive(Clone, Copy, Debug)]
struct Recent {
    /// Packets acknowledged per s.
    rate: f64,
    /// Share of the packets that was lost, 0 to 1.
    loss: f64,
    /// The same over as long as the rate, if four packets at least were lost, and 0 otherwise.
    burst: f64,
}

impl Monitor {
    pub(super) fn new(mss: f64) -> Self {
        Self {
            mss,
            acked: 0,
            lost: 0,
            in_flight: 0,
            before_ack: 0,
            most: 0,
            app_limited: false,
            srtt: 0,
            rtt_sum: 0,
            rtt_count: 0,
            rtt_min: Nanos::MAX,
            lifetime_min: Nanos::MAX,
            ends: [Totals::default(); ENDS],
            closed: 0,
        }
    }

    /// Sets the time at which the first period begins, or the first after a pause.
    pub(super) fn begin(&mut self, now: Nanos) {
        self.ends[0] = Totals { time: now, acked: self.acked, lost: self.lost, window: 0.0 };
        self.closed = 1;
    }

    /// Takes an acknowledgement, with its sample of the round-trip time if that tells something of the path.
    pub(super) fn on_ack(&mut self, ack: &Ack, sample: Option<Nanos>, srtt: Nanos) {
        self.acked += ack.acked;
        self.in_flight = ack.in_flight;
        self.before_ack = ack.in_flight + ack.acked;
        self.most = self.most.max(self.before_ack);
        self.app_limited |= ack.rate.app_limited;
        self.srtt = srtt;
        if let Some(rtt) = sample {
            self.rtt_sum += rtt;
            self.rtt_count += 1;
            self.rtt_min = self.rtt_min.min(rtt);
            self.lifetime_min = self.lifetime_min.min(rtt);
        }
    }

    pub(super) fn on_sent(&mut self, in_flight: u64) {
        self.in_flight = in_flight;
    }

    pub(super) fn on_loss(&mut self, lost: u64, in_flight: u64) {
        self.lost += lost;
        self.in_flight = in_flight;
        self.before_ack = in_flight;
    }

    /// Most payload bytes in flight in the period under way, and whether the application has ever limited the flow.
    pub(super) fn in_flight(&self) -> (u64, bool) {
        (self.most, self.app_limited)
    }

    /// Whether nothing is in flight.
    pub(super) fn is_empty(&self) -> bool {
        self.in_flight == 0
    }

    /// Shortest round-trip time in ns, [`Nanos::MAX`] before the first sample.
    pub(super) fn shortest(&self) -> Nanos {
        self.lifetime_min
    }

    /// Smoothed round-trip time, 0 before the first sample.
    pub(super) fn srtt(&self) -> Nanos {
        self.srtt
    }

    fn end(&self, back: usize) -> &Totals {
        &self.ends[(self.closed - 1 - back) % ENDS]
    }

    /// Ends a period. Nothing has been measured if none has begun.
    pub(super) fn close(&mut self, now: Nanos) -> Period {
        let last = if self.closed == 0 { Totals { time: now, ..Totals::default() } } else { *self.end(0) };
        self.ends[self.closed % ENDS] = Totals { time: now, acked: self.acked, lost: self.lost, window: 0.0 };
        self.closed += 1;
        let period = Period {
            length: now - last.time,
            rtt_min: (self.rtt_count > 0).then_some(self.rtt_min),
            rtt_mean: (self.rtt_count > 0).then(|| self.rtt_sum as f64 / self.rtt_count as f64),
            acked: self.acked - last.acked,
            lost: self.lost - last.lost,
            in_flight: self.most,
            app_limited: self.app_limited,
        };
        self.most = self.before_ack;
        (self.rtt_sum, self.rtt_count, self.rtt_min) = (0, 0, Nanos::MAX);
        period
    }

    /// The papers' quantities of a closed period, for a window (bytes) and a pacing rate (bit/s).
    pub(super) fn measurement(&self, period: &Period, cwnd: f64, pacing_rate: f64) -> Measurement {
        let bit_rate = |bytes: u64| bytes as f64 * 8e9 / period.length.max(1) as f64;
        Measurement {
            throughput: bit_rate(period.acked),
            latency: period.rtt_mean.map(|ns| ns / 1e9),
            latency_min: if self.lifetime_min == Nanos::MAX { 0.0 } else { self.lifetime_min as f64 / 1e9 },
            loss: bit_rate(period.lost),
            in_flight: self.in_flight as f64,
            cwnd,
            pacing_rate,
        }
    }

    /// Notes the window in packets that was set at the end of the period, if there was one.
    pub(super) fn note_window(&mut self, window: f64) {
        if self.closed > 0 {
            self.ends[(self.closed - 1) % ENDS].window = window;
        }
    }

    /// Window in packets a round trip before the end of the last period, 0 if it is not known.
    fn window_before(&self) -> f64 {
        let oldest_known = (self.closed - 1).min(ENDS - 1);
        let now = self.end(0).time;
        let mut back = 1.min(oldest_known);
        while back < oldest_known && now - self.end(back).time < self.srtt {
            back += 1;
        }
        self.end(back).window
    }

    /// Rate and shares of loss over the last round trip: whole periods, at least one, and more for slow flows. `loss` looks
    /// back until it has enough packets.
    fn recent(&self) -> Recent {
        let newest = *self.end(0);
        let oldest_known = (self.closed - 1).min(ENDS - 1);
        let span = self.srtt.max(SHORTEST);
        let mut back = 1.min(oldest_known);
        while back < oldest_known && newest.time - self.end(back).time < span {
            back += 1;
        }
        let enough = (PACKETS as f64 * self.mss) as u64;
        while back < oldest_known && newest.acked - self.end(back).acked < enough {
            back += 1;
        }
        let oldest = self.end(back);
        let rate = (newest.acked - oldest.acked) as f64 / self.mss * 1e9 / (newest.time - oldest.time).max(1) as f64;
        let recent = (newest.lost - oldest.lost) as f64;
        let burst =
            if recent >= 4.0 * self.mss { recent / (recent + (newest.acked - oldest.acked) as f64) } else { 0.0 };
        let enough = (LOSS_PACKETS as f64 * self.mss) as u64;
        while back < oldest_known && newest.acked + newest.lost - self.end(back).acked - self.end(back).lost < enough {
            back += 1;
        }
        let oldest = self.end(back);
        let (acked, lost) = ((newest.acked - oldest.acked) as f64, (newest.lost - oldest.lost) as f64);
        let loss = if lost > 0.0 { lost / (lost + acked) } else { 0.0 };
        Recent { rate, loss, burst }
    }

    /// The signals of a closed period for a base round-trip time in ns; `rtt` stands in for a period without one.
    pub(super) fn signals(&self, period: &Period, rtt: Nanos, base: Nanos, window: f64) -> Signals {
        let Recent { rate, loss, burst } = self.recent();
        let low = period.rtt_min.unwrap_or(rtt);
        let queue = low.saturating_sub(base) as f64 / 1e9;
        let before = self.window_before();
        let change = if before > 0.0 { libm::log(window / before) * self.srtt as f64 / 1e9 } else { 0.0 };
        Signals {
            rate,
            queue,
            ahead: (queue + change).max(0.0),
            loss,
            burst,
            spread: period.rtt_mean.map_or(0.0, |mean| (mean - low as f64).max(0.0) / 1e9),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ack, close, ms};
    use super::*;

    /// A monitor of a flow that begins at 0 with segments of 1000 bytes.
    struct Flow {
        monitor: Monitor,
        srtt: Nanos,
        now: Nanos,
    }

    impl Flow {
        fn new(srtt: f64) -> Self {
            let mut monitor = Monitor::new(1000.0);
            monitor.begin(0);
            Self { monitor, srtt: ms(srtt), now: 0 }
        }

        /// A period of 30 ms in which so many packets were acknowledged, each after `rtts` in ms, and lost.
        fn period(&mut self, acked: u64, lost: u64, rtts: &[f64]) -> Period {
            self.now += ms(30.0);
            self.monitor.on_ack(&ack(self.now, acked, None), None, self.srtt);
            for rtt in rtts {
                self.monitor.on_ack(&ack(self.now, 0, None), Some(ms(*rtt)), self.srtt);
            }
            self.monitor.on_loss(1000 * lost, 0);
            self.monitor.close(self.now)
        }
    }

    #[test]
    fn the_rate_covers_a_round_trip_in_whole_periods() {
        let mut short = Flow::new(40.0);
        short.period(3, 0, &[]);
        close(short.monitor.recent().rate, 3.0 / 0.03);
        short.period(6, 0, &[]);
        short.period(9, 0, &[]);
        close(short.monitor.recent().rate, 15.0 / 0.06);
        let mut long = Flow::new(70.0);
        for packets in [100, 3, 6, 9] {
            long.period(packets, 0, &[]);
        }
        close(long.monitor.recent().rate, 18.0 / 0.09);
    }

    #[test]
    fn the_rate_of_a_slow_flow_covers_four_packets() {
        let mut flow = Flow::new(20.0);
        for packets in [5, 1, 0, 1, 1, 1] {
            flow.period(packets, 0, &[]);
        }
        close(flow.monitor.recent().rate, 4.0 / 0.15);
    }

    #[test]
    fn losses_cover_two_hundred_packets_and_bursts_a_round_trip() {
        let mut flow = Flow::new(40.0);
        flow.period(50, 10, &[]);
        let Recent { loss, burst, .. } = flow.monitor.recent();
        close(loss, 10.0 / 60.0);
        close(burst, 10.0 / 60.0);
        flow.period(50, 0, &[]);
        close(flow.monitor.recent().burst, 10.0 / 110.0);
        flow.period(50, 0, &[]);
        flow.period(50, 0, &[]);
        let Recent { rate, loss, burst } = flow.monitor.recent();
        close(rate, 50.0 / 0.03);
        close(loss, 10.0 / 210.0);
        close(burst, 0.0);
        flow.period(50, 3, &[]);
        let Recent { loss, burst, .. } = flow.monitor.recent();
        close(loss, 3.0 / 203.0);
        close(burst, 0.0); // three are no burst
    }

    #[test]
    fn the_memory_is_a_ring() {
        let mut flow = Flow::new(1e6);
        for _ in 0..200 {
            flow.period(2, 0, &[]);
        }
        close(flow.monitor.recent().rate, 2.0 / 0.03);
    }

    #[test]
    fn the_queue_is_expected_to_follow_the_window() {
        let mut flow = Flow::new(60.0);
        let period = flow.period(10, 0, &[45.0, 47.0]);
        let signals = flow.monitor.signals(&period, 0, ms(40.0), 10.0);
        close(signals.queue, 0.005);
        close(signals.ahead, 0.005); // no window is known a round trip before
        close(signals.spread, 0.001);
        flow.monitor.note_window(10.0);
        flow.period(10, 0, &[45.0]);
        flow.monitor.note_window(15.0);
        let period = flow.period(10, 0, &[45.0]);
        // 60 ms ago it was 10 packets.
        let signals = flow.monitor.signals(&period, 0, ms(40.0), 20.0);
        close(signals.queue, 0.005);
        close(signals.ahead, 0.005 + 0.06 * std::f64::consts::LN_2);
        let signals = flow.monitor.signals(&period, 0, ms(40.0), 5.0);
        assert_eq!(signals.ahead, 0.0, "5 ms of queue are less than the window has shrunk by");
    }

    #[test]
    fn a_silent_period_shows_the_last_round_trip() {
        let mut flow = Flow::new(60.0);
        let period = flow.period(0, 0, &[]);
        assert_eq!((period.rtt_min, period.length), (None, ms(30.0)));
        let signals = flow.monitor.signals(&period, ms(48.0), ms(40.0), 10.0);
        close(signals.queue, 0.008);
        assert_eq!((signals.rate, signals.loss, signals.spread), (0.0, 0.0, 0.0));
    }
}
