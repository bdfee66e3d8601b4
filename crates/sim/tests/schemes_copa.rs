//! Copa against its publication (Arun and Balakrishnan, NSDI 2018) and against genericCC, the variant that is pinned.

use astraea_cc::{AnyController, Copa, MILLISECOND, MSS, Nanos, SECOND, build};
use astraea_sim::{Config, HEADER, Simulation};
use serde_json::{Value, json};

/// Payload part of a packet.
const PAYLOAD: f64 = MSS as f64 / (MSS + HEADER) as f64;

/// The velocity rule of the paper: three round trips in one direction before it doubles, where genericCC waits for one.
const PAPER: (&str, f64) = ("patience", 3.0);

struct Link {
    rate: f64,
    rtt_ms: u64,
    /// In bandwidth-delay products.
    buffer: f64,
}

impl Link {
    const fn new(rate: f64, rtt_ms: u64) -> Self {
        Self { rate, rtt_ms, buffer: 2.0 }
    }

    /// Transmission time of a packet in ns.
    fn service(&self) -> f64 {
        f64::from(MSS + HEADER) * 8e9 / self.rate
    }

    fn simulation(
        &self,
        seconds: u64,
        flows: &[Value],
        scheme: impl Fn(usize) -> AnyController,
    ) -> Simulation<AnyController> {
        let bytes = (self.rate * self.rtt_ms as f64 / 8e3 * self.buffer) as u64;
        let config: Config = serde_json::from_value(json!({
            "duration_ns": seconds * SECOND,
            "links": [{
                "name": "link", "rate": {"constant": self.rate}, "delay": {"constant": self.rtt_ms * MILLISECOND / 2},
                "limit": {"bytes": bytes}
            }],
            "flows": flows
        }))
        .expect("a configuration");
        Simulation::new(&config, 7, scheme).expect("a valid configuration")
    }
}

fn copa(params: &[(&str, f64)]) -> AnyController {
    let params: Vec<_> = params.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    build("copa", &params, MSS).expect("a scheme")
}

fn state(simulation: &Simulation<AnyController>, flow: usize) -> &Copa {
    match simulation.flows()[flow].controller() {
        AnyController::Copa(copa) => copa,
        other => panic!("{other:?}"),
    }
}

/// What flows of Copa do on a link that they have to themselves, after the first 20 s.
#[derive(Debug)]
struct Outcome {
    /// Mean packets waiting per flow.
    queue: f64,
    utilization: f64,
    jain: f64,
    /// Longest time without an empty queue, in round trips of mean length.
    longest_queue: f64,
}

/// Jain's index of fairness.
fn jain(rates: &[f64]) -> f64 {
    let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|rate| rate * rate).sum::<f64>());
    sum * sum / (rates.len() as f64 * squares)
}

/// `n` flows that begin 2 s after each other.
fn alone(link: &Link, n: usize, params: &[(&str, f64)]) -> Outcome {
    const WARM: Nanos = 20 * SECOND;
    const END: Nanos = 60 * SECOND;
    let flows: Vec<_> = (0..n).map(|flow| json!({"start_ns": 2 * SECOND * flow as u64, "path": [0]})).collect();
    let mut simulation = link.simulation(END / SECOND, &flows, |_| copa(params));
    simulation.run_until(WARM);
    let delivered = |simulation: &Simulation<_>| -> Vec<f64> {
        simulation.flows().iter().map(|flow| flow.delivered_bytes() as f64).collect()
    };
    let before = delivered(&simulation);
    let (waited, served) = (simulation.link_stats(0).wait_sum, simulation.link_stats(0).served);
    let (mut empty_at, mut longest, mut now) = (WARM, 0, WARM);
    while now < END {
        now += link.rtt_ms * MILLISECOND / 20;
        simulation.run_until(now);
        // One packet is in transmission.
        if simulation.queue_length(0) <= 1 {
            empty_at = now;
        }
        longest = longest.max(now - empty_at);
    }
    let got: Vec<f64> = delivered(&simulation).iter().zip(before).map(|(after, before)| after - before).collect();
    let stats = simulation.link_stats(0);
    let wait = (stats.wait_sum - waited) as f64 / (stats.served - served) as f64;
    Outcome {
        queue: wait / link.service() / n as f64,
        utilization: got.iter().sum::<f64>() * 8.0 / ((END - WARM) as f64 / 1e9 * link.rate * PAYLOAD),
        jain: jain(&got),
        longest_queue: longest as f64 / ((link.rtt_ms * MILLISECOND) as f64 + wait),
    }
}

