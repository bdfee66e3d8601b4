//! Packets as a TUN device hands them over: super-packets of TCP, split into the segments that a link would carry, and
//! merged again on delivery.

mod batch;
mod checksum;
mod header;
mod segment;

#[cfg(test)]
mod tests;

pub(crate) use batch::{Egress, Outlet};
pub(crate) use header::Headers;
pub(crate) use segment::Store;

use crate::device::VNET_HEADER;

/// The header in front of every packet (`struct virtio_net_hdr`, native byte order): which work is left to the other
/// side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VnetHeader(pub(crate) [u8; VNET_HEADER]);

impl VnetHeader {
    const NEEDS_CHECKSUM: u8 = 1;
    const TCP_V4: u8 = 1;
    const TCP_V6: u8 = 4;
    /// Beside the type: the super-packet's first segment carries CWR.
    const ECN: u8 = 0x80;

    fn field(self, at: usize) -> u16 {
        u16::from_ne_bytes([self.0[at], self.0[at + 1]])
    }

    fn set_field(&mut self, at: usize, value: u16) {
        self.0[at..at + 2].copy_from_slice(&value.to_ne_bytes());
    }

    pub(crate) fn needs_checksum(self) -> bool {
        self.0[0] & Self::NEEDS_CHECKSUM != 0
    }

    /// Payload bytes of each segment of a TCP super-packet; 0 for any other packet.
    pub(crate) fn segment_size(self) -> u16 {
        if matches!(self.0[1] & !Self::ECN, Self::TCP_V4 | Self::TCP_V6) { self.field(4) } else { 0 }
    }

    fn checksum_start(self) -> u16 {
        self.field(6)
    }

    fn checksum_offset(self) -> u16 {
        self.field(8)
    }

    /// A TCP packet whose checksum is left to do, and its segmentation if `segment_size` is not 0.
    fn tcp(version: u8, transport: u16, header: u16, segment_size: u16) -> Self {
        let mut vnet = Self::default();
        vnet.0[0] = Self::NEEDS_CHECKSUM;
        if segment_size > 0 {
            vnet.0[1] = if version == 4 { Self::TCP_V4 } else { Self::TCP_V6 };
        }
        vnet.set_field(2, header);
        vnet.set_field(4, segment_size);
        vnet.set_field(6, transport);
        vnet.set_field(8, 16);
        vnet
    }
}
