//! Whether the round-trip time drifts over several intervals by more than it usually does.

/// Intervals over which the drift is measured (`kRttHistoryLen`).
const HISTORY: usize = 6;

/// Gain of the moving averages (`kAlpha`).
const GAIN: f64 = 0.1;

/// A drift this many times smaller than the smallest begins the averages anew (`kBeta`).
const SMALLER: f64 = 100.0;

/// Smallest drift that the averages can begin with, in s per interval (the source: 1e-6 us).
const NOTHING: f64 = 1e-12;

/// Usual deviations from the usual drift that are tolerated (`kInflationToleranceGainHigh` and `Low`).
const DEVIATIONS: f64 = 2.0;

/// Moving averages of the drift: the slope of the mean round-trip times of the last intervals.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trend {
    rtts: [f64; HISTORY],
    count: usize,
    usual: f64,
    deviation: f64,
    smallest: f64,
    last: f64,
}

impl Trend {
    /// Adds the mean round-trip time of an interval in s; true if it grows by more than usual.
    pub(crate) fn is_rising(&mut self, rtt: f64) -> bool {
        self.rtts.rotate_left(1);
        self.rtts[HISTORY - 1] = rtt;
        self.count = (self.count + 1).min(HISTORY);
        if self.count < HISTORY {
            return false;
        }
        let drift = slope(&self.rtts);
        if self.smallest < NOTHING || drift.abs() < self.smallest / SMALLER {
            (self.usual, self.smallest, self.deviation, self.last) = (0.0, drift.abs(), drift.abs(), drift);
            return false;
        }
        let unusual = (drift - self.usual).abs() > DEVIATIONS * self.deviation;
        if !unusual {
            self.deviation = (1.0 - GAIN) * self.deviation + GAIN * (drift - self.last).abs();
            self.usual = (1.0 - GAIN) * self.usual + GAIN * drift;
            self.last = drift;
        }
        self.smallest = self.smallest.min(drift.abs());
        unusual && drift > 0.0
    }
}

/// Slope per step, by least squares.
fn slope(values: &[f64; HISTORY]) -> f64 {
    let middle = (HISTORY - 1) as f64 / 2.0;
    let mean = values.iter().sum::<f64>() / HISTORY as f64;
    let steps = || (0..HISTORY).map(|step| step as f64 - middle);
    let covariance: f64 = steps().zip(values).map(|(x, y)| x * (y - mean)).sum();
    covariance / steps().map(|x| x * x).sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drift_beyond_twice_the_usual_deviation_rises() {
        assert!((slope(&[0.0, 2.0, 4.0, 6.0, 8.0, 10.0]) - 2.0).abs() < 1e-12);
        let mut trend = Trend::default();
        // A drift of 1 ms per interval becomes the usual deviation from none.
        for step in 0..6 {
            assert!(!trend.is_rising(0.1 + 0.001 * f64::from(step)));
        }
        assert!(!trend.is_rising(0.106), "1 ms, and up to 2 ms are tolerated");
        // The last of six values 5 ms above the line makes the slope 1.71 ms, the last two 2.86 ms.
        assert!(!trend.is_rising(0.112));
        assert!(trend.is_rising(0.113));
        let mut trend = Trend::default();
        for rtt in [0.2, 0.199, 0.198, 0.197, 0.196, 0.195, 0.1, 0.05] {
            assert!(!trend.is_rising(rtt), "shrinking is welcome");
        }
    }
}
