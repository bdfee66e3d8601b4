//! `HyStart++`: leaving slow start before it overflows the queue (RFC 9406).

use crate::{Ack, MILLISECOND, Nanos};

/// Bounds of the rise of the round-trip time that ends slow start (RFC 9406 §4.3; Linux's `HyStart` has the same).
const MIN_RTT_THRESH: Nanos = 4 * MILLISECOND;
const MAX_RTT_THRESH: Nanos = 16 * MILLISECOND;
/// The rise looked for is the round-trip time divided by this, within the bounds.
const MIN_RTT_DIVISOR: Nanos = 8;
/// Samples needed in a round before its minimum counts.
const N_RTT_SAMPLE: u32 = 8;
/// How much slower conservative slow start grows.
const CSS_GROWTH_DIVISOR: u64 = 4;
/// How many rounds it lasts.
const CSS_ROUNDS: u32 = 5;
/// Segments that one acknowledgement may add when nothing paces the sender.
const UNPACED_LIMIT: u64 = 8;

/// How much larger than `rtt` (ns) a round-trip time is that shows a queue in slow start: by an eighth, but by 4 ms at least and
/// 16 ms at most (RFC 9406 §4.2, `RttThresh`).
pub fn rtt_threshold(rtt: Nanos) -> Nanos {
    (rtt / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH)
}

/// Where `HyStart++` stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HyStartPhase {
    /// The window doubles each round.
    SlowStart,
    /// Conservative slow start: the delay has risen, and a few slower rounds tell whether it stays.
    Conservative {
        /// Smallest round-trip time of the round that showed the rise, in nanoseconds.
        baseline: Nanos,
        /// Rounds ended since; the one in which the phase began counts.
        rounds: u32,
    },
    /// The caller should set `ssthresh` to its window and avoid congestion.
    Done,
}

/// `HyStart++` (RFC 9406 §4): tells how much the window may grow in the initial slow start.
///
/// A round begins when a packet is acknowledged that was sent after the previous round had begun.
#[derive(Clone, Debug)]
pub struct HyStart {
    /// Payload bytes that one acknowledgement may add.
    limit: u64,
    round_start: Nanos,
    last_round_min: Option<Nanos>,
    round_min: Option<Nanos>,
    samples: u32,
    phase: HyStartPhase,
}

impl HyStart {
    /// For segments of `mss` payload bytes; `paced` says whether the sender spreads its packets over the round trip.
    pub fn new(mss: u32, paced: bool) -> Self {
        Self {
            limit: if paced { u64::MAX } else { UNPACED_LIMIT * u64::from(mss) },
            round_start: 0,
            last_round_min: None,
            round_min: None,
            samples: 0,
            phase: HyStartPhase::SlowStart,
        }
    }

    /// Present phase.
    #[inline]
    pub fn phase(&self) -> HyStartPhase {
        self.phase
    }

    /// Takes an acknowledgement and returns by how many payload bytes the window may grow, 0 once it is
    /// [`Done`](HyStartPhase::Done).
    pub fn on_ack(&mut self, ack: &Ack) -> u64 {
        if ack.sent_at >= self.round_start {
            self.begin_round(ack.now);
        }
        if let Some(rtt) = ack.rtt {
            self.round_min = Some(self.round_min.map_or(rtt, |min| min.min(rtt)));
            self.samples += 1;
            self.compare_delay();
        }
        let growth = ack.acked.min(self.limit);
        match self.phase {
            HyStartPhase::SlowStart => growth,
            HyStartPhase::Conservative { .. } => growth / CSS_GROWTH_DIVISOR,
            HyStartPhase::Done => 0,
        }
    }

    fn begin_round(&mut self, now: Nanos) {
        self.round_start = now;
        self.last_round_min = self.round_min.take();
        self.samples = 0;
        if let HyStartPhase::Conservative { baseline, rounds } = self.phase {
            let rounds = rounds + 1;
            self.phase =
                if rounds < CSS_ROUNDS { HyStartPhase::Conservative { baseline, rounds } } else { HyStartPhase::Done };
        }
    }

