use super::*;
use proptest::prelude::*;

/// Pseudo-random values in -1..1 (xorshift), different for each seed.
fn values(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn random(sizes: &[usize], activation: Activation, seed: u64) -> Network {
    let layers = sizes.windows(2).enumerate().map(|(i, pair)| {
        let scale = (2.0 / pair[0] as f32).sqrt();
        let mut weights = values(seed + 2 * i as u64, pair[0] * pair[1]);
        for weight in &mut weights {
            *weight *= scale;
        }
        Layer { inputs: pair[0], weights, bias: values(seed + 2 * i as u64 + 1, pair[1]) }
    });
    Network::new(layers.collect(), activation).unwrap()
}

/// The definition, in double precision and one unit after the other.
fn reference(network: &Network, state: &[f32]) -> f64 {
    let mut x: Vec<f64> = state.iter().copied().map(f64::from).collect();
    for (index, layer) in network.layers().iter().enumerate() {
        let hidden = index + 1 < network.layers().len();
        x = layer
            .weights
            .chunks(layer.inputs)
            .zip(&layer.bias)
            .enumerate()
            .map(|(unit, (row, bias))| {
                let sum = f64::from(*bias) + row.iter().zip(&x).map(|(w, x)| f64::from(*w) * x).sum::<f64>();
                match network.activation() {
                    _ if !hidden => sum,
                    Activation::Split if unit >= layer.outputs().div_ceil(2) => sum.min(0.0),
                    _ => sum.max(0.0),
                }
            })
            .collect();
    }
    x[0].tanh()
}

fn layer(inputs: usize, weights: &[f32], bias: &[f32]) -> Layer {
    Layer { inputs, weights: weights.to_vec(), bias: bias.to_vec() }
}

#[test]
fn by_hand() {
    // Hidden sums 1*3 + 2*(-1) + 0.5 = 1.5 and -3 - 1 - 1 = -5.
    let hidden = layer(2, &[1.0, 2.0, -1.0, 1.0], &[0.5, -1.0]);
    let output = layer(2, &[0.5, 0.125], &[-0.25]);
    for (activation, sum) in [(Activation::Relu, 0.5_f32), (Activation::Split, -0.125)] {
        let network = Network::new(vec![hidden.clone(), output.clone()], activation).unwrap();
        assert_eq!(network.forward(&[3.0, -1.0], &mut Scratch::default()), libm::tanhf(sum));
        assert_eq!((network.shape(), network.inputs()), ("2-2-1".to_owned(), 2));
    }
}

#[test]
fn every_state_gives_an_action() {
    let network = random(&[3, 4, 1], Activation::Relu, 1);
    let bare = Network::new(vec![layer(2, &[1.0, 1.0], &[0.0])], Activation::Relu).unwrap();
    for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
        let action = network.forward(&[odd, -odd, 0.5], &mut Scratch::default());
        assert!((-1.0..=1.0).contains(&action), "{odd}: {action}");
    }
    assert_eq!(bare.forward(&[f32::INFINITY, f32::NEG_INFINITY], &mut Scratch::default()), -1.0);
}

#[test]
fn scratch_serves_networks_of_any_size() {
    let mut scratch = Scratch::default();
    for sizes in [&[5, 8, 1][..], &[5, 300, 20, 1], &[5, 1]] {
        let network = random(sizes, Activation::Relu, 7);
        let state = values(8, 5);
        assert_eq!(network.forward(&state, &mut scratch), network.forward(&state, &mut Scratch::default()));
        // And between them policies of the other kind.
        let action = |scratch: &mut Scratch| scratch.action([&state, &[]], network.layers(), 9.0);
        assert_eq!(action(&mut scratch), action(&mut Scratch::default()));
    }
}

#[test]
fn each_mistake_has_one_clear_line() {
    let error = |layers| Network::new(layers, Activation::Relu).expect_err("a mistake").to_string();
    let good = || layer(2, &[1.0; 6], &[0.0; 3]);
    assert_eq!(error(vec![]), "0 layers, expected 1 to 8");
    assert_eq!(error(vec![layer(0, &[], &[0.0])]), "layer 0 has 0 inputs, expected 1 to 1024");
    assert_eq!(error(vec![layer(1, &[0.0; 2000], &[0.0; 2000])]), "layer 0 has 2000 outputs, expected 1 to 1024");
    assert_eq!(error(vec![layer(2, &[1.0; 5], &[0.0; 3])]), "layer 0 has 5 weights, expected 3 x 2");
    assert_eq!(
        error(vec![good(), layer(4, &[1.0; 4], &[0.0])]),
        "layer 1 has 4 inputs, expected 3, the outputs of the layer before"
    );
    assert_eq!(error(vec![good()]), "the last layer has 3 outputs, expected 1, the action");
    assert_eq!(
        error(vec![layer(2, &[1.0, f32::NAN], &[0.0])]),
        "layer 0 has a weight that is NaN, expected a finite number"
    );
    assert_eq!(
        error(vec![layer(1, &[1.0], &[f32::INFINITY])]),
        "layer 0 has a bias that is inf, expected a finite number"
    );
}

#[test]
fn vector_widths_agree_to_the_bit() {
    let best = Level::new();
    let mut levels = vec![best, Level::baseline()];
    #[cfg(target_arch = "x86_64")]
    levels.extend(best.as_avx2().map(Level::Avx2));
    for activation in Activation::ALL {
        let mut network = random(&[25, 256, 128, 64, 1], activation, 3);
        let states = values(9, 11 * 25);
        let actions = levels.iter().map(|level| {
            network.level = *level;
            let mut actions = [0.0; 11];
            network.forward_batch(&states, &mut actions, &mut Scratch::default());
            actions.map(f32::to_bits)
        });
        let actions: Vec<_> = actions.collect();
        assert!(actions.iter().all(|other| *other == actions[0]), "{actions:?}");
    }
}

fn any_network() -> impl Strategy<Value = Network> {
    let sizes = (1..48_usize, prop::collection::vec(1..180_usize, 0..4));
    (sizes, any::<bool>(), any::<u32>()).prop_map(|((inputs, hidden), split, seed)| {
        let sizes: Vec<usize> = std::iter::once(inputs).chain(hidden).chain([1]).collect();
        random(&sizes, if split { Activation::Split } else { Activation::Relu }, u64::from(seed))
    })
}

proptest! {
    #[test]
    fn a_batch_is_one_state_after_the_other(network in any_network(), count in 0..14_usize, seed in any::<u64>()) {
        let states = values(seed, count * network.inputs());
        let mut scratch = Scratch::default();
        let mut actions = vec![0.0; count];
        network.forward_batch(&states, &mut actions, &mut scratch);
        for (state, action) in states.chunks(network.inputs()).zip(actions) {
            prop_assert_eq!(network.forward(state, &mut scratch).to_bits(), action.to_bits());
        }
    }

    #[test]
    fn the_action_is_that_of_the_definition(network in any_network(), seed in any::<u64>()) {
        let state = values(seed, network.inputs());
        let action = f64::from(network.forward(&state, &mut Scratch::default()));
        let expected = reference(&network, &state);
        prop_assert!((action - expected).abs() < 1e-5, "{} is not {}", action, expected);
    }
}
