//! Which data have been acknowledged, of those that were sent more than once.

use std::collections::HashSet;

/// Segments that were sent more than once and have been acknowledged, but for those of so long ago that no packet with them
/// can be under way any more.
#[derive(Debug)]
pub(super) struct Copies {
    acked: HashSet<u32>,
    /// So many are kept before old ones are looked for.
    most: usize,
}

impl Default for Copies {
    fn default() -> Self {
        Self { acked: HashSet::new(), most: Self::MANY }
    }
}

impl Copies {
    /// Segments behind the newest one that are remembered: more than any window holds.
    const REACH: u32 = 1 << 20;

    /// Segments that are kept in any case.
    const MANY: usize = 1 << 12;

    /// A packet with this segment is acknowledged; whether it is the first with it. `next` is the segment that is sent next.
    #[cold]
    pub(super) fn is_first(&mut self, segment: u32, next: u32) -> bool {
        if self.acked.len() >= self.most {
            self.acked.retain(|old| next.wrapping_sub(*old) <= Self::REACH);
            // What is left must double before it is worth another look.
            self.most = (2 * self.acked.len()).max(Self::MANY);
        }
        self.acked.insert(segment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_count_once_and_are_forgotten() {
        let (mut copies, start) = (Copies::default(), u32::MAX - 1000);
        assert!(copies.is_first(start, start.wrapping_add(1)) && !copies.is_first(start, start.wrapping_add(1)));
        // A tenth of everything is lost.
        for ahead in (0..3 << 20).step_by(10) {
            let segment = start.wrapping_add(1 + ahead);
            assert!(copies.is_first(segment, segment.wrapping_add(1)));
        }
        assert!(copies.acked.len() <= 2 * (Copies::REACH / 10 + 1) as usize, "{}", copies.acked.len());
    }
}
