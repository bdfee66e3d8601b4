//! `HyStart` as Linux has it: leaving slow start by the length of ACK trains or by a rise of the delay (Ha and Rhee, "Taming
//! the elephants: new TCP slow start", 2011).
//!
//! A window's acknowledgements come back as a train as long as the bottleneck takes for the window. Once that is half of
//! the round-trip time the next round, with twice the window, would fill the pipe. Unlike `HyStart++` it leaves at once.

use crate::hystart::rtt_threshold;
use crate::{Ack, MILLISECOND, Nanos};

/// Window in segments below which nothing is looked for (`hystart_low_window`).
const LOW_WINDOW: f64 = 16.0;
/// Acknowledgements further apart do not belong to one train (`hystart_ack_delta_us`).
const TRAIN_GAP: Nanos = 2 * MILLISECOND;
/// Samples of a round before its minimum counts (`HYSTART_MIN_SAMPLES`).
const MIN_SAMPLES: u32 = 8;
/// Allowance for receivers that acknowledge bursts as a whole: four bursts of this many bytes (`sk_gso_max_size`) at twice
/// the present rate, but at most `MOST_ALLOWANCE`.
const BURST: f64 = 65536.0;
const MOST_ALLOWANCE: Nanos = MILLISECOND;

/// Looks for the end of slow start.
#[derive(Clone, Debug, Default)]
pub struct ClassicHyStart {
    /// Smallest round-trip time of the connection.
    min_rtt: Option<Nanos>,
    round_start: Nanos,
    /// Newest acknowledgement of the train.
    last_ack: Nanos,
    round_min: Nanos,
    samples: u32,
}

impl ClassicHyStart {
    /// Takes an acknowledgement in slow start, at a window of `cwnd` segments of `mss` bytes that takes `srtt` ns; true if
    /// slow start should end now.
    pub fn on_ack(&mut self, ack: &Ack, cwnd: f64, mss: f64, srtt: Nanos) -> bool {
        let Some(rtt) = ack.rtt else { return false };
        let min_rtt = self.min_rtt.map_or(rtt, |min| min.min(rtt));
        self.min_rtt = Some(min_rtt);
        // A round ends when something is acknowledged that was sent after it had begun. Small windows have rounds as well,
        // so that they agree with flights (since Linux 6.14).
        if ack.sent_at >= self.round_start {
            self.round_start = ack.now;
            self.last_ack = ack.now;
            self.round_min = Nanos::MAX;
            self.samples = 0;
        }
        if cwnd < LOW_WINDOW {
            return false;
        }
        let mut found = false;
        if ack.now - self.last_ack <= TRAIN_GAP {
            self.last_ack = ack.now;
            let allowance = (4.0 * BURST * srtt as f64 / (2.0 * cwnd * mss)) as Nanos;
            found = ack.now - self.round_start > min_rtt.midpoint(allowance.min(MOST_ALLOWANCE));
        }
        self.round_min = self.round_min.min(rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
        } else {
            found |= self.round_min > min_rtt + rtt_threshold(min_rtt);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = MILLISECOND;

    fn ack(now: Nanos, sent_at: Nanos, rtt: Nanos) -> Ack {
        Ack { now, acked: 1000, sent_at, rtt: Some(rtt), cwnd_limited: true, ..Ack::default() }
    }

    /// Rounds of acknowledgements `gap` apart with a round-trip time of `rtt`; the packets of a round were sent when the
    /// previous one was acknowledged. Returns after how many acknowledgements of the last round slow start ended.
    fn last_round(rounds: &[(u64, Nanos, Nanos)]) -> Option<u64> {
        let mut hystart = ClassicHyStart::default();
        let mut sent = MS;
        let mut ended = None;
        for &(count, gap, rtt) in rounds {
            ended = None;
            let first = sent + rtt;
            for index in 0..count {
                let now = first + index * gap;
                // The whole round was sent at the same time.
                if hystart.on_ack(&ack(now, sent, rtt), 100.0, 1000.0, rtt) && ended.is_none() {
                    ended = Some(index + 1);
                }
            }
            sent = first + count * gap;
        }
        ended
    }

    #[test]
    fn a_train_of_half_a_round_trip_ends_it() {
        // Half of 30 ms and the allowance of 1 ms is 15.5 ms: the first later acknowledgement is the 157th, at 15.6 ms.
        let round = (200, MS / 10, 30 * MS);
        assert_eq!(last_round(&[round]), Some(157));
        assert_eq!(last_round(&[(150, MS / 10, 30 * MS)]), None);
    }

    #[test]
    fn a_pause_ends_the_train() {
        assert_eq!(last_round(&[(20, 3 * MS, 30 * MS)]), None);
        assert_eq!(last_round(&[(20, 2 * MS, 30 * MS)]), Some(9));
    }

    #[test]
    fn a_rise_of_the_delay_by_an_eighth_ends_it_after_eight_samples() {
        let base = (10, 1000, 80 * MS);
        assert_eq!(last_round(&[base, (20, 1000, 90 * MS)]), None);
        assert_eq!(last_round(&[base, (20, 1000, 90 * MS + 1)]), Some(9));
        // Within 4 and 16 ms.
        assert_eq!(last_round(&[(10, 1000, 8 * MS), (20, 1000, 12 * MS)]), None);
        assert_eq!(last_round(&[(10, 1000, 8 * MS), (20, 1000, 12 * MS + 1)]), Some(9));
        assert_eq!(last_round(&[(10, 1000, 800 * MS), (20, 1000, 816 * MS)]), None);
        assert_eq!(last_round(&[(10, 1000, 800 * MS), (20, 1000, 816 * MS + 1)]), Some(9));
    }

    #[test]
    fn small_windows_are_left_alone() {
        let mut hystart = ClassicHyStart::default();
        assert!(!hystart.on_ack(&ack(100 * MS, 0, 10 * MS), 15.0, 1000.0, 10 * MS));
        assert!((1..100).all(|i| !hystart.on_ack(&ack(100 * MS + i * MS, 1, 90 * MS), 15.0, 1000.0, 90 * MS)));
    }

    #[test]
    fn the_rounds_of_small_windows_are_followed() {
        let mut hystart = ClassicHyStart::default();
        let flight = |i| ack(100 * MS + i * MS / 10, MS, 30 * MS);
        assert!((0..10).all(|i| !hystart.on_ack(&flight(i), 10.0, 1000.0, 30 * MS)));
        // 15.5 ms after the first acknowledgement of the flight, not after the first with a window of 16.
        assert_eq!((10..300).find(|i| hystart.on_ack(&flight(*i), 20.0, 1000.0, 30 * MS)), Some(156));
    }
}
