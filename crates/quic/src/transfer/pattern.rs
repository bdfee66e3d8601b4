//! The content of a stream: any piece of it, in the wrong place or damaged, differs.

use std::sync::OnceLock;

use astraea_cc::SplitMix64;
use bytes::Bytes;

/// Length of the block that repeats: a prime number, so that no packet or buffer size divides it.
const PERIOD: usize = 1_048_573;

/// The block.
fn block() -> &'static Bytes {
    static BLOCK: OnceLock<Bytes> = OnceLock::new();
    BLOCK.get_or_init(|| {
        let mut random = SplitMix64::new(1);
        (0..PERIOD).map(|_| random.next_u64() as u8).collect::<Vec<_>>().into()
    })
}

/// Up to `most` bytes of the stream from `offset` on, at least one if `most` is not 0.
pub(super) fn piece(offset: u64, most: u64) -> Bytes {
    let begin = (offset % PERIOD as u64) as usize;
    block().slice(begin..PERIOD.min(begin.saturating_add(most as usize)))
}

/// Whether these are the bytes of the stream from `offset` on.
pub(super) fn matches(mut offset: u64, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        let expected = piece(offset, bytes.len() as u64);
        let (head, rest) = bytes.split_at(expected.len());
        if head != expected {
            return false;
        }
        offset += head.len() as u64;
        bytes = rest;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_bytes_in_the_right_place_match() {
        let end = PERIOD as u64;
        let mut bytes = [piece(end - 500, 1000), piece(end, 500)].concat();
        assert_eq!(bytes.len(), 1000);
        assert!(matches(end - 500, &bytes) && matches(2 * end - 500, &bytes));
        assert!(!matches(end - 499, &bytes) && !matches(500, &bytes));
        bytes[999] ^= 1;
        assert!(!matches(end - 500, &bytes));
    }
}
