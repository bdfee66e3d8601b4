//! Corner cases worked out by hand: what is recorded when, and what a sender takes for a loss.

use astraea_cc::{Ack, AnyController, Congestion, Controller, MILLISECOND, MSS, Nanos, Rtt, SECOND, build};
use astraea_sim::{Config, Simulation, Stop};
use serde_json::{Value, json};

fn read(config: Value) -> Config {
    serde_json::from_value(config).expect("a configuration")
}

fn simulation(config: Value, scheme: &str, params: &[(&str, f64)]) -> Simulation<AnyController> {
    let config = read(config);
    let params: Vec<_> = params.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect();
    Simulation::new(&config, 1, |flow| build(scheme, &params, config.flows[flow].mss).expect("a scheme"))
        .expect("a valid configuration")
}

fn run(config: Value, scheme: &str, params: &[(&str, f64)]) -> Simulation<AnyController> {
    let mut simulation = simulation(config, scheme, params);
    simulation.run_until(simulation.duration());
    simulation
}

/// Flows over one link of 12 Mbit/s (1 ms for a full packet) and 10 ms.
fn config(link: &Value, flows: &Value, seconds: u64) -> Value {
    let mut all = json!({"name": "link", "rate": {"constant": 12e6}, "delay": {"constant": 10 * MILLISECOND}, "limit": "infinite"});
    all.as_object_mut().unwrap().extend(link.as_object().unwrap().clone());
    let base = json!({"start_ns": 0, "path": [0]});
    let flows: Vec<_> = flows
        .as_array()
        .unwrap()
        .iter()
        .map(|flow| {
            let mut all = base.clone();
            all.as_object_mut().unwrap().extend(flow.as_object().unwrap().clone());
            all
        })
        .collect();
    json!({"duration_ns": seconds * SECOND, "slot_ns": 10 * MILLISECOND, "links": [all], "flows": flows})
}

fn completed_at(link: &Value, flow: &Value) -> Vec<Nanos> {
    run(config(link, &json!([flow]), 10), "newreno", &[]).flow_stats(0).completions.iter().map(|c| c.end).collect()
}

/// A message is complete when its last byte reaches the receiver: after transmission and one delay.
#[test]
fn messages_complete_at_the_receiver() {
    let sized = |packets: u32, every: u32| json!({"source": {"sized": packets * MSS}, "ack": {"every": every}});
    for every in [1, 2] {
        assert_eq!(completed_at(&json!({}), &sized(1, every)), [11 * MILLISECOND], "every {every}");
        assert_eq!(completed_at(&json!({}), &sized(3, every)), [13 * MILLISECOND], "every {every}");
        // Held back by 5 ms.
        let reorder = json!({"reorder": {"probability": 1.0, "delay_ns": 5 * MILLISECOND}});
        assert_eq!(completed_at(&reorder, &sized(1, every)), [16 * MILLISECOND], "every {every}");
        // The second packet leaves over a shorter way, but does not overtake the first one.
        let shorter = json!({"delay": {"schedule": [[0, 50 * MILLISECOND], [1_500_000, 10 * MILLISECOND]]}});
        assert_eq!(completed_at(&shorter, &sized(2, every)), [51 * MILLISECOND], "every {every}");
    }
}

/// Packets of one message that overtake each other: complete when the last one to arrive does.
#[test]
fn a_message_waits_for_what_was_held_back() {
    let reorder = json!({"reorder": {"probability": 0.5, "delay_ns": 100 * MILLISECOND}});
    let mut simulation = run(
        config(&reorder, &json!([{"source": {"periodic": {"every_ns": SECOND, "bytes": 2 * MSS}}}]), 60),
        "constant-window",
        &[("window", 10.0)],
    );
    let times: Vec<_> = simulation.flow_stats(0).completions.iter().map(|c| (c.end - c.start) / MILLISECOND).collect();
    assert!(times.iter().all(|time| [12, 111, 112].contains(time)), "{times:?}");
    assert!(times.contains(&111) && times.contains(&12), "some were held back and some not");
    assert_eq!(simulation.link_stats(0).dropped, 0);
}

