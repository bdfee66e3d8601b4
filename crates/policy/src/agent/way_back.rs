//! The queue on the way back.
//!
//! What acknowledgements wait for, behind an upload or on a noisy radio, is no queue of this flow's, and no window of its own
//! shortens it: a flow that took it for its own would give way to nobody. Receivers say by their own clock when they sent an
//! acknowledgement (the timestamps of RFC 7323, in ticks of a millisecond); how long it took to come is known but for what the
//! clocks differ by, and how much longer than at best it took, to a tick.

use astraea_cc::{Ack, MILLISECOND, Nanos, SECOND};

/// How long acknowledgements take to come, beyond the shortest time.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WayBack {
    /// The first acknowledgement: its arrival, and when the receiver sent it.
    first: Option<(Nanos, Nanos)>,
    /// The shortest time in ns, clocks' difference included, and until when it has grown for their drift.
    shortest: i64,
    grown: Nanos,
    /// The shortest queue of this period and of the last one in which an acknowledgement came, in ns.
    least: Option<Nanos>,
    standing: Nanos,
}

impl WayBack {
    /// A receiver's clock ticks that often.
    const TICK: i64 = MILLISECOND.cast_signed();
    /// A clock is known to be one after so long, if it has kept up with this host's within a quarter.
    const KNOWN: Nanos = SECOND;
    /// Clocks drift apart by a nanosecond in so many: 20 us a second.
    const DRIFT: Nanos = 50_000;

    /// How long this acknowledgement was in queues on its way back, in ns: that much at least, 0 if nothing is known.
    pub(super) fn queue(&mut self, ack: &Ack) -> Nanos {
        let Some(stamped) = ack.stamped else { return 0 };
        let took = ack.now.wrapping_sub(stamped).cast_signed();
        let (arrived, began) = *self.first.get_or_insert_with(|| {
            (self.shortest, self.grown) = (took, ack.now);
            (ack.now, stamped)
        });
        let apart = ack.now.saturating_sub(self.grown) / Self::DRIFT;
        self.grown += apart * Self::DRIFT;
        self.shortest = took.min(self.shortest.saturating_add_unsigned(apart));
        let longer = took.saturating_sub(self.shortest).saturating_sub(Self::TICK);
        let (here, there) = (ack.now.saturating_sub(arrived), stamped.saturating_sub(began));
        let known = || here >= Self::KNOWN && here.abs_diff(there) <= here / 4;
        let queue = if longer > 0 && known() { longer.cast_unsigned() } else { 0 };
        if ack.rtt.is_some_and(|whole| queue >= whole) {
            // Nothing waits longer than a whole round trip: the receiver's clock has stood still, and has to show anew what it is.
            *self = Self::default();
            return 0;
        }
        self.least = Some(self.least.map_or(queue, |least| least.min(queue)));
        queue
    }

    /// A period has ended.
    pub(super) fn end_period(&mut self) {
        self.standing = self.least.take().unwrap_or(self.standing);
    }

    /// The queue in ns that all acknowledgements of the last period waited in.
    pub(super) fn standing(&self) -> Nanos {
        self.standing
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{ack, close, ms};
    use super::*;

    /// An acknowledgement that the receiver sends at this time (ms), and how long it takes to come.
    fn queue(back: &mut WayBack, sent: f64, takes: f64, clock: impl Fn(f64) -> f64) -> Nanos {
        let stamped = Some((clock(sent).floor() * 1e6) as Nanos);
        back.queue(&Ack { stamped, ..ack(ms(sent + takes), 1, None) })
    }

    #[test]
    fn a_longer_way_than_the_shortest_is_a_queue_less_a_tick() {
        // The receiver's clock is 5 s ahead.
        let ahead = |time: f64| time + 5_000.0;
        let mut back = WayBack::default();
        for time in 0..200 {
            assert!(queue(&mut back, 10.0 * f64::from(time) + 0.7, 20.0, ahead) < ms(0.01), "no queue");
        }
        back.end_period();
        // Sent at the beginning of a tick, and at its end.
        let found = [2000.0, 2000.999].map(|sent| queue(&mut back, sent, 50.0, ahead) as f64 / 1e6);
        assert!(found.iter().all(|found| (28.0..=30.1).contains(found)) && found[0] < found[1], "{found:?}");
        back.end_period();
        assert!(back.standing().abs_diff((found[0] * 1e6) as Nanos) < 10);
        back.end_period();
        assert!(back.standing() > 0, "that of the last period with an acknowledgement");
    }

    #[test]
    fn nothing_is_known_without_a_clock_or_before_it_has_kept_up() {
        let mut back = WayBack::default();
        assert_eq!(back.queue(&ack(ms(5.0), 1, None)), 0);
        assert_eq!(queue(&mut back, 0.0, 20.0, |time| time), 0);
        assert_eq!(queue(&mut back, 900.0, 60.0, |time| time), 0);
        assert!(queue(&mut back, 1_000.0, 60.0, |time| time) > ms(38.0));
        // One that ticks a hundred times a second, and one in microseconds.
        for rate in [0.1, 1_000.0] {
            let mut back = WayBack::default();
            for time in 0..500 {
                let takes = if time % 10 == 9 { 80.0 } else { 20.0 };
                assert_eq!(queue(&mut back, 10.0 * f64::from(time), takes, |time| time * rate), 0);
            }
        }
    }

    #[test]
    fn a_clock_that_has_stood_still_begins_anew() {
        let mut back = WayBack::default();
        let mut seen =
            |now: f64, stamped: f64| back.queue(&Ack { stamped: Some(ms(stamped)), ..ack(ms(now), 1, Some(ms(40.0))) });
        for time in 0..3_000 {
            assert_eq!(seen(10.0 * f64::from(time) + 20.0, 10.0 * f64::from(time)), 0);
        }
        // Its host was paused for half a second.
        assert_eq!(seen(30_020.0, 29_500.0), 0);
        for time in 0..200 {
            assert_eq!(seen(30_030.0 + 10.0 * f64::from(time), 29_510.0 + 10.0 * f64::from(time)), 0);
        }
        assert!(seen(32_060.0, 31_510.0) > ms(28.0), "and is believed again");
    }

    #[test]
    fn no_stamp_shows_more_than_a_round_trip() {
        let mut back = WayBack::default();
        let stamps = [0, u64::MAX, 1, 1 << 63, (1 << 63) - 1, ms(2_000.0), u64::MAX / 2, ms(1e12)];
        for (index, stamped) in stamps.iter().cycle().take(400).enumerate() {
            let sample = ms(10.0);
            let told = Ack { stamped: Some(*stamped), ..ack(ms(37.0 * index as f64), 1, Some(sample)) };
            assert!(back.queue(&told) < sample, "{stamped}");
        }
    }

    #[test]
    fn clocks_that_drift_apart_show_no_queue() {
        let mut back = WayBack::default();
        for time in 0..60_000 {
            // Ten millionths slower: .6 ms a minute, six in ten minutes.
            assert_eq!(queue(&mut back, 10.0 * f64::from(time), 20.0, |time| time * (1.0 - 1e-5)), 0);
        }
        // However often acknowledgements come: 200 us in ten seconds.
        let mut back = WayBack::default();
        queue(&mut back, 0.0, 20.0, |time| time);
        let before = back.shortest;
        for step in 1..=500_000 {
            queue(&mut back, 0.02 * f64::from(step), 30.0, |time| time);
        }
        close((back.shortest - before) as f64, 200_200.0);
    }
}
