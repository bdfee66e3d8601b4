//! Valid configurations at the ends of their ranges: no panic, no overflow (tests are built with checks), no endless
//! loop, and the books balance.

use astraea_cc::{AnyController, MILLISECOND, MSS, Nanos, SECOND, build};
use astraea_sim::{Config, RateConfig, Simulation, Stop};
use proptest::prelude::*;
use serde_json::{Value, json};

const LONGEST: Nanos = 10_000_000_000_000_000;

fn link(rate: &Value, limit: &Value) -> Value {
    json!({"name": "link", "rate": rate, "delay": {"constant": 0}, "limit": limit})
}

fn config(links: &[Value], flows: &[Value], duration: Nanos) -> Value {
    json!({"duration_ns": duration, "links": links, "flows": flows})
}

fn build_simulation(config: &Value, scheme: &str, params: &[(&str, f64)]) -> Result<Simulation<AnyController>, String> {
    let config: Config = serde_json::from_value(config.clone()).map_err(|error| error.to_string())?;
    let params: Vec<_> = params.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect();
    let controller = |flow: usize| build(scheme, &params, config.flows[flow].mss).expect("a scheme");
    Simulation::new(&config, 1, controller).map_err(|error| error.to_string())
}

fn error(config: &Value) -> String {
    build_simulation(config, "newreno", &[]).map(|_| ()).expect_err("a mistake")
}

#[test]
fn times_beyond_the_range_are_refused() {
    let bulk = json!({"start_ns": 0, "path": [0]});
    let one = |link: Value, flow: Value| config(&[link], &[flow], SECOND);
    let fast = link(&json!({"constant": 1e6}), &json!("infinite"));
    let changed = |base: &Value, key: &str, value: Value| {
        let mut base = base.clone();
        base[key] = value;
        base
    };
    let late = LONGEST + 1;
    let most = "expected at most 10000000000000000 ns (115 days)";
    for (config, place) in [
        (config(std::slice::from_ref(&fast), std::slice::from_ref(&bulk), late), "duration_ns: "),
        (one(changed(&fast, "delay", json!({"constant": late})), bulk.clone()), "link link: delay "),
        (one(changed(&fast, "delay", json!({"schedule": [[0, 1], [2, late]]})), bulk.clone()), "link link: delay "),
        (one(changed(&fast, "delay", json!({"schedule": [[0, 1], [late, 1]]})), bulk.clone()), "link link: delay "),
        (one(changed(&fast, "jitter_ns", json!(late)), bulk.clone()), "link link: jitter_ns "),
        (
            one(changed(&fast, "reorder", json!({"probability": 0.1, "delay_ns": late})), bulk.clone()),
            "link link: reorder.delay_ns ",
        ),
        (one(fast.clone(), changed(&bulk, "start_ns", json!(late))), "flows[0]: start_ns "),
        (one(fast.clone(), changed(&bulk, "stop_ns", json!(u64::MAX))), "flows[0]: stop_ns "),
        (one(fast.clone(), changed(&bulk, "extra_delay_ns", json!(late))), "flows[0]: extra_delay_ns "),
        (one(fast.clone(), changed(&bulk, "period_ns", json!(late))), "flows[0]: period_ns "),
        (one(fast.clone(), changed(&bulk, "ack", json!({"timeout_ns": late}))), "flows[0]: ack.timeout_ns "),
        (one(fast.clone(), changed(&bulk, "ack", json!({"aggregate_ns": late}))), "flows[0]: ack.aggregate_ns "),
        (
            one(fast.clone(), changed(&bulk, "source", json!({"on_off": {"on_ns": late, "off_ns": 1}}))),
            "flows[0]: source.on_ns ",
        ),
        (
            one(fast.clone(), changed(&bulk, "source", json!({"on_off": {"on_ns": 1, "off_ns": late}}))),
            "flows[0]: source.off_ns ",
        ),
        (
            one(fast.clone(), changed(&bulk, "source", json!({"poisson": {"every_ns": late, "bytes": 1}}))),
            "flows[0]: source.every_ns ",
        ),
        (
            one(fast.clone(), changed(&bulk, "source", json!({"periodic": {"every_ns": late, "bytes": 1}}))),
            "flows[0]: source.every_ns ",
        ),
    ] {
        let error = error(&config);
        assert!(error.starts_with(place) && error.ends_with(most), "{error}");
    }
    let schedule = link(&json!({"schedule": [[0, 1e6], [late, 2e6]]}), &json!("infinite"));
    assert_eq!(
        error(&one(schedule, bulk)),
        format!("link link: rate: expected the schedule's times to be at most {LONGEST} ns, got {late}")
    );
}

