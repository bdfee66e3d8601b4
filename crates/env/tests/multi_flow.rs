//! What must hold in every episode of the multi-flow environment, whatever is drawn.

use std::collections::BTreeMap;

use astraea_cc::Nanos;
use astraea_env::multi_flow::{
    AgentStatus, Changes, FlowDriven, MultiFlowConfig, Neighbours, Outages, Parallel, ShortFlows,
};
use astraea_env::{Environment, MultiFlow, Range};

const PERIOD: Nanos = 30_000_000;

fn config() -> MultiFlowConfig {
    MultiFlowConfig {
        duration: 8.0,
        arrival_gap: Range::new(1.5, 1.5),
        lifetime: Some(Range::new(4.0, 4.0)),
        ..MultiFlowConfig::default()
    }
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

/// One flow on a link of 20 to 60 Mbit/s and 40 to 80 ms, drawn anew every three seconds.
fn changing() -> MultiFlowConfig {
    MultiFlowConfig {
        flows: Range::new(1.0, 1.0),
        bandwidth: Range::new(20e6, 60e6),
        rtt: Range::new(0.04, 0.08),
        buffer: Range::new(2.0, 2.0),
        lifetime: None,
        duration: 15.0,
        alpha: 0.1,
        changes: Changes { bandwidth: 1.0, rtt: 1.0, every: Range::new(3.0, 3.0) },
        ..MultiFlowConfig::default()
    }
}

#[test]
fn reward_and_global_state_follow_a_path_that_changes() {
    let mut env = MultiFlow::new(changing(), false).unwrap();
    env.reset(Some(2));
    let path = env.scenario().path.clone();
    assert_eq!((path.bandwidth.len(), path.rtt_excess.len()), (5, 5));
    let mut seen = 0;
    while let Some(decision) = env.next_decision(env.duration()) {
        // Enough is sent to fill the link whatever it is.
        env.act(decision.flow, if env.statistics(0).latency < 1.5 * env.statistics(0).base_rtt { 1.0 } else { -0.5 });
        let piece = path.bandwidth.iter().rposition(|(from, _)| *from <= decision.time).unwrap();
        let capacity = path.bandwidth[piece].1 * 1448.0 / 1500.0;
        let base = env.scenario().flows[0].rtt + path.rtt_excess[piece].1;
        assert!((env.link().capacity - capacity).abs() < 1.0);
        assert!((env.statistics(0).base_rtt - base).abs() < 1e-9);
        assert!((f64::from(env.global_state()[11]) - (capacity / 1e5).log10() / 5.0).abs() < 1e-6);
        // Two seconds after a change the old queue is gone and the new capacity is what the flow gets.
        if decision.time % 3_000_000_000 > 2_000_000_000 {
            seen += 1;
            assert!((env.statistics(0).mean_throughput / capacity - 1.0).abs() < 0.03, "at {} ns", decision.time);
            assert!((env.reward().throughput - 1.0).abs() < 0.1);
            assert!(env.statistics(0).latency > base);
        }
    }
    assert!(seen > 100, "the end of each piece was seen: {seen}");
}

#[test]
fn an_outage_stops_deliveries_and_leaves_the_capacity_as_it_was() {
    let outages = Outages { probability: 1.0, every: Range::new(4.0, 4.0), length: Range::new(2.0, 2.0) };
    let config = MultiFlowConfig { changes: Changes::default(), outages, duration: 10.0, ..changing() };
    let mut env = MultiFlow::new(config, false).unwrap();
    env.reset(Some(1));
    assert_eq!(env.scenario().path.outages, [(4_000_000_000, 6_000_000_000)]);
    let capacity = env.scenario().capacity(0);
    let mut throughputs = [0.0_f64; 10];
    while let Some(decision) = env.next_decision(env.duration()) {
        assert_eq!(env.link().capacity, capacity);
        let second = (decision.time / 1_000_000_000).min(9) as usize;
        throughputs[second] = throughputs[second].max(env.statistics(0).throughput);
        env.act(decision.flow, target_delay(env.local_state(decision.flow)));
    }
    assert!(throughputs[3] > 0.5 * capacity, "{throughputs:?}");
    assert_eq!(throughputs[5], 0.0);
    assert!(throughputs[7] > 0.0, "and it goes on: {throughputs:?}");
}

#[test]
fn neighbours_count_but_do_not_ask() {
    let config = MultiFlowConfig {
        flows: Range::new(2.0, 2.0),
        neighbours: Neighbours { probability: 1.0, schemes: vec!["cubic".into()], flows: Range::new(2.0, 2.0) },
        arrival_gap: Range::new(0.5, 0.5),
        lifetime: None,
        duration: 20.0,
        ..MultiFlowConfig::default()
    };
    let mut env = MultiFlow::new(config, false).unwrap();
    for seed in 0..5 {
        env.reset(Some(seed));
        let flows = env.scenario().flows.clone();
        let neighbours: Vec<bool> = flows.iter().map(|f| f.neighbour == Some("cubic")).collect();
        assert_eq!(neighbours, [false, false, true, true]);
        let (mut asked, mut together, mut delivered) = (0, 0, 0.0_f64);
        while let Some(decision) = env.next_decision(env.duration()) {
            asked += 1;
            delivered = delivered.max(env.statistics(2).throughput);
            assert!(decision.flow < 2);
            assert!(env.local_state(2).is_empty() && env.agent(3).is_none());
            env.act(decision.flow, 0.0);
            let active = env.observer().active_flows();
            if active == [0, 1, 2, 3] {
                together += 1;
                assert_eq!(env.reward().latency, 0.0);
                assert!((env.global_state()[8] - 0.4).abs() < 1e-6, "four flows");
                let mut global = Vec::new();
                env.write_global_state(&mut global);
                assert_eq!((global.len(), global[12]), (13, 0.2));
            }
        }
        assert!(asked > 100 && together > 100, "{asked} {together}");
        assert!(delivered > 0.0 && env.statistics(2).neighbour);
    }
}

#[test]
fn short_flows_come_and_go() {
    let config = MultiFlowConfig {
        flows: Range::new(1.0, 1.0),
        short_flows: ShortFlows { probability: 1.0, every: Range::new(0.5, 0.5), bytes: Range::new(1e5, 1e5) },
        lifetime: None,
        duration: 20.0,
        ..MultiFlowConfig::default()
    };
    let mut env = MultiFlow::new(config, false).unwrap();
    env.reset(Some(1));
    let flows = env.scenario().flows.len();
    // 40 are expected; a deviation is 6.3.
    assert!((20..62).contains(&flows), "{flows}");
    while let Some(decision) = env.next_decision(env.duration()) {
        env.act(decision.flow, target_delay(env.local_state(decision.flow)));
    }
    let there = (0..flows).filter(|flow| env.is_active(*flow)).count();
    assert!((1..8).contains(&there), "they end when they are done: {there} of {flows} are left");
}
