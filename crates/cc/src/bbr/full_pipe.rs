//! When STARTUP has filled the pipe.

/// The bandwidth must grow by this factor to count as growth (`bbr_full_bw_thresh`).
const GROWTH: f64 = 1.25;

/// Rounds without growth after which the pipe is full (`bbr_full_bw_cnt`).
const ROUNDS: u32 = 3;

/// Looks at the bandwidth once a round; once full, it stays so.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FullPipe {
    /// Bandwidth in bit/s that last counted as growth.
    bandwidth: f64,
    rounds: u32,
    reached: bool,
}

impl FullPipe {
    #[inline]
    pub(super) fn reached(&self) -> bool {
        self.reached
    }

    /// A round has begun that the application did not limit.
    pub(super) fn on_round(&mut self, bandwidth: f64) {
        if self.reached {
            return;
        }
        if bandwidth >= self.bandwidth * GROWTH {
            (self.bandwidth, self.rounds) = (bandwidth, 0);
        } else {
            self.rounds += 1;
            self.reached = self.rounds >= ROUNDS;
        }
    }

    /// After a timeout, whatever comes next counts as growth.
    pub(super) fn forget_bandwidth(&mut self) {
        self.bandwidth = 0.0;
    }

    /// A slow-down was for nothing: the rounds counted in it do not stand.
    pub(super) fn restart(&mut self) {
        (self.bandwidth, self.rounds) = (0.0, 0);
    }
}