#[test]
fn more_slots_than_memory_are_refused() {
    let mut config = config(
        &[link(&json!({"constant": 1e6}), &json!("infinite"))],
        &[json!({"start_ns": 0, "path": [0]})],
        200 * SECOND,
    );
    config["slot_ns"] = json!(1);
    assert_eq!(error(&config), "slot_ns: 200000000000 slots of 1 ns, expected at most 10000000 slots");
}

/// A queue that cannot take a flow's packet would starve it for ever.
#[test]
fn packets_that_fit_no_queue_are_refused() {
    let jumbo = json!({"start_ns": 0, "path": [0], "mss": 9000});
    let config = config(&[link(&json!({"constant": 1e6}), &json!({"bytes": 2000}))], &[jumbo], SECOND);
    assert_eq!(error(&config), "flows[0]: packets of 9052 bytes, expected at most 2000 to fit the queue of link link");
}

/// 70 000 packets at 1 bit/s would take longer than 64 bits of nanoseconds can say.
#[test]
fn a_queue_that_never_drains() {
    let flow = json!({"start_ns": 0, "path": [0], "mss": 65535});
    let slow = json!({"constant": 1.0});
    for rate in [slow, json!({"schedule": [[0, 1.0], [1, 0.0]], "repeat_ns": 10_000_000})] {
        let config = config(&[link(&rate, &json!("infinite"))], &[flow.clone(), flow.clone()], LONGEST);
        let mut simulation = build_simulation(&config, "constant-window", &[("window", 35_000.0)]).unwrap();
        simulation.run_until(10_000 * SECOND);
        assert_eq!(simulation.flow_stats(0).arrived, 0);
        assert_eq!(simulation.link_stats(0).served, 1);
    }
}

/// 12 000 bits at 1 bit/s for one nanosecond in two: 24 000 s, or 12 million million pieces.
#[test]
fn a_schedule_of_very_short_pieces() {
    let rate = RateConfig::Schedule { pieces: vec![(0, 1.0), (1, 0.0)], repeat_ns: 2 };
    let mut server = rate.build().unwrap();
    let mut time = 0;
    for packet in 1..=3 {
        let start = server.begin(time);
        time = server.finish(start, 1500);
        assert!(time.abs_diff(packet * 24_000 * SECOND) <= 10, "{time}");
    }
}

#[test]
fn messages_without_end() {
    let source = json!({"periodic": {"every_ns": MILLISECOND, "bytes": u64::MAX / 2}});
    let flow = json!({"start_ns": 0, "path": [0], "source": source});
    let config = config(&[link(&json!({"constant": 1e7}), &json!("infinite"))], &[flow], SECOND);
    let mut simulation = build_simulation(&config, "newreno", &[]).unwrap();
    simulation.run_until(SECOND);
    assert!(simulation.flow_stats(0).delivered_bytes > 1_000_000);
}

/// Log-uniform, with both ends likely.
fn spread(low: f64, high: f64) -> impl Strategy<Value = f64> {
    prop_oneof![1 => Just(low), 6 => (low.ln()..high.ln()).prop_map(f64::exp), 1 => Just(high)]
}

/// Log-uniform whole numbers from 1, or 0.
fn times(longest: Nanos) -> impl Strategy<Value = Nanos> {
    prop_oneof![1 => Just(0), 5 => spread(1.0, longest as f64).prop_map(|t| t as Nanos)]
}

