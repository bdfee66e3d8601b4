//! Means of times.

use astraea_cc::Nanos;

/// Mean of round-trip times or delays in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    sum: u64,
    pub(super) count: u64,
}

impl Mean {
    pub(super) fn add(&mut self, time: Nanos) {
        self.sum += time;
        self.count += 1;
    }

    pub(super) fn get(self) -> Option<Nanos> {
        self.sum.checked_div(self.count)
    }
}
