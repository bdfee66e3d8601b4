//! Layers with tanh between them and a linear output, for Aurora's policy and MOCC's. Each unit adds its inputs in their order
//! by fused multiply-add: the same bits on every processor.

use super::{Layer, Scratch};

impl Scratch {
    /// What layers make of an input in two parts, within the limit.
    pub(crate) fn action(&mut self, [first, second]: [&[f32]; 2], layers: &[Layer], limit: f64) -> f64 {
        let Self { from, to } = self;
        from.clear();
        from.extend_from_slice(first);
        from.extend_from_slice(second);
        for (index, layer) in layers.iter().enumerate() {
            let hidden = index + 1 < layers.len();
            to.clear();
            to.extend(sums(layer, from).map(|sum| if hidden { libm::tanhf(sum) } else { sum }));
            std::mem::swap(from, to);
        }
        // Finite weights and values within bounds may still add up to infinity less infinity.
        if from[0].is_nan() { 0.0 } else { f64::from(from[0]).clamp(-limit, limit) }
    }
}

/// What the units of a layer add up.
pub(crate) fn sums<'a>(layer: &'a Layer, values: &'a [f32]) -> impl Iterator<Item = f32> + 'a {
    let rows = layer.weights.chunks_exact(layer.inputs).zip(&layer.bias);
    rows.map(move |(weights, bias)| sum(*bias, weights, values))
}

/// A sum in the order of its terms, by fused multiply-add.
pub(crate) fn sum(start: f32, weights: &[f32], values: &[f32]) -> f32 {
    weights.iter().zip(values).fold(start, |sum, (weight, value)| weight.mul_add(*value, sum))
}
