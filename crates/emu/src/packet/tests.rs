//! Splitting and merging against an independent account of what goes over a wire: every super-packet, whether it came
//! in or went out, is expanded to the packets that the kernel would send, with all checksums worked out afresh.

use std::io::IoSlice;

use proptest::prelude::*;

use super::header::{ACK, CWR, FIN, PSH};
use super::*;

const SYN: u8 = 2;

/// A TCP packet or super-packet to be.
#[derive(Clone, Debug)]
struct Tcp {
    v6: bool,
    port: u16,
    id: u16,
    sequence: u32,
    flags: u8,
    ecn: u8,
    options: Vec<u8>,
    payload: Vec<u8>,
    /// Payload of a segment; 0 for a packet that is not segmented.
    size: u16,
}

impl Tcp {
    /// `segments` segments of 1448 bytes and one of `rest`.
    fn data(segments: usize, rest: usize) -> Self {
        let payload: Vec<u8> = (0..segments * 1448 + rest).map(|i| (i * 7 % 251) as u8).collect();
        let (options, size) = (vec![1, 1, 8, 10, 0, 0, 0, 9, 0, 0, 0, 5], 1448);
        Self { v6: false, port: 5201, id: 7, sequence: 1000, flags: ACK, ecn: 2, options, payload, size }
    }

    fn transport(&self) -> usize {
        if self.v6 { 40 } else { 20 }
    }

    /// As a device hands it over: virtio header, headers with the pseudo-header's sum, payload.
    fn bytes(&self) -> Vec<u8> {
        let mut tcp = vec![0; 20];
        tcp[..2].copy_from_slice(&4000_u16.to_be_bytes());
        tcp[2..4].copy_from_slice(&self.port.to_be_bytes());
        tcp[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        tcp[8..12].copy_from_slice(&77_u32.to_be_bytes());
        tcp[12] = ((20 + self.options.len()) / 4 * 16) as u8;
        tcp[13] = self.flags;
        tcp[14..16].copy_from_slice(&500_u16.to_be_bytes());
        tcp.extend(&self.options);
        let header = self.transport() + tcp.len();
        tcp.extend(&self.payload);
        let mut packet = if self.v6 {
            let mut ip = vec![0x60, self.ecn << 4, 0, 0, 0, 0, 6, 64];
            ip[4..6].copy_from_slice(&(tcp.len() as u16).to_be_bytes());
            ip.extend((0..32).map(|i| if i % 16 == 0 { 0xFD } else { i }));
            ip
        } else {
            let mut ip = vec![0x45, self.ecn, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0, 10, 77, 0, 1, 10, 78, 0, 1];
            ip[2..4].copy_from_slice(&((tcp.len() + 20) as u16).to_be_bytes());
            ip[4..6].copy_from_slice(&self.id.to_be_bytes());
            let sum = !ones_sum(&ip);
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
            ip
        };
        let pseudo = pseudo_sum(&packet, tcp.len());
        tcp[16..18].copy_from_slice(&pseudo.to_be_bytes());
        packet.extend(tcp);
        let size = if self.payload.len() > usize::from(self.size) { self.size } else { 0 };
        let vnet = VnetHeader::tcp(packet[0] >> 4, self.transport() as u16, header as u16, size);
        [&vnet.0[..], &packet].concat()
    }
}

/// The ones' complement sum by its definition, a word at a time.
fn ones_sum(bytes: &[u8]) -> u16 {
    bytes.chunks(2).fold(0, |sum: u16, word| {
        let word = u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]);
        let (sum, carry) = sum.overflowing_add(word);
        sum + u16::from(carry)
    })
}

fn pseudo_sum(ip: &[u8], length: usize) -> u16 {
    let addresses = if ip[0] >> 4 == 4 { &ip[12..20] } else { &ip[8..40] };
    ones_sum(&[addresses, &[0, 6], &(length as u16).to_be_bytes()].concat())
}

