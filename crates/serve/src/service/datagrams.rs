//! A UDP socket: requests in and answers out, many with one system call.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::socket::{setsockopt, sockopt};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};

use super::sessions::Route;
use super::share::{Place, Shares};
use crate::wire::LONGEST;

/// Bytes of requests that the system keeps while the service is busy, if it may.
const RECEIVE_BUFFER: usize = 4 << 20;

/// Datagrams after which a turn reads no further. More come only in floods, of which most is not worth more than reading.
const MOST: u64 = 2048;

/// Room for what one place of a batch can hold: the system may put datagrams of one peer together.
const ROOM: usize = 1 << 16;

/// A socket whose peers each have their share of a turn.
#[derive(Debug)]
pub(super) struct Datagrams {
    socket: UdpSocket,
    state: UdpSocketState,
    shares: Shares,
    input: Vec<u8>,
    message: Vec<u8>,
    output: Output,
}

/// Answers of equal length on one way back, which the system takes as one.
#[derive(Debug, Default)]
struct Output {
    to: Option<Route>,
    length: usize,
    bytes: Vec<u8>,
}

/// What a turn has read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Received {
    /// Messages handed over.
    pub(super) messages: u64,
    /// Messages that there was no room for.
    pub(super) flooded: u64,
    /// Whether something is left.
    pub(super) more: bool,
}

impl Datagrams {
    pub(super) fn new(socket: UdpSocket) -> io::Result<Self> {
        // A wish: the system has its own bound.
        let _ = setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER);
        let state = UdpSocketState::new((&socket).into())?;
        let (shares, output) = (Shares::default(), Output::default());
        Ok(Self { socket, state, shares, input: vec![0; BATCH_SIZE * ROOM], message: Vec::new(), output })
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Whether something waits that no longer makes the socket ready.
    pub(super) fn is_behind(&self) -> bool {
        self.shares.is_behind()
    }

    /// A turn: hands over what each peer may have, and reads on for the others' sake.
    pub(super) fn receive(&mut self, mut take: impl FnMut(Route, &[u8])) -> Received {
        let mut received =
            Received { messages: self.shares.begin(&mut self.message, &mut take) as u64, ..Received::default() };
        let mut meta = [RecvMeta::default(); BATCH_SIZE];
        let mut places: Vec<_> = self.input.chunks_mut(ROOM).map(IoSliceMut::new).collect();
        let mut read = 0;
        received.more = loop {
            if read >= MOST {
                break true;
            }
            let filled = match self.state.recv((&self.socket).into(), &mut places, &mut meta) {
                Ok(filled) => filled,
                // Nothing left, or the report that some earlier answer could not be delivered.
                Err(error) => break error.kind() != ErrorKind::WouldBlock,
            };
            for (meta, place) in meta[..filled].iter().zip(&places) {
                let from = Route { peer: meta.addr, local: meta.dst_ip };
                let mut rest = &place[..meta.len];
                loop {
                    let (datagram, others) = rest.split_at(rest.len().min(meta.stride));
                    // Longer than any message is as good as one byte longer.
                    let datagram = &datagram[..datagram.len().min(LONGEST + 1)];
                    read += 1;
                    match self.shares.place(from, datagram) {
                        Place::Now => {
                            received.messages += 1;
                            take(from, datagram);
                        }
                        Place::Later => {}
                        Place::Nowhere => received.flooded += 1,
                    }
                    rest = others;
                    if rest.is_empty() {
                        break;
                    }
                }
            }
            if filled < BATCH_SIZE {
                break false;
            }
        };
        received.more |= self.shares.is_behind();
        received
    }

    /// Adds an answer to those to be sent. Returns how many the system had no room for.
    pub(super) fn push(&mut self, to: Route, answer: &[u8]) -> u64 {
        let Output { to: before, length, bytes } = &self.output;
        let joins = *before == Some(to)
            && *length == answer.len()
            && bytes.len() + answer.len() <= ROOM / 2
            && bytes.len() / length < self.state.max_gso_segments();
        let lost = if joins { 0 } else { self.flush() };
        (self.output.to, self.output.length) = (Some(to), answer.len());
        self.output.bytes.extend(answer);
        lost
    }

    /// Sends what has been added. Returns how many answers the system had no room for.
    pub(super) fn flush(&mut self) -> u64 {
        let Output { to: Some(to), length, bytes } = &self.output else { return 0 };
        let send = |contents: &[u8], segment_size| {
            let transmit = Transmit { destination: to.peer, ecn: None, contents, segment_size, src_ip: to.local };
            self.state.try_send((&self.socket).into(), &transmit)
        };
        let (count, together) = (bytes.len().div_ceil(*length), self.state.max_gso_segments());
        let lost = match send(bytes, (count > 1).then_some(*length)) {
            Ok(()) => 0,
            Err(error) if count == 1 || error.kind() == ErrorKind::WouldBlock => count,
            // Some devices take them only one by one.
            Err(_) => bytes.chunks(*length).filter(|answer| send(answer, None).is_err()).count(),
        };
        // From an address of many hosts, or one that is no longer this one's, nothing can be sent in any way: no reason to send all
        // others one by one from now on.
        if lost == count
            && self.state.max_gso_segments() < together
            && let Ok(fresh) = UdpSocketState::new((&self.socket).into())
        {
            self.state = fresh;
        }
        self.output.to = None;
        self.output.bytes.clear();
        lost as u64
    }
}

