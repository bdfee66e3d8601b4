//! What holds for every transmitter: it never exceeds its capacity over any interval, and it wastes nothing.

use std::io::Write as _;
use std::path::Path;

use astraea_sim::{RateConfig, Server, Trace};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn constants() -> impl Strategy<Value = Server> {
    prop_oneof![1e5_f64..1e10, (1_u64..1000).prop_map(|mbps| mbps as f64 * 1e6)]
        .prop_map(|rate| Server::constant(rate).unwrap())
}

fn schedules() -> impl Strategy<Value = Server> {
    let rate = prop_oneof![1 => Just(0.0), 4 => 1e5_f64..1e8];
    let piece = (1_u64..20 * MS, rate);
    (prop::collection::vec(piece, 1..8), 1e5_f64..1e8, any::<bool>(), 1_u64..20 * MS).prop_map(
        |(rest, last_rate, repeat, tail)| {
            let mut start = 0;
            let mut pieces = Vec::new();
            for (length, rate) in rest {
                pieces.push((start, rate));
                start += length;
            }
            pieces.push((start, last_rate));
            RateConfig::Schedule { pieces, repeat_ns: if repeat { start + tail } else { 0 } }.build().unwrap()
        },
    )
}

fn traces() -> impl Strategy<Value = Trace> {
    prop::collection::vec(0_u64..6, 1..40).prop_map(|gaps| {
        let mut times: Vec<_> = gaps
            .iter()
            .scan(0, |at, gap| {
                Some({
                    *at += gap;
                    *at
                })
            })
            .collect();
        times.push(times[times.len() - 1].max(1));
        Trace::from_millis(times).unwrap()
    })
}

/// Packets: ns after the arrival before, and wire bytes.
fn packets() -> impl Strategy<Value = Vec<(u64, u32)>> {
    let gap = prop_oneof![4 => Just(0), 4 => 0..2 * MS, 1 => 0..100 * MS];
    let size = prop_oneof![3 => Just(1500_u32), 2 => 40_u32..1500, 1 => 1500_u32..9000];
    prop::collection::vec((gap, size), 1..60)
}

struct Sent {
    ready: u64,
    start: u64,
    finish: u64,
    size: f64,
}

fn send(server: &mut Server, packets: &[(u64, u32)]) -> Vec<Sent> {
    let (mut arrival, mut free) = (0, 0);
    let one = |&(gap, size)| {
        arrival += gap;
        let ready = free.max(arrival);
        let start = server.begin(ready);
        let finish = server.finish(start, size);
        free = finish;
        Sent { ready, start, finish, size: f64::from(size) }
    };
    packets.iter().map(one).collect()
}

/// For every run of packets: what was sent from the start of its first to the end of its last is at most what the link
/// could carry in that time (both ends included).
fn within_capacity(server: &Server, sent: &[Sent], instant: u64) -> Result<(), TestCaseError> {
    for (i, first) in sent.iter().enumerate() {
        prop_assert!(first.ready <= first.start && first.start <= first.finish);
        let mut bytes = 0.0;
        for last in &sent[i..] {
            bytes += last.size;
            let capacity = server.capacity_bytes(first.start, last.finish + instant);
            // Sums of floating-point numbers in the capacity, far below a byte.
            prop_assert!(bytes <= capacity + 1e-3, "{} bytes where {} fit", bytes, capacity);
        }
    }
    Ok(())
}

/// Over every busy period the link carries all it can, but for `slack` bytes a packet (times are rounded up to ns).
fn nothing_wasted(server: &Server, sent: &[Sent], slack: f64) -> Result<(), TestCaseError> {
    for period in sent.chunk_by(|before, after| after.ready == before.finish) {
        let bytes: f64 = period.iter().map(|packet| packet.size).sum();
        let (first, last) = (&period[0], &period[period.len() - 1]);
        let capacity = server.capacity_bytes(first.ready, last.finish);
        prop_assert!(capacity <= bytes + slack * period.len() as f64 + 1e-3, "{} of {} bytes", bytes, capacity);
    }
    Ok(())
}