/// The packets that the kernel would put on a wire; checks lengths and checksums on the way. Identification, which
/// merging need not keep, is zeroed.
fn wire(bytes: &[u8]) -> Vec<Vec<u8>> {
    let vnet = VnetHeader(*bytes.first_chunk().unwrap());
    let packet = &bytes[VNET_HEADER..];
    let transport = usize::from(vnet.checksum_start());
    let header = transport + usize::from(packet[transport + 12] >> 4) * 4;
    let length_of = |packet: &[u8]| {
        let at = if packet[0] >> 4 == 4 { 2 } else { 4 };
        usize::from(u16::from_be_bytes([packet[at], packet[at + 1]])) + if at == 2 { 0 } else { 40 }
    };
    assert!(vnet.needs_checksum());
    assert_eq!(length_of(packet), packet.len());
    assert_eq!(packet[transport + 16..transport + 18], pseudo_sum(packet, packet.len() - transport).to_be_bytes());
    if packet[0] >> 4 == 4 {
        assert_eq!(ones_sum(&packet[..20]), 0xFFFF, "the IP checksum is right");
    }
    let payload = &packet[header..];
    let size = if vnet.segment_size() > 0 { usize::from(vnet.segment_size()) } else { payload.len().max(1) };
    if vnet.segment_size() > 0 {
        assert_eq!(usize::from(vnet.field(2)), header);
        assert!(payload.len() > size);
    }
    let count = payload.len().div_ceil(size).max(1);
    let segment = |index: usize| {
        let part = payload.chunks(size).nth(index).unwrap_or_default();
        let mut segment = [&packet[..header], part].concat();
        let tcp_length = segment.len() - transport;
        if segment[0] >> 4 == 4 {
            let total = segment.len() as u16;
            segment[2..4].copy_from_slice(&total.to_be_bytes());
            segment[4..6].fill(0);
            segment[10..12].fill(0);
            let sum = !ones_sum(&segment[..20]);
            segment[10..12].copy_from_slice(&sum.to_be_bytes());
        } else {
            segment[4..6].copy_from_slice(&(tcp_length as u16).to_be_bytes());
        }
        let sequence = u32::from_be_bytes(packet[transport + 4..transport + 8].try_into().unwrap());
        let sequence = sequence.wrapping_add((index * size) as u32);
        segment[transport + 4..transport + 8].copy_from_slice(&sequence.to_be_bytes());
        if index + 1 < count {
            segment[transport + 13] &= !(FIN | PSH);
        }
        if index > 0 {
            segment[transport + 13] &= !CWR;
        }
        let pseudo = pseudo_sum(&segment, tcp_length);
        segment[transport + 16..transport + 18].copy_from_slice(&pseudo.to_be_bytes());
        let sum = !ones_sum(&segment[transport..]);
        segment[transport + 16..transport + 18].copy_from_slice(&sum.to_be_bytes());
        segment
    };
    (0..count).map(segment).collect()
}