/// One flow keeps about 1/delta packets waiting and empties the queue at least once in five round trips (§3, steady
/// state: the queue swings between nothing and 2.5/delta, on average 1.25/delta; tolerance -20 % and +25 %).
fn keeps_one_over_delta(delta: f64, params: &[(&str, f64)], links: &[(f64, u64)]) {
    for &(rate, rtt_ms) in links {
        let outcome = alone(&Link::new(rate, rtt_ms), 1, &[params, &[("delta", delta)]].concat());
        let place = format!("{rate:.0e} bit/s, {rtt_ms} ms, delta {delta} {params:?}: {outcome:?}");
        assert!((1.0..1.56).contains(&(outcome.queue * delta)), "{place}");
        assert!(outcome.utilization > 0.98 && outcome.longest_queue < 5.0, "{place}");
    }
}

/// 2.5 packets at 0.5 and 12.5 at 0.1, on paths of 17 to 330 and of 67 to 130 packets.
#[test]
fn one_flow_keeps_one_over_delta_packets_waiting() {
    keeps_one_over_delta(0.5, &[], &[(5e6, 40), (5e6, 100), (2e7, 20), (2e7, 60), (5e7, 40), (1e8, 10), (1e8, 40)]);
    keeps_one_over_delta(0.1, &[], &[(2e7, 40), (2e7, 60), (2e7, 80), (1e8, 10)]);
}

/// The patience of the paper extends this to longer paths, here to 830 packets.
#[test]
fn so_it_does_with_the_velocity_of_the_paper() {
    let params = [PAPER, ("competitive", 0.0)];
    keeps_one_over_delta(0.5, &params, &[(5e6, 40), (2e7, 40), (2e7, 100), (1e8, 20), (1e8, 40)]);
    keeps_one_over_delta(0.1, &params, &[(2e7, 100), (1e8, 20), (1e8, 40), (1e8, 100), (4e8, 10)]);
}

/// Packets waiting, times delta, of one flow of genericCC in default mode: its sources, compiled into a simulation of
/// the same link. Tolerance 3 %.
#[test]
fn one_flow_keeps_as_many_as_one_of_genericcc() {
    for (rate, rtt_ms, reference) in [
        (5e6, 100, 1.275),
        (1e7, 40, 1.37),
        (2e7, 30, 1.415),
        (2e7, 60, 1.46),
        (2e7, 100, 1.355),
        (5e7, 20, 1.445),
        (1e8, 20, 1.355),
        (1e8, 40, 1.485),
    ] {
        let got = 0.5 * alone(&Link::new(rate, rtt_ms), 1, &[("competitive", 0.0)]).queue;
        assert!((got / reference - 1.0).abs() < 0.03, "{got}, genericCC {reference} at {rate:.0e} bit/s, {rtt_ms} ms");
    }
}

/// On long paths a velocity that doubles at once never settles. The sources of genericCC, compiled into a simulation of
/// the same link, keep 183 packets waiting, 79.5 % of the link busy and the queue filled for 11.3 times 200 ms
/// (tolerance 10 %): what makes Copa restless is the same here.
#[test]
fn it_oscillates_on_long_paths_as_genericcc_does() {
    let link = Link::new(1e8, 200);
    let outcome = alone(&link, 1, &[("competitive", 0.0)]);
    let round_trips = outcome.longest_queue * (1.0 + outcome.queue * link.service() / 200e6);
    for (got, reference) in [(outcome.queue, 183.0), (outcome.utilization, 0.795), (round_trips, 11.3)] {
        assert!((got / reference - 1.0).abs() < 0.1, "{got}, genericCC {reference}");
    }
}

/// Jain's index of at least 0.95 for 2 to 5 flows.
#[test]
fn flows_share_equally() {
    for (rate, rtt_ms) in [(1e7, 80), (5e7, 20), (1e8, 10)] {
        for n in 2..=5 {
            let outcome = alone(&Link::new(rate, rtt_ms), n, &[]);
            let place = format!("{n} flows, {rate:.0e} bit/s, {rtt_ms} ms: {outcome:?}");
            assert!(outcome.jain > 0.95 && outcome.utilization > 0.92, "{place}");
        }
    }
}

/// With the patience of the paper, in default mode, almost exactly, with 1.25/delta packets each (as for one flow) and
/// a link that never rests.
#[test]
fn flows_share_exactly_with_the_velocity_of_the_paper() {
    for (rate, rtt_ms) in [(2e7, 60), (1e8, 20)] {
        for n in 2..=5 {
            let outcome = alone(&Link::new(rate, rtt_ms), n, &[PAPER, ("competitive", 0.0)]);
            let place = format!("{n} flows, {rate:.0e} bit/s, {rtt_ms} ms: {outcome:?}");
            assert!(outcome.jain > 0.995 && outcome.utilization > 0.99, "{place}");
            assert!((1.0..1.56).contains(&(0.5 * outcome.queue)), "{place}");
        }
    }
}

