//! The messages, as bytes. `docs/protocol.md` is their specification.
//!
//! Nothing here allocates for what comes in, and no length is believed before it is checked.

mod codec;
mod error;
mod message;
#[cfg(test)]
mod tests;

pub use codec::{Codec, Frame, length};
pub use error::WireError;
pub use message::{Answer, Ask, Message, Reason, Refusal, Reports, Terms};

/// The first four bytes of every message.
pub const MAGIC: [u8; 4] = *b"ASTR";

/// Version of the protocol.
pub const VERSION: u8 = 1;

/// Bytes of the header.
pub const HEADER: usize = 32;

/// Longest message: a request with a whole history, authenticated.
pub const LONGEST: usize = HEADER + message::ASK + crate::HISTORY * message::REPORT + crate::auth::TAG;
