//! The inner loops, compiled for several vector widths and chosen at run time.
//!
//! A vector holds different outputs of one sample, so that every output adds its inputs in the same order whatever the
//! width. A block of samples shares each load of the weights, and its sums stay in registers.
#![expect(clippy::inline_always, reason = "takes over the vector instructions of the caller")]

use fearless_simd::{Level, dispatch, prelude::*};

use super::{Activation, Layer, Scratch};

/// Most samples evaluated together.
pub(super) const BLOCK: usize = 8;

/// Outputs are padded to a multiple of the widest vector.
const LANES: usize = 16;

/// Numbers that begin where a cache line does, so that no vector of them is in two.
#[derive(Debug)]
struct Aligned {
    numbers: Vec<f32>,
    start: usize,
}

impl Aligned {
    /// Bytes of a cache line and of the widest vector.
    const LINE: usize = 4 * LANES;

    fn new(numbers: &[f32]) -> Self {
        let mut aligned = Vec::<f32>::with_capacity(numbers.len() + LANES);
        let start = aligned.as_ptr().align_offset(Self::LINE).min(LANES);
        aligned.resize(start, 0.0);
        aligned.extend_from_slice(numbers);
        Self { numbers: aligned, start }
    }

    fn get(&self) -> &[f32] {
        &self.numbers[self.start..]
    }
}

impl Clone for Aligned {
    fn clone(&self) -> Self {
        Self::new(self.get())
    }
}

/// A layer in the order in which it is read.
#[derive(Clone, Debug)]
pub(super) struct Packed {
    inputs: usize,
    padded: usize,
    /// Shape (inputs, padded): a row holds what one input contributes to every output.
    weights: Aligned,
    bias: Vec<f32>,
    /// Bounds of each output: (0, ∞) rectifies, (-∞, 0) is the mirror image of that.
    low: Vec<f32>,
    high: Vec<f32>,
}

impl Packed {
    /// `activation` is that of a hidden layer; `None`: the sums are wanted.
    pub(super) fn new(layer: &Layer, activation: Option<Activation>) -> Self {
        let (inputs, outputs) = (layer.inputs, layer.outputs());
        let padded = outputs.next_multiple_of(LANES);
        let mut weights = vec![0.0; inputs * padded];
        for (output, row) in layer.weights.chunks_exact(inputs).enumerate() {
            for (input, &weight) in row.iter().enumerate() {
                weights[input * padded + output] = weight;
            }
        }
        // What becomes of the padding does not matter: nothing reads it.
        let rectified = activation.map_or(0, |activation| activation.rectified(outputs));
        let mut bias = layer.bias.clone();
        bias.resize(padded, 0.0);
        let (mut low, mut high) = (vec![f32::NEG_INFINITY; padded], vec![f32::INFINITY; padded]);
        low[..rectified].fill(0.0);
        if activation.is_some() {
            high[rectified..].fill(0.0);
        }
        Self { inputs, padded, weights: Aligned::new(&weights), bias, low, high }
    }

    /// Outputs with their padding.
    pub(super) fn padded(&self) -> usize {
        self.padded
    }

    /// `V` vectors of outputs from `first` on, of `B` samples. The samples are `stride` apart in `x` and `padded` in `y`.
    #[inline(always)]
    fn tile<S: Simd, const B: usize, const V: usize>(
        &self,
        simd: S,
        first: usize,
        x: &[f32],
        stride: usize,
        y: &mut [f32],
    ) {
        let lanes = S::f32s::LEN;
        let mut samples = [x; B];
        let mut sums = [[S::f32s::splat(simd, 0.0); V]; B];
        for b in 0..B {
            samples[b] = &x[b * stride..][..self.inputs];
            for (v, bias) in self.bias[first..][..V * lanes].chunks_exact(lanes).enumerate() {
                sums[b][v] = S::f32s::from_slice(simd, bias);
            }
        }
        for (i, row) in self.weights.get().chunks_exact(self.padded).enumerate() {
            let row = &row[first..][..V * lanes];
            let mut weights = [S::f32s::splat(simd, 0.0); V];
            for v in 0..V {
                weights[v] = S::f32s::from_slice(simd, &row[v * lanes..][..lanes]);
            }
            for b in 0..B {
                let input = S::f32s::splat(simd, samples[b][i]);
                for v in 0..V {
                    sums[b][v] = input.mul_add_precise(weights[v], sums[b][v]);
                }
            }
        }
        for (v, first) in (first..).step_by(lanes).take(V).enumerate() {
            let low = S::f32s::from_slice(simd, &self.low[first..][..lanes]);
            let high = S::f32s::from_slice(simd, &self.high[first..][..lanes]);
            for b in 0..B {
                // Comparisons and not min and max, which leave the sign of zero open. What is not a number counts as
                // the lowest.
                let sum = sums[b][v].simd_gt(low).select(sums[b][v], low);
                let sum = sum.simd_lt(high).select(sum, high);
                sum.store_slice(&mut y[b * self.padded + first..][..lanes]);
            }
        }
    }