/// Mahimahi's link in its own terms: at each opportunity, send up to 1500 bytes of what waits.
fn by_opportunity(trace: &Trace, packets: &[(u64, u32)]) -> Vec<u64> {
    let mut arrival = 0;
    let mut queue: std::collections::VecDeque<(u64, u32)> = packets
        .iter()
        .map(|&(gap, size)| {
            arrival += gap;
            (arrival, size)
        })
        .collect();
    let mut departures = Vec::new();
    let repetitions = (0..).flat_map(|k| trace.times().iter().map(move |time| k * trace.period() + time));
    for time in repetitions {
        let mut left = 1500;
        while let Some((arrival, size)) = queue.front_mut() {
            if *arrival > time || left == 0 {
                break;
            }
            let carried = left.min(*size);
            left -= carried;
            *size -= carried;
            if *size == 0 {
                departures.push(time);
                queue.pop_front();
            }
        }
        if queue.is_empty() {
            return departures;
        }
    }
    unreachable!("the trace repeats for ever")
}

proptest! {
    #[test]
    fn a_constant_link_carries_its_rate(mut server in constants(), packets in packets()) {
        let sent = send(&mut server, &packets);
        within_capacity(&server, &sent, 0)?;
        nothing_wasted(&server, &sent, server.capacity_bytes(0, 1))?;
    }

    #[test]
    fn a_scheduled_link_carries_the_integral_of_its_rate(mut server in schedules(), packets in packets()) {
        let sent = send(&mut server, &packets);
        within_capacity(&server, &sent, 0)?;
        // No rate is above 1e8 bit/s: 0.0125 bytes a ns.
        nothing_wasted(&server, &sent, 0.0125)?;
    }

    #[test]
    fn a_trace_driven_link_sends_when_mahimahi_does(trace in traces(), packets in packets()) {
        let mut server = Server::trace(trace.clone());
        let sent = send(&mut server, &packets);
        within_capacity(&server, &sent, 1)?;
        let departures: Vec<_> = sent.iter().map(|packet| packet.finish).collect();
        prop_assert_eq!(departures, by_opportunity(&trace, &packets));
    }

    #[test]
    fn full_packets_never_exceed_the_opportunities_of_any_interval(trace in traces(), gaps in prop::collection::vec(0..3 * MS, 1..80)) {
        let mut server = Server::trace(trace);
        let packets: Vec<_> = gaps.into_iter().map(|gap| (gap, 1500)).collect();
        let departures: Vec<_> = send(&mut server, &packets).iter().map(|packet| packet.finish).collect();
        for (i, &from) in departures.iter().enumerate() {
            for (j, &to) in departures.iter().enumerate().skip(i) {
                prop_assert!((j - i + 1) as f64 * 1500.0 <= server.capacity_bytes(from, to + 1));
            }
        }
    }
}

#[test]
fn a_backlogged_link_uses_every_opportunity_of_a_recorded_trace() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces/Verizon-LTE-short.down");
    if !path.is_file() {
        // Straight to the terminal: the test runner keeps to itself what a test prints that passes.
        let mut output = std::io::stderr();
        let test = "a_backlogged_link_uses_every_opportunity_of_a_recorded_trace";
        writeln!(output, "skipped {test}: no recorded trace {}", path.display()).unwrap();
        return;
    }
    let trace = Trace::read(&path).unwrap();
    let mut server = RateConfig::Trace(path).build().unwrap();
    let packets = vec![(0, 1500); 2 * trace.times().len()];
    let departures: Vec<_> = send(&mut server, &packets).iter().map(|packet| packet.finish).collect();
    let twice: Vec<_> =
        trace.times().iter().copied().chain(trace.times().iter().map(|time| trace.period() + time)).collect();
    assert_eq!(departures, twice);
}
