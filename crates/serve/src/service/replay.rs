//! Which of a client's messages have been seen: a sliding window over their numbers (RFC 4303 §3.4.3, RFC 6479).

/// Numbers that are remembered, in whole words: messages may overtake each other by a word less.
pub(super) const WINDOW: u64 = 1024;

const WORDS: usize = (WINDOW / 64) as usize;

/// The numbers seen in a session.
#[derive(Clone, Debug, Default)]
pub(super) struct Replay {
    newest: u64,
    seen: [u64; WORDS],
}

impl Replay {
    /// Notes a number; false if it was seen before, or is too old to tell, or 0.
    pub(super) fn accept(&mut self, number: u64) -> bool {
        if number == 0 || number.saturating_add(WINDOW) <= self.newest {
            return false;
        }
        if number > self.newest {
            // The words between become those of numbers that nobody has seen.
            let words = (number / 64 - self.newest / 64).min(WORDS as u64);
            for step in 0..words {
                self.seen[((number / 64 - step) % WORDS as u64) as usize] = 0;
            }
            self.newest = number;
        } else if number / 64 + WORDS as u64 <= self.newest / 64 {
            return false;
        }
        let (word, bit) = ((number / 64 % WORDS as u64) as usize, 1 << (number % 64));
        let fresh = self.seen[word] & bit == 0;
        self.seen[word] |= bit;
        fresh
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn in_any_order_but_once() {
        let mut replay = Replay::default();
        assert!(!replay.accept(0));
        for number in [1, 3, 2, 700, 699, 65] {
            assert!(replay.accept(number), "{number}");
            assert!(!replay.accept(number), "{number} again");
        }
        assert!(replay.accept(5000));
        assert!(!replay.accept(3900), "too old");
        assert!(replay.accept(4999));
        assert!(replay.accept(u64::MAX) && !replay.accept(u64::MAX));
    }

    proptest! {
        /// No number is ever accepted twice, and none of the newest 960 is refused that was not seen.
        #[test]
        fn never_twice(numbers in prop::collection::vec(1_u64..3000, 1..2000)) {
            let (mut replay, mut seen, mut newest) = (Replay::default(), HashSet::new(), 0);
            for number in numbers {
                let accepted = replay.accept(number);
                let fresh = seen.insert(number);
                newest = newest.max(number);
                prop_assert!(fresh || !accepted, "{number} twice");
                prop_assert!(!fresh || accepted || number + WINDOW - 64 < newest, "{number} of {newest} refused");
            }
        }
    }
}