    #[inline(always)]
    fn apply<S: Simd, const B: usize, const V: usize>(&self, simd: S, x: &[f32], stride: usize, y: &mut [f32]) {
        let mut first = self.tiles::<S, B, V>(simd, 0, x, stride, y);
        if V > 4 {
            // One vector alone waits for each of its sums.
            first = self.tiles::<S, B, 4>(simd, first, x, stride, y);
        }
        self.tiles::<S, B, 1>(simd, first, x, stride, y);
    }

    /// As many tiles as fit from an output on; returns the first output that is left.
    #[inline(always)]
    fn tiles<S: Simd, const B: usize, const V: usize>(
        &self,
        simd: S,
        mut first: usize,
        x: &[f32],
        stride: usize,
        y: &mut [f32],
    ) -> usize {
        let width = V * S::f32s::LEN;
        while first + width <= self.padded {
            self.tile::<S, B, V>(simd, first, x, stride, y);
            first += width;
        }
        first
    }
}

/// The outputs of the last layer for `B` states.
#[inline(always)]
fn block<S: Simd, const B: usize, const V: usize>(
    simd: S,
    layers: &[Packed],
    states: &[f32],
    sums: &mut [f32],
    scratch: &mut Scratch,
) {
    let (mut from, mut to) = (scratch.from.as_mut_slice(), scratch.to.as_mut_slice());
    let (first, rest) = layers.split_first().expect("a layer at least");
    first.apply::<S, B, V>(simd, states, first.inputs, to);
    let mut stride = first.padded;
    for layer in rest {
        std::mem::swap(&mut from, &mut to);
        layer.apply::<S, B, V>(simd, from, stride, to);
        stride = layer.padded;
    }
    for (b, sum) in sums.iter_mut().enumerate() {
        *sum = to[b * stride];
    }
}

/// The outputs for any number of states: `B` of them at a time with `V` vectors, then one by one with `ONE`.
#[inline(always)]
fn all<S: Simd, const B: usize, const V: usize, const ONE: usize>(
    simd: S,
    layers: &[Packed],
    states: &[f32],
    sums: &mut [f32],
    scratch: &mut Scratch,
) {
    let inputs = layers[0].inputs;
    let whole = sums.len() / B * B;
    let (many, one) = sums.split_at_mut(whole);
    for (sums, states) in many.chunks_exact_mut(B).zip(states.chunks_exact(B * inputs)) {
        block::<S, B, V>(simd, layers, states, sums, scratch);
    }
    for (sum, state) in one.chunks_exact_mut(1).zip(states[whole * inputs..].chunks_exact(inputs)) {
        block::<S, 1, ONE>(simd, layers, state, sum, scratch);
    }
}

/// The tiles are the fastest measured for the registers that there are: 32 of 16 lanes, or 16 of 8.
#[inline(always)]
fn tiled<S: Simd>(simd: S, layers: &[Packed], states: &[f32], sums: &mut [f32], scratch: &mut Scratch) {
    if S::f32s::LEN == LANES {
        all::<S, BLOCK, 2, 8>(simd, layers, states, sums, scratch);
    } else {
        all::<S, 4, 2, 8>(simd, layers, states, sums, scratch);
    }
}

/// The output of the last layer for each state; both parts of `scratch` hold [`BLOCK`] times the widest layer.
pub(super) fn sums(level: Level, layers: &[Packed], states: &[f32], sums: &mut [f32], scratch: &mut Scratch) {
    dispatch!(level, simd => tiled(simd, layers, states, sums, scratch));
}