impl AsFd for Datagrams {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn socket() -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        socket
    }

    fn service() -> (Datagrams, SocketAddr) {
        let datagrams = Datagrams::new(socket()).unwrap();
        let address = datagrams.address().unwrap();
        (datagrams, address)
    }

    /// What turns hand over until there are so many.
    fn taken(datagrams: &mut Datagrams, count: usize) -> Vec<(Route, Vec<u8>)> {
        let mut taken = Vec::new();
        while taken.len() < count {
            datagrams.receive(|from, bytes| taken.push((from, bytes.to_vec())));
        }
        taken
    }

    #[test]
    fn datagrams_that_the_system_puts_together_are_taken_apart() {
        let ((mut datagrams, to), peer) = (service(), socket());
        let state = UdpSocketState::new((&peer).into()).unwrap();
        let sent: Vec<u8> = (0..10 * 100 + 40).map(|byte| (byte % 251) as u8).collect();
        if state.max_gso_segments() > 10 {
            let together =
                Transmit { destination: to, ecn: None, contents: &sent, segment_size: Some(100), src_ip: None };
            state.try_send((&peer).into(), &together).unwrap();
        } else {
            for datagram in sent.chunks(100) {
                peer.send_to(datagram, to).unwrap();
            }
        }
        let from = Route { peer: peer.local_addr().unwrap(), local: Some(to.ip()) };
        let expected: Vec<_> = sent.chunks(100).map(|datagram| (from, datagram.to_vec())).collect();
        assert_eq!(taken(&mut datagrams, 11), expected);
    }

    #[test]
    fn datagrams_of_any_length_are_handed_over() {
        let ((mut datagrams, to), peer) = (service(), socket());
        for length in [0, 1, LONGEST, LONGEST + 1, LONGEST + 2, 60_000, 3] {
            peer.send_to(&vec![7; length], to).unwrap();
        }
        let lengths: Vec<_> = taken(&mut datagrams, 7).iter().map(|(_, bytes)| bytes.len()).collect();
        assert_eq!(lengths, [0, 1, LONGEST, LONGEST + 1, LONGEST + 1, LONGEST + 1, 3]);
    }

    #[test]
    fn a_turn_reads_more_than_a_share_and_ends() {
        let ((mut datagrams, to), flood, quiet) = (service(), socket(), socket());
        for _ in 0..3 * BATCH_SIZE + 200 {
            flood.send_to(&[1; 50], to).unwrap();
        }
        quiet.send_to(&[2; 50], to).unwrap();
        let (mut of_flood, mut of_quiet) = (0, 0);
        let received = datagrams.receive(|_, bytes| if bytes[0] == 1 { of_flood += 1 } else { of_quiet += 1 });
        assert_eq!((of_flood, of_quiet), (super::super::share::SHARE, 1), "nobody is behind the flood");
        assert!(received.more && datagrams.is_behind());
        assert!(!datagrams.receive(|_, _| ()).more, "the rest of a short flood is one more share");
    }

    #[test]
    fn every_answer_reaches_its_peer_whole_and_in_order() {
        let ((mut datagrams, _), one, two) = (service(), socket(), socket());
        let mut expected = [Vec::new(), Vec::new()];
        let mut lost = 0;
        for number in 0_u32..150 {
            // Long runs of one peer, some of one answer, and answers of two lengths.
            let to = usize::from(number % 70 == 69);
            let answer = number.to_le_bytes().repeat(if number % 50 < 45 { 20 } else { 12 });
            let route = Route { peer: [&one, &two][to].local_addr().unwrap(), local: None };
            lost += datagrams.push(route, &answer);
            expected[to].push(answer);
        }
        lost += datagrams.flush();
        assert_eq!((lost, datagrams.flush()), (0, 0));
        for (socket, answers) in [one, two].iter().zip(expected) {
            for answer in answers {
                let mut bytes = [0; 200];
                let length = socket.recv(&mut bytes).unwrap();
                assert_eq!(bytes[..length], answer);
            }
        }
    }

    #[test]
    fn answers_come_from_where_requests_were_sent_to() {
        for any in ["0.0.0.0:0", "[::]:0"] {
            // Not every host has IPv6.
            let Ok(bound) = UdpSocket::bind(any) else { continue };
            let (mut datagrams, peer) = (Datagrams::new(bound).unwrap(), socket());
            let port = datagrams.address().unwrap().port();
            let addresses = [2, 2, 3, 3, 1, 2].map(|last| SocketAddr::from(([127, 0, 0, last], port)));
            for address in addresses {
                peer.send_to(&[7; 50], address).unwrap();
            }
            for (route, bytes) in taken(&mut datagrams, addresses.len()) {
                assert_eq!(datagrams.push(route, &bytes), 0);
            }
            assert_eq!(datagrams.flush(), 0);
            assert_eq!(addresses.map(|_| peer.recv_from(&mut [0; 50]).unwrap()), addresses.map(|from| (50, from)));
        }
    }

    #[test]
    fn answers_that_cannot_be_sent_hold_up_nobody() {
        let (mut datagrams, peer) = (Datagrams::new(UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap(), socket());
        let together = datagrams.state.max_gso_segments();
        let route = |last| Route { peer: peer.local_addr().unwrap(), local: Some([224, 0, 0, last].into()) };
        let lost: u64 = [1, 2, 2, 2].map(|last| datagrams.push(route(last), &[7; 50])).iter().sum();
        assert_eq!(lost + datagrams.flush(), 4);
        assert_eq!(datagrams.state.max_gso_segments(), together);
    }
}
