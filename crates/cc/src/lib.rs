//! Congestion controllers, sans-I/O.
//!
//! A [`Controller`] has no clock, no socket and no randomness of its own: the transport that owns it reports what it
//! sent, what was acknowledged and what was lost, with the time as an argument, and asks for a window and a pacing
//! rate. The same code therefore runs in the simulator, behind a real socket and in a test that feeds it by hand.
//!
//! # Units
//!
//! * time: integer nanoseconds ([`Nanos`]) since an arbitrary origin;
//! * windows, bytes in flight, bytes acknowledged: payload bytes (headers do not count);
//! * rates: payload bits per second, `f64`.

mod allegro;
mod bbr;
mod bbr3;
mod c2tcp;
mod compound;
mod constant;
mod controller;
mod copa;
mod cubic;
mod delay;
mod held_back;
mod hystart;
mod hystart_classic;
mod illinois;
mod minmax;
mod newreno;
mod pcc;
mod random;
mod rate;
mod reduction;
mod remy;
mod round;
mod rtt;
mod scheme;
mod sliding;
mod succession;
mod vegas;
mod vivace;
mod westwood;
mod window_use;

pub use allegro::Allegro;
pub use bbr::{Bbr, BbrMode};
pub use bbr3::{Bbr3, Bbr3State};
pub use c2tcp::{C2tcp, C2tcpConfig};
pub use compound::{Compound, CompoundConfig};
pub use constant::{ConstantRate, ConstantWindow};
pub use controller::{Ack, Congestion, Controller, Loss, LostPacket, Signal};
pub use copa::Copa;
pub use cubic::{Cubic, CubicConfig};
pub use hystart::{HyStart, HyStartPhase, rtt_threshold};
pub use hystart_classic::ClassicHyStart;
pub use illinois::{Illinois, IllinoisConfig};
pub use minmax::WindowedExtremum;
pub use newreno::NewReno;
pub use pcc::PccPhase;
pub use random::SplitMix64;
pub use rate::{RateSample, RateSampler, SendStamp};
pub use reduction::Reduction;
pub use remy::{Remy, RemyAxis, RemyDomain, RemyMemory, RemyRule, RemyTable, RemyTableError, RemyTree};
pub use round::RoundCounter;
pub use rtt::{MIN_RTO, Rtt};
pub use scheme::{AnyController, Manual, Parameter, SCHEMES, Scheme, SchemeError, Values, build};
pub use sliding::SlidingExtremum;
pub use succession::{Connection, HandOver, Successor};
pub use vegas::{Vegas, VegasConfig};
pub use vivace::{Vivace, VivaceConfig};
pub use westwood::Westwood;

/// Time or duration in integer nanoseconds.
pub type Nanos = u64;

/// One millisecond.
pub const MILLISECOND: Nanos = 1_000_000;

/// One second.
pub const SECOND: Nanos = 1_000_000_000;

/// Payload of a full-sized segment in bytes: a 1500-byte IP packet less IPv4, TCP and timestamp option (52 bytes).
pub const MSS: u32 = 1448;

/// Initial window in segments (RFC 6928).
pub const INITIAL_WINDOW: u32 = 10;