    /// Has the delay risen since the last round, or fallen again?
    fn compare_delay(&mut self) {
        let (Some(min), true) = (self.round_min, self.samples >= N_RTT_SAMPLE) else {
            return;
        };
        match (self.phase, self.last_round_min) {
            (HyStartPhase::SlowStart, Some(last)) if min >= last + rtt_threshold(last) => {
                self.phase = HyStartPhase::Conservative { baseline: min, rounds: 0 };
            }
            (HyStartPhase::Conservative { baseline, .. }, _) if min < baseline => {
                self.phase = HyStartPhase::SlowStart;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RateSample;

    const MSS: u64 = 1000;

    /// Ten packets of one round, acknowledged a microsecond apart after `ms`; returns the growth in packets.
    fn round(hystart: &mut HyStart, now: &mut Nanos, ms: Nanos) -> f64 {
        let sent_at = *now;
        *now += ms * MILLISECOND;
        let mut growth = 0;
        for _ in 0..10 {
            *now += 1000;
            let rtt = Some(ms * MILLISECOND);
            let rate = RateSample::default();
            growth += hystart.on_ack(&Ack {
                now: *now,
                acked: MSS,
                sent_at,
                rtt,
                rate,
                cwnd_limited: true,
                ..Ack::default()
            });
        }
        growth as f64 / MSS as f64
    }

    #[test]
    fn a_rise_of_an_eighth_slows_down_for_five_rounds_and_then_ends() {
        let (mut hystart, mut now) = (HyStart::new(MSS as u32, false), MILLISECOND);
        assert_eq!(round(&mut hystart, &mut now, 80), 10.0);
        assert_eq!(round(&mut hystart, &mut now, 89), 10.0, "below 80 + 10 ms");
        // 89 + 11.125 ms: the eighth sample shows it, so that three of ten grow by a quarter.
        assert_eq!(round(&mut hystart, &mut now, 101), 7.0 + 3.0 / 4.0);
        for _ in 0..4 {
            assert_eq!(round(&mut hystart, &mut now, 120), 2.5);
        }
        assert_ne!(hystart.phase(), HyStartPhase::Done);
        assert_eq!(round(&mut hystart, &mut now, 120), 0.0);
        assert_eq!(hystart.phase(), HyStartPhase::Done);
    }

    #[test]
    fn a_delay_that_falls_again_resumes_slow_start() {
        let (mut hystart, mut now) = (HyStart::new(MSS as u32, false), MILLISECOND);
        round(&mut hystart, &mut now, 80);
        round(&mut hystart, &mut now, 100);
        assert!(matches!(hystart.phase(), HyStartPhase::Conservative { baseline: 100_000_000, .. }));
        assert_eq!(round(&mut hystart, &mut now, 99), 7.0 / 4.0 + 3.0);
        assert_eq!(hystart.phase(), HyStartPhase::SlowStart);
    }

    #[test]
    fn the_rise_is_bounded_below_and_above() {
        for (base, rise) in [(8, 4), (80, 10), (800, 16)] {
            for (extra, expected) in [(rise - 1, false), (rise, true)] {
                let (mut hystart, mut now) = (HyStart::new(MSS as u32, false), MILLISECOND);
                round(&mut hystart, &mut now, base);
                round(&mut hystart, &mut now, base + extra);
                assert_eq!(hystart.phase() != HyStartPhase::SlowStart, expected, "{base} + {extra} ms");
            }
        }
    }

    #[test]
    fn one_acknowledgement_adds_at_most_eight_segments_unless_paced() {
        let stretched = Ack { now: 2, acked: 20 * MSS, sent_at: 1, cwnd_limited: true, ..Ack::default() };
        assert_eq!(HyStart::new(MSS as u32, false).on_ack(&stretched), 8 * MSS);
        assert_eq!(HyStart::new(MSS as u32, true).on_ack(&stretched), 20 * MSS);
    }
}
