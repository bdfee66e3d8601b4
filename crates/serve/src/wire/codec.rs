//! Header, checksum and tag.

use super::{HEADER, LONGEST, MAGIC, Message, VERSION, WireError};
use crate::Key;
use crate::auth::TAG;

/// Bit of the header: a tag follows the body.
const TAGGED: u32 = 1;

/// Where the checksum is.
const CHECKSUM: std::ops::Range<usize> = 8..12;

/// A message with its header.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Frame<'a> {
    /// The session that it belongs to, 0 before there is one.
    pub session: u64,
    /// A client's messages are counted from 1; an answer bears the number of what it answers.
    pub number: u64,
    /// What it says.
    pub message: Message<'a>,
}

/// Length of the message that begins with these bytes, as soon as they tell.
///
/// # Errors
/// Bytes with which no message begins.
pub fn length(bytes: &[u8]) -> Result<Option<usize>, WireError> {
    let known = bytes.len().min(MAGIC.len());
    if bytes[..known] != MAGIC[..known] {
        return Err(WireError::Magic);
    }
    match bytes.get(4..8) {
        None => Ok(None),
        Some(&[version, ..]) if version != VERSION => Err(WireError::Version),
        Some(&[_, _, low, high]) => {
            let length = usize::from(u16::from_le_bytes([low, high]));
            if (HEADER..=LONGEST).contains(&length) { Ok(Some(length)) } else { Err(WireError::Length) }
        }
        Some(_) => unreachable!("four bytes"),
    }
}

/// Writes and reads whole messages, authenticated if there is a key.
#[derive(Clone, Debug, Default)]
pub struct Codec {
    key: Option<Key>,
}

impl Codec {
    /// Whether messages bear tags.
    pub(crate) fn has_key(&self) -> bool {
        self.key.is_some()
    }

    /// A codec for one transport.
    pub fn new(key: Option<Key>) -> Self {
        Self { key }
    }

    /// Appends a message.
    pub fn write(&self, frame: &Frame<'_>, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend(MAGIC);
        out.extend([VERSION, frame.message.kind(), 0, 0]);
        out.extend([0; 4]);
        out.extend((if self.key.is_some() { TAGGED } else { 0 }).to_le_bytes());
        out.extend(frame.session.to_le_bytes());
        out.extend(frame.number.to_le_bytes());
        frame.message.write(out);
        let message = &mut out[start..];
        let length = message.len() + self.key.as_ref().map_or(0, |_| TAG);
        message[6..8].copy_from_slice(&(length as u16).to_le_bytes());
        let sum = checksum(message);
        message[CHECKSUM].copy_from_slice(&sum.to_le_bytes());
        if let Some(key) = &self.key {
            let tag = key.tag(message);
            out.extend(tag);
        }
    }

    /// Reads one whole message.
    ///
    /// # Errors
    /// Whatever is wrong with it.
    pub fn read<'a>(&self, bytes: &'a [u8]) -> Result<Frame<'a>, WireError> {
        let Some(length) = length(bytes)? else { return Err(WireError::Truncated) };
        if bytes.len() < length {
            return Err(WireError::Truncated);
        }
        if bytes.len() > length {
            return Err(WireError::Length);
        }
        let flags = half(bytes, 12);
        if flags & !TAGGED != 0 {
            return Err(WireError::Kind);
        }
        let end = if flags & TAGGED == 0 { length } else { length - TAG };
        if end < HEADER {
            return Err(WireError::Length);
        }
        let (message, tag) = bytes.split_at(end);
        Message::fits(message[5], end - HEADER)?;
        if message[CHECKSUM] != checksum(message).to_le_bytes() {
            return Err(WireError::Checksum);
        }
        // A tag that nobody asked for would have to be believed or ignored; neither is right.
        let authentic = match &self.key {
            Some(key) => key.verify(message, tag) && !tag.is_empty(),
            None => tag.is_empty(),
        };
        if !authentic {
            return Err(WireError::Tag);
        }
        let read = Message::read(message[5], &message[HEADER..])?;
        Ok(Frame { session: word(message, 16), number: word(message, 24), message: read })
    }
}

/// The four bytes at a place that is there, as a number.
pub(super) fn half(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// The eight bytes at a place that is there, as a number.
pub(super) fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// CRC-32 (ISO-HDLC, that of zlib) of a message without its tag, the checksum itself counting as zero.
pub(super) fn checksum(message: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&message[..CHECKSUM.start]);
    hasher.update(&[0; 4]);
    hasher.update(&message[CHECKSUM.end..]);
    hasher.finalize()
}
