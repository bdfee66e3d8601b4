//! Bytes from anywhere: nothing panics, nothing grows without bound, and whatever is read can be written again.
//!
//! A few thousand inputs run with the tests, beginning with those of `__fuzz__`. More of them:
//! `BOLERO_RANDOM_ITERATIONS=10000000 cargo test --release -p astraea-serve --test fuzz`.

mod common;

use std::os::unix::net::UnixStream;

use astraea_serve::service::{Engine, Limits, Peer, Route};
use astraea_serve::wire::{Codec, Frame, LONGEST, Message, WireError, length};
use astraea_serve::{HISTORY, Key, Report};
use bolero::check;
use common::{ask, loaded, report};

/// A message of which some bytes are then the input's: most random bytes would fail at the magic or the checksum.
/// The first byte of the input says which message, whether there is a key, and whether the checksum is made good again.
fn mutated(input: &[u8]) -> (Vec<u8>, bool) {
    let (&how, rest) = input.split_first().unwrap_or((&0, &[]));
    let reports: Vec<Report> = (0..=usize::from(how >> 5) % HISTORY).map(|period| report(period as f64)).collect();
    let message = match how & 3 {
        0 => Message::Hello { token: 1 },
        1 => Message::End { flow: 1 },
        _ => ask(1, 9, &reports),
    };
    let (keyed, good) = (how & 4 != 0, how & 8 != 0);
    let mut bytes = Vec::new();
    codec(keyed).write(&Frame { session: 0, number: 1, message }, &mut bytes);
    if how & 16 != 0 {
        return (rest.to_vec(), keyed);
    }
    for change in rest.chunks_exact(3) {
        let at = usize::from(u16::from_le_bytes([change[0], change[1]])) % (bytes.len() + 8);
        match bytes.get_mut(at) {
            Some(byte) => *byte = change[2],
            None if at % 2 == 0 => bytes.push(change[2]),
            None => drop(bytes.pop()),
        }
    }
    if good && bytes.len() >= 32 && !keyed {
        bytes[8..12].fill(0);
        let sum = crc32fast::hash(&bytes);
        bytes[8..12].copy_from_slice(&sum.to_le_bytes());
    }
    (bytes, keyed)
}

fn codec(keyed: bool) -> Codec {
    Codec::new(keyed.then(|| Key::new(&[1; 32])))
}

#[test]
fn decoder() {
    check!().for_each(|input: &[u8]| {
        let (bytes, keyed) = mutated(input);
        if let Ok(Some(length)) = length(&bytes) {
            assert!(length <= LONGEST);
        }
        match codec(keyed).read(&bytes) {
            Err(error) => assert!(WireError::ALL.contains(&error)),
            Ok(frame) => {
                let mut again = Vec::new();
                codec(keyed).write(&frame, &mut again);
                assert_eq!(again, bytes, "what is read is written as it was");
            }
        }
    });
}

/// What an engine holds after any messages is bounded, and a peer that behaves is still served.
#[test]
fn engine() {
    let limits = Limits { flows: 8, flows_per_peer: 4, sessions: 4, waiting: 4, ..Limits::default() };
    let route = Route { peer: "127.0.0.1:1".parse().unwrap(), local: None };
    let peers = [Peer::Stream(1), Peer::Stream(2), Peer::Datagram(0, route)];
    check!().for_each(|input: &[u8]| {
        let mut engine = Engine::new(loaded(1), limits, None);
        let mut sessions = [0; 3];
        for (index, part) in input.chunks(24).enumerate() {
            let peer = peers[index % peers.len()];
            let (mut bytes, _) = mutated(part);
            // With a session that there is, most of them.
            if index % 4 != 0 && bytes.len() >= 32 {
                bytes[16..24].copy_from_slice(&u64::to_le_bytes(sessions[index % peers.len()]));
                bytes[24..32].copy_from_slice(&u64::to_le_bytes(index as u64 / 2));
                bytes[8..12].fill(0);
                let sum = crc32fast::hash(&bytes);
                bytes[8..12].copy_from_slice(&sum.to_le_bytes());
            }
            let _ = engine.receive(peer, &bytes, index as u32);
            if index % 5 == 4 {
                engine.decide();
                engine.sweep(index as u32);
            }
            engine.replies(|to, bytes| {
                let frame = Codec::default().read(bytes).expect("answers can be read");
                if let Message::Welcome { .. } = frame.message {
                    sessions[peers.iter().position(|peer| *peer == to).expect("a peer")] = frame.session;
                }
            });
            assert!(engine.flows() <= 8 && engine.sessions() <= 4 && engine.waiting() <= 4);
        }
    });
}

/// A client that hears anything at all goes on by its rule, or ends the connection.
#[test]
fn client() {
    use std::io::Write;
    use std::time::Duration;

    let directory = common::Directory::new();
    let listener = std::os::unix::net::UnixListener::bind(directory.file("serve.sock")).unwrap();
    listener.set_nonblocking(true).unwrap();
    let config = astraea_policy::AgentConfig::new(astraea_policy::Form::Guided);
    let mut streams: Vec<UnixStream> = Vec::new();
    let mut client = astraea_serve::Client::new(directory.socket(), None, Duration::from_micros(1), config);
    check!().for_each(|input: &[u8]| {
        streams.extend(listener.accept().map(|(stream, _)| stream));
        if let Some(stream) = streams.last_mut() {
            let _ = stream.write_all(&mutated(input).0);
        }
        let decision = client.decide(1, &report(1.0));
        assert_eq!(decision.origin, astraea_serve::Origin::Rule);
        streams.drain(..streams.len().saturating_sub(1));
    });
}
