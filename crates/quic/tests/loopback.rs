//! Real transfers over the loopback device.

use std::net::UdpSocket;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use astraea_cc::{MILLISECOND, Nanos, SECOND};
use astraea_quic::Scheme;
use astraea_quic::transfer::{FlowPlan, Outcome, Plan, run};
use astraea_sim::{AckConfig, SourceConfig};

fn flow(scheme: Scheme, source: SourceConfig) -> FlowPlan {
    let socket = || UdpSocket::bind("127.0.0.1:0").expect("the loopback device is up");
    FlowPlan {
        scheme,
        sender: socket(),
        receiver: socket(),
        start: 0,
        stop: None,
        lead: 300 * MILLISECOND,
        way_back: 0,
        source,
        ack: AckConfig::default(),
        ecn: false,
    }
}

fn transfer(flows: Vec<FlowPlan>, duration: Nanos) -> Vec<Outcome> {
    let plan = Plan { duration, slot: 10 * MILLISECOND, seed: 1, flows, on_thread: || () };
    let zero = Instant::now() + Duration::from_millis(300);
    let report = run(plan, zero, &AtomicBool::new(false)).expect("threads and sockets");
    assert!(report.sender_cpu > 0 && report.receiver_cpu > 0);
    report.flows
}

#[test]
fn every_scheme_delivers_intact_data() {
    const SIZE: u64 = 500_000;
    let schemes: Vec<_> = astraea_policy::schemes::all().map(|scheme| scheme.name).collect();
    assert!(schemes.len() > 10, "{schemes:?}");
    // Over the loopback device MOCC takes the noise of a busy machine for a queue and goes down to its smallest rate, at which
    // the data take longer than the test.
    let params = |name: &str| if name == "mocc" { vec![("least".to_owned(), 2e6)] } else { Vec::new() };
    let named = |name: &&str| flow(Scheme::named(name, &params(name)).unwrap(), SourceConfig::Sized(SIZE));
    let outcomes = transfer(schemes.iter().map(named).collect(), 6 * SECOND);
    for (name, outcome) in schemes.iter().zip(outcomes) {
        assert_eq!(outcome.failure, None, "{name}");
        assert_eq!((outcome.stats.delivered_bytes, outcome.stats.completions.len()), (SIZE, 1), "{name}");
        assert!(outcome.ended_at.is_some_and(|end| end < 6 * SECOND), "{name}");
        assert!(outcome.stats.sent >= SIZE / 1443, "{name}: {} packets", outcome.stats.sent);
        let delivered: u64 = outcome.slots.iter().map(|slot| slot.delivered).sum();
        assert_eq!(delivered, SIZE, "{name}");
        assert!(
            outcome.stats.rtt_min.is_some_and(|rtt| rtt > 0) && outcome.slots.iter().any(|s| s.cwnd > 0.0),
            "{name}"
        );
    }
}

#[test]
fn a_rate_is_kept_and_a_stop_is_a_stop() {
    let rate = |rate: f64| Scheme::named("constant-rate", &[("rate".to_owned(), rate)]).unwrap();
    let mut stopped = flow(rate(20e6), SourceConfig::Bulk);
    (stopped.start, stopped.stop) = (500 * MILLISECOND, Some(1500 * MILLISECOND));
    let on_off = SourceConfig::OnOff { on_ns: 200 * MILLISECOND, off_ns: 300 * MILLISECOND, exponential: false };
    let outcomes = transfer(vec![stopped, flow(rate(20e6), on_off)], 2 * SECOND);
    // 20 Mbit/s of UDP payload for a second, less headers.
    let expected = 20e6 / 8.0 * 1443.0 / 1472.0;
    let [stopped, on_off] = [&outcomes[0], &outcomes[1]];
    assert_eq!((&stopped.failure, stopped.ended_at), (&None, Some(1500 * MILLISECOND)));
    // A busy machine may make it less, nothing may make it more.
    let share = |outcome: &Outcome| outcome.stats.delivered_bytes as f64 / expected;
    assert!((f64::EPSILON..1.02).contains(&share(stopped)), "{}", share(stopped));
    assert!(stopped.slots[..49].iter().all(|slot| slot.delivered == 0));
    // On four times for 0.2 s of 2 s; what an application has handed over when it pauses, 64 kB at most, still goes out.
    let most = 0.8 + 4.0 * 65_536.0 / expected;
    assert!((f64::EPSILON..1.02 * most).contains(&share(on_off)), "{}", share(on_off));
}

#[test]
fn a_flow_that_is_not_to_start_has_no_failure_and_one_from_another_address_is_heard() {
    let mut later = flow(Scheme::named("cubic", &[]).unwrap(), SourceConfig::Bulk);
    later.start = 10 * SECOND;
    let mut other = flow(Scheme::named("cubic", &[]).unwrap(), SourceConfig::Bulk);
    other.sender = UdpSocket::bind("127.0.0.2:0").unwrap();
    other.lead = 0;
    let outcomes = transfer(vec![later, other], SECOND);
    let [later, other] = [&outcomes[0], &outcomes[1]];
    assert_eq!((&later.failure, later.stats.delivered_bytes), (&None, 0));
    assert_eq!(other.failure, None);
    assert!(other.stats.delivered_bytes > 0);
}

#[test]
fn a_receiver_that_is_not_there_is_a_failure_in_one_line() {
    let unheard = flow(Scheme::named("cubic", &[]).unwrap(), SourceConfig::Bulk);
    // A socket with a peer gets nothing from anybody else.
    unheard.receiver.connect("127.0.0.3:9").unwrap();
    let heard = flow(Scheme::named("cubic", &[]).unwrap(), SourceConfig::Sized(10_000));
    let outcomes = transfer(vec![unheard, heard], SECOND);
    let [unheard, heard] = [&outcomes[0], &outcomes[1]];
    assert_eq!(unheard.failure.as_deref(), Some("never connected"));
    assert_eq!((unheard.stats.delivered_bytes, unheard.ended_at), (0, None));
    assert_eq!((&heard.failure, heard.stats.delivered_bytes), (&None, 10_000), "nobody else has to do with it");
}
