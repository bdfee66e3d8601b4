//! What holds for every scheme whatever the transport reports.

use astraea_cc::{
    Ack, AnyController, Congestion, Controller, INITIAL_WINDOW, Loss, LostPacket, MSS, Nanos, RateSample, Rtt, SCHEMES,
    Signal, build,
};
use proptest::prelude::*;

const PACKET: u64 = MSS as u64;

#[derive(Clone, Debug)]
enum Event {
    Sent,
    Ack { packets: u64, rtt: Option<Nanos>, age: Nanos, cwnd_limited: bool, in_recovery: bool, marked: bool },
    Lost { packets: u64 },
    Congestion { signal: Signal, flight: u64 },
    Timeout { flight: u64 },
    Spurious,
    Idle(Nanos),
}

fn event() -> impl Strategy<Value = Event> {
    let flight = 0_u64..2000;
    let nanos = prop_oneof![Just(0), 1..1000_u64, 1..100_000_000_u64, 1..100_000_000_000_u64];
    prop_oneof![
        2 => Just(Event::Sent),
        12 => (0_u64..100, prop::option::of(nanos.clone()), nanos.clone(), prop::bool::weighted(0.8), prop::bool::weighted(0.2), any::<bool>())
            .prop_map(|(packets, rtt, age, cwnd_limited, in_recovery, marked)| Event::Ack { packets, rtt, age, cwnd_limited, in_recovery, marked }),
        1 => (0_u64..100).prop_map(|packets| Event::Lost { packets }),
        2 => (any::<bool>(), flight.clone()).prop_map(|(lost, flight)| Event::Congestion {
            signal: if lost { Signal::Loss } else { Signal::Ecn },
            flight,
        }),
        1 => flight.prop_map(|flight| Event::Timeout { flight }),
        1 => Just(Event::Spurious),
        1 => nanos.prop_map(Event::Idle),
    ]
}

/// A sequence of events with the time that passes before each.
fn events() -> impl Strategy<Value = Vec<(Nanos, Event)>> {
    prop::collection::vec((prop_oneof![Just(0), 1..50_000_000_u64, 1..10_000_000_000_u64], event()), 1..300)
}

fn apply(controller: &mut AnyController, rtt: &mut Rtt, now: Nanos, event: &Event) {
    match *event {
        Event::Sent => controller.on_sent(now, PACKET, PACKET),
        Event::Ack { packets, rtt: sample, age, cwnd_limited, in_recovery, marked } => {
            if let Some(sample) = sample {
                rtt.update(sample);
            }
            let acked = packets * PACKET;
            let rate = RateSample { delivered: acked, interval: age, ..RateSample::default() };
            let (sent_at, ce_marked) = (now.saturating_sub(age), if marked { acked } else { 0 });
            let ack = Ack {
                now,
                acked,
                sent_at,
                rtt: sample,
                rate,
                in_flight: 0,
                cwnd_limited,
                in_recovery,
                hole_open: false,
                stamped: None,
                ce_marked,
            };
            controller.on_ack(&ack, rtt);
        }
        Event::Lost { packets } => {
            for packet in 1..=packets {
                let (bytes, sent_at, lost_since) = (PACKET, now.saturating_sub(rtt.smoothed()), packet * PACKET);
                let packet = LostPacket { now, bytes, sent_at, sent_in_flight: bytes, lost_since, app_limited: false };
                controller.on_packet_lost(&packet);
            }
            controller.on_loss(&Loss { now, lost: packets * PACKET, in_flight: 0 });
        }
        Event::Congestion { signal, flight } => {
            controller.on_congestion(&Congestion { now, signal, flight_size: flight * PACKET, sent_at: now });
        }
        Event::Timeout { flight } => controller.on_timeout(now, flight * PACKET),
        Event::Spurious => controller.on_spurious_congestion(now),
        Event::Idle(idle) => controller.on_idle_restart(now, idle.min(now)),
    }
    if let Some(at) = controller.next_timer() {
        controller.on_timer(at.max(now));
    }
}

proptest! {
    #[test]
    fn every_scheme_keeps_its_bounds(events in events()) {
        for scheme in SCHEMES {
            let mut controller = build(scheme.name, &[], MSS).unwrap();
            let (mut rtt, mut now) = (Rtt::default(), 0);
            let mut acked = 0;
            let mut last_ack = 0;
            // A timeout leaves one segment, and a mark may, and so does C2TCP when the delay has been long; a loss never
            // leaves less than two.
            let least = if scheme.name == "c2tcp" { 1 } else { 2 };
            let mut floor = least;
            for (step, event) in &events {
                now += step;
                let before = controller.cwnd();
                apply(&mut controller, &mut rtt, now, event);
                let cwnd = controller.cwnd();
                match event {
                    Event::Ack { packets, cwnd_limited, age, .. } => {
                        acked += packets;
                        // Of a flight that has left since the last acknowledgement, and is no more than half of the window.
                        let unused = !cwnd_limited
                            && now.saturating_sub(*age) >= last_ack
                            && 2 * packets * PACKET <= before;
                        last_ack = now;
                        if scheme.kind == "classic" {
                            prop_assert!(cwnd >= before, "{}: {before} shrank to {cwnd} on {event:?}", scheme.name);
                        }
                        if scheme.kind == "constant" || scheme.kind == "classic" && unused {
                            prop_assert_eq!(cwnd, before, "{} changed unused", scheme.name);
                        }
                    }
                    Event::Timeout { .. } | Event::Congestion { signal: Signal::Ecn, .. } => floor = 1,
                    Event::Congestion { signal: Signal::Loss, .. } => {
                        // A model turns to the loss with the next acknowledgement: packets are conserved, down to one.
                        floor = if scheme.kind == "model" { 1 } else { least };
                        prop_assert!(cwnd <= before.max(2 * PACKET), "{}: {before} to {cwnd}", scheme.name);
                    }
                    _ => {}
                }
                prop_assert!(cwnd >= floor * PACKET, "{}: {cwnd} bytes after {event:?}", scheme.name);
                if scheme.kind == "classic" {
                    // No window-based scheme grows by more than what was acknowledged.
                    let most = (u64::from(INITIAL_WINDOW) + acked) * PACKET;
                    prop_assert!(cwnd <= most, "{}: {cwnd} of at most {most} bytes", scheme.name);
                }
                let pacing = controller.pacing_rate();
                prop_assert!(pacing.is_none_or(|rate| rate > 0.0 && rate.is_finite()), "{pacing:?}");
            }
        }
    }

    #[test]
    fn every_scheme_is_deterministic(events in events()) {
        for scheme in SCHEMES {
            let run = || {
                let mut controller = build(scheme.name, &[], MSS).unwrap();
                let (mut rtt, mut now) = (Rtt::default(), 0);
                let mut trace = Vec::new();
                for (step, event) in &events {
                    now += step;
                    apply(&mut controller, &mut rtt, now, event);
                    trace.push((controller.cwnd(), controller.pacing_rate().map(f64::to_bits)));
                }
                trace
            };
            prop_assert_eq!(run(), run(), "{}", scheme.name);
        }
    }
}
