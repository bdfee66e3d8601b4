//! Slow start, until the path shows a queue or a real loss.

use astraea_cc::{Ack, MILLISECOND, Nanos, RoundCounter, rtt_threshold};

/// When slow start ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Startup {
    /// Round trips must exceed the smallest by this many thresholds of RFC 9406 …
    thresholds: u64,
    /// … or by this, if it is less: at least [`SHORTEST`](Startup::SHORTEST).
    pub(super) enough: Nanos,
    /// Whether any loss ends it, or only a share that no random loss has.
    any_loss: bool,
    running: bool,
    queued: u32,
    lost: u64,
    acked: u64,
    rounds: RoundCounter,
}

/// Why slow start ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// Round trips grew.
    Delay,
    /// Packets were lost.
    Loss,
}

impl Startup {
    const SAMPLES: u32 = 8;
    /// Shorter delays are noise.
    const SHORTEST: Nanos = 4 * MILLISECOND;
    /// Losses of a round trip that end it: at least this many packets …
    const PACKETS: u64 = 4;
    /// … and more than one in this many of those that the round brought.
    const ONE_IN: u64 = 12;

    pub(super) fn new(thresholds: u64, any_loss: bool) -> Self {
        Self {
            thresholds,
            enough: Nanos::MAX,
            any_loss,
            running: true,
            queued: 0,
            lost: 0,
            acked: 0,
            rounds: RoundCounter::default(),
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.running
    }

    /// Runs again, as at the beginning.
    pub(super) fn restart(&mut self) {
        (self.running, self.queued, self.lost, self.acked) = (true, 0, 0, 0);
    }

    pub(super) fn stop(&mut self) {
        self.running = false;
    }

    fn shows_queue(&self, sample: Nanos, base: Nanos) -> bool {
        let most = self.thresholds * rtt_threshold(base);
        sample >= base + self.enough.clamp(Self::SHORTEST, most)
    }

    /// Takes an acknowledgement, with its sample of the round-trip time and the base as it is known, and says whether slow
    /// start is over.
    pub(super) fn on_ack(&mut self, ack: &Ack, sample: Option<Nanos>, base: Nanos) -> Option<Exit> {
        if self.rounds.on_ack(&ack.rate) {
            (self.lost, self.acked) = (self.lost / 2, 0);
        }
        self.acked += ack.acked;
        let queued = sample.is_some_and(|sample| self.shows_queue(sample, base));
        self.queued = if queued { self.queued + 1 } else { 0 };
        if self.queued >= Self::SAMPLES {
            self.running = false;
            return Some(Exit::Delay);
        }
        None
    }

    pub(super) fn on_loss(&mut self, lost: u64, mss: u64) -> Option<Exit> {
        self.lost += lost;
        let heavy = self.lost >= Self::PACKETS * mss && self.lost * Self::ONE_IN > self.acked + self.lost;
        if self.any_loss || heavy {
            self.running = false;
            return Some(Exit::Loss);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use astraea_cc::RateSample;

    use super::super::testing::{ack, ms};
    use super::*;

    const MSS: u64 = super::super::testing::MSS as u64;

    /// The first of `samples` (ms) that ends a start-up with so many thresholds on a path of `min` ms.
    fn exit(thresholds: u64, min: f64, samples: &[f64]) -> Option<usize> {
        let mut startup = Startup::new(thresholds, false);
        let exit = samples
            .iter()
            .position(|sample| startup.on_ack(&ack(0, 1, None), Some(ms(*sample)), ms(min)) == Some(Exit::Delay));
        assert_eq!(startup.is_running(), exit.is_none());
        exit
    }

    #[test]
    fn eight_late_round_trips_end_it() {
        // An eighth of 40 ms is 5 ms.
        assert_eq!(exit(1, 40.0, &[45.0; 9]), Some(7));
        assert_eq!(exit(1, 40.0, &[44.9; 9]), None);
        assert_eq!(exit(2, 40.0, &[50.0; 9]), Some(7));
        assert_eq!(exit(2, 40.0, &[49.9; 9]), None);
        let mut interrupted = [45.0; 20];
        interrupted[6] = 44.0;
        assert_eq!(exit(1, 40.0, &interrupted), Some(14));
        // At least 4 ms and at most 16 ms.
        assert_eq!(exit(2, 10.0, &[17.9; 9]), None);
        assert_eq!(exit(2, 10.0, &[18.0; 9]), Some(7));
        assert_eq!(exit(2, 400.0, &[432.0; 9]), Some(7));
    }

    #[test]
    fn less_is_enough_for_a_flow_among_many() {
        let ends = |enough: f64, sample: f64| {
            let mut startup = Startup { enough: ms(enough), ..Startup::new(2, false) };
            (0..8).any(|_| startup.on_ack(&ack(0, 1, None), Some(ms(sample)), ms(40.0)).is_some())
        };
        assert!(ends(6.0, 46.0) && !ends(6.0, 45.9));
        assert!(ends(1.0, 44.0) && !ends(1.0, 43.9), "never less than 4 ms");
        assert!(ends(20.0, 50.0) && !ends(20.0, 49.9), "never more than two thresholds");
    }

    #[test]
    fn any_loss_ends_the_papers() {
        let mut startup = Startup::new(1, true);
        assert_eq!(startup.on_loss(1, MSS), Some(Exit::Loss));
        assert!(!startup.is_running());
    }

    /// A start-up that only heavy losses end, at the beginning of a round that ends with `delivered` bytes.
    fn tolerant(packets: u64, delivered: u64) -> Startup {
        let mut startup = Startup::new(2, false);
        next_round(&mut startup, packets, 0, delivered);
        startup
    }

    fn next_round(startup: &mut Startup, packets: u64, from: u64, delivered: u64) {
        let rate = RateSample { prior_delivered: from, total_delivered: delivered, ..RateSample::default() };
        let exit = startup.on_ack(&Ack { rate, ..ack(0, packets, None) }, None, ms(40.0));
        assert_eq!(exit, None);
    }

    #[test]
    fn four_losses_that_are_more_than_a_twelfth_end_it() {
        let mut startup = tolerant(44, 44 * MSS);
        assert_eq!(startup.on_loss(4 * MSS, MSS), None, "4 of 48 are a twelfth");
        assert_eq!(startup.on_loss(MSS, MSS), Some(Exit::Loss));
        let mut startup = tolerant(1, MSS);
        assert_eq!(startup.on_loss(3 * MSS, MSS), None, "three are too few");
        assert_eq!(startup.on_loss(MSS, MSS), Some(Exit::Loss));
    }

    #[test]
    fn losses_of_the_round_before_count_half() {
        let mut startup = tolerant(100, 100 * MSS);
        assert_eq!(startup.on_loss(4 * MSS, MSS), None);
        next_round(&mut startup, 10, 100 * MSS, 200 * MSS);
        assert_eq!(startup.on_loss(MSS, MSS), None, "two from before and one");
        assert_eq!(startup.on_loss(MSS, MSS), Some(Exit::Loss));
    }
}
