//! How long to wait for a batch.

use std::time::Duration;

/// A batch of so many shares the costs of a turn well enough: twice as many would save a few per cent more.
const WORTH: f64 = 32.0;

/// Time in s over which the rate of arrivals is averaged.
const MEMORY: f64 = 0.1;

/// While waiting brings nothing it is tried in one of so many turns.
const TRIAL: u32 = 64;

/// The adaptive window: as long as it takes until a batch is worth evaluating at the present rate of requests, at most
/// the maximum; nothing where a wait brings nothing.
#[derive(Clone, Debug)]
pub(super) struct Gather {
    longest: Duration,
    rate: f64,
    gain: f64,
    skipped: u32,
}

impl Gather {
    pub(super) fn new(longest: Duration) -> Self {
        Self { longest, rate: 0.0, gain: 0.0, skipped: 0 }
    }

    /// How long to wait when so many requests have come.
    pub(super) fn wait(&mut self, have: usize) -> Duration {
        let missing = WORTH - have as f64;
        if missing <= 0.0 || self.rate * self.longest.as_secs_f64() < 2.0 {
            return Duration::ZERO;
        }
        // Clients that wait for an answer before they ask again send nothing meanwhile.
        if self.gain < 1.0 && self.skipped < TRIAL {
            self.skipped += 1;
            return Duration::ZERO;
        }
        self.skipped = 0;
        self.longest.min(Duration::from_secs_f64(missing / self.rate))
    }

    /// So many requests came while waiting.
    pub(super) fn waited(&mut self, came: usize) {
        self.gain += 0.25 * (came as f64 - self.gain);
    }

    /// A turn took so many requests, this time after the one before.
    pub(super) fn turn(&mut self, requests: usize, since: Duration) {
        let seconds = since.as_secs_f64().max(1e-7);
        let weight = 1.0 - (-seconds / MEMORY).exp();
        self.rate += weight * (requests as f64 / seconds - self.rate);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    /// After so many turns a millisecond apart.
    fn after(requests: usize, turns: u32, longest: Duration) -> Gather {
        let mut gather = Gather::new(longest);
        (0..turns).for_each(|_| gather.turn(requests, MS));
        gather.gain = 9.0;
        gather
    }

    #[test]
    fn few_requests_are_answered_at_once() {
        assert_eq!(after(0, 1000, MS).wait(1), Duration::ZERO);
        assert_eq!(after(1, 1000, MS).wait(1), Duration::ZERO, "one in a window");
        assert!(after(3, 1000, MS).wait(1) > Duration::ZERO);
    }

    #[test]
    fn the_window_fills_a_batch_and_ends_at_the_maximum() {
        assert_eq!(after(3, 1000, MS).wait(1), MS, "31 more need ten of them");
        let wait = after(320, 1000, MS).wait(1).as_secs_f64();
        assert!((wait - 31.0 / 320e3).abs() < 1e-8, "{wait}");
        assert_eq!(after(320, 1000, MS).wait(32), Duration::ZERO);
    }

    #[test]
    fn waiting_in_vain_is_given_up_and_tried_again() {
        let mut gather = after(10, 1000, MS);
        (0..20).for_each(|_| gather.waited(0));
        let waits = (0..130).filter(|_| gather.wait(1) > Duration::ZERO).count();
        assert_eq!(waits, 2);
        gather.waited(9);
        assert!(gather.wait(1) > Duration::ZERO, "it pays again");
    }
}
