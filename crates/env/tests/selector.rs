//! The selectors' environment beside the schemes, and the schemes on links: which choices come of which paths.

use astraea_cc::{Controller, MSS, Nanos, SECOND};
use astraea_env::selector::SelectorConfig;
use astraea_env::{Environment, SelectorFlow};
use astraea_policy::selector::{CANDIDATES, Caution, Judge, Kind, Selector, shipped};
use astraea_sim::{Config, Simulation};
use serde_json::{Value, json};

const RATE: f64 = 23.7e6;
const RTT: f64 = 0.06;
/// Half a bandwidth-delay product in wire bytes.
const BUFFER: u64 = 88_875;

/// A flow of 20 s under a shipped policy over a link of that rate.
fn simulation(form: Kind, rate: &Value) -> Simulation<Selector<Judge>> {
    let config: Config = serde_json::from_value(json!({
        "duration_ns": 20 * SECOND,
        "links": [{
            "name": "link",
            "rate": rate,
            "delay": {"constant": (RTT * 1e9 / 2.0) as Nanos},
            "limit": {"bytes": BUFFER},
        }],
        "flows": [{"start_ns": 0, "path": [0]}],
    }))
    .unwrap();
    Simulation::new(&config, 7, |_| Selector::of(shipped(form), Caution::default(), MSS)).unwrap()
}

/// The scheme and the window of a flow after each decision that the environment takes for `choose`.
fn stepped(form: Kind, mut choose: impl FnMut(usize) -> usize) -> Vec<(Nanos, usize, u64)> {
    let json = json!({
        "form": form.name(), "bandwidth": RATE, "rtt": RTT, "buffer": 0.5, "lossy": 0, "duration": 10,
    });
    let mut env = SelectorFlow::new(SelectorConfig::from_json(&json.to_string()).unwrap()).unwrap();
    let (mut observation, mut info) = (vec![0.0; env.observation_len()], vec![0.0; env.info_names().len()]);
    env.reset(Some(3), &mut observation);
    let mut seen = vec![];
    loop {
        env.info(&mut info);
        let (time, choice) = ((info[0] * 1e9).round() as Nanos, choose(seen.len()));
        let outcome = env.step(choice as f64, &mut observation);
        seen.push((time, choice, env.decided()));
        assert!(!outcome.terminated && outcome.reward <= 1.0, "{}", outcome.reward);
        if outcome.truncated {
            return seen;
        }
    }
}

#[test]
fn steps_are_what_the_scheme_does() {
    for form in Kind::ALL {
        // The scheme's choices, made by hand.
        let mut simulation = simulation(form, &json!({"constant": RATE}));
        let mut choices = vec![];
        let mut windows = vec![];
        while choices.len() < 400 && simulation.now() < 9 * SECOND {
            let decided = simulation.flows()[0].controller().decisions();
            let at = simulation.next_event().unwrap();
            simulation.run_until(at);
            let selector = simulation.flows()[0].controller();
            if selector.decisions() > decided {
                choices.push(selector.current());
                windows.push((at, selector.cwnd()));
            }
        }
        let steps = stepped(form, |step| *choices.get(step).unwrap_or(&1));
        for (index, ((at, window), choice)) in windows.iter().zip(&choices).enumerate() {
            assert_eq!(steps[index], (*at, *choice, *window), "{} {index}", form.name());
        }
        assert!(choices.len() > 50, "{}", choices.len());
    }
}

#[test]
fn each_choice_is_a_scheme_that_fills_the_link() {
    for (scheme, name) in CANDIDATES.iter().enumerate() {
        let steps = stepped(Kind::Hacc, |_| scheme);
        // The path holds 118 packets, and 59 more wait: half of 177 is what Reno leaves of a full one.
        let late = &steps[steps.len() / 2..];
        let mean = late.iter().map(|(_, _, window)| *window as f64).sum::<f64>() / late.len() as f64;
        assert!(mean > 88.0 * f64::from(MSS), "{name}: {mean}");
    }
}

#[test]
fn where_nothing_comes_back_steps_end_all_the_same() {
    let json = json!({"loss": 0.7, "lossy": 1, "rtt": 0.4, "bandwidth": 1e6, "duration": 600});
    for form in Kind::ALL {
        let mut env = SelectorFlow::new(SelectorConfig::from_json(&json.to_string()).unwrap()).unwrap();
        let (mut observation, mut info) = (vec![0.0; env.observation_len()], vec![0.0; env.info_names().len()]);
        for seed in 0..4 {
            env.reset(Some(seed), &mut observation);
            let over = (0..10_000).any(|step| {
                let outcome = env.step((step % CANDIDATES.len()) as f64, &mut observation);
                assert!(outcome.reward.is_finite() && observation.iter().all(|value| value.is_finite()));
                outcome.truncated
            });
            env.info(&mut info);
            assert!(over && info[0] >= 600.0, "{} {seed}: {} s", form.name(), info[0]);
        }
    }
}

#[test]
fn hacc_decides_when_the_path_changes() {
    let changes = |form| {
        let rate = json!({"schedule": [[0, 24e6], [8 * SECOND, 6e6]]});
        let mut simulation = simulation(form, &rate);
        let mut at = |time: Nanos| {
            simulation.run_until(time);
            let selector = simulation.flows()[0].controller();
            (selector.chooser().looks(), selector.switches())
        };
        [4, 8, 12, 20].map(|second| at(second * SECOND))
    };
    let (hacc, antelope) = (changes(Kind::Hacc), changes(Kind::Antelope));
    assert_eq!(hacc[1].0, hacc[0].0, "none in a steady state: {hacc:?}");
    assert_eq!(hacc[2].0, hacc[1].0 + 1, "one for a change: {hacc:?}");
    assert!(hacc[3].0 <= hacc[2].0 + 1, "at most one for what another scheme then makes of the path: {hacc:?}");
    assert!(antelope[3].0 > 50 * hacc[3].0, "{antelope:?} {hacc:?}");
    assert!(hacc[3].1 <= antelope[3].1, "no more changes of the scheme: {antelope:?} {hacc:?}");
}
