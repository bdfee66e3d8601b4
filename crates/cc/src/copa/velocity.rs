//! Copa's velocity: how fast the window follows its target (paper §2.1).

use crate::Nanos;

/// How fast the window moves, in units of 1/delta packets per round trip.
#[derive(Clone, Debug)]
pub(super) struct Velocity {
    /// Round trips in one direction before the first doubling.
    pub(super) patience: u32,
    /// Round trips in the present direction.
    steady: u32,
    value: f64,
    /// Whether the window grew in the round trip before the present one.
    grew: bool,
    /// Packets of the present round trip that enlarged the window, less those that reduced it.
    balance: f64,
    /// When the present round trip began.
    since: Nanos,
}

impl Velocity {
    pub(super) fn new(patience: u32) -> Self {
        // Slow start was upwards (genericCC counts it so).
        Self { patience, steady: 0, value: 1.0, grew: true, balance: 1.0, since: 0 }
    }

    /// The velocity for the packets of one acknowledgement: as many as `direction` says, negative if they are to reduce
    /// the window.
    pub(super) fn update(&mut self, now: Nanos, round_trip: Nanos, direction: f64, limit: f64) -> f64 {
        if now - self.since > round_trip {
            if self.balance != 0.0 && self.grew == (self.balance > 0.0) {
                self.steady += 1;
                if self.steady >= self.patience {
                    self.value *= 2.0;
                }
            } else {
                self.steady = 0;
                self.value = 1.0;
                self.grew = !self.grew;
            }
            self.since = now;
            self.balance = 0.0;
        }
        if self.value > limit {
            self.value /= 2.0;
        }
        self.value = self.value.max(1.0);
        self.balance += direction;
        self.value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MILLISECOND;

    const MS: Nanos = MILLISECOND;

    #[test]
    fn the_velocity_doubles_per_round_trip_in_one_direction_up_to_delta_w() {
        let run = |patience, limit| -> Vec<f64> {
            let mut velocity = Velocity::new(patience);
            (1..=7).map(|trip| velocity.update(trip * 101 * MS, 100 * MS, 1.0, limit)).collect()
        };
        assert_eq!(run(1, 1e9), [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0]);
        assert_eq!(run(3, 1e9), [1.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0]);
        assert_eq!(run(1, 10.0), [2.0, 4.0, 8.0, 8.0, 8.0, 8.0, 8.0]);
    }
}
