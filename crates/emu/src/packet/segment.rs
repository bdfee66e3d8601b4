//! Super-packets in memory, and the segments that refer to them.

use super::VnetHeader;
use super::checksum::{fold, sum};
use super::header::{CWR, FIN, Headers, MOST_HEADER, PSH};
use crate::device::VNET_HEADER;

/// Packets above this size stay in the buffer that they were read into; smaller ones are copied into one of their size,
/// so that a queue of acknowledgements does not hold 64 kB each.
const COPY_BELOW: usize = 16_384;

/// Bytes that a read buffer has: the largest super-packet and its header.
const READ_BUFFER: usize = 65_536 + VNET_HEADER;

/// Buffers that are kept for the next super-packets.
const KEEP: usize = 256;

/// A packet as it was read.
struct Packet {
    bytes: Vec<u8>,
    length: usize,
    headers: Headers,
    /// Payload bytes of a segment; 0 if the packet is one segment.
    size: usize,
    /// Segments that are still on their way.
    alive: u32,
}

/// One segment of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    packet: u32,
    index: u16,
}

/// All packets that are on their way.
pub(crate) struct Store {
    packets: Vec<Packet>,
    free_packets: Vec<u32>,
    segments: Vec<Segment>,
    free_segments: Vec<u32>,
    buffers: Vec<Vec<u8>>,
    /// Where the next packet is read to.
    next: Vec<u8>,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            packets: Vec::new(),
            free_packets: Vec::new(),
            segments: Vec::new(),
            free_segments: Vec::new(),
            buffers: Vec::new(),
            next: vec![0; READ_BUFFER],
        }
    }
}

/// What was read, before it goes on its way.
pub(crate) struct Arrival {
    packet: u32,
    /// How many segments it has.
    pub(crate) segments: u16,
    pub(crate) headers: Headers,
}

impl Store {
    /// Where the next packet has to be read to.
    #[inline]
    pub(crate) fn read_buffer(&mut self) -> &mut [u8] {
        &mut self.next
    }

    /// Takes the packet whose `length` bytes, virtio header included, are in the read buffer. `None` if it is not an IP
    /// packet. Each of its segments must be given an id by [`Store::segment`].
    pub(crate) fn accept(&mut self, length: usize) -> Option<Arrival> {
        let length = length.checked_sub(VNET_HEADER)?;
        let (vnet, packet) = self.next.split_first_chunk::<VNET_HEADER>()?;
        let vnet = VnetHeader(*vnet);
        let headers = Headers::read(vnet, &packet[..length])?;
        let payload = length - usize::from(headers.header);
        let size = usize::from(vnet.segment_size());
        // A super-packet is TCP; were its header not understood, it would pass as one packet.
        let (size, segments) =
            if size > 0 && headers.header > 0 && payload > size { (size, payload.div_ceil(size)) } else { (0, 1) };
        let bytes = if length < COPY_BELOW {
            self.next[..VNET_HEADER + length].to_vec()
        } else {
            let fresh = self.buffers.pop().unwrap_or_else(|| vec![0; READ_BUFFER]);
            std::mem::replace(&mut self.next, fresh)
        };
        let packet = Packet { bytes, length, headers, size, alive: segments as u32 };
        let packet = insert(&mut self.packets, &mut self.free_packets, packet);
        Some(Arrival { packet, segments: segments as u16, headers })
    }

    /// An id for the segment `index` of a packet, its bytes on the wire and its payload.
    #[inline]
    pub(crate) fn segment(&mut self, arrival: &Arrival, index: u16) -> (u32, u32, u32) {
        let segment = Segment { packet: arrival.packet, index };
        let payload = self.payload_range(segment).len();
        let (header, datagram) = (usize::from(arrival.headers.header), usize::from(arrival.headers.datagram));
        let id = insert(&mut self.segments, &mut self.free_segments, segment);
        let size = header + payload;
        let data = match (header, datagram) {
            (0, 0) => 0,
            (0, datagram) => size - datagram,
            _ => payload,
        };
        (id, size as u32, data as u32)
    }

    /// Forgets what was lost or dropped.
    #[inline]
    pub(crate) fn discard(&mut self, id: u32) {
        let segment = self.take(id);
        self.release(segment);
    }

    /// The segment with that id, which is free from now on; it has to be [released](Store::release) when its bytes
    /// have been used.
    #[inline]
    pub(crate) fn take(&mut self, id: u32) -> Segment {
        self.free_segments.push(id);
        self.segments[id as usize]
    }

    /// Gives back the memory of a packet when this was the last of its segments.
    #[inline]
    pub(crate) fn release(&mut self, segment: Segment) {
        let packet = &mut self.packets[segment.packet as usize];
        packet.alive -= 1;
        if packet.alive == 0 {
            let bytes = std::mem::take(&mut packet.bytes);
            self.free_packets.push(segment.packet);
            if bytes.len() == READ_BUFFER && self.buffers.len() < KEEP {
                self.buffers.push(bytes);
            }
        }
    }

