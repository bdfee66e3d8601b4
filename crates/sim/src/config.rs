//! What a simulation is made of: links, flows and times, in integer nanoseconds, bytes and bit/s.
//!
//! This is the *resolved* form: units, bandwidth-delay products, random start times and the like have been worked out
//! by whoever reads a scenario. It is deserialised strictly: an unknown key is an error.

use astraea_cc::{MILLISECOND, MSS, Nanos};
use serde::Deserialize;

use crate::event::EventQueue;
use crate::loss::LossConfig;
use crate::packet::HEADER;
use crate::queue::{Limit, QueueConfig};
use crate::rate::RateConfig;

/// Longest time or delay in ns that a configuration may name: 115 days, so that sums of times do not overflow.
pub const LONGEST: Nanos = 10_000_000_000_000_000;

/// Slots that a recording may have.
const MOST_SLOTS: u64 = 10_000_000;

/// Checks that times are not absurdly long.
fn check_times<'a>(times: impl IntoIterator<Item = (&'a str, Nanos)>) -> Result<(), String> {
    match times.into_iter().find(|(_, time)| *time > LONGEST) {
        Some((key, time)) => Err(format!("{key} is {time}, expected at most {LONGEST} ns (115 days)")),
        None => Ok(()),
    }
}

/// Why a configuration cannot be run. Displayed as one line: where, what, what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {problem}")]
pub struct ConfigError {
    /// Key path, for example `links[0].rate`.
    pub place: String,
    /// What is wrong and what was expected.
    pub problem: String,
}

impl ConfigError {
    /// A problem at a place.
    pub fn new(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { place: place.into(), problem: problem.into() }
    }
}

/// A whole simulation.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Simulated time in ns.
    pub duration_ns: Nanos,
    /// Length of a recording slot in ns; 0 records nothing.
    #[serde(default)]
    pub slot_ns: Nanos,
    /// Monitoring periods end at multiples of the period, together for all flows, instead of counting from each
    /// flow's start.
    #[serde(default)]
    pub aligned_periods: bool,
    /// The links.
    pub links: Vec<LinkConfig>,
    /// The flows.
    pub flows: Vec<FlowConfig>,
}

/// One-way propagation delay.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelayConfig {
    /// Always the same, in ns.
    Constant(Nanos),
    /// (from, delay) pairs in ns, the first from 0, with increasing times.
    Schedule(Vec<(Nanos, Nanos)>),
}

/// Packets that are held back and may be overtaken.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReorderConfig {
    /// Share of the packets, 0..=1.
    pub probability: f64,
    /// How long each of them is held back, in ns.
    pub delay_ns: Nanos,
}

fn default_queue() -> QueueConfig {
    QueueConfig::Droptail {}
}

/// A link: loss, then a queue, a transmitter, and a delay line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// Name in results and errors.
    pub name: String,
    /// Rate of the transmitter (wire bit/s).
    pub rate: RateConfig,
    /// One-way propagation delay.
    pub delay: DelayConfig,
    /// Room for waiting packets; the one in transmission does not count.
    pub limit: Limit,
    /// Queue discipline.
    #[serde(default = "default_queue")]
    pub queue: QueueConfig,
    /// Random loss in front of the queue.
    #[serde(default)]
    pub loss: LossConfig,
    /// Extra delay of each packet, uniform in `0..=jitter_ns`; the order of packets is kept.
    #[serde(default)]
    pub jitter_ns: Nanos,
    /// Reordering behind the queue.
    #[serde(default)]
    pub reorder: ReorderConfig,
}

/// Where a flow's data comes from.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceConfig {
    /// Always more data.
    #[default]
    Bulk,
    /// This many bytes; the flow ends when the receiver has them.
    Sized(u64),
    /// Alternately sends without limit and not at all.
    OnOff {
        /// Length (or mean length) of an on period in ns.
        on_ns: Nanos,
        /// Length (or mean length) of an off period in ns.
        off_ns: Nanos,
        /// Whether lengths are exponentially distributed.
        #[serde(default)]
        exponential: bool,
    },
    /// Messages of `bytes` arrive as a Poisson process with mean gap `every_ns`.
    Poisson {
        /// Mean gap in ns.
        every_ns: Nanos,
        /// Size of a message in payload bytes.
        bytes: u64,
    },
    /// Messages of `bytes` arrive every `every_ns`.
    Periodic {
        /// Gap in ns.
        every_ns: Nanos,
        /// Size of a message in payload bytes.
        bytes: u64,
    },
}

