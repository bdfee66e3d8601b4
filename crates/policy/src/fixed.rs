//! A network in integers, for places without floating point such as a BPF program.
//!
//! Weights are as wide as 32-bit sums allow: each output has its own scale, so that whatever the inputs are, no sum of
//! its products overflows. Features have 15 bits and a sign, activations 14, which leaves more for the weights, whose
//! rounding counts most. Each activation has a scale of its own too, from the largest that [`calibration`] states give;
//! beyond it, it saturates.
//!
//! That is not enough for policies of the papers' form: they go from -1 to 1 within a thousandth of a feature's range, and a
//! state that is rounded across such a step gets another answer. They are *wide*: 64-bit sums, 31 bits for weights, 25 for
//! what they are multiplied by, and a layer's activations share one scale, so that a unit that hardly ever wakes does not
//! saturate when it does. That takes twice the time, for a narrow network computes two sums at once.

use astraea_cc::SplitMix64;

use crate::backlog::{self, Signals};
use crate::{BacklogState, Form, Network, state};

/// Largest numbers of a kind of network.
struct Width {
    feature: i32,
    activation: i32,
    /// How far activations may exceed the largest one that was seen before they saturate.
    margin: f64,
}

const NARROW: Width = Width { feature: 32767, activation: 16383, margin: 1.25 };
const WIDE: Width = Width { feature: (1 << 25) - 1, activation: (1 << 25) - 1, margin: 8.0 };

/// Largest number of 32 bits: what sizes add up to at most, of a narrow output's products and of a wide one's weights.
const SUM: f64 = 2_147_483_647.0;

/// Largest bias of a narrow output, in the units of its products.
const LARGEST_BIAS: f64 = 4e9;

/// Bits below the point of the last sum, the argument of tanh.
pub const OUTPUT_BITS: u32 = 20;

/// States that activations are calibrated with.
const CALIBRATION: usize = 4096;

/// One output: `clamp((sum + bias) * scale / 2^shift, low, high)`, rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Added to the sum of products.
    pub bias: i64,
    /// Numerator of the factor to the scale of the next layer's inputs …
    pub scale: i32,
    /// … and the logarithm of its denominator.
    pub shift: u32,
    /// Smallest output.
    pub low: i32,
    /// Largest output.
    pub high: i32,
}

/// One layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedLayer {
    /// Number of inputs.
    pub inputs: usize,
    /// Shape (outputs, inputs), row by row.
    pub weights: Vec<i32>,
    /// Shape (outputs).
    pub units: Vec<Unit>,
}

/// A network in integers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedNetwork {
    /// Whether sums need 64 bits.
    pub wide: bool,
    /// Size of an input, at most.
    pub most: i32,
    /// Units of each feature of a period in one.
    pub input_scale: Vec<u32>,
    /// The layers in the order of evaluation.
    pub layers: Vec<FixedLayer>,
}

impl FixedNetwork {
    /// The network of a policy of this form in integers.
    pub fn new(network: &Network, form: Form) -> Self {
        let largest = largest_activations(network, form);
        let wide = form == Form::Paper;
        let width = if wide { WIDE } else { NARROW };
        let input_scale = input_scale(form, &width);
        let last = network.layers().len() - 1;
        // Before the first layer each feature has a scale of its own, which its weights take back.
        let mut scale_in: Vec<f64> = (0..network.inputs()).map(|i| scale(&input_scale, i)).collect();
        let layers = network.layers().iter().enumerate().map(|(index, layer)| {
            let is_last = index == last;
            let largest_input = if index == 0 { width.feature } else { width.activation };
            let scale_out: Vec<f64> = if is_last {
                vec![f64::from(1 << OUTPUT_BITS)]
            } else {
                let of_layer = largest[index].iter().copied().fold(0.0, f64::max);
                let most = |own: &f64| if wide { of_layer } else { *own };
                let scale = |own| f64::from(width.activation) / (width.margin * most(own)).max(1e-3);
                largest[index].iter().map(scale).collect()
            };
            let rectified = network.activation().rectified(layer.outputs());
            let rows = layer.weights.chunks_exact(layer.inputs).zip(&layer.bias).enumerate();
            let (weights, units): (Vec<_>, Vec<_>) = rows
                .map(|(output, (row, bias))| {
                    let bounds = if is_last {
                        (i32::MIN, i32::MAX)
                    } else if output < rectified {
                        (0, width.activation)
                    } else {
                        (-width.activation, 0)
                    };
                    if wide {
                        wide_unit(row, *bias, &scale_in, scale_out[output], bounds)
                    } else {
                        unit(row, *bias, &scale_in, SUM / f64::from(largest_input), scale_out[output], bounds)
                    }
                })
                .unzip();
            scale_in = scale_out;
            FixedLayer { inputs: layer.inputs, weights: weights.concat(), units }
        });
        Self { wide, most: width.feature, input_scale, layers: layers.collect() }
    }

