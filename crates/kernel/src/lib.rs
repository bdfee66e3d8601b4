//! Policies as a TCP congestion controller of an unpatched Linux kernel.
//!
//! The controller is a BPF program (`src/bpf`), compiled ahead and part of this library; nobody who uses it needs a
//! compiler. [`Attachment::attach`] loads it and registers it under a name that any socket may choose, and leaves it there:
//! it is held by files in the BPF file system, not by a process. [`Attachment::open`] finds it again.
//!
//! * [`intf`]: what the program and Rust share; [`layout`]: a policy as the program takes it;
//! * [`system`]: whether this kernel and this process can do it, and what is missing;
//! * [`Attachment`]: attach, swap the policy, look at flows and counters, detach;
//! * [`sysctl`]: the controller that connections have by default;
//! * [`agent`]: answering flows from a process.

pub mod agent;
mod attachment;
mod error;
pub mod intf;
pub mod layout;
mod lock;
mod object;
pub mod probe;
pub mod sysctl;
pub mod system;

pub use attachment::{Attachment, Decider, Place, Temporary, View};
pub use error::Error;
pub use object::OBJECT;
