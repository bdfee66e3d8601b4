//! Time series in slots of equal length.

use astraea_cc::Nanos;

use crate::config::Config;
use crate::packet::Packet;

/// What a flow did in one slot.
#[derive(Clone, Copy, Debug, Default)]
pub struct FlowSlot {
    /// Sum of the round-trip samples in ns.
    pub rtt_sum: u64,
    /// Number of round-trip samples.
    pub rtt_count: u32,
    /// New payload bytes that left the last queue of the path.
    pub delivered: u64,
    /// Packets that the sender declared lost.
    pub lost: u32,
    /// Window in bytes at the last acknowledgement of the slot; 0 if there was none.
    pub cwnd: f32,
    /// Pacing rate in bit/s at the last acknowledgement; 0 if unpaced.
    pub pacing: f32,
    /// Bytes in flight after the last acknowledgement.
    pub in_flight: f32,
}

/// What a link did in one slot.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkSlot {
    /// Sum of the waiting times in ns of the packets that entered service.
    pub wait_sum: u64,
    /// Number of those packets.
    pub served: u32,
    /// Their wire bytes.
    pub served_bytes: u64,
    /// Packets dropped by the queue.
    pub dropped: u32,
    /// Packets lost at random.
    pub lost: u32,
}

/// Turns non-decreasing times into slot indices without a division each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlotCursor {
    slot: usize,
    end: Nanos,
}

impl SlotCursor {
    #[inline]
    fn index(&mut self, time: Nanos, length: Nanos) -> usize {
        if time >= self.end {
            self.slot = (time / length) as usize;
            self.end = (self.slot as Nanos + 1) * length;
        }
        self.slot
    }
}

/// Records all flows and links of a simulation.
pub struct Recorder {
    length: Nanos,
    slots: usize,
    flows: Vec<Vec<FlowSlot>>,
    links: Vec<Vec<LinkSlot>>,
    now: SlotCursor,
}

/// What keeps account of a network's packets.
pub(crate) trait Ledger<P> {
    /// A packet was lost or dropped.
    fn on_gone(&mut self, packet: P);
    /// The time series, if there are any.
    fn recorder(&mut self) -> Option<&mut Recorder>;
}

/// What the simulated network writes down as it goes.
pub(crate) struct Books {
    pub(crate) recorder: Option<Recorder>,
    /// Data packets that the network lost or dropped, by flow.
    pub(crate) gone: Vec<u64>,
}

impl Books {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            recorder: Recorder::new(config.slot_ns, config.duration_ns, config.flows.len(), config.links.len()),
            gone: vec![0; config.flows.len()],
        }
    }
}

impl Ledger<Packet> for Books {
    #[inline]
    fn on_gone(&mut self, packet: Packet) {
        if !packet.is_ack() {
            self.gone[packet.flow as usize] += 1;
        }
    }

    #[inline]
    fn recorder(&mut self) -> Option<&mut Recorder> {
        self.recorder.as_mut()
    }
}

/// The slot of that index in a series that is as long as it has been used.
#[inline]
fn slot_mut<T: Clone + Default>(series: &mut Vec<T>, index: usize, slots: usize) -> &mut T {
    if index >= series.len() {
        if series.capacity() == 0 {
            // Reserving address space once is cheaper than moving a growing series.
            series.reserve_exact(slots.max(index + 1));
        }
        series.resize(index + 1, T::default());
    }
    &mut series[index]
}

impl Recorder {
    /// A recorder with slots of `length` ns up to `duration`, or none if `length` is 0.
    pub(crate) fn new(length: Nanos, duration: Nanos, flows: usize, links: usize) -> Option<Self> {
        (length > 0).then(|| Self {
            length,
            slots: duration.div_ceil(length) as usize,
            flows: vec![Vec::new(); flows],
            links: vec![Vec::new(); links],
            now: SlotCursor::default(),
        })
    }

    /// Length of a slot in ns.
    pub fn slot_ns(&self) -> Nanos {
        self.length
    }

    /// Number of slots of the whole simulation.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Series of a flow; it ends with the last slot in which something happened.
    pub fn flow(&self, flow: usize) -> &[FlowSlot] {
        &self.flows[flow]
    }

    /// Series of a link; it ends with the last slot in which something happened.
    pub fn link(&self, link: usize) -> &[LinkSlot] {
        &self.links[link]
    }

    /// Slot of a flow at the present time.
    #[inline]
    pub(crate) fn flow_now(&mut self, flow: u32, now: Nanos) -> &mut FlowSlot {
        let index = self.now.index(now, self.length);
        slot_mut(&mut self.flows[flow as usize], index, self.slots)
    }

    /// Slot of a link at the present time.
    #[inline]
    pub(crate) fn link_now(&mut self, link: usize, now: Nanos) -> &mut LinkSlot {
        let index = self.now.index(now, self.length);
        slot_mut(&mut self.links[link], index, self.slots)
    }

    /// Counts a delivery at a time that may lie in the future; `cursor` belongs to the link, whose times do not decrease.
    #[inline]
    pub(crate) fn delivery(&mut self, cursor: &mut SlotCursor, flow: u32, time: Nanos, payload: u32) {
        let index = cursor.index(time, self.length);
        if index < self.slots {
            slot_mut(&mut self.flows[flow as usize], index, self.slots).delivered += u64::from(payload);
        }
    }

    /// Counts the start of a transmission.
    #[inline]
    pub(crate) fn service(&mut self, cursor: &mut SlotCursor, link: usize, time: Nanos, wait: Nanos, size: u32) {
        let index = cursor.index(time, self.length);
        if index < self.slots {
            let slot = slot_mut(&mut self.links[link], index, self.slots);
            slot.wait_sum += wait;
            slot.served += 1;
            slot.served_bytes += u64::from(size);
        }
    }
}