fn queues() -> impl Strategy<Value = Value> {
    let tiny = |kind: &str, keys: [&str; 2]| {
        let (kind, keys) = (kind.to_owned(), keys.map(str::to_owned));
        (spread(1.0, 1e18), spread(1e3, 1e18), any::<bool>()).prop_map(move |(a, b, ecn)| {
            let mut queue = json!({"kind": kind, "ecn": ecn});
            queue[&keys[0]] = json!(a as u64);
            queue[&keys[1]] = json!(b as u64);
            queue
        })
    };
    prop_oneof![
        3 => Just(json!({"kind": "droptail"})),
        1 => tiny("codel", ["target_ns", "interval_ns"]),
        1 => tiny("pie", ["target_ns", "tupdate_ns"]),
        1 => (1_u32..2000, 100_u32..100_000, any::<bool>())
            .prop_map(|(flows, quantum, ecn)| json!({"kind": "fq_codel", "flows": flows, "quantum": quantum, "ecn": ecn})),
        1 => (spread(1.0, 1e9), spread(1.0, 1e9), spread(1e-9, 1.0), spread(1e-9, 1.0), any::<bool>(), any::<bool>())
            .prop_map(|(min, more, max_p, weight, gentle, ecn)| {
                let min = min as u64;
                json!({"kind": "red", "min_bytes": min, "max_bytes": min + more as u64, "max_p": max_p, "weight": weight, "gentle": gentle, "ecn": ecn})
            }),
    ]
}

fn links() -> impl Strategy<Value = Value> {
    let rates = prop_oneof![
        4 => spread(1.0, 1e13).prop_map(|rate| json!({"constant": rate})),
        1 => (spread(1.0, 1e13), times(LONGEST / 3), prop_oneof![Just(0.0), spread(1.0, 1e13)], times(LONGEST / 3))
            .prop_map(|(a, first, b, rest)| {
                json!({"schedule": [[0, a], [first + 1, b]], "repeat_ns": first + 1 + rest + 1})
            }),
    ];
    let delays = prop_oneof![
        3 => times(LONGEST).prop_map(|delay| json!({"constant": delay})),
        3 => times(50 * MILLISECOND).prop_map(|delay| json!({"constant": delay})),
        1 => (times(SECOND), times(10 * SECOND), times(SECOND))
            .prop_map(|(a, at, b)| json!({"schedule": [[0, a], [at + 1, b]]})),
    ];
    let limits = prop_oneof![
        2 => (1_u64..100).prop_map(|n| json!({"packets": n})),
        1 => spread(2000.0, 1e19).prop_map(|n| json!({"bytes": n as u64})),
        1 => Just(json!("infinite")),
    ];
    let losses = prop_oneof![
        3 => Just(json!("none")),
        1 => (0.0..1.0_f64).prop_map(|p| json!({"bernoulli": p})),
        1 => (2_u64..10).prop_map(|n| json!({"periodic": n})),
        1 => (0.0..=1.0_f64, spread(1e-9, 1.0)).prop_map(|(p, r)| json!({"gilbert_elliott": {"p": p, "r": r}})),
    ];
    let jitters = prop_oneof![3 => Just(0), 1 => times(LONGEST)];
    let reorders =
        prop_oneof![3 => Just((0.0, 0)), 1 => (0.0..=1.0_f64, times(LONGEST)), 2 => (0.0..=1.0_f64, times(SECOND))];
    (rates, delays, limits, queues(), losses, jitters, reorders).prop_map(
        |(rate, delay, limit, queue, loss, jitter, (probability, held))| {
            json!({
                "name": "link", "rate": rate, "delay": delay, "limit": limit, "queue": queue, "loss": loss,
                "jitter_ns": jitter, "reorder": {"probability": probability, "delay_ns": held},
            })
        },
    )
}

