use astraea_policy::{Form, Signals};
use proptest::prelude::*;

use super::*;
use crate::{HISTORY, Key, Report};

fn report(seed: f64) -> Report {
    let signals = Signals { rate: seed, queue: 0.01, ahead: 0.02, loss: 0.1, burst: 0.0, spread: 1e-4 };
    Report {
        signals,
        throughput: 1e6,
        throughput_max: 2e6,
        latency: 0.03,
        latency_min: 0.02,
        loss: 0.0,
        in_flight: 3.0,
        window: 4.0,
        pacing_rate: 5.0,
        srtt: 0.025,
    }
}

fn key(byte: u8) -> Key {
    Key::new(&[byte; 32])
}

fn written(codec: &Codec, message: Message<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec.write(&Frame { session: 5, number: 6, message }, &mut bytes);
    bytes
}

/// One of each kind.
fn each(reports: &[Report]) -> [Message<'_>; 6] {
    let terms = Terms { form: Form::Guided, definition: 1, alpha: 0.1, period: 30_000_000, version: 2 };
    [
        Message::Hello { token: 9 },
        Message::Welcome { token: 9, terms },
        Message::Ask(Ask { flow: 7, period: 8, reports: Reports::Given(reports) }),
        Message::Answer(Answer { flow: 7, period: 8, action: -0.5, window: 1e4, version: 3 }),
        Message::Refuse(Refusal { flow: 7, period: 8, reason: Reason::Full }),
        Message::End { flow: 7 },
    ]
}

#[test]
fn what_is_written_is_read() {
    let reports = [report(1.0), report(2.0)];
    for codec in [Codec::default(), Codec::new(Some(key(1)))] {
        for message in each(&reports) {
            let bytes = written(&codec, message);
            assert_eq!(length(&bytes), Ok(Some(bytes.len())));
            let frame = codec.read(&bytes).unwrap();
            assert_eq!((frame.session, frame.number), (5, 6));
            let Message::Ask(ask) = frame.message else {
                assert_eq!(frame.message, message);
                continue;
            };
            assert_eq!((ask.flow, ask.period, ask.reports.len()), (7, 8, 2));
            assert_eq!(
                [ask.reports.get(0), ask.reports.get(1), ask.reports.get(2)],
                [Some(reports[0]), Some(reports[1]), None]
            );
        }
    }
    let most = [report(1.0); HISTORY];
    assert_eq!(written(&Codec::new(Some(key(1))), each(&most)[2]).len(), LONGEST);
}

/// The layout of `docs/protocol.md`, field by field: a change of it is a new version of the protocol.
#[test]
fn the_layout_is_pinned() {
    let bytes = written(&Codec::default(), Message::End { flow: 0x0807_0605_0403_0201 });
    let expected = b"ASTR\x01\x06\x28\0\x7e\xbd\xa4\xbf\0\0\0\0\x05\0\0\0\0\0\0\0\x06\0\0\0\0\0\0\0\x01\x02\x03\x04\x05\x06\x07\x08";
    assert_eq!(bytes, expected);
}

#[test]
fn every_change_is_noticed() {
    let reports = [report(1.0)];
    for codec in [Codec::default(), Codec::new(Some(key(1)))] {
        for message in each(&reports) {
            let bytes = written(&codec, message);
            for at in 0..bytes.len() {
                for bit in 0..8 {
                    let mut changed = bytes.clone();
                    changed[at] ^= 1 << bit;
                    assert!(codec.read(&changed).is_err(), "bit {bit} of byte {at} of {message:?}");
                }
            }
            for end in 0..bytes.len() {
                assert!(codec.read(&bytes[..end]).is_err());
            }
            assert_eq!(codec.read(&[&bytes[..], b"x"].concat()), Err(WireError::Length));
        }
    }
}

#[test]
fn wrong_keys_and_missing_tags_are_refused() {
    let (plain, one, two) = (Codec::default(), Codec::new(Some(key(1))), Codec::new(Some(key(2))));
    let hello = Message::Hello { token: 9 };
    assert_eq!(one.read(&written(&two, hello)), Err(WireError::Tag));
    assert_eq!(one.read(&written(&plain, hello)), Err(WireError::Tag));
    assert_eq!(plain.read(&written(&one, hello)), Err(WireError::Tag));
}

/// A message with other bytes from `at` on and the checksum that goes with it.
fn with(message: Message<'_>, at: usize, other: &[u8]) -> Vec<u8> {
    let mut bytes = written(&Codec::default(), message);
    bytes[at..at + other.len()].copy_from_slice(other);
    let sum = codec::checksum(&bytes);
    bytes[8..12].copy_from_slice(&sum.to_le_bytes());
    bytes
}

#[test]
fn each_mistake_has_its_name() {
    let reports = [report(1.0)];
    let [hello, welcome, ask, answer, refuse, _] = each(&reports);
    let read = |bytes: &[u8]| Codec::default().read(bytes).unwrap_err();
    assert_eq!(read(b"HTTP"), WireError::Magic);
    assert_eq!(read(b"AST"), WireError::Truncated);
    assert_eq!(read(&with(hello, 4, &[2])), WireError::Version);
    assert_eq!(read(&with(hello, 5, &[9])), WireError::Kind);
    assert_eq!(read(&with(hello, 5, &[4])), WireError::Length);
    assert_eq!(read(&with(hello, 6, &[255, 255])), WireError::Length);
    assert_eq!(read(&with(hello, 12, &[2])), WireError::Kind);
    assert_eq!(read(&with(ask, 48, &f64::NAN.to_le_bytes())), WireError::Value);
    assert_eq!(read(&with(ask, 48, &(-1.0_f64).to_le_bytes())), WireError::Value);
    assert_eq!(read(&with(ask, 44, &[2])), WireError::Value, "two reports, it says");
    assert_eq!(read(&with(ask, 40, &[0])), WireError::Value, "periods begin with 1");
    assert_eq!(read(&with(answer, 48, &2.0_f64.to_le_bytes())), WireError::Value);
    assert_eq!(read(&with(refuse, 44, &[0])), WireError::Value);
    assert_eq!(read(&with(welcome, 72, &[3])), WireError::Value, "no such form");
}

proptest! {
    #[test]
    fn reports_survive(numbers in prop::array::uniform15(0.0_f64..=f64::MAX)) {
        let report = Report::from_numbers(&numbers).unwrap();
        prop_assert_eq!(report.numbers(), numbers);
        let reports = [report];
        let bytes = written(&Codec::default(), each(&reports)[2]);
        let Message::Ask(ask) = Codec::default().read(&bytes).unwrap().message else { panic!("a request") };
        prop_assert_eq!(ask.reports.get(0), Some(report));
    }
}
