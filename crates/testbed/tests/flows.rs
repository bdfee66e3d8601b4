//! Flows over the loopback device of a namespace of their own.

use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use astraea_emu::{Namespace, monotonic};
use astraea_sim::SourceConfig;
use astraea_testbed::{FlowOutcome, FlowPlan, Flows, Plan, scheme};

const MS: u64 = 1_000_000;

fn flow(index: u8, source: SourceConfig) -> FlowPlan {
    FlowPlan {
        scheme: scheme::find("cubic").unwrap().into(),
        from: Ipv4Addr::new(127, 0, 1, index),
        to: None,
        start: 20 * MS,
        stop: None,
        lead: 10 * MS,
        way_back: MS,
        rate: 1e8,
        source,
        ecn: false,
    }
}

fn plan(flows: Vec<FlowPlan>) -> Plan {
    let receiver = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
    Plan { duration: 400 * MS, slot: 10 * MS, seed: 1, receiver, flows }
}

/// Runs `work` on a thread in a network namespace of its own; `None`, with the reason printed, without the right to.
fn in_namespace<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    match Namespace::new() {
        Ok(namespace) => Some(namespace.run(|| Ok(work())).unwrap()),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

fn run(plan: Plan) -> Vec<FlowOutcome> {
    let flows = Flows::listen(plan).unwrap();
    let zero = monotonic() + flows.lead() + MS;
    flows.run(zero, &AtomicBool::new(false)).unwrap().flows
}

#[test]
fn every_kind_of_source_does_what_it_says() {
    let outcomes = in_namespace(|| {
        let mut bulk = flow(1, SourceConfig::Bulk);
        bulk.stop = Some(200 * MS);
        let sources = [
            SourceConfig::Sized(1_000_000),
            SourceConfig::Periodic { every_ns: 50 * MS, bytes: 10_000 },
            SourceConfig::OnOff { on_ns: 30 * MS, off_ns: 100 * MS, exponential: false },
            SourceConfig::Poisson { every_ns: 10 * MS, bytes: 1000 },
        ];
        let others = sources.into_iter().enumerate().map(|(index, source)| flow(index as u8 + 2, source));
        run(plan(std::iter::once(bulk).chain(others).collect()))
    });
    let Some(outcomes) = outcomes else { return };
    assert!(outcomes.iter().all(|flow| flow.failure.is_none()), "{outcomes:?}");

    let bulk = &outcomes[0];
    assert_eq!(bulk.ended_at, Some(200 * MS));
    assert!(bulk.stats.delivered_bytes > 1_000_000 && bulk.stats.rtt_min.is_some());
    let delivered: u64 = bulk.slots.iter().map(|slot| slot.delivered).sum();
    assert_eq!(delivered, bulk.stats.delivered_bytes);
    assert!(bulk.slots.iter().take(2).all(|slot| slot.delivered == 0), "nothing arrives before the start");
    assert!(bulk.slots.iter().any(|slot| slot.cwnd > 0.0 && slot.rtt_count > 0));

    let sized = &outcomes[1];
    assert_eq!((sized.stats.delivered_bytes, sized.stats.completions.len()), (1_000_000, 1));
    assert_eq!(sized.ended_at, Some(sized.stats.completions[0].end + MS));

    let periodic = &outcomes[2];
    // 20, 70, … 370 ms; a busy machine may have no time left for the last.
    assert!(periodic.stats.completions.len() >= 7);
    assert_eq!(periodic.stats.completions[3].start, 170 * MS);
    assert!(periodic.stats.delivered_bytes >= 70_000 && periodic.stats.delivered_bytes % 10_000 == 0);

    let on_off = &outcomes[3];
    let silent = |slot: &usize| (8..=14).contains(slot) || (21..=27).contains(slot) || (34..=39).contains(slot);
    let sent = |wanted: bool| -> u64 {
        let slots = on_off.slots.iter().enumerate().filter(|(index, _)| silent(index) == wanted);
        slots.map(|(_, slot)| slot.delivered).sum()
    };
    assert!(sent(true) < sent(false) / 10, "{} in silence, {} else", sent(true), sent(false));

    assert!(outcomes[4].stats.completions.len() > 10, "about 38 are expected");
}

/// A flow whose receiver dies, one that nobody listens to, and one with nothing to fear.
fn with_a_mortal_receiver() -> Vec<FlowOutcome> {
    let mortal = TcpListener::bind("127.0.0.1:0").unwrap();
    let io::Result::Ok(std::net::SocketAddr::V4(address)) = mortal.local_addr() else { panic!("an IPv4 address") };
    let receiver = thread::spawn(move || {
        let (mut stream, _) = mortal.accept().unwrap();
        let mut some = [0; 1 << 12];
        let _ = stream.read(&mut some);
        thread::sleep(Duration::from_millis(30));
        // Closing with data unread resets the connection, as the death of a process does.
    });
    let mut unlucky = flow(1, SourceConfig::Bulk);
    unlucky.to = Some(address);
    let mut unheard = flow(2, SourceConfig::Bulk);
    unheard.to = Some(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1));
    let outcomes = run(plan(vec![unlucky, unheard, flow(3, SourceConfig::Bulk)]));
    receiver.join().unwrap();
    outcomes
}

#[test]
fn a_flow_whose_receiver_dies_is_reported_and_the_others_go_on() {
    let mut sends_until_the_end = false;
    // A busy machine may have no time left in the last slot, but not always.
    for _ in 0..5 {
        let Some(outcomes) = in_namespace(with_a_mortal_receiver) else { return };
        let failure = |index: usize| outcomes[index].failure.as_deref().unwrap_or_default();
        assert!(failure(0).contains("reset by peer") || failure(0).contains("Broken pipe"), "{:?}", failure(0));
        assert!(outcomes[0].ended_at.is_some_and(|at| at < 400 * MS));
        assert!(failure(1).contains("refused"), "{:?}", failure(1));
        assert_eq!(outcomes[2].failure, None);
        sends_until_the_end = outcomes[2].slots[39].delivered > 0;
        if sends_until_the_end {
            break;
        }
    }
    assert!(sends_until_the_end, "the third flow");
}