/// How the receiver acknowledges.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AckConfig {
    /// One acknowledgement for this many packets (RFC 5681 §4.2 allows 2).
    pub every: u32,
    /// Longest delay of an acknowledgement in ns when `every` is above 1.
    pub timeout_ns: Nanos,
    /// Acknowledgements are released in bunches at multiples of this many ns (as wireless links do); 0 for at once.
    pub aggregate_ns: Nanos,
    /// Share of acknowledgements lost, 0..1.
    pub loss: f64,
}

impl Default for AckConfig {
    fn default() -> Self {
        Self { every: 1, timeout_ns: 40 * MILLISECOND, aggregate_ns: 0, loss: 0.0 }
    }
}

impl AckConfig {
    /// Whether every packet is acknowledged at once.
    pub(crate) fn is_immediate(&self) -> bool {
        self.every == 1 && self.aggregate_ns == 0 && self.loss == 0.0
    }
}

fn default_mss() -> u32 {
    MSS
}

/// A flow. Its controller is given beside the configuration.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowConfig {
    /// When it starts, in ns.
    pub start_ns: Nanos,
    /// When it stops sending, in ns; `None` for the end of the simulation.
    #[serde(default)]
    pub stop_ns: Option<Nanos>,
    /// Indices of the links that its data crosses, in order.
    pub path: Vec<usize>,
    /// Indices of the links that its acknowledgements cross; empty for a pure delay equal to the forward one.
    #[serde(default)]
    pub return_path: Vec<usize>,
    /// One-way delay in ns of this flow alone, on the way out and on the way back.
    #[serde(default)]
    pub extra_delay_ns: Nanos,
    /// Where its data comes from.
    #[serde(default)]
    pub source: SourceConfig,
    /// How its receiver acknowledges.
    #[serde(default)]
    pub ack: AckConfig,
    /// Whether its packets are ECN-capable (RFC 3168).
    #[serde(default)]
    pub ecn: bool,
    /// Where it is paced, as much as fills this many ns of its pace leaves together; 0 for packets one by one. Linux: about
    /// a millisecond.
    #[serde(default)]
    pub burst_ns: Nanos,
    /// Monitoring period in ns for controllers that decide once a period; 0 for none.
    #[serde(default)]
    pub period_ns: Nanos,
    /// Payload bytes of a full segment.
    #[serde(default = "default_mss")]
    pub mss: u32,
}

impl Config {
    /// Checks everything that types cannot.
    ///
    /// # Errors
    /// The first problem found.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if self.duration_ns == 0 {
            return Err(ConfigError::new("duration_ns", "is 0, expected a positive time"));
        }
        if self.duration_ns > LONGEST {
            let problem = format!("is {}, expected at most {LONGEST} ns (115 days)", self.duration_ns);
            return Err(ConfigError::new("duration_ns", problem));
        }
        if self.slot_ns > 0 && self.duration_ns.div_ceil(self.slot_ns) > MOST_SLOTS {
            let slots = self.duration_ns.div_ceil(self.slot_ns);
            let problem = format!("{slots} slots of {} ns, expected at most {MOST_SLOTS} slots", self.slot_ns);
            return Err(ConfigError::new("slot_ns", problem));
        }
        if self.flows.is_empty() {
            return Err(ConfigError::new("flows", "there is none, expected at least one"));
        }
        if self.flows.len() > EventQueue::MAX_INDEX || self.links.len() > EventQueue::MAX_INDEX {
            return Err(ConfigError::new("flows", format!("more than {} flows or links", EventQueue::MAX_INDEX)));
        }
        for link in &self.links {
            link.validate().map_err(|problem| ConfigError::new(format!("link {}", link.name), problem))?;
        }
        for (index, flow) in self.flows.iter().enumerate() {
            flow.validate(&self.links).map_err(|problem| ConfigError::new(format!("flows[{index}]"), problem))?;
        }
        Ok(())
    }
}

