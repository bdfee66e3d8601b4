//! Flows over the loopback device of a namespace of their own.

#[path = "../../emu/tests/machine/mod.rs"]
mod machine;

use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use astraea_emu::{Namespace, monotonic};
use astraea_sim::SourceConfig;
use astraea_testbed::{FlowOutcome, FlowPlan, Flows, Plan, scheme};

use machine::{missing_for_namespaces, skipped};

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
    if skipped(missing_for_namespaces()) {
        return None;
    }
    Some(Namespace::new().unwrap().run(|| Ok(work())).unwrap())
}

fn run(plan: Plan) -> Vec<FlowOutcome> {
    let flows = Flows::listen(plan).unwrap();
    let zero = monotonic() + flows.lead() + MS;
    flows.run(zero, &AtomicBool::new(false)).unwrap().flows
}

/// A flow of each kind of source.
fn of_every_kind() -> Vec<FlowOutcome> {
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
}

#[test]
fn every_kind_of_source_does_what_it_says() {
    let mut late = Vec::new();
    // A busy machine may have no time for one of them, but not always.
    for _ in 0..5 {
        let Some(outcomes) = in_namespace(of_every_kind) else { return };
        late = does_what_it_says(&outcomes);
        if late.is_empty() {
            break;
        }
    }
    assert!(late.is_empty(), "{late:?}");
}

/// Checks what a flow of each kind has done, however busy the machine is; what it had no time for.
fn does_what_it_says(outcomes: &[FlowOutcome]) -> Vec<String> {
    assert!(outcomes.iter().all(|flow| flow.failure.is_none()), "{outcomes:?}");

    let bulk = &outcomes[0];
    assert_eq!(bulk.ended_at, Some(200 * MS));
    let delivered: u64 = bulk.slots.iter().map(|slot| slot.delivered).sum();
    assert_eq!(delivered, bulk.stats.delivered_bytes);
    assert!(bulk.slots.iter().take(2).all(|slot| slot.delivered == 0), "nothing arrives before the start");

    let sized = &outcomes[1];
    let completions = &sized.stats.completions;
    assert!(completions.len() <= 1 && sized.stats.delivered_bytes <= 1_000_000);
    assert_eq!(sized.ended_at, completions.first().map(|completion| completion.end + MS));

    // 20, 70, … 370 ms.
    let periodic = &outcomes[2];
    let starts = periodic.stats.completions.iter().map(|completion| completion.start);
    assert!(starts.clone().eq((0..starts.len() as u64).map(|index| (20 + 50 * index) * MS)), "{:?}", periodic.stats);

    let on_off = &outcomes[3];
    let silent = |slot: &usize| (8..=14).contains(slot) || (21..=27).contains(slot) || (34..=39).contains(slot);
    let sent = |wanted: bool| -> u64 {
        let slots = on_off.slots.iter().enumerate().filter(|(index, _)| silent(index) == wanted);
        slots.map(|(_, slot)| slot.delivered).sum()
    };
    let (silent, loud) = (sent(true), sent(false));

    let poisson = outcomes[4].stats.completions.len();
    [
        (bulk.stats.delivered_bytes > 1_000_000 && bulk.stats.rtt_min.is_some(), format!("bulk: {:?}", bulk.stats)),
        (bulk.slots.iter().any(|slot| slot.cwnd > 0.0 && slot.rtt_count > 0), format!("bulk: {:?}", bulk.slots)),
        (sized.stats.delivered_bytes == 1_000_000 && completions.len() == 1, format!("sized: {:?}", sized.stats)),
        // All but the last of eight, at least.
        (starts.len() >= 7 && periodic.stats.delivered_bytes >= 70_000, format!("periodic: {:?}", periodic.stats)),
        (periodic.stats.delivered_bytes.is_multiple_of(10_000), format!("periodic: {:?}", periodic.stats)),
        (silent < loud / 10, format!("on-off: {silent} bytes in silence, {loud} else")),
        (poisson > 10, format!("Poisson: {poisson} bursts, about 38 are expected")),
    ]
    .into_iter()
    .filter_map(|(in_time, what)| (!in_time).then_some(what))
    .collect()
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
