//! Where a flow's data comes from, without a clock: the simulator's senders and those of real traffic share it.

use std::collections::VecDeque;

use astraea_cc::Nanos;
use rand::{Rng, RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::config::SourceConfig;
use crate::network::stream_seed;
use crate::receiver::Completion;

/// The random numbers of flow `flow` in a trial with the seed `seed`.
pub fn generator(seed: u64, flow: usize) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(stream_seed(seed, 2 * flow as u64 + 1))
}

/// A stream of bytes that becomes available over time.
pub struct Source {
    config: SourceConfig,
    /// Bytes handed to the transport so far.
    produced: u64,
    /// Bytes that the application has made available; `u64::MAX` without limit.
    available: u64,
    /// (time of availability, offset of the end) of messages that the receiver does not have yet.
    messages: VecDeque<(Nanos, u64)>,
    on: bool,
}

impl Source {
    /// A source that has not started.
    pub fn new(config: SourceConfig) -> Self {
        Self { config, produced: 0, available: 0, messages: VecDeque::new(), on: false }
    }

    /// The flow starts or a time asked for has come; returns when the source wants to be called next, in ns.
    pub fn advance(&mut self, now: Nanos, rng: &mut impl Rng) -> Option<Nanos> {
        match self.config {
            SourceConfig::Bulk => {
                self.available = u64::MAX;
                None
            }
            SourceConfig::Sized(bytes) => {
                self.add_message(now, bytes);
                None
            }
            SourceConfig::OnOff { on_ns, off_ns, exponential } => {
                self.on = !self.on;
                self.available = if self.on { u64::MAX } else { self.produced };
                let mean = if self.on { on_ns } else { off_ns };
                Some(now + if exponential { exponential_gap(mean, rng) } else { mean })
            }
            SourceConfig::Poisson { every_ns, bytes } => {
                // The first call is the start of the process, not an arrival.
                if self.on {
                    self.add_message(now, bytes);
                }
                self.on = true;
                Some(now + exponential_gap(every_ns, rng))
            }
            SourceConfig::Periodic { every_ns, bytes } => {
                self.add_message(now, bytes);
                Some(now + every_ns)
            }
        }
    }

    fn add_message(&mut self, now: Nanos, bytes: u64) {
        self.available = self.available.saturating_add(bytes);
        self.messages.push_back((now, self.available));
    }

    /// Payload of the next new segment, at most `mss`; 0 if there is no data.
    #[inline]
    pub fn next_payload(&self, mss: u64) -> u64 {
        mss.min(self.available - self.produced)
    }

    /// That many bytes went into a new segment.
    #[inline]
    pub fn take(&mut self, payload: u64) {
        self.produced += payload;
    }

    /// The receiver has `in_order` bytes at `now`: the next message that this completes.
    #[inline]
    pub fn completed(&mut self, in_order: u64, now: Nanos) -> Option<Completion> {
        let &(start, end) = self.messages.front()?;
        if end > in_order {
            return None;
        }
        self.messages.pop_front();
        Some(Completion { start, end: now })
    }

    /// Whether the flow ends with its last message.
    #[inline]
    pub fn is_sized(&self) -> bool {
        matches!(self.config, SourceConfig::Sized(_))
    }
}

fn exponential_gap(mean: Nanos, rng: &mut impl Rng) -> Nanos {
    let uniform: f64 = 1.0 - rng.random::<f64>();
    ((-libm::log(uniform) * mean as f64) as Nanos).max(1)
}