fn flows(links: usize) -> impl Strategy<Value = Value> {
    let sources = prop_oneof![
        3 => Just(json!("bulk")),
        2 => spread(1.0, 1e18).prop_map(|bytes| json!({"sized": bytes as u64})),
        1 => (spread(1e4, 1e16), spread(1e4, 1e16), any::<bool>())
            .prop_map(|(on, off, exponential)| json!({"on_off": {"on_ns": on as u64, "off_ns": off as u64, "exponential": exponential}})),
        1 => (spread(1e4, 1e16), spread(1.0, 1e18))
            .prop_map(|(every, bytes)| json!({"poisson": {"every_ns": every as u64, "bytes": bytes as u64}})),
        1 => (spread(1e4, 1e16), spread(1.0, 1e18))
            .prop_map(|(every, bytes)| json!({"periodic": {"every_ns": every as u64, "bytes": bytes as u64}})),
    ];
    let acks = prop_oneof![
        2 => Just(json!({})),
        1 => (1_u32..2000, times(LONGEST), times(LONGEST), 0.0..1.0_f64).prop_map(
            |(every, timeout, aggregate, loss)| json!({"every": every, "timeout_ns": timeout, "aggregate_ns": aggregate, "loss": loss})
        ),
        1 => (1_u32..4, times(SECOND), times(SECOND), 0.0..0.5_f64).prop_map(
            |(every, timeout, aggregate, loss)| json!({"every": every, "timeout_ns": timeout, "aggregate_ns": aggregate, "loss": loss})
        ),
    ];
    let all: Vec<_> = (0..links).collect();
    let path = prop::sample::subsequence(all.clone(), 1..=links);
    let back = prop_oneof![2 => Just(vec![]), 1 => prop::sample::subsequence(all, 1..=links)];
    let ends = (times(2 * SECOND), prop::option::of(times(LONGEST / 2)));
    let extra = prop_oneof![3 => Just(0), 1 => times(LONGEST)];
    let mss = prop_oneof![3 => Just(MSS), 1 => Just(1), 1 => 1_u32..1900];
    (ends, path, back, extra, sources, acks, any::<bool>(), times(SECOND), mss).prop_map(
        |((start, length), path, back, extra, source, ack, ecn, period, mss)| {
            json!({
                "start_ns": start, "stop_ns": length.map(|l| start + l + 1), "path": path, "return_path": back,
                "extra_delay_ns": extra, "source": source, "ack": ack, "ecn": ecn, "mss": mss,
                "period_ns": if period < MILLISECOND { 0 } else { period },
            })
        },
    )
}

fn configs() -> impl Strategy<Value = Value> {
    (prop::collection::vec(links(), 1..4), times(LONGEST))
        .prop_flat_map(|(links, slot)| (prop::collection::vec(flows(links.len()), 1..5), Just(links), Just(slot)))
        .prop_map(|(flows, links, slot)| {
            let mut config = config(&links, &flows, 3 * SECOND);
            config["slot_ns"] = json!(if slot < MILLISECOND { 0 } else { slot });
            config
        })
}

fn schemes() -> impl Strategy<Value = (&'static str, Vec<(&'static str, f64)>)> {
    prop_oneof![
        Just(("newreno", vec![])),
        Just(("cubic", vec![])),
        spread(1.0, 1e4).prop_map(|window| ("constant-window", vec![("window", window)])),
        (spread(1e3, 1e12), spread(1.0, 1e4))
            .prop_map(|(rate, window)| ("constant-rate", vec![("rate", rate), ("window", window)])),
    ]
}

/// Events after which a run is cut off: what a fast link does in a second is no different from what it does in a ms.
const EVENTS: u64 = 60_000;

/// Time between two looks at their number.
const STEP: Nanos = MILLISECOND / 10;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Every valid configuration runs, and what was sent is somewhere.
    #[test]
    fn whatever_is_valid_runs(config in configs(), (scheme, params) in schemes()) {
        let mut simulation = build_simulation(&config, scheme, &params).expect("a valid configuration");
        let flows = simulation.flows().len();
        while simulation.now() < simulation.duration() && simulation.events() < EVENTS {
            let until = (simulation.now() + STEP).min(simulation.duration());
            while let Stop::Decision(flow) = simulation.run_until(until) {
                simulation.take_interval(flow, None);
            }
        }
        for flow in 0..flows {
            let stats = simulation.flow_stats(flow);
            prop_assert!(stats.dropped + stats.arrived <= stats.sent);
            prop_assert!(stats.retransmitted <= stats.sent);
            prop_assert!(stats.spurious <= stats.arrived);
            prop_assert!(stats.completions.iter().all(|c| c.start <= c.end && c.end <= simulation.duration()));
            let Some(recorder) = simulation.recorder() else { continue };
            let slots = recorder.flow(flow);
            prop_assert_eq!(slots.iter().map(|s| s.delivered).sum::<u64>(), stats.delivered_bytes);
            prop_assert_eq!(slots.iter().map(|s| u64::from(s.rtt_count)).sum::<u64>(), stats.rtt_count);
        }
        for link in 0..config["links"].as_array().map_or(0, Vec::len) {
            let waiting = simulation.queue_length(link) as u64;
            let stats = simulation.link_stats(link);
            prop_assert_eq!(stats.offered, stats.lost + stats.dropped + stats.served + waiting);
        }
    }
}
