//! Data that tells whether one byte is missing or in the wrong place, while something happens to its connection.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use astraea_emu::{Emulator, receiver_address, sender_address};
use astraea_kernel::intf::Counters;

use super::{link, socket};

pub(crate) const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

pub(crate) fn fallbacks(counters: &Counters, reason: u32) -> u64 {
    counters.fallbacks[reason as usize]
}

/// Waits until something holds; a machine that is busy may take its time.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..400 {
        if holds() {
            return;
        }
        std::thread::sleep(ms(25));
    }
    panic!("{what}: not within ten seconds");
}

/// Bytes that tell whether one is missing or in the wrong place.
pub(crate) fn pattern(from: u64, length: usize) -> Vec<u8> {
    (from..from + length as u64).map(|index| (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// Sends a pattern over a connection while `disturb` does what it does; the receiver must get all of it.
pub(crate) fn transfer(
    connect: impl FnOnce() -> TcpStream,
    listener: TcpListener,
    length: u64,
    disturb: impl FnOnce(),
) {
    assert_eq!(transfer_while(connect, listener, move |place| length - place, disturb), length);
}

/// The same for as many bytes more as `left` says, by how many were sent, until that is none; how many there were.
pub(crate) fn transfer_while(
    connect: impl FnOnce() -> TcpStream,
    listener: TcpListener,
    mut left: impl FnMut(u64) -> u64 + Send + 'static,
    disturb: impl FnOnce(),
) -> u64 {
    let receiver = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut place, mut buffer) = (0, vec![0; 1 << 16]);
        loop {
            let read = stream.read(&mut buffer).expect("the connection was not reset");
            if read == 0 {
                return place;
            }
            assert!(buffer[..read] == pattern(place, read), "wrong data after {place} bytes");
            place += read as u64;
        }
    });
    let mut stream = connect();
    let sender = std::thread::spawn(move || {
        let mut place = 0;
        while let length @ 1.. = left(place) {
            let data = pattern(place, length.min(1 << 16) as usize);
            stream.write_all(&data).expect("the connection was not reset");
            place += data.len() as u64;
        }
        place
    });
    disturb();
    let sent = sender.join().unwrap();
    assert_eq!(receiver.join().unwrap(), sent);
    sent
}

/// A connection over the only route of a link that carries a pattern.
pub(crate) fn over(emulator: &Emulator, name: &str, length: u64, disturb: impl FnOnce()) {
    let to = SocketAddr::from((receiver_address(0), 5001));
    let from = SocketAddr::from((sender_address(0), 0));
    let listener = emulator.receivers().run(|| TcpListener::bind(to)).unwrap();
    let unconnected = emulator.senders().run(|| socket(from, name)).unwrap();
    transfer(|| unconnected.connect(Some(from), to).unwrap(), listener, length, disturb);
}

/// The same over a link of 40 Mbit/s and 20 ms.
pub(crate) fn over_a_link(name: &str, length: u64, disturb: impl FnOnce()) {
    over(&link(4e7, ms(10), 150_000, 1), name, length, disturb);
}
