//! Packet-timed round trips.

use crate::RateSample;

/// Counts round trips by delivered data: a round ends when a packet is acknowledged that was sent after the previous
/// round had ended (draft-ietf-ccwg-bbr, "Tracking packet-timed round trips").
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundCounter {
    next_round_delivered: u64,
    count: u64,
}

impl RoundCounter {
    /// Takes the sample of one acknowledgement; true if it starts a new round.
    #[inline]
    pub fn on_ack(&mut self, rate: &RateSample) -> bool {
        let starts = rate.prior_delivered >= self.next_round_delivered;
        if starts {
            self.next_round_delivered = rate.total_delivered;
            self.count += 1;
        }
        starts
    }

    /// Ends the present round with the first packet that is sent once `delivered` bytes have been, and no earlier.
    #[inline]
    pub fn restart(&mut self, delivered: u64) {
        self.next_round_delivered = delivered;
    }

    /// Rounds started so far.
    #[inline]
    pub fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_of_four_is_one_round() {
        let mut rounds = RoundCounter::default();
        let mut starts = Vec::new();
        // Packet i is sent when i - 4 packets have been delivered.
        for i in 0..12_u64 {
            let sample =
                RateSample { prior_delivered: i.saturating_sub(3), total_delivered: i + 1, ..RateSample::default() };
            if rounds.on_ack(&sample) {
                starts.push(i);
            }
        }
        assert_eq!(starts, [0, 4, 8]);
    }
}
