//! The schemes that a selector chooses from.

use astraea_cc::{AnyController, SCHEMES};

/// Their names, in the order of the authors' code (`ccNameMap`); a choice is an index into it.
pub const CANDIDATES: [&str; 6] = ["bbr", "cubic", "illinois", "c2tcp", "westwood", "vegas"];

/// The scheme of that index, as its parameters are where nobody sets them, on a connection that begins.
pub(super) fn candidate(index: usize, mss: u32) -> AnyController {
    let scheme = SCHEMES.iter().find(|scheme| scheme.name == CANDIDATES[index]);
    let built = scheme.and_then(|scheme| scheme.controller(&[], mss).ok());
    built.expect("a test builds every candidate")
}

#[cfg(test)]
mod tests {
    use super::*;
    use astraea_cc::{Connection, Controller, HandOver};

    #[test]
    fn window_and_threshold_are_handed_on() {
        let mut connection = Connection { now: 5, ..Connection::default() };
        connection.rtt.update(40_000_000);
        for (from, old) in CANDIDATES.iter().enumerate() {
            for (to, new) in CANDIDATES.iter().enumerate() {
                let mut first = candidate(from, 1000);
                let begins = HandOver { cwnd: 80_000, ssthresh: 60_000 };
                first.successor_mut().expect(old).take_over(begins, &connection);
                let left = first.successor().expect(old).hand_over();
                let mut second = candidate(to, 1000);
                second.successor_mut().expect(new).take_over(left, &connection);
                assert_eq!((first.cwnd(), second.cwnd()), (80_000, 80_000));
                // BBR takes nothing for a threshold (`bbr_init`).
                let kept = if from == 0 || to == 0 { u64::MAX } else { 60_000 };
                assert_eq!(second.successor().expect(new).hand_over().ssthresh, kept, "{old} to {new}");
            }
        }
    }
}
