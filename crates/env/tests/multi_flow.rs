//! What must hold in every episode of the multi-flow environment, whatever is drawn.

use std::collections::BTreeMap;

use astraea_cc::Nanos;
use astraea_env::multi_flow::{AgentStatus, FlowDriven, MultiFlowConfig, Parallel};
use astraea_env::{Environment, MultiFlow, Range};

const PERIOD: Nanos = 30_000_000;

fn config() -> MultiFlowConfig {
    MultiFlowConfig { duration: 8.0, arrival_gap: 1.5, lifetime: Some(4.0), ..MultiFlowConfig::default() }
}

/// A policy by hand: aim at a queueing delay of a tenth of the round trip, as far as the state shows it.
fn target_delay(state: &[f32]) -> f64 {
    let latency_ratio = f64::from(state[state.len() - 6]);
    (10.0 * (1.1 - latency_ratio)).clamp(-1.0, 1.0)
}

#[test]
fn a_flow_asks_once_a_period_while_it_is_there() {
    for seed in 0..20 {
        let mut env = MultiFlow::new(config(), false).unwrap();
        env.reset(Some(seed));
        let mut last: BTreeMap<usize, Nanos> = BTreeMap::new();
        let mut now = 0;
        while let Some(decision) = env.next_decision(env.duration()) {
            assert!(decision.time >= now, "time runs forwards");
            now = decision.time;
            let draw = env.scenario().flows[decision.flow];
            assert!(now > draw.start && draw.stop.is_none_or(|stop| now <= stop));
            assert_eq!((now - draw.start) % PERIOD, 0, "periods count from the flow's start");
            if let Some(previous) = last.insert(decision.flow, now) {
                assert_eq!(now - previous, PERIOD);
            }
            let action = target_delay(env.local_state(decision.flow));
            env.act(decision.flow, action);
        }
        // Every flow that stays long enough gets to ask, until it leaves.
        for (flow, draw) in env.scenario().flows.iter().enumerate() {
            let stop = draw.stop.unwrap_or(env.duration());
            if stop - draw.start > 3_000_000_000 {
                assert!(stop - last[&flow] <= PERIOD, "flow {flow} of {:?}", env.scenario());
            }
        }
    }
}

#[test]
fn statistics_agree_with_the_link() {
    let alone = MultiFlowConfig {
        flows: Range::new(1.0, 1.0),
        bandwidth: Range::new(60e6, 60e6),
        rtt: Range::new(0.04, 0.04),
        buffer: Range::new(1.0, 1.0),
        lifetime: None,
        ..config()
    };
    let mut env = MultiFlow::new(alone, false).unwrap();
    env.reset(Some(1));
    while let Some(decision) = env.next_decision(env.duration()) {
        env.act(decision.flow, target_delay(env.local_state(decision.flow)));
    }
    let statistics = env.statistics(0);
    let capacity = 60e6 * 1448.0 / 1500.0;
    // A period of 30 ms holds 150 packets: a boundary may fall on either side of one.
    assert!((statistics.mean_throughput / capacity - 1.0).abs() < 0.01, "{statistics:?}");
    // The base round trip and the transmission of a packet, 0.2 ms; the target is 1.1 of that.
    assert!((statistics.latency - 1.1 * 0.0402).abs() < 0.001, "{statistics:?}");
    assert_eq!(statistics.loss, 0.0);
    let terms = env.reward();
    assert!((terms.throughput - 1.0).abs() < 0.01);
    // 10 % of queueing delay is below the tolerance of 20 %.
    assert_eq!((terms.latency, terms.loss, terms.fairness), (0.0, 0.0, 0.0));
    let global = env.global_state();
    assert!((global[0] - 1.0).abs() < 0.01);
    assert!((f64::from(global[3]) - statistics.latency / 0.04).abs() < 1e-6);
    assert!((global[8] - 0.1).abs() < 1e-6, "one flow");
    // A buffer of one bandwidth-delay product is half of the way from 0.01 to 100.
    assert!((global[10] - 0.5).abs() < 1e-3);
}

#[test]
fn the_same_seed_gives_the_same_episode() {
    let run = |seed| {
        let mut env = FlowDriven::new(config()).unwrap();
        let mut observation = vec![0.0; env.observation_len()];
        let mut trace = Vec::new();
        env.reset(Some(seed), &mut observation);
        for _ in 0..2 {
            loop {
                let outcome = env.step(target_delay(&observation), &mut observation);
                trace.push((env.decision(), outcome.reward.to_bits(), observation[36].to_bits()));
                if outcome.is_over() {
                    break;
                }
            }
            env.reset(None, &mut observation);
        }
        trace
    };
    assert_eq!(run(3), run(3));
    assert_ne!(run(3), run(4));
}

#[test]
fn episodes_end_by_time() {
    let mut env = FlowDriven::new(config()).unwrap();
    let mut observation = vec![0.0; env.observation_len()];
    for seed in 0..10 {
        env.reset(Some(seed), &mut observation);
        loop {
            let outcome = env.step(0.0, &mut observation);
            assert!(!outcome.terminated);
            assert!(outcome.reward.abs() <= 0.1);
            let time = env.decision().time;
            assert_eq!(outcome.truncated, time >= env.env().duration());
            if outcome.truncated {
                assert!(time <= env.env().duration() + PERIOD);
                break;
            }
        }
    }
}

#[test]
fn an_episode_too_short_for_a_decision_ends_at_once() {
    let short = MultiFlowConfig { duration: 0.001, ..config() };
    let mut env = FlowDriven::new(short).unwrap();
    let mut observation = vec![1.0; env.observation_len()];
    env.reset(Some(1), &mut observation);
    assert!(observation.iter().all(|v| *v == 0.0));
    assert!(env.step(0.0, &mut observation).truncated);
}

#[test]
fn agents_appear_and_leave_together_with_their_flows() {
    let mut kinds = BTreeMap::new();
    for seed in 0..20 {
        let mut env = Parallel::new(config()).unwrap();
        env.reset(Some(seed));
        let mut before = env.agents().to_vec();
        loop {
            let now = env.env().now();
            assert_eq!(now % PERIOD * u64::from(!env.is_over()), 0, "periods end together");
            let actions: Vec<f64> =
                (0..env.agents().len()).map(|flow| target_delay(env.env().local_state(flow))).collect();
            env.step(&actions);
            for (flow, (old, new)) in before.iter().zip(env.agents()).enumerate() {
                use AgentStatus::{Gone, Left, Live, Waiting};
                let allowed =
                    matches!((old, new), (Waiting, Waiting | Live) | (Live, Live | Left) | (Left | Gone, Gone));
                assert!(allowed, "{old:?} -> {new:?}");
                *kinds.entry((*old as u8, *new as u8)).or_insert(0) += 1;
                if *new == Live && !env.is_over() {
                    assert!(env.env().is_active(flow));
                }
            }
            before = env.agents().to_vec();
            if env.is_over() {
                break;
            }
            assert!(before.contains(&AgentStatus::Live), "time passes until somebody is live");
        }
    }
    assert_eq!(kinds.len(), 6, "all transitions happened: {kinds:?}");
}