/// What a router that marks does to a packet.
fn marked(mut packet: Vec<u8>) -> Vec<u8> {
    if packet[0] >> 4 == 6 {
        packet[1] |= 0x30;
    } else {
        packet[1] |= 3;
        packet[10..12].fill(0);
        let sum = !ones_sum(&packet[..20]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
    }
    packet
}

#[derive(Default)]
struct Written(Vec<Vec<u8>>);

impl Outlet for Written {
    fn write(&mut self, parts: &[IoSlice<'_>]) {
        self.0.push(parts.iter().flat_map(|part| part.iter().copied()).collect());
    }
}

/// A store that packets go into, and what has come out.
#[derive(Default)]
struct Bench {
    store: Store,
    egress: Egress,
    written: Written,
}

impl Bench {
    /// Takes a packet as it was read; ids of its segments, whose sizes are checked against `sizes`.
    fn accept(&mut self, bytes: &[u8]) -> Vec<(u32, u32)> {
        self.store.read_buffer()[..bytes.len()].copy_from_slice(bytes);
        let Some(arrival) = self.store.accept(bytes.len()) else { return vec![] };
        let segments = (0..arrival.segments).map(|index| self.store.segment(&arrival, index));
        segments.map(|(id, size, _)| (id, size)).collect()
    }

    fn deliver(&mut self, id: u32, mark: bool) {
        let segment = self.store.take(id);
        let mark = mark || self.store.headers(segment).marked;
        self.egress.push(&mut self.store, segment, mark, &mut self.written);
    }

    fn flush(&mut self) -> Vec<Vec<u8>> {
        self.egress.flush(&mut self.store, &mut self.written);
        std::mem::take(&mut self.written.0)
    }
}

/// What comes out when everything that went in is due at once.
fn through(packets: &[Tcp]) -> Vec<Vec<u8>> {
    let mut bench = Bench::default();
    for packet in packets {
        for (id, _) in bench.accept(&packet.bytes()) {
            bench.deliver(id, false);
        }
    }
    let written = bench.flush();
    assert_eq!(bench.store.len(), 0);
    let sent: Vec<_> = packets.iter().flat_map(|packet| wire(&packet.bytes())).collect();
    let received: Vec<_> = written.iter().flat_map(|bytes| wire(bytes)).collect();
    assert!(sent == received, "the same packets come out");
    written
}

#[test]
fn a_super_packet_that_is_due_at_once_is_written_at_once() {
    assert_eq!(through(&[Tcp::data(44, 0)]).len(), 1);
    assert_eq!(through(&[Tcp::data(3, 100)]).len(), 1);
    assert_eq!(through(&[Tcp { v6: true, ..Tcp::data(3, 100) }]).len(), 1);
}

#[test]
fn segments_are_as_large_as_on_the_wire() {
    let mut bench = Bench::default();
    let sizes = |segments: Vec<(u32, u32)>| -> Vec<u32> { segments.iter().map(|segment| segment.1).collect() };
    assert_eq!(sizes(bench.accept(&Tcp::data(2, 100).bytes())), [1500, 1500, 152]);
    assert_eq!(sizes(bench.accept(&Tcp::data(0, 0).bytes())), [52]);
}

#[test]
fn successive_packets_are_merged_and_gaps_are_not() {
    let first = Tcp::data(2, 0);
    let next = |sequence| Tcp { sequence, id: 9, ..Tcp::data(2, 0) };
    assert_eq!(through(&[first.clone(), next(1000 + 2896)]).len(), 1);
    assert_eq!(through(&[first.clone(), next(1000 + 2897)]).len(), 2);
    // A short segment, PSH or FIN ends a run; other flags are not merged at all.
    let follows = |packet: Tcp| {
        let length = packet.payload.len() as u32;
        through(&[packet, next(1000 + length)]).len()
    };
    assert_eq!(follows(Tcp::data(1, 5)), 2);
    assert_eq!(follows(Tcp { flags: ACK | PSH, ..Tcp::data(2, 0) }), 2);
    assert_eq!(through(&[first.clone(), Tcp { flags: ACK | FIN, ..next(1000 + 2896) }]).len(), 1);
    assert_eq!(through(&[first.clone(), Tcp { flags: ACK | SYN, ..next(1000 + 2896) }]).len(), 3);
    // CWR is on the first segment alone, which the kernel's offload keeps apart.
    assert_eq!(through(&[Tcp { flags: ACK | CWR, ..Tcp::data(4, 0) }]).len(), 2);
}

#[test]
fn different_options_addresses_and_ecn_fields_are_not_merged() {
    let first = Tcp::data(2, 0);
    let next = Tcp { sequence: 1000 + 2896, ..first.clone() };
    let mut options = first.options.clone();
    options[7] += 1;
    assert_eq!(through(&[first.clone(), Tcp { options, ..next.clone() }]).len(), 2);
    assert_eq!(through(&[first.clone(), Tcp { ecn: 0, ..next.clone() }]).len(), 2);
    assert_eq!(through(&[first.clone(), Tcp { ecn: 3, ..next.clone() }]).len(), 2);
    assert_eq!(through(&[first.clone(), Tcp { port: 9, ..next.clone() }]).len(), 2);
    assert_eq!(through(&[first, Tcp { v6: true, ..next }]).len(), 2);
}

#[test]
fn runs_do_not_outgrow_what_a_length_can_say() {
    let packets: Vec<_> = (0..9).map(|i| Tcp { sequence: 1000 + i * 20 * 1448, ..Tcp::data(20, 0) }).collect();
    let written = through(&packets);
    assert!(written.len() >= 5 && written.iter().all(|bytes| bytes.len() < 65_536), "{}", written.len());
}

#[test]
fn other_packets_pass_as_they_are() {
    let mut bench = Bench::default();
    let udp =
        [0x45, 1, 0, 30, 0, 0, 0, 0, 64, 17, 0x66, 0x1c, 10, 77, 0, 1, 10, 78, 0, 1, 1, 2, 3, 4, 0, 10, 9, 9, 5, 5];
    let mut vnet = VnetHeader::default();
    vnet.0[0] = 1;
    vnet.set_field(6, 20);
    vnet.set_field(8, 6);
    for (ip, mark) in [(&udp[..], false), (&udp[..], true), (&[0x60; 48][..], false), (&[0x45; 20][..], false)] {
        let bytes = [&vnet.0[..], ip].concat();
        let [(id, size)] = bench.accept(&bytes)[..] else { panic!("one packet is one packet") };
        assert_eq!(size as usize, ip.len());
        bench.deliver(id, mark);
        let expected = if mark { [&vnet.0[..], &marked(ip.to_vec())].concat() } else { bytes };
        assert_eq!(bench.flush(), [expected]);
    }
    for nothing in [&[][..], &[0; 9], &[0; 10], &[0; 60], &[0x45; 29]] {
        assert_eq!(bench.accept(nothing), []);
    }
    assert_eq!(bench.store.len(), 0);
}

#[test]
fn headers_that_cannot_be_marked_are_none() {
    let mut bench = Bench::default();
    // A header of 60 bytes in a packet of 20, and one of 0 and of 16.
    for first in [0x4F, 0x40, 0x44] {
        let mut packet = [0; VNET_HEADER + 20];
        (packet[VNET_HEADER], packet[VNET_HEADER + 1]) = (first, 2);
        assert_eq!(bench.accept(&packet), [], "{first:#x}");
    }
    // A TCP header that begins within the IP header is not understood, and the packet passes as it is.
    let mut within = Tcp::data(2, 0).bytes();
    within[VNET_HEADER + 16] = 0x50;
    within[6..8].copy_from_slice(&4_u16.to_ne_bytes());
    let [(id, _)] = bench.accept(&within)[..] else { panic!("it is not split") };
    bench.deliver(id, true);
    assert_eq!(bench.flush().len(), 1);
    // Nor is one within the options of IP: with them the header is longer than what is taken for headers.
    let mut options = Tcp::data(0, 100).bytes();
    options[VNET_HEADER] = 0x4F;
    options[VNET_HEADER + 32] = 0x50;
    let [(id, _)] = bench.accept(&options)[..] else { panic!("it is not split") };
    bench.deliver(id, true);
    assert_eq!(bench.flush().len(), 1);
    let mut whole = [0; VNET_HEADER + 60];
    (whole[VNET_HEADER], whole[VNET_HEADER + 1]) = (0x4F, 2);
    let [(id, 60)] = bench.accept(&whole)[..] else { panic!("one packet is one packet") };
    bench.deliver(id, true);
    assert_eq!(bench.flush().len(), 1);
}

/// A stream of packets of one flow, mostly in sequence.
fn stream() -> impl Strategy<Value = Vec<Tcp>> {
    let flags = prop_oneof![6 => Just(ACK), 1 => Just(ACK | PSH), 1 => Just(ACK | CWR), 1 => Just(ACK | FIN)];
    let size = prop_oneof![Just(1448_u16), 536_u16..1460];
    let packet = (0_usize..4000, size, flags, 0_u8..4, 0_u32..8, 0_usize..3);
    (any::<bool>(), any::<u16>(), any::<u32>(), prop::collection::vec(packet, 1..12)).prop_map(
        |(v6, port, start, packets)| {
            let mut sequence = start;
            let build = |(length, size, flags, ecn, gap, options): (usize, u16, u8, u8, u32, usize)| {
                sequence = sequence.wrapping_add(if gap == 0 { 100 } else { 0 });
                let payload: Vec<u8> = (0..length).map(|i| (i * 31 % 241) as u8).collect();
                let options = vec![1; options * 4];
                let packet = Tcp { v6, port, id: 1, sequence, flags, ecn, options, payload, size };
                sequence = sequence.wrapping_add(length as u32);
                packet
            };
            packets.into_iter().map(build).collect()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Whatever is lost, marked, and due when: each flow gets the segments that are left, in order, byte for byte.
    #[test]
    fn flows_get_their_segments(
        streams in prop::collection::vec(stream(), 1..4),
        fates in prop::collection::vec((0_u8..8, 0_u8..4, 0_u8..10), 1..200),
    ) {
        let mut bench = Bench::default();
        let mut expected = Vec::new();
        let mut received = Vec::new();
        let mut fates = fates.iter().cycle();
        let most = streams.iter().map(Vec::len).max().unwrap();
        // The flows take turns.
        for turn in 0..most {
            for packet in streams.iter().filter_map(|stream| stream.get(turn)) {
                let bytes = packet.bytes();
                let segments = bench.accept(&bytes);
                let wires = wire(&bytes);
                prop_assert_eq!(segments.len(), wires.len());
                for ((id, size), wire) in segments.into_iter().zip(wires) {
                    prop_assert_eq!(size as usize, wire.len());
                    let (lost, mark, flush) = fates.next().unwrap();
                    if *lost == 0 {
                        bench.store.discard(id);
                        continue;
                    }
                    let mark = *mark == 0 && packet.ecn != 0;
                    bench.deliver(id, mark);
                    expected.push(if mark { marked(wire) } else { wire });
                    if *flush == 0 {
                        received.extend(bench.flush());
                    }
                }
            }
        }
        received.extend(bench.flush());
        prop_assert_eq!(bench.store.len(), 0, "all memory is free again");
        let mut received: Vec<_> = received.iter().flat_map(|bytes| wire(bytes)).collect();
        // Order holds within a flow only: the version and the port tell flows apart.
        let flow = |packet: &Vec<u8>| {
            let transport = if packet[0] >> 4 == 4 { 20 } else { 40 };
            (transport, packet[transport + 2], packet[transport + 3])
        };
        expected.sort_by_key(flow);
        received.sort_by_key(flow);
        prop_assert!(expected == received);
    }

    #[test]
    fn nonsense_does_no_harm(
        mut bytes in prop::collection::vec(any::<u8>(), 0..400),
        version in prop_oneof![Just(0x45_u8), Just(0x60), any::<u8>()],
        kind in prop_oneof![Just((1_u8, 1_u8)), Just((1, 4)), Just((0, 0)), any::<(u8, u8)>()],
        mark in any::<bool>(),
    ) {
        if bytes.len() > VNET_HEADER {
            bytes[VNET_HEADER] = version;
            (bytes[0], bytes[1]) = kind;
        }
        let mut bench = Bench::default();
        for (id, _) in bench.accept(&bytes) {
            bench.deliver(id, mark);
        }
        bench.flush();
        prop_assert_eq!(bench.store.len(), 0);
    }
}
