//! The Internet checksum (RFC 1071).

/// Sum of `bytes` as big-endian 16-bit words, not folded.
pub(super) fn sum(bytes: &[u8]) -> u32 {
    let words = bytes.chunks_exact(2);
    let last = words.remainder().first().map_or(0, |byte| u32::from(*byte) << 8);
    words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum::<u32>() + last
}

/// A sum folded to 16 bits.
pub(super) fn fold(mut sum: u32) -> u16 {
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}
