//! A policy's network is the same in floating point, in integers, in C and in the kernel.

mod support;

use astraea_kernel::intf::{self, PROBE_DECIDE, Policy as Laid, Probe};
use astraea_kernel::layout;
use astraea_kernel::probe::{Prober, native};
use astraea_policy::fixed::calibration;
use astraea_policy::{Activation, FixedNetwork, Form, Layer, Metadata, Network, Policy, Scratch, shipped};

use support::{cannot_run, shipped_policy};

/// States that the kernel is asked about, of each policy.
const IN_KERNEL: u64 = 5_000;

/// States for floating point against integers. A million take two minutes: `STATES=1000000 cargo test`.
fn states() -> u64 {
    std::env::var("STATES").ok().and_then(|text| text.parse().ok()).unwrap_or(10_000)
}

/// The sizes of the published network, with the state that sees a backlog; no such policy is shipped.
fn full() -> Policy {
    let sizes = [25, 256, 128, 64, 1];
    let mut seed = 1_u32;
    let mut random = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(seed) / f64::from(u32::MAX) - 0.5
    };
    let layers = sizes.windows(2).map(|pair| {
        let scale = (12.0 / pair[0] as f64).sqrt();
        let mut draw = |count: usize| (0..count).map(|_| (random() * scale) as f32).collect::<Vec<_>>();
        Layer { inputs: pair[0], weights: draw(pair[0] * pair[1]), bias: draw(pair[1]) }
    });
    let network = Network::new(layers.collect(), Activation::Relu).unwrap();
    Policy::new(network, Metadata { form: Form::Guided, alpha: 0.04, period: 30_000_000, notes: [].into() }).unwrap()
}

fn policies() -> Vec<(String, Policy)> {
    let shipped = shipped::names().map(|name| (name.to_owned(), shipped_policy(name)));
    shipped.chain([("25-256-128-64-1".to_owned(), full())]).collect()
}

/// The question what the network says to a state.
fn question(state: &[i32]) -> Probe {
    let mut probe = *intf::zeroed::<Probe>();
    probe.kind = PROBE_DECIDE;
    probe.state[..state.len()].copy_from_slice(state);
    probe
}

/// Actions in Q24 by native code.
fn native_actions(policy: &Laid, states: &[Vec<i32>]) -> Vec<i32> {
    let mut agent = intf::zeroed();
    let mut probes: Vec<_> = states.iter().map(|state| question(state)).collect();
    native::feed(&mut agent, policy, &mut probes);
    probes.iter().map(|probe| probe.action).collect()
}

#[test]
fn integers_keep_the_actions() {
    for (name, policy) in policies() {
        let form = policy.metadata().form;
        let fixed = FixedNetwork::new(policy.network(), form);
        let laid = layout::policy(&policy, 0).unwrap();
        let mut scratch = Scratch::default();
        let (mut sum, mut most) = (0.0, 0.0_f64);
        for first in (0..states()).step_by(10_000) {
            let float: Vec<_> = (first..first + 10_000).map(|index| calibration(form, 1 << 32 | index)).collect();
            let states: Vec<_> = float.iter().map(|state| fixed.state(state)).collect();
            let found = native_actions(&laid, &states);
            for ((float, state), action) in float.iter().zip(&states).zip(found) {
                let action = f64::from(action) / layout::ONE;
                let difference = (action - f64::from(policy.network().forward(float, &mut scratch))).abs();
                sum += difference;
                most = most.max(difference);
                if state[0] % 16 == 0 {
                    let by_rust = fixed.forward(state);
                    assert!((action - by_rust).abs() < 1e-6, "{name}: C says {action}, Rust {by_rust}");
                }
            }
        }
        let mean = sum / states() as f64;
        eprintln!("{name}: {} states, action error mean {mean:.6}, largest {most:.4}", states());
        assert!(mean < 0.005 && most < 0.05, "{name}: mean {mean}, largest {most}");
    }
}

#[test]
fn the_kernel_gives_the_same_bits() {
    if cannot_run() {
        return;
    }
    for (name, policy) in policies() {
        let fixed = FixedNetwork::new(policy.network(), policy.metadata().form);
        let laid = layout::policy(&policy, 0).unwrap();
        let mut prober = Prober::new(&laid).unwrap();
        let form = policy.metadata().form;
        let states: Vec<_> = (0..IN_KERNEL).map(|index| fixed.state(&calibration(form, 2 << 32 | index))).collect();
        let mut probes: Vec<_> = states.iter().map(|state| question(state)).collect();
        prober.feed(&mut probes).unwrap();
        let expected = native_actions(&laid, &states);
        let differ = probes.iter().zip(&expected).filter(|(probe, action)| probe.action != **action).count();
        assert_eq!(differ, 0, "{name}: of {IN_KERNEL} actions");
        assert!(expected.iter().any(|action| *action != expected[0]), "{name}: all actions are alike");
    }
}

#[test]
fn a_long_name_is_cut_between_characters() {
    let layer = Layer { inputs: 25, weights: vec![0.1; 25], bias: vec![0.0] };
    let network = Network::new(vec![layer], Activation::Relu).unwrap();
    let notes = [("name".to_owned(), "é".repeat(20))].into();
    let policy = Policy::new(network, Metadata { form: Form::Pure, alpha: 0.1, period: 30_000_000, notes }).unwrap();
    assert_eq!(layout::name(&layout::policy(&policy, 0).unwrap()), "é".repeat(15));
}

#[test]
fn networks_that_do_not_fit_are_refused() {
    let policy = |sizes: &[usize]| {
        let layer =
            |pair: &[usize]| Layer { inputs: pair[0], weights: vec![0.1; pair[0] * pair[1]], bias: vec![0.0; pair[1]] };
        let network = Network::new(sizes.windows(2).map(layer).collect(), Activation::Relu).unwrap();
        Policy::new(network, Metadata { form: Form::Pure, alpha: 0.1, period: 30_000_000, notes: [].into() }).unwrap()
    };
    let error = |sizes: &[usize]| layout::policy(&policy(sizes), 0).unwrap_err().to_string();
    assert!(layout::policy(&policy(&[25, 256, 128, 64, 1]), 0).is_ok());
    assert!(error(&[25, 264, 1]).contains("25-264-1 does not fit into the kernel: at most 256 inputs"));
    assert!(error(&[25, 8, 8, 8, 8, 1]).contains("at most 4 layers"));
    assert!(error(&[25, 256, 256, 1]).contains("at most 51712 numbers with weights and 456 units"));
}