    /// A state in integers.
    pub fn state(&self, state: &[f32]) -> Vec<i32> {
        let limit = f64::from(self.most);
        let number = |(i, value): (usize, &f32)| f64::from(*value) * scale(&self.input_scale, i);
        state.iter().enumerate().map(|value| number(value).round().clamp(-limit, limit) as i32).collect()
    }

    /// The last sum for a state in integers, in units of 2^-[`OUTPUT_BITS`]: the action is its hyperbolic tangent.
    pub fn sum(&self, state: &[i32]) -> i32 {
        let mut x = state.to_vec();
        for layer in &self.layers {
            let rows = layer.weights.chunks_exact(layer.inputs).zip(&layer.units);
            x = rows
                .map(|(row, unit)| {
                    let sum: i64 = row.iter().zip(&x).map(|(w, x)| i64::from(*w) * i64::from(*x)).sum();
                    unit.activate(sum)
                })
                .collect();
        }
        x[0]
    }

    /// The action for a state in integers.
    pub fn forward(&self, state: &[i32]) -> f64 {
        libm::tanh(f64::from(self.sum(state)) / f64::from(1 << OUTPUT_BITS))
    }
}

impl Unit {
    fn activate(&self, sum: i64) -> i32 {
        let half = (1_i64 << self.shift) >> 1;
        let scaled = ((sum + self.bias) * i64::from(self.scale) + half) >> self.shift;
        scaled.clamp(i64::from(self.low), i64::from(self.high)) as i32
    }
}

/// Units of each feature in one: as many as its range leaves, and an eighth where it has no bounds.
fn input_scale(form: Form, width: &Width) -> Vec<u32> {
    let units = |range: f32| (f64::from(width.feature) / f64::from(range)) as u32;
    match form {
        Form::Paper => state::FEATURES.iter().map(|feature| units(feature.bounds().1)).collect(),
        Form::Pure | Form::Guided => vec![units(8.0).next_power_of_two(); backlog::FEATURES.len()],
    }
}

fn scale(input_scale: &[u32], input: usize) -> f64 {
    f64::from(input_scale[input % input_scale.len()])
}

/// The weights of one output as integers for inputs in units of 1 / `scale_in`, and what is done with their sum.
/// `most` is the largest sum of the weights' sizes.
fn unit(
    row: &[f32],
    bias: f32,
    scale_in: &[f64],
    most: f64,
    scale_out: f64,
    (low, high): (i32, i32),
) -> (Vec<i32>, Unit) {
    let row: Vec<f64> = row.iter().zip(scale_in).map(|(weight, scale)| f64::from(*weight) / scale).collect();
    let total: f64 = row.iter().map(|weight| weight.abs()).sum();
    // Rounding adds half a unit for each weight at most. A bias that is large against the weights has to fit as well.
    let finest = if total == 0.0 { scale_out } else { (most - 0.5 * row.len() as f64 - 1.0) / total };
    let scale = finest.min(LARGEST_BIAS / f64::from(bias.abs()));
    let weights = row.iter().map(|weight| (weight * scale).round() as i32).collect();
    // A sum below 2^33 with its bias, times a factor below 2^29, fits into 63 bits.
    let factor = scale_out / scale;
    let shift = (28.0 - libm::log2(factor)).floor().clamp(1.0, 62.0);
    let bias = (f64::from(bias) * scale).round() as i64;
    (weights, Unit { bias, scale: (factor * libm::exp2(shift)).round() as i32, shift: shift as u32, low, high })
}

/// The same for a wide network, whose weights have bits to spare: scaled so that the factor is a power of two.
fn wide_unit(row: &[f32], bias: f32, scale_in: &[f64], scale_out: f64, (low, high): (i32, i32)) -> (Vec<i32>, Unit) {
    let row: Vec<f64> = row.iter().zip(scale_in).map(|(weight, scale)| f64::from(*weight) / scale).collect();
    let total: f64 = row.iter().map(|weight| weight.abs()).sum();
    let shift = libm::log2(SUM / (2.0 * total * scale_out)).floor().clamp(0.0, 24.0);
    let scale = scale_out * libm::exp2(shift);
    let weights = row.iter().map(|weight| (weight * scale).round() as i32).collect();
    // Weights of 31 bits times inputs of 25 leave six bits: a sum and its bias fit.
    let bias = (f64::from(bias) * scale).round().clamp(-1e18, 1e18) as i64;
    (weights, Unit { bias, scale: 1, shift: shift as u32, low, high })
}

/// The largest size of each activation over the [`calibration`] states, layer by layer.
fn largest_activations(network: &Network, form: Form) -> Vec<Vec<f64>> {
    let mut largest: Vec<_> = network.layers().iter().map(|layer| vec![0.0_f64; layer.outputs()]).collect();
    for index in 0..CALIBRATION as u64 {
        let mut x: Vec<f64> = calibration(form, index).into_iter().map(f64::from).collect();
        for (layer, largest) in network.layers().iter().zip(&mut largest) {
            let rectified = network.activation().rectified(layer.outputs());
            let rows = layer.weights.chunks_exact(layer.inputs).zip(&layer.bias).enumerate();
            x = rows
                .map(|(output, (row, bias))| {
                    let sum: f64 = row.iter().zip(&x).map(|(w, x)| f64::from(*w) * x).sum::<f64>() + f64::from(*bias);
                    if output < rectified { sum.max(0.0) } else { sum.min(0.0) }
                })
                .collect();
            for (most, value) in largest.iter_mut().zip(&x) {
                *most = most.max(value.abs());
            }
        }
    }
    largest
}

