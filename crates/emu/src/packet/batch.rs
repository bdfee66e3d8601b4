//! Delivery: segments that are due together and continue each other go out as one super-packet, which is what makes
//! gigabits possible. The rules are those of the kernel's receive offload: same addresses, ports, acknowledgement,
//! window, flags and options, nothing missing in between, and the same ECN field.

use std::io::IoSlice;

use super::VnetHeader;
use super::header::{ACK, FIN, MOST_HEADER, PSH};
use super::segment::{Segment, Store, finish_header, mark, sequence};

/// Most bytes of a merged packet, so that its length fits 16 bits.
const MOST_BYTES: usize = 65_000;

/// Most segments of a merged packet, as many as the kernel takes parts in a write, less the header.
const MOST_PARTS: usize = 128;

/// Flows whose packets are collected at a time.
const FLOWS: usize = 8;

/// Where packets go.
pub(crate) trait Outlet {
    /// A packet in parts, of which the first is its virtio header.
    fn write(&mut self, parts: &[IoSlice<'_>]);
}

/// A run of segments of one flow.
struct Batch {
    flow: u32,
    header: [u8; MOST_HEADER],
    length: usize,
    transport: usize,
    /// Payload of every segment but the last.
    size: usize,
    payload: usize,
    next_sequence: u32,
    marked: bool,
    /// Nothing can follow: a segment was shorter, or carried PSH or FIN.
    closed: bool,
    segments: Vec<Segment>,
}

/// Collects what is due, merges it, and writes it. Order is kept within a flow.
#[derive(Default)]
pub(crate) struct Egress {
    batches: Vec<Batch>,
    spare: Vec<Batch>,
}

impl Egress {
    /// Takes a segment that is due. Its memory is released when it has been written.
    pub(crate) fn push(&mut self, store: &mut Store, segment: Segment, marked: bool, outlet: &mut impl Outlet) {
        let headers = *store.headers(segment);
        let known = self.batches.iter().position(|batch| batch.flow == headers.flow);
        if let Some(index) = known {
            if self.batches[index].append(store, segment, marked) {
                return;
            }
            self.write_one(index, store, outlet);
        }
        let payload = store.payload_range(segment).len();
        if headers.header == 0 || payload == 0 {
            write_alone(store, segment, marked && !headers.marked, outlet);
            return;
        }
        if self.batches.len() == FLOWS {
            self.write_one(0, store, outlet);
        }
        let mut batch = self.spare.pop().unwrap_or_default();
        batch.start(store, segment, marked);
        self.batches.push(batch);
    }

    /// Writes everything that was collected.
    pub(crate) fn flush(&mut self, store: &mut Store, outlet: &mut impl Outlet) {
        while !self.batches.is_empty() {
            self.write_one(0, store, outlet);
        }
    }

    fn write_one(&mut self, index: usize, store: &mut Store, outlet: &mut impl Outlet) {
        let mut batch = self.batches.remove(index);
        batch.write(store, outlet);
        for segment in batch.segments.drain(..) {
            store.release(segment);
        }
        self.spare.push(batch);
    }
}

/// Writes a packet that is not merged with others, as it came but for a mark.
fn write_alone(store: &mut Store, segment: Segment, newly_marked: bool, outlet: &mut impl Outlet) {
    if newly_marked {
        mark(store.bytes_mut(segment));
    }
    let vnet = store.vnet(segment);
    let end = store.payload_range(segment).end;
    outlet.write(&[IoSlice::new(&vnet.0), IoSlice::new(store.bytes(segment, 0..end))]);
    store.release(segment);
}

impl Default for Batch {
    fn default() -> Self {
        Self {
            flow: 0,
            header: [0; MOST_HEADER],
            length: 0,
            transport: 0,
            size: 0,
            payload: 0,
            next_sequence: 0,
            marked: false,
            closed: false,
            segments: Vec::with_capacity(MOST_PARTS),
        }
    }
}

impl Batch {
    fn start(&mut self, store: &Store, segment: Segment, marked: bool) {
        let headers = store.headers(segment);
        self.flow = headers.flow;
        self.marked = marked;
        self.transport = usize::from(headers.transport);
        self.length = store.write_header(segment, marked && !headers.marked, &mut self.header);
        self.size = store.payload_range(segment).len();
        self.payload = self.size;
        let tcp = &self.header[self.transport..self.length];
        self.next_sequence = sequence(tcp).wrapping_add(self.size as u32);
        self.closed = tcp[13] != ACK;
        self.segments.push(segment);
    }

    /// Adds a segment if it continues the run.
    fn append(&mut self, store: &Store, segment: Segment, marked: bool) -> bool {
        let payload = store.payload_range(segment).len();
        let fits = !self.closed
            && self.marked == marked
            && payload > 0
            && payload <= self.size
            && self.length + self.payload + payload <= MOST_BYTES
            && self.segments.len() < MOST_PARTS;
        if !fits {
            return false;
        }
        let headers = store.headers(segment);
        let mut header = [0; MOST_HEADER];
        let length = store.write_header(segment, marked && !headers.marked, &mut header);
        if length != self.length || usize::from(headers.transport) != self.transport {
            return false;
        }
        let (ours, theirs) = (&self.header[..length], &header[..length]);
        let tcp = self.transport;
        if !same_network_header(&ours[..tcp], &theirs[..tcp]) || !self.same_transport_header(&theirs[tcp..]) {
            return false;
        }
        let flags = theirs[tcp + 13];
        self.header[tcp + 13] |= flags & (FIN | PSH);
        self.closed = payload < self.size || flags != ACK;
        self.payload += payload;
        self.next_sequence = self.next_sequence.wrapping_add(payload as u32);
        self.segments.push(segment);
        true
    }

    /// Whether a TCP header continues the run: all but sequence number, checksum, FIN and PSH are the same.
    fn same_transport_header(&self, theirs: &[u8]) -> bool {
        let ours = &self.header[self.transport..self.length];
        ours[..4] == theirs[..4]
            && sequence(theirs) == self.next_sequence
            && ours[8..13] == theirs[8..13]
            && (ours[13] ^ theirs[13]) & !(FIN | PSH) == 0
            && ours[14..16] == theirs[14..16]
            && ours[18..] == theirs[18..]
    }

    fn write(&mut self, store: &Store, outlet: &mut impl Outlet) {
        finish_header(&mut self.header[..self.length], self.transport, self.payload);
        let size = if self.segments.len() > 1 { self.size as u16 } else { 0 };
        let vnet = VnetHeader::tcp(self.header[0] >> 4, self.transport as u16, self.length as u16, size);
        let mut parts = Vec::with_capacity(2 + self.segments.len());
        parts.push(IoSlice::new(&vnet.0));
        parts.push(IoSlice::new(&self.header[..self.length]));
        // Neighbours in one packet lie side by side in memory: one part for all of them.
        let mut rest = &self.segments[..];
        while let Some(first) = rest.first() {
            let together = 1 + rest.windows(2).take_while(|pair| Store::continues(pair[0], pair[1])).count();
            let range = store.payload_range(*first).start..store.payload_range(rest[together - 1]).end;
            parts.push(IoSlice::new(store.bytes(*first, range)));
            rest = &rest[together..];
        }
        outlet.write(&parts);
    }
}

/// Whether two IP headers are those of segments of one packet: all but length, identification and checksum are the
/// same.
fn same_network_header(ours: &[u8], theirs: &[u8]) -> bool {
    if ours[0] != theirs[0] {
        return false;
    }
    if ours[0] >> 4 == 4 {
        ours[1] == theirs[1] && ours[6..10] == theirs[6..10] && ours[12..] == theirs[12..]
    } else {
        ours[..4] == theirs[..4] && ours[6..] == theirs[6..]
    }
}