    /// Segments that are on their way.
    pub(crate) fn len(&self) -> usize {
        self.segments.len() - self.free_segments.len()
    }

    pub(super) fn headers(&self, segment: Segment) -> &Headers {
        &self.packets[segment.packet as usize].headers
    }

    /// Where a segment's payload lies in its packet (all of the packet if its header is not understood).
    pub(super) fn payload_range(&self, segment: Segment) -> std::ops::Range<usize> {
        let packet = &self.packets[segment.packet as usize];
        let header = usize::from(packet.headers.header);
        if packet.size == 0 {
            return header..packet.length;
        }
        let start = header + usize::from(segment.index) * packet.size;
        start..(start + packet.size).min(packet.length)
    }

    /// Bytes of a segment's packet, in a range as of [`Store::payload_range`].
    pub(super) fn bytes(&self, segment: Segment, range: std::ops::Range<usize>) -> &[u8] {
        &self.packets[segment.packet as usize].bytes[VNET_HEADER..][range]
    }

    /// The virtio header that the packet came with.
    pub(super) fn vnet(&self, segment: Segment) -> VnetHeader {
        let bytes = &self.packets[segment.packet as usize].bytes;
        VnetHeader(*bytes.first_chunk().expect("a packet starts with its virtio header"))
    }

    /// The packet's bytes, for a mark.
    pub(super) fn bytes_mut(&mut self, segment: Segment) -> &mut [u8] {
        let packet = &mut self.packets[segment.packet as usize];
        &mut packet.bytes[VNET_HEADER..VNET_HEADER + packet.length]
    }

    /// Whether `next` continues `segment` within the same packet.
    pub(super) fn continues(segment: Segment, next: Segment) -> bool {
        segment.packet == next.packet && segment.index + 1 == next.index
    }

    /// Writes the IP and TCP header of a segment as it would be on the wire, lengths and checksums aside (see
    /// [`finish_header`]). Returns its length.
    pub(super) fn write_header(&self, segment: Segment, marked: bool, to: &mut [u8; MOST_HEADER]) -> usize {
        let packet = &self.packets[segment.packet as usize];
        let (transport, length) = (usize::from(packet.headers.transport), usize::from(packet.headers.header));
        let header = &mut to[..length];
        header.copy_from_slice(&packet.bytes[VNET_HEADER..VNET_HEADER + length]);
        if marked {
            mark(header);
        }
        if packet.size == 0 {
            return length;
        }
        let index = u32::from(segment.index);
        if header[0] >> 4 == 4 {
            let id = u16::from_be_bytes([header[4], header[5]]).wrapping_add(segment.index);
            header[4..6].copy_from_slice(&id.to_be_bytes());
        }
        let sequence = sequence(&header[transport..]).wrapping_add(index * packet.size as u32);
        header[transport + 4..transport + 8].copy_from_slice(&sequence.to_be_bytes());
        let last = self.payload_range(segment).end == packet.length;
        let flags = &mut header[transport + 13];
        if !last {
            *flags &= !(FIN | PSH);
        }
        if index > 0 {
            *flags &= !CWR;
        }
        length
    }
}

/// Sets "congestion experienced" in an IP header, and its checksum right if it has one.
pub(super) fn mark(header: &mut [u8]) {
    if header[0] >> 4 == 6 {
        header[1] |= 0x30;
        return;
    }
    header[1] |= 3;
    let length = usize::from(header[0] & 15) * 4;
    checksum_v4(&mut header[..length]);
}

fn checksum_v4(header: &mut [u8]) {
    header[10..12].fill(0);
    let checksum = !fold(sum(header));
    header[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Sets the lengths for `payload` bytes, the IP checksum, and the pseudo-header's sum where the TCP checksum will be.
pub(super) fn finish_header(header: &mut [u8], transport: usize, payload: usize) {
    let total = header.len() + payload;
    let addresses = if header[0] >> 4 == 4 {
        header[2..4].copy_from_slice(&(total as u16).to_be_bytes());
        checksum_v4(&mut header[..transport]);
        12..20
    } else {
        header[4..6].copy_from_slice(&((total - 40) as u16).to_be_bytes());
        8..40
    };
    let pseudo = fold(sum(&header[addresses]) + 6 + (total - transport) as u32);
    header[transport + 16..transport + 18].copy_from_slice(&pseudo.to_be_bytes());
}

/// The sequence number in a TCP header.
pub(super) fn sequence(tcp: &[u8]) -> u32 {
    u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]])
}

fn insert<T>(items: &mut Vec<T>, free: &mut Vec<u32>, item: T) -> u32 {
    if let Some(index) = free.pop() {
        items[index as usize] = item;
        index
    } else {
        items.push(item);
        items.len() as u32 - 1
    }
}
