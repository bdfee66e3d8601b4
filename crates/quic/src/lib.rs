//! Congestion controllers inside QUIC stacks.
//!
//! A [`Scheme`] says what controls each new connection: any scheme that a user can name, a policy file, or a controller
//! of one's own. An adapter puts it into a stack from outside:
//!
//! * feature `s2n-quic`: [`s2n::Endpoint`], window and pacing;
//! * feature `quinn`: `quinn::Factory`, a window, from which quinn derives its own pacing.
//!
//! With the feature `transfer`, [`transfer`] sends and receives over s2n-quic and records what happened.
//!
//! Windows and rates count UDP payload here, and a segment is the largest datagram of the path.

#[cfg(any(feature = "quinn", feature = "s2n-quic"))]
mod driver;
#[cfg(feature = "quinn")]
pub mod quinn;
#[cfg(feature = "s2n-quic")]
pub mod s2n;
mod scheme;
#[cfg(feature = "transfer")]
pub mod transfer;

pub use scheme::{Scheme, time_of_day};
