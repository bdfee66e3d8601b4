//! Both ends of a flow: an application with data to send, and one that throws them away.

use std::io;
use std::os::fd::OwnedFd;

use astraea_cc::{MSS, Nanos};
use astraea_sim::source::{Source, generator};
use astraea_sim::{FlowSlot, FlowStats};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::plan::FlowPlan;
use crate::socket::{self, Moved};
use crate::tcp_info::TcpInfo;

/// Data that is sent: its content does not matter.
static DATA: [u8; 1 << 18] = [0; 1 << 18];

/// Calls to read or write before other flows have their turn.
const TURNS: usize = 8;

/// How the life of a flow went.
#[derive(Clone, Debug)]
pub struct FlowOutcome {
    /// Counters; what only the network knows is still zero.
    pub stats: FlowStats,
    /// When it ended, if before the trial did.
    pub ended_at: Option<Nanos>,
    /// What went wrong, in one line.
    pub failure: Option<String>,
    /// Series by slot, up to the last in which something happened.
    pub slots: Vec<FlowSlot>,
}

pub(crate) struct Flow {
    pub(crate) plan: FlowPlan,
    pub(crate) sender: Option<OwnedFd>,
    pub(crate) receiver: Option<OwnedFd>,
    connected: bool,
    source: Source,
    rng: Xoshiro256PlusPlus,
    received: u64,
    ended_at: Option<Nanos>,
    failure: Option<String>,
    last: Option<TcpInfo>,
    stats: FlowStats,
    slots: Vec<FlowSlot>,
}

impl Flow {
    pub(crate) fn new(plan: FlowPlan, index: usize, seed: u64) -> Self {
        Self {
            source: Source::new(plan.source.clone()),
            rng: generator(seed, index),
            plan,
            sender: None,
            receiver: None,
            connected: false,
            received: 0,
            ended_at: None,
            failure: None,
            last: None,
            stats: FlowStats::default(),
            slots: Vec::new(),
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.ended_at.is_some()
    }

    /// The source starts or goes on; returns when it wants to be called next.
    pub(crate) fn advance(&mut self, now: Nanos) -> Option<Nanos> {
        if self.is_over() { None } else { self.source.advance(now, &mut self.rng) }
    }

    /// Hands the kernel what the source has and the socket takes. True if there may be more of both.
    pub(crate) fn write(&mut self, now: Nanos) -> bool {
        let Some(sender) = self.sender.as_ref().filter(|_| self.connected) else { return false };
        for _ in 0..TURNS {
            let ready = self.source.next_payload(DATA.len() as u64) as usize;
            if ready == 0 {
                return false;
            }
            match socket::write(sender, &DATA[..ready]) {
                Ok(Moved::Bytes(written)) => self.source.take(written as u64),
                Ok(_) => return false,
                Err(error) => {
                    self.fail(now, &error);
                    return false;
                }
            }
        }
        true
    }

    /// The kernel says that the sender's socket has changed: it is connected, takes more data, or has failed.
    pub(crate) fn on_sender(&mut self, now: Nanos) -> bool {
        let Some(sender) = &self.sender else { return false };
        if let Some(error) = socket::error_of(sender) {
            self.fail(now, &error);
            return false;
        }
        self.connected = true;
        self.write(now)
    }

    /// Takes what has arrived; `room` is scratch space.
    pub(crate) fn read(&mut self, now: Nanos, slot: usize, room: &mut [u8]) {
        let Some(receiver) = &self.receiver else { return };
        let mut total = 0;
        for _ in 0..TURNS {
            match socket::discard(receiver, room) {
                Ok(Moved::Bytes(bytes)) => total += bytes as u64,
                Ok(Moved::Blocked) => break,
                // A reset is how a flow stops; whether that was meant, its sender knows.
                Ok(Moved::End) | Err(_) => {
                    self.receiver = None;
                    break;
                }
            }
        }
        if total == 0 {
            return;
        }
        self.received += total;
        self.slot(slot).delivered += total;
        while let Some(completion) = self.source.completed(self.received, now) {
            self.stats.completions.push(completion);
            if self.source.is_sized() {
                // Its sender knows when the last acknowledgement is back.
                self.end(now + self.plan.way_back);
            }
        }
    }

    /// Reads the kernel's account of the connection and puts it into a slot.
    pub(crate) fn sample(&mut self, slot: usize) {
        let Some(sender) = self.sender.as_ref().filter(|_| self.connected) else { return };
        let Ok(info) = TcpInfo::of(sender) else { return };
        let before = self.last.replace(info);
        let since = |count: fn(&TcpInfo) -> u32| count(&info).wrapping_sub(before.as_ref().map_or(0, count));
        let (acked, lost) = (since(|i| i.delivered), since(|i| i.total_retrans));
        let paced = self.plan.scheme.paced && info.pacing_rate != u64::MAX;
        let rtt = u64::from(info.rtt) * 1000;
        let entry = self.slot(slot);
        entry.rtt_sum += rtt * u64::from(acked);
        entry.rtt_count += acked;
        entry.lost += lost;
        entry.cwnd = info.snd_cwnd as f32 * MSS as f32;
        entry.pacing = if paced { info.pacing_rate as f32 * 8.0 } else { 0.0 };
        entry.in_flight = info.in_flight() as f32 * MSS as f32;
        self.stats.rtt_sum += rtt * u64::from(acked);
        self.stats.rtt_count += u64::from(acked);
    }

    /// The flow's time is over: what has not been sent never will be.
    pub(crate) fn stop(&mut self, now: Nanos) {
        if !self.is_over() {
            self.end(now);
        }
        self.abort();
    }

    /// Closes the sender's end at once.
    pub(crate) fn abort(&mut self) {
        if let Some(sender) = self.sender.take() {
            socket::abort(sender);
        }
    }

    /// Leaves the sockets to the kernel, which still acknowledges what it must.
    fn end(&mut self, at: Nanos) {
        self.sample(self.slots.len().saturating_sub(1));
        self.ended_at = Some(at);
    }

    pub(crate) fn fail(&mut self, now: Nanos, error: &io::Error) {
        if !self.is_over() {
            self.failure = Some(error.to_string());
            self.end(now);
        }
        self.sender = None;
    }

    fn slot(&mut self, index: usize) -> &mut FlowSlot {
        if index >= self.slots.len() {
            self.slots.resize(index + 1, FlowSlot::default());
        }
        &mut self.slots[index]
    }

    /// What is known at the end of the trial.
    pub(crate) fn outcome(mut self, end: Nanos) -> FlowOutcome {
        if !self.connected && self.failure.is_none() && self.plan.start < end {
            self.failure = Some("never connected".into());
        }
        if let Some(info) = self.last {
            let stats = &mut self.stats;
            stats.sent = u64::from(info.data_segs_out);
            stats.retransmitted = u64::from(info.total_retrans);
            stats.declared_lost = u64::from(info.total_retrans);
            stats.spurious = u64::from(info.dsack_dups);
            stats.timeouts = u64::from(info.total_rto);
            // The kernel counts the SYN as well.
            stats.acked_bytes = info.bytes_acked.saturating_sub(1);
            stats.rtt_min = Some(u64::from(info.min_rtt) * 1000).filter(|_| info.delivered > 0);
        }
        self.stats.delivered_bytes = self.received;
        FlowOutcome { stats: self.stats, ended_at: self.ended_at, failure: self.failure, slots: self.slots }
    }
}