/// A longer round trip is no disadvantage: of five flows with round trips of one to five times 20 ms none has twice
/// what another has (rates in proportion to 1/RTT would differ fivefold), and Jain's index is above 0.94.
#[test]
fn the_round_trip_hardly_matters() {
    for rate in [1e7, 2e7, 5e7] {
        let link = Link { buffer: 4.0, ..Link::new(rate, 20) };
        let flow = |index: u64| json!({"start_ns": 0, "path": [0], "extra_delay_ns": index * 10 * MILLISECOND});
        let mut simulation = link.simulation(100, &(0..5).map(flow).collect::<Vec<_>>(), |_| copa(&[]));
        simulation.run_until(100 * SECOND);
        let got: Vec<f64> = simulation.flows().iter().map(|flow| flow.delivered_bytes() as f64).collect();
        let (most, least) = (got.iter().copied().fold(0.0, f64::max), got.iter().copied().fold(f64::MAX, f64::min));
        assert!(most < 2.0 * least && jain(&got) > 0.94, "{got:?} at {rate:.0e} bit/s");
    }
}

/// What a flow of Copa sees of one of CUBIC that comes at 15 s and leaves at 45 s.
#[derive(Debug)]
struct Visit {
    /// Part of the time in competitive mode: before (from 5 s), from 20 s on, and after 46 s.
    competitive: [f64; 3],
    /// Round trips of the empty path from the arrival to the first competitive mode, and from the departure to its end.
    switched: [f64; 2],
    /// Copa's part of what both have from 20 s on.
    share: f64,
}

fn visit(link: &Link, params: &[(&str, f64)]) -> Visit {
    let [arrival, settled, departure, after, end] = [15, 20, 45, 46, 60].map(|second| second * SECOND);
    let flows = [json!({"start_ns": 0, "path": [0]}), json!({"start_ns": arrival, "stop_ns": departure, "path": [0]})];
    let cubic = || build("cubic", &[], MSS).expect("a scheme");
    let mut simulation = link.simulation(60, &flows, |flow| if flow == 0 { copa(params) } else { cubic() });
    // A change of the mode is seen late by a sixteenth of a round trip at most.
    let rtt = link.rtt_ms * MILLISECOND;
    let step = rtt / 16;
    let mut part = |from: Nanos, to: Nanos, mode: bool| {
        let (mut now, mut competitive, mut first) = (from, 0, None);
        while now < to {
            now += step;
            simulation.run_until(now);
            let is = state(&simulation, 0).competitive();
            competitive += u32::from(is);
            first = first.or((is == mode).then_some((now - from) as f64 / rtt as f64));
        }
        let part = f64::from(competitive) * step as f64 / (to - from) as f64;
        let delivered = [0, 1].map(|flow| simulation.flows()[flow].delivered_bytes() as f64);
        (part, first.unwrap_or(f64::INFINITY), delivered)
    };
    part(0, 5 * SECOND, true);
    let (before, ..) = part(5 * SECOND, arrival, true);
    let (_, on, start) = part(arrival, settled, true);
    let (during, _, stop) = part(settled, departure, true);
    let (_, off, _) = part(departure, after, false);
    let (later, ..) = part(after, end, true);
    let [copa, cubic] = [0, 1].map(|flow| stop[flow] - start[flow]);
    Visit { competitive: [before, during, later], switched: [on, off], share: copa / (copa + cubic) }
}

/// In a buffer of one bandwidth-delay product Copa competes within a dozen round trips of CUBIC's first packet, in
/// which slow start must first fill the buffer and four must pass, has 30 to 70 % of the link, and stops within four
/// round trips of its last. Always in default mode it would have less than a tenth.
#[test]
fn it_competes_while_cubic_is_there() {
    for (rate, rtt_ms) in [(2e7, 40), (5e7, 40), (1e8, 20)] {
        let link = Link { buffer: 1.0, ..Link::new(rate, rtt_ms) };
        let seen = visit(&link, &[]);
        let [before, during, after] = seen.competitive;
        assert!(before < 0.05 && during > 0.75 && after < 0.1, "{rate:.0e} bit/s: {seen:?}");
        assert!(seen.switched[0] < 12.0 && seen.switched[1] < 4.0, "{rate:.0e} bit/s: {seen:?}");
        assert!((0.3..0.7).contains(&seen.share), "{rate:.0e} bit/s: {seen:?}");
        let meek = visit(&link, &[("competitive", 0.0)]);
        assert!(meek.share < 0.1, "{rate:.0e} bit/s: {meek:?}");
    }
}