impl LinkConfig {
    pub(crate) fn validate(&self) -> Result<(), String> {
        self.limit.validate()?;
        self.queue.validate()?;
        self.loss.validate()?;
        check_times([("jitter_ns", self.jitter_ns), ("reorder.delay_ns", self.reorder.delay_ns)])?;
        if let DelayConfig::Constant(delay) = self.delay {
            check_times([("delay", delay)])?;
        }
        if let DelayConfig::Schedule(steps) = &self.delay {
            check_times(steps.iter().flat_map(|s| [("delay schedule", s.0), ("delay schedule", s.1)]))?;
            if steps.first().is_none_or(|s| s.0 != 0) {
                return Err("delay schedule must start at time 0".into());
            }
            if steps.windows(2).any(|w| w[1].0 <= w[0].0) {
                return Err("delay schedule must have increasing times".into());
            }
        }
        if !(0.0..=1.0).contains(&self.reorder.probability) {
            return Err(format!("reorder probability is {}, expected 0 to 1", self.reorder.probability));
        }
        Ok(())
    }
}

impl FlowConfig {
    fn validate(&self, links: &[LinkConfig]) -> Result<(), String> {
        check_times([
            ("start_ns", self.start_ns),
            ("stop_ns", self.stop_ns.unwrap_or(0)),
            ("extra_delay_ns", self.extra_delay_ns),
            ("period_ns", self.period_ns),
            ("burst_ns", self.burst_ns),
            ("ack.timeout_ns", self.ack.timeout_ns),
            ("ack.aggregate_ns", self.ack.aggregate_ns),
        ])?;
        if self.path.is_empty() {
            return Err("path is empty, expected at least one link".into());
        }
        for path in [&self.path, &self.return_path] {
            if let Some(unknown) = path.iter().find(|l| **l >= links.len()) {
                return Err(format!("path names link {unknown}, but there are {} links", links.len()));
            }
            if path.len() > usize::from(u8::MAX) / 2 {
                return Err(format!("path has {} links, expected at most 127", path.len()));
            }
        }
        if self.path.iter().enumerate().any(|(i, l)| self.path[..i].contains(l)) {
            return Err("path crosses a link twice".into());
        }
        if self.stop_ns.is_some_and(|stop| stop <= self.start_ns) {
            return Err("stops before it starts".into());
        }
        if !(1..=u32::from(u16::MAX)).contains(&self.mss) {
            return Err(format!("mss is {}, expected 1 to 65535 bytes", self.mss));
        }
        for link in self.path.iter().map(|l| &links[*l]) {
            let size = self.mss + HEADER;
            if let Limit::Bytes(most) = link.limit
                && u64::from(size) > most
            {
                let name = &link.name;
                return Err(format!(
                    "packets of {size} bytes, expected at most {most} to fit the queue of link {name}"
                ));
            }
        }
        if self.ack.every == 0 {
            return Err("ack.every is 0, expected at least 1".into());
        }
        if !(0.0..1.0).contains(&self.ack.loss) {
            return Err(format!("ack.loss is {}, expected 0 to below 1", self.ack.loss));
        }
        self.source.validate()
    }
}

impl SourceConfig {
    fn validate(&self) -> Result<(), String> {
        match *self {
            SourceConfig::OnOff { on_ns, off_ns, .. } => {
                check_times([("source.on_ns", on_ns), ("source.off_ns", off_ns)])?;
            }
            SourceConfig::Poisson { every_ns, .. } | SourceConfig::Periodic { every_ns, .. } => {
                check_times([("source.every_ns", every_ns)])?;
            }
            SourceConfig::Bulk | SourceConfig::Sized(_) => {}
        }
        let empty = |what: &str| Err(format!("source: {what} is 0, expected a positive value"));
        match *self {
            SourceConfig::Sized(0) => empty("size"),
            SourceConfig::OnOff { on_ns: 0, .. } => empty("on_ns"),
            SourceConfig::OnOff { off_ns: 0, .. } => empty("off_ns"),
            SourceConfig::Poisson { every_ns: 0, .. } | SourceConfig::Periodic { every_ns: 0, .. } => empty("every_ns"),
            SourceConfig::Poisson { bytes: 0, .. } | SourceConfig::Periodic { bytes: 0, .. } => empty("bytes"),
            _ => Ok(()),
        }
    }
}