/// Jitter keeps the order, so packets that are all held back for the same time arrive as late as if none were, and that
/// much later.
#[test]
fn what_is_held_back_first_waits_for_its_turn() {
    let stats = |hold: Value| {
        let mut link = json!({"rate": {"constant": 10e6}, "jitter_ns": 40 * MILLISECOND});
        link.as_object_mut().unwrap().extend(hold.as_object().unwrap().clone());
        run(config(&link, &json!([{}]), 60), "constant-window", &[("window", 10.0)]).flow_stats(0)
    };
    let hold = |delay_ns: Nanos| stats(json!({"reorder": {"probability": 1.0, "delay_ns": delay_ns}}));
    let mean = |stats: &astraea_sim::FlowStats| stats.rtt_sum as f64 / stats.rtt_count as f64 / 1e6;
    let without = stats(json!({}));
    for delay in [0, 1_000, 5 * MILLISECOND] {
        let held = hold(delay);
        assert_eq!((held.overtaken, held.retransmitted), (0, 0));
        let (got, expected) = (mean(&held), mean(&without) + delay as f64 / 1e6);
        assert!((got - expected).abs() < 1.0, "{got} ms, expected {expected} ms");
    }
}

/// A message of 100 packets opens the window so far that the next one leaves at once: ten ms, and ten on their way.
#[test]
fn a_message_opens_the_window_for_the_next() {
    let source = json!({"periodic": {"every_ns": 150 * MILLISECOND, "bytes": 100 * MSS}});
    for scheme in ["newreno", "cubic"] {
        let link = json!({"rate": {"constant": 120e6}});
        let simulation = run(config(&link, &json!([{"source": source}]), 2), scheme, &[]);
        let times: Vec<_> = simulation.flow_stats(0).completions.iter().map(|c| c.end - c.start).collect();
        assert!(times[0] > 60 * MILLISECOND, "{scheme}: 10, 20 and 40 packets, and then the rest");
        assert!(times[1..].iter().all(|time| *time == 20 * MILLISECOND), "{scheme}: {times:?}");
    }
}

/// What has left the last queue but not arrived by the end is not complete.
#[test]
fn nothing_completes_after_the_end() {
    let mut config = config(&json!({}), &json!([{"source": {"sized": MSS}}]), 1);
    config["duration_ns"] = json!(5 * MILLISECOND);
    let stats = run(config, "newreno", &[]).flow_stats(0);
    assert_eq!((stats.delivered_bytes, stats.completions.len()), (u64::from(MSS), 0));
}

/// Acknowledgements that one receiver holds back do not hold back those of another.
#[test]
fn aggregation_is_a_matter_of_one_flow() {
    let source = json!({"periodic": {"every_ns": 7 * MILLISECOND, "bytes": 100}});
    let flows = json!([
        {"source": source, "ack": {"aggregate_ns": 100 * MILLISECOND}},
        {"source": source, "ack": {"every": 2, "timeout_ns": 0}},
    ]);
    let simulation = run(config(&json!({}), &flows, 5), "constant-window", &[("window", 1000.0)]);
    let stats = simulation.flow_stats(1);
    assert!(stats.rtt_sum / stats.rtt_count < 21 * MILLISECOND, "{} ms", stats.rtt_sum / stats.rtt_count / MILLISECOND);
}

/// A discipline that neither drops nor marks on its own; red and pie are never provoked, and the others are patient.
fn passive(kind: &str) -> Value {
    match kind {
        "red" => json!({"kind": kind, "min_bytes": 1_000_000_000, "max_bytes": 2_000_000_000}),
        "pie" => json!({"kind": kind, "burst_ns": 1_000 * SECOND}),
        "droptail" => json!({"kind": kind}),
        _ => json!({"kind": kind, "target_ns": 1_000 * SECOND}),
    }
}

/// Ten packets at once meet an idle link: the first is being sent when the others come, and takes none of their room.
#[test]
fn what_is_being_sent_takes_no_room_in_any_queue() {
    // FQ-CoDel makes room for one by half of its longest queue: three times two of four, or once five of nine.
    for (packets, dropped, halves) in [(3, 6, 6), (8, 1, 5), (9, 0, 0)] {
        for kind in ["droptail", "codel", "pie", "red", "fq_codel"] {
            let link = json!({"limit": {"packets": packets}, "queue": passive(kind)});
            let flows = json!([{"source": {"sized": 10 * MSS}}]);
            let mut simulation = simulation(config(&link, &flows, 1), "newreno", &[]);
            simulation.run_until(MILLISECOND / 2);
            let expected = if kind == "fq_codel" { halves } else { dropped };
            assert_eq!(simulation.link_stats(0).dropped, expected, "{kind} with room for {packets}");
        }
    }
}

