//! What the emulator needs to know of a packet's headers.

use super::VnetHeader;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Bits of the TCP flags byte.
pub(super) const FIN: u8 = 0x01;
pub(super) const PSH: u8 = 0x08;
pub(super) const ACK: u8 = 0x10;
pub(super) const CWR: u8 = 0x80;

/// Most bytes of IP and TCP headers that are understood together; a packet with longer ones passes as it is.
pub(super) const MOST_HEADER: usize = 160;

/// Where a packet comes from, goes to, and what it may be merged with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Headers {
    /// Addresses, the last 32 bits of them for IPv6.
    pub(crate) source: u32,
    pub(crate) destination: u32,
    /// Hash of addresses, protocol and ports.
    pub(crate) flow: u32,
    /// Whether the packet is ECN-capable, and whether it is marked (RFC 3168).
    pub(crate) ecn_capable: bool,
    pub(crate) marked: bool,
    /// Bytes before the TCP header, and before the payload; 0 if it is not TCP whose checksum is left to offloading.
    pub(crate) transport: u16,
    pub(crate) header: u16,
    /// Bytes before the payload of a UDP packet; 0 if it is none.
    pub(crate) datagram: u16,
}

impl Headers {
    /// Reads the headers of an IP packet; `None` if it is none.
    pub(crate) fn read(vnet: VnetHeader, packet: &[u8]) -> Option<Self> {
        let (addresses, ecn, protocol, transport, least) = match packet.first()? >> 4 {
            4 if packet.len() >= 20 => {
                let length = usize::from(packet[0] & 15) * 4;
                // No kernel takes such a packet; a mark would have to find its checksum in a header that is not there.
                if length < 20 || length > packet.len() {
                    return None;
                }
                let fragment = u16::from_be_bytes([packet[6], packet[7]]) & 0x3FFF != 0;
                (&packet[12..20], packet[1], packet[9], (!fragment).then_some(length), length)
            }
            6 if packet.len() >= 40 => (&packet[8..40], packet[1] >> 4, packet[6], Some(40), 40),
            _ => return None,
        };
        // The offload tells where the transport header is even behind IPv6 extension headers, but not before the end of IP's.
        let start = usize::from(vnet.checksum_start());
        let partial = vnet.needs_checksum() && vnet.checksum_offset() == 16 && start >= least;
        let transport = if partial { Some(start) } else { transport };
        let whole = transport.filter(|start| !partial && protocol == UDP && packet.len() >= start + 8);
        let ports = transport
            .filter(|_| partial || matches!(protocol, TCP | UDP))
            .and_then(|start| packet.get(start..start + 4))
            .unwrap_or_default();
        let half = addresses.len() / 2;
        let last =
            |bytes: &[u8]| u32::from_be_bytes([bytes[half - 4], bytes[half - 3], bytes[half - 2], bytes[half - 1]]);
        let header = transport.filter(|_| partial).and_then(|start| {
            let length = start + usize::from(*packet.get(start + 12)? >> 4) * 4;
            (length >= start + 20 && length <= packet.len().min(MOST_HEADER)).then_some(length)
        });
        Some(Self {
            source: last(&addresses[..half]),
            destination: last(&addresses[half..]),
            flow: hash(addresses, protocol, ports),
            ecn_capable: ecn & 3 != 0,
            marked: ecn & 3 == 3,
            transport: header.and(transport).unwrap_or(0) as u16,
            header: header.unwrap_or(0) as u16,
            datagram: whole.map_or(0, |start| start as u16 + 8),
        })
    }
}

/// FNV-1a over what tells flows apart.
fn hash(addresses: &[u8], protocol: u8, ports: &[u8]) -> u32 {
    let bytes = addresses.iter().chain([&protocol]).chain(ports);
    bytes.fold(0x811C_9DC5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}
