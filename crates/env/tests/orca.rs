//! Orca's environment beside the scheme: a policy that steps the one does to a link what it does in the other.

use astraea_cc::{Controller, MSS, Nanos, SECOND};
use astraea_env::orca::OrcaConfig;
use astraea_env::{Environment, OrcaFlow};
use astraea_policy::orca::{Orca, shipped};
use astraea_policy::{Scratch, orca};
use astraea_sim::{Config, Simulation};
use serde_json::json;

/// Such that no acknowledgement comes in the same nanosecond as a report: the one answers before it, the other after it.
const RATE: f64 = 23.7e6;
const RTT: f64 = 0.06;
/// Half a bandwidth-delay product in wire bytes.
const BUFFER: u64 = 88_875;

fn settings() -> OrcaConfig {
    let json = json!({"bandwidth": RATE, "rtt": RTT, "buffer": 0.5, "steps": 400, "window_limit": 1000});
    OrcaConfig::from_json(&json.to_string()).unwrap()
}

/// Times and windows after each decision of the shipped policy.
fn stepped() -> Vec<(Nanos, u64)> {
    let mut env = OrcaFlow::new(settings()).unwrap();
    let (mut observation, mut info) = (vec![0.0; env.observation_len()], vec![0.0; env.info_names().len()]);
    let (policy, mut scratch) = (shipped(), Scratch::default());
    env.reset(Some(3), &mut observation);
    let mut seen = vec![];
    for step in 1..=400 {
        env.info(&mut info);
        let time = (info[0] * 1e9).round() as Nanos;
        let outcome = env.step(policy.act(&observation, &mut scratch), &mut observation);
        seen.push((time, env.decided()));
        assert_eq!(outcome.truncated, step == 400);
        assert!(!outcome.terminated && outcome.reward <= 1.0);
    }
    seen
}

#[test]
fn steps_are_what_the_scheme_does() {
    let config: Config = serde_json::from_value(json!({
        "duration_ns": 20 * SECOND,
        "links": [{
            "name": "link",
            "rate": {"constant": RATE},
            "delay": {"constant": (RTT * 1e9 / 2.0) as Nanos},
            "limit": {"bytes": BUFFER},
        }],
        "flows": [{"start_ns": 0, "path": [0]}],
    }))
    .unwrap();
    let mut simulation = Simulation::new(&config, 7, |_| Orca::of(shipped(), orca::MOST, MSS)).unwrap();
    let steps = stepped();
    for (index, (time, window)) in steps.iter().enumerate() {
        simulation.run_until(*time);
        assert_eq!(simulation.flows()[0].controller().cwnd(), *window, "decision {index} at {time} ns");
    }
    // They are 20 ms apart, and do something.
    assert!(steps.windows(2).all(|pair| pair[1].0 - pair[0].0 >= orca::PERIOD));
    assert!(steps.iter().any(|(_, window)| *window != steps[0].1));
}

#[test]
fn where_nothing_comes_back_steps_end_all_the_same() {
    let json = json!({"loss": 0.99, "lossy": 1, "steps": 20});
    let mut env = OrcaFlow::new(OrcaConfig::from_json(&json.to_string()).unwrap()).unwrap();
    let mut observation = vec![0.0; env.observation_len()];
    for seed in 0..20 {
        env.reset(Some(seed), &mut observation);
        for _ in 0..20 {
            let outcome = env.step(0.5, &mut observation);
            assert!(outcome.reward.is_finite() && observation.iter().all(|value| value.is_finite()));
        }
    }
}