/// The first monitoring period begins before the first packet leaves.
#[test]
fn the_initial_window_belongs_to_the_first_period() {
    let mut simulation = simulation(config(&json!({}), &json!([{"period_ns": 5 * MILLISECOND}]), 1), "newreno", &[]);
    assert_eq!(simulation.run_until(SECOND), Stop::Decision(0));
    let interval = simulation.take_interval(0, None);
    assert_eq!((interval.start, interval.end, interval.sent), (0, 5 * MILLISECOND, 10 * u64::from(MSS)));
}

/// Every second packet is lost, so each message of one packet needs a probe, which gets through.
#[test]
fn a_probe_shows_that_its_original_was_lost() {
    let source = json!({"periodic": {"every_ns": SECOND, "bytes": 500}});
    let mut simulation =
        simulation(config(&json!({"loss": {"periodic": 2}}), &json!([{"source": source}]), 20), "newreno", &[]);
    // The first message gets through, and its sample makes the probes possible.
    simulation.run_until(20 * SECOND - 1);
    let (stats, interval) = (simulation.flow_stats(0), *simulation.flows()[0].interval());
    assert_eq!((stats.timeouts, stats.spurious), (0, 0));
    assert_eq!((stats.dropped, stats.declared_lost, stats.retransmitted), (19, 19, 19));
    assert_eq!(interval.lost, 19 * 500, "bytes, not packets of full size");
    assert_eq!(stats.completions.len(), 20);
}

/// The round trip grows beyond the two round trips after which a tail is probed: the probe was needless, nothing lost.
#[test]
fn a_needless_probe_is_no_loss() {
    let delay = json!({"delay": {"schedule": [[0, 10 * MILLISECOND], [1_500_000_000, 40 * MILLISECOND]]}});
    let source = json!({"periodic": {"every_ns": SECOND, "bytes": MSS}});
    let simulation = run(config(&delay, &json!([{"source": source}]), 3), "newreno", &[]);
    let stats = simulation.flow_stats(0);
    assert_eq!((stats.sent, stats.retransmitted), (5, 1));
    assert_eq!((stats.declared_lost, stats.spurious, stats.dropped), (0, 0, 0));
}

/// With a round trip of 91 ms a probe leaves after 182 ms, and its answer is waited for although 291 ms pass
/// (RFC 8985 §7.3).
#[test]
fn the_retransmission_timer_waits_for_the_probe() {
    let link = json!({"delay": {"constant": 45 * MILLISECOND}, "loss": {"periodic": 10}});
    let source = json!({"periodic": {"every_ns": SECOND, "bytes": MSS}});
    let stats = run(config(&link, &json!([{"source": source}]), 60), "newreno", &[]).flow_stats(0);
    assert_eq!((stats.retransmitted, stats.timeouts), (6, 0));
}

/// After a first packet nothing gets through: what each timeout gives up is counted in bytes.
#[test]
fn timeouts_count_the_bytes_they_give_up() {
    let link = json!({"loss": {"gilbert_elliott": {"p": 1.0, "r": 1e-12}}});
    let source = json!({"periodic": {"every_ns": SECOND, "bytes": 100}});
    let simulation = run(config(&link, &json!([{"source": source}]), 5), "newreno", &[]);
    let stats = simulation.flow_stats(0);
    assert!(stats.timeouts >= 3);
    assert_eq!(simulation.flows()[0].interval().lost, 100 * stats.declared_lost);
}

/// A receiver that sees a hole acknowledges each packet until the hole has been filled, and the filling
/// (RFC 5681 §4.2), at the time when packets reach it.
#[test]
fn a_hole_is_open_until_its_filling_arrives() {
    // A packet a ms, 51 ms to the receiver; the 250th is lost. It is sent again after three others have been
    // acknowledged, at 249 + 3 + 101 + 1 ms, and what arrives until 51 ms later is acknowledged one by one:
    // 251 to 355 of which the last leaves just before the retransmission, and that one.
    let link = json!({"delay": {"constant": 50 * MILLISECOND}, "loss": {"periodic": 250}});
    let flow = json!({"source": {"sized": 450 * MSS}, "ack": {"every": 1000, "timeout_ns": 2 * SECOND}});
    let rate = f64::from(MSS) * 8.0 * 1000.0;
    let stats = run(config(&link, &json!([flow]), 2), "constant-rate", &[("rate", rate)]).flow_stats(0);
    assert_eq!((stats.dropped, stats.retransmitted), (1, 1));
    assert!((103..=107).contains(&stats.rtt_count), "{} acknowledgements", stats.rtt_count);
}

