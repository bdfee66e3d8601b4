//! Taking a connection over from another scheme, as a socket option of Linux lets an application do it at any time.

use crate::{Controller, Nanos, Rtt};

/// What a scheme leaves to the one that takes the connection over. It is what Linux keeps in the socket when another scheme is
/// chosen (`tcp_reinit_congestion_control`); everything else the new one measures for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HandOver {
    /// Congestion window in payload bytes.
    pub cwnd: u64,
    /// Slow-start threshold in payload bytes, `u64::MAX` where there is none.
    pub ssthresh: u64,
}

/// A controller that can take over a connection that another one has begun, and hand it on.
pub trait Successor: Controller {
    /// What it leaves.
    fn hand_over(&self) -> HandOver;

    /// Goes on from what another scheme left at `now`, as a controller that has seen nothing of the connection yet.
    fn take_over(&mut self, from: HandOver, now: Nanos, rtt: &Rtt);
}
