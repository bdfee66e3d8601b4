//! Lines of the log that anybody may cause.

use std::time::{Duration, Instant};

/// What anybody could fill the log with gets a line of it a second.
#[derive(Debug, Default)]
pub(super) struct OneASecond {
    told: Option<Instant>,
    untold: u64,
}

impl OneASecond {
    /// It has happened once more. How many times it did without a line before, if it is to have one.
    pub(super) fn tell(&mut self, now: Instant) -> Option<u64> {
        if self.told.is_some_and(|told| now.duration_since(told) < Duration::from_secs(1)) {
            self.untold += 1;
            return None;
        }
        self.told = Some(now);
        Some(std::mem::take(&mut self.untold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_line_a_second() {
        let (mut lines, begin) = (OneASecond::default(), Instant::now());
        let mut at = |milliseconds| lines.tell(begin + Duration::from_millis(milliseconds));
        assert_eq!(
            [at(0), at(1), at(999), at(1000), at(1500), at(3000)],
            [Some(0), None, None, Some(2), None, Some(1)]
        );
    }
}