/// State number `index` of those that a form is calibrated and tested with: flows of all kinds, each with five periods
/// that differ a little, or a lot.
pub fn calibration(form: Form, index: u64) -> Vec<f32> {
    let mut random = SplitMix64::new(index);
    let mut uniform = || (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
    if form == Form::Paper {
        let features = state::FEATURES.map(|feature| feature.bounds());
        let level = features.map(|_| uniform() * uniform());
        let rough = uniform();
        let period = |uniform: &mut dyn FnMut() -> f64| {
            features
                .iter()
                .zip(level)
                .map(|((low, high), level)| {
                    let place = (level + rough * 0.2 * (uniform() - 0.5)).clamp(0.0, 1.0);
                    low + (high - low) * place as f32
                })
                .collect::<Vec<_>>()
        };
        return (0..state::PERIODS).flat_map(|_| period(&mut uniform)).collect();
    }
    let log = |low: f64, high: f64, place: f64| low * libm::pow(high / low, place.clamp(0.0, 1.0));
    let (rate, delay, spread, loss) = (uniform(), uniform(), uniform(), uniform());
    let (lossy, rough) = (uniform() < 0.5, uniform());
    let rough = rough * rough;
    let mut state = BacklogState::default();
    for _ in 0..state::PERIODS {
        let mut shifted = |place: f64| place + rough * 0.3 * (uniform() - 0.5);
        let ahead = log(1e-5, 2.0, shifted(delay)) - 1e-5;
        let signals = Signals {
            rate: log(5.0, 5e5, shifted(rate)),
            queue: ahead,
            ahead,
            loss: if lossy { log(1e-5, 0.5, shifted(loss)) } else { 0.0 },
            burst: 0.0,
            spread: log(1e-6, 0.1, shifted(spread)) - 1e-6,
        };
        state.push(&signals);
    }
    state.values().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Activation, Layer, Policy, Scratch};

    /// Mean and largest difference of actions between a network and itself in integers.
    fn difference(network: &Network, form: Form, states: u64) -> (f64, f64) {
        let fixed = FixedNetwork::new(network, form);
        let mut scratch = Scratch::default();
        let (mut sum, mut most) = (0.0, 0.0_f64);
        for index in 0..states {
            let state = calibration(form, 1_000_000 + index);
            let float = f64::from(network.forward(&state, &mut scratch));
            let difference = (float - fixed.forward(&fixed.state(&state))).abs();
            sum += difference;
            most = most.max(difference);
        }
        (sum / states as f64, most)
    }

    #[test]
    fn shipped_networks_keep_their_actions() {
        for name in ["astraea", "astraea-pure", "astraea-paper"] {
            let path = format!("{}/../../python/astraea/models/{name}.safetensors", env!("CARGO_MANIFEST_DIR"));
            let policy = Policy::load(path.as_ref()).unwrap();
            let (mean, most) = difference(policy.network(), policy.metadata().form, 5000);
            assert!(mean < 0.005 && most < 0.05, "{name}: mean {mean}, largest {most}");
        }
    }

    #[test]
    fn sums_cannot_overflow() {
        let weights: Vec<f32> = (0..256 * 8).map(|index| (index as f32 * 0.7).sin()).collect();
        let layers = vec![
            Layer {
                inputs: 25,
                weights: weights[..256 * 25 / 8 * 2].iter().cycle().take(256 * 25).copied().collect(),
                bias: vec![0.1; 256],
            },
            Layer { inputs: 256, weights: weights[..256].to_vec(), bias: vec![-3.0] },
        ];
        let network = Network::new(layers, Activation::Relu).unwrap();
        let fixed = FixedNetwork::new(&network, Form::Pure);
        for (layer, limit) in fixed.layers.iter().zip([NARROW.feature, NARROW.activation]) {
            for row in layer.weights.chunks_exact(layer.inputs) {
                let total: i64 = row.iter().map(|weight| i64::from(weight.abs())).sum();
                assert!(total * i64::from(limit) < 1 << 31, "{total}");
                assert!(total > 1 << 14, "the bits that there are should be used");
            }
        }
    }

    #[test]
    fn weights_of_next_to_nothing_are_no_trouble() {
        for weight in [0.0, 1e-30, 1e-6, 1e-4, 1e-3] {
            let layers = vec![
                Layer { inputs: 25, weights: vec![weight; 25 * 8], bias: vec![0.5; 8] },
                Layer { inputs: 8, weights: vec![weight; 8], bias: vec![0.5] },
            ];
            let network = Network::new(layers, Activation::Relu).unwrap();
            let (_, most) = difference(&network, Form::Guided, 3);
            assert!(most < 1e-4, "{weight}: {most}");
        }
    }
}