/// The only acknowledgement of a packet may be lost: the packet is sent again, and the receiver, which has it, does not wait
/// for a second one before it says so (RFC 9293 §3.10.7.4).
#[test]
fn a_duplicate_is_acknowledged_at_once() {
    let ack = json!({"every": 2, "timeout_ns": 40 * MILLISECOND, "loss": 0.5});
    let config = read(config(&json!({}), &json!([{"source": {"sized": MSS}, "ack": ack}]), 30));
    let ends = (1..=20).map(|seed| {
        let mut simulation =
            Simulation::new(&config, seed, |_| build("newreno", &[], MSS).expect("a scheme")).expect("it is valid");
        simulation.run_until(30 * SECOND);
        let timeouts = simulation.flow_stats(0).timeouts as u32;
        (timeouts, simulation.flows()[0].ended_at().unwrap_or(0) / MILLISECOND)
    });
    let mut again = 0;
    for (timeouts, end) in ends {
        // The first timeout is a second and what an acknowledgement may be delayed, each later one twice the one before.
        let sent = (2_u64.pow(timeouts) - 1) * 1040;
        assert_eq!(end, sent + if timeouts == 0 { 21 + 40 } else { 21 }, "after {timeouts} timeouts");
        again += timeouts;
    }
    assert!(again > 0);
}

/// Where the return delay changes, an acknowledgement has the delay of the time when it leaves the receiver.
#[test]
fn acknowledgements_leave_when_data_arrives() {
    let delay = json!({"delay": {"schedule": [[0, 10 * MILLISECOND], [5 * MILLISECOND, 40 * MILLISECOND]]}});
    for ack in [json!({}), json!({"aggregate_ns": 1})] {
        let flow = json!({"source": {"sized": MSS}, "ack": ack});
        let stats = run(config(&delay, &json!([flow]), 1), "newreno", &[]).flow_stats(0);
        assert_eq!(stats.rtt_min, Some((1 + 10 + 40) * MILLISECOND));
    }
}

/// An acknowledgement that was overtaken tells nothing new, so it is no sample.
#[test]
fn overtaken_acknowledgements_are_no_samples() {
    let mut config = config(&json!({}), &json!([{"return_path": [1]}]), 5);
    config["links"].as_array_mut().unwrap().push(json!({
        "name": "back", "rate": {"constant": 1e9}, "delay": {"constant": 0}, "limit": "infinite",
        "reorder": {"probability": 0.3, "delay_ns": 3 * MILLISECOND}
    }));
    let mut simulation = run(config, "newreno", &[]);
    let recorded: u32 = simulation.recorder().unwrap().flow(0).iter().map(|s| s.rtt_count).sum();
    let stats = simulation.flow_stats(0);
    assert!(stats.rtt_count < stats.arrived);
    assert_eq!(u64::from(recorded), stats.rtt_count);
}

/// Sums of a slot do not overflow: 2e11 bit/s for a second are 25 GB.
#[test]
fn a_long_slot_of_a_fast_link() {
    let mut config = config(&json!({"rate": {"constant": 2e11}}), &json!([{"mss": 65535}]), 1);
    config["slot_ns"] = json!(SECOND);
    let mut simulation = run(config, "constant-window", &[("window", 20_000.0)]);
    let delivered = simulation.flow_stats(0).delivered_bytes;
    let recorder = simulation.recorder().unwrap();
    assert!(delivered > 20_000_000_000);
    assert_eq!(recorder.flow(0)[0].delivered, delivered);
    assert!(recorder.link(0)[0].served_bytes > delivered);
}

/// A controller that asks for a call and changes its mind.
struct Fickle {
    timer: Option<Nanos>,
    calls: u32,
}

impl Controller for Fickle {
    fn on_ack(&mut self, _ack: &Ack, _rtt: &Rtt) {
        self.timer = None;
    }
    fn on_congestion(&mut self, _event: &Congestion) {}
    fn on_timeout(&mut self, _now: Nanos, _flight_size: u64) {}
    fn next_timer(&self) -> Option<Nanos> {
        self.timer
    }
    fn on_timer(&mut self, _now: Nanos) {
        self.calls += 1;
        self.timer = None;
    }
    fn cwnd(&self) -> u64 {
        u64::from(MSS)
    }
}

#[test]
fn a_cancelled_timer_does_not_fire() {
    let config = read(config(&json!({}), &json!([{}]), 1));
    for (timer, calls) in [(10 * MILLISECOND, 1), (500 * MILLISECOND, 0)] {
        let mut simulation = Simulation::new(&config, 1, |_| Fickle { timer: Some(timer), calls: 0 }).unwrap();
        simulation.run_until(SECOND);
        assert_eq!(simulation.flows()[0].controller().calls, calls, "timer at {timer}");
    }
}
