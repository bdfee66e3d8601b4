//! Proportional rate reduction (RFC 9937): a smaller window is reached over a round trip, not at once.

/// Meters what leaves during a recovery, so that the flight arrives at the window that the controller asked for by the
/// time the recovery ends, and the clock of acknowledgements goes on ticking meanwhile. All quantities in payload bytes.
///
/// Linux does so for every scheme that leaves its window to the stack (`tcp_cwnd_reduction`).
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    /// What was in flight when the congestion was detected (`RecoverFS`).
    flight: u64,
    /// The window to arrive at (`ssthresh`).
    target: u64,
    delivered: u64,
    sent: u64,
    window: u64,
}

impl Reduction {
    /// From a flight of `flight` bytes to a window of `target`, with `in_flight` left after the losses.
    pub fn new(flight: u64, target: u64, in_flight: u64, mss: u64) -> Self {
        // Room for the first retransmission, should no acknowledgement bring any.
        Self { flight: flight.max(1), target, delivered: 0, sent: 0, window: in_flight + mss }
    }

    /// The window that holds until the next acknowledgement.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// A packet of `bytes` left.
    pub fn on_sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    /// `delivered` bytes were acknowledged and leave `in_flight`; `safe` says that the oldest missing data were among them and
    /// that this showed no further loss (`SafeACK`).
    pub fn on_ack(&mut self, delivered: u64, in_flight: u64, safe: bool, mss: u64) {
        self.delivered += delivered;
        let mut allowed = if in_flight > self.target {
            let due = u128::from(self.delivered) * u128::from(self.target);
            (due.div_ceil(u128::from(self.flight)) as u64).saturating_sub(self.sent)
        } else {
            // Too much was lost: back up to the target, at most as fast as slow start, and as long as holes are not filled by
            // what arrives (§6.2, PRR-SSRB and PRR-CRB).
            let growth = if safe { mss } else { 0 };
            (self.delivered.saturating_sub(self.sent).max(delivered) + growth).min(self.target - in_flight)
        };
        if self.sent == 0 {
            allowed = allowed.max(mss);
        }
        self.window = in_flight + allowed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    /// The flight after `acks` acknowledgements of one packet each, where the sender always sends what it may.
    fn follow(reduction: &mut Reduction, mut in_flight: u64, acks: u64) -> u64 {
        for _ in 0..acks {
            in_flight -= MSS;
            reduction.on_ack(MSS, in_flight, true, MSS);
            while in_flight + MSS <= reduction.window() {
                in_flight += MSS;
                reduction.on_sent(MSS);
            }
        }
        in_flight
    }

    #[test]
    fn one_packet_leaves_for_two_that_arrive_when_the_window_is_halved() {
        // 20 in flight, one of them lost, half of the window: the 19 others arrive and 9 or 10 leave.
        let mut reduction = Reduction::new(20 * MSS, 10 * MSS, 19 * MSS, MSS);
        assert_eq!(follow(&mut reduction, 19 * MSS, 4), 17 * MSS);
        assert_eq!(reduction.sent, 2 * MSS);
        assert_eq!(follow(&mut reduction, 17 * MSS, 15), 10 * MSS);
    }

    #[test]
    fn a_flight_below_the_target_grows_by_two_for_one() {
        // 16 of 20 lost: 4 in flight, target 10.
        let mut reduction = Reduction::new(20 * MSS, 10 * MSS, 4 * MSS, MSS);
        assert_eq!(follow(&mut reduction, 4 * MSS, 1), 5 * MSS);
        assert_eq!(follow(&mut reduction, 5 * MSS, 2), 7 * MSS);
        assert_eq!(follow(&mut reduction, 7 * MSS, 10), 10 * MSS);
    }

    #[test]
    fn unsafe_acknowledgements_hold_growth_back_to_what_arrives() {
        let mut reduction = Reduction::new(20 * MSS, 10 * MSS, 4 * MSS, MSS);
        reduction.on_sent(MSS);
        reduction.on_ack(MSS, 3 * MSS, false, MSS);
        assert_eq!(reduction.window(), 4 * MSS);
    }

    #[test]
    fn the_first_retransmission_always_leaves() {
        let mut reduction = Reduction::new(20 * MSS, MSS, 19 * MSS, MSS);
        assert_eq!(reduction.window(), 20 * MSS);
        reduction.on_ack(0, 19 * MSS, false, MSS);
        assert_eq!(reduction.window(), 20 * MSS);
    }
}
