//! Segments that an acknowledgement still has to cover, noted once in each reduction of the window.

/// A set of segments that is filled at once, gives its smallest, and shrinks. Its memory is used again: noting a window
/// anew costs no allocation once there was room for one as large.
#[derive(Debug, Default)]
pub(super) struct Missing {
    /// In order, each once.
    segments: Vec<u32>,
    /// Which of them have come.
    came: Vec<bool>,
    /// The first that has not.
    first: usize,
}

impl Missing {
    /// Holds these segments from now on, in any order and as often as they come.
    pub(super) fn note(&mut self, segments: impl Iterator<Item = u32>) {
        self.segments.clear();
        self.segments.extend(segments);
        self.segments.sort_unstable();
        self.segments.dedup();
        self.came.clear();
        self.came.resize(self.segments.len(), false);
        self.first = 0;
    }

    /// Takes a segment out; whether it was the smallest.
    #[inline]
    pub(super) fn remove(&mut self, segment: u32) -> bool {
        let left = &self.segments[self.first..];
        let Some(&smallest) = left.first() else { return false };
        if let Ok(place) = left.binary_search(&segment) {
            self.came[self.first + place] = true;
            self.first += self.came[self.first..].iter().take_while(|came| **came).count();
        }
        smallest == segment
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_an_ordered_set(
            rounds in prop::collection::vec((prop::collection::vec(0_u32..40, 0..60), prop::collection::vec(0_u32..40, 0..60)), 1..4),
        ) {
            let mut missing = Missing::default();
            for (noted, removed) in rounds {
                let mut set: BTreeSet<u32> = noted.iter().copied().collect();
                missing.note(noted.into_iter());
                for segment in removed {
                    let smallest = set.first() == Some(&segment);
                    set.remove(&segment);
                    prop_assert_eq!(missing.remove(segment), smallest);
                }
            }
        }
    }
}
