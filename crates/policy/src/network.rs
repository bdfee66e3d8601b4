//! The network: a small fully connected one, from a local state to one action.

pub(crate) mod dense;
mod kernel;

use fearless_simd::Level;
use kernel::Packed;

/// Most layers of a network.
pub const MAX_LAYERS: usize = 8;

/// Most inputs or units of a layer.
pub const MAX_WIDTH: usize = 1024;

/// What hidden units do with their sum; the output is always `tanh`, so an action is in -1..=1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// `max(0, x)`.
    Relu,
    /// `max(0, x)` for the first half of a layer's units (rounded up) and `min(0, x)` for the others: with weights of
    /// prescribed signs such a network is monotone, and neither convex nor concave.
    Split,
}

impl Activation {
    /// Every activation.
    pub const ALL: [Self; 2] = [Self::Relu, Self::Split];

    /// Name in policy files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Relu => "relu",
            Self::Split => "split",
        }
    }

    /// The activation with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|activation| activation.name() == name)
    }

    /// How many of a layer's `units` give `max(0, x)`; the others, which follow them, give `min(0, x)`.
    pub const fn rectified(self, units: usize) -> usize {
        match self {
            Self::Relu => units,
            Self::Split => units.div_ceil(2),
        }
    }
}

/// One layer as it is stored and exchanged: `y = weights x + bias`.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Number of inputs.
    pub inputs: usize,
    /// Shape (outputs, inputs), row by row.
    pub weights: Vec<f32>,
    /// Shape (outputs).
    pub bias: Vec<f32>,
}

impl Layer {
    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        self.bias.len()
    }
}

/// Why layers make no network. Displays as one line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum NetworkError {
    #[error("{0} layers, expected 1 to {MAX_LAYERS}")]
    Layers(usize),
    #[error("layer {layer} has {size} {what}, expected 1 to {MAX_WIDTH}")]
    Width { layer: usize, size: usize, what: &'static str },
    #[error("layer {layer} has {found} weights, expected {outputs} x {inputs}")]
    Weights { layer: usize, found: usize, outputs: usize, inputs: usize },
    #[error("layer {layer} has {found} inputs, expected {expected}, the outputs of the layer before")]
    Chain { layer: usize, found: usize, expected: usize },
    #[error("the last layer has {0} outputs, expected 1, the action")]
    Output(usize),
    #[error("layer {layer} has a {what} that is {value}, expected a finite number")]
    NotFinite { layer: usize, what: &'static str, value: f32 },
}

/// Working memory of a network or a policy that is asked, owned by the caller; it grows in the first call and never again for
/// the same one.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    from: Vec<f32>,
    to: Vec<f32>,
}

/// A network that can be evaluated.
///
/// # Reproducibility
///
/// Each unit adds its inputs in their order by fused multiply-add, whatever the vector width of the processor and
/// however many states are evaluated together: the same weights and state give the same bits everywhere.
#[derive(Clone, Debug)]
pub struct Network {
    layers: Vec<Layer>,
    activation: Activation,
    packed: Vec<Packed>,
    /// Vector instructions of this processor.
    level: Level,
}

impl Network {
    /// A network of these layers, in the order of evaluation.
    ///
    /// # Errors
    /// Layers that do not fit together, that end in more than one output, or that hold what is not a finite number.
    pub fn new(layers: Vec<Layer>, activation: Activation) -> Result<Self, NetworkError> {
        check(&layers)?;
        let last = layers.len() - 1;
        let packed = layers
            .iter()
            .enumerate()
            .map(|(index, layer)| Packed::new(layer, (index < last).then_some(activation)))
            .collect();
        Ok(Self { layers, activation, packed, level: Level::new() })
    }

    /// Length of a state.
    pub fn inputs(&self) -> usize {
        self.layers[0].inputs
    }

    /// The layers as given to [`new`](Self::new).
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// What the hidden units do.
    pub fn activation(&self) -> Activation {
        self.activation
    }

    /// Sizes from input to output, as `"25-64-32-1"`.
    pub fn shape(&self) -> String {
        shape(&self.layers)
    }

    /// The action for one state, in -1..=1 for any state: what is not a number counts as the lowest.
    ///
    /// # Panics
    /// If the state has another length than [`inputs`](Self::inputs).
    pub fn forward(&self, state: &[f32], scratch: &mut Scratch) -> f32 {
        let mut action = [0.0];
        self.forward_batch(state, &mut action, scratch);
        action[0]
    }

    /// The actions for many states, shape (actions, inputs), row by row. Each is what [`forward`](Self::forward) gives.
    ///
    /// # Panics
    /// If there is not one state for each action.
    pub fn forward_batch(&self, states: &[f32], actions: &mut [f32], scratch: &mut Scratch) {
        assert_eq!(states.len(), actions.len() * self.inputs(), "states of {} inputs each", self.inputs());
        let needed = kernel::BLOCK * self.packed.iter().map(Packed::padded).max().unwrap_or(0);
        if scratch.from.len() < needed {
            scratch.from.resize(needed, 0.0);
            scratch.to.resize(needed, 0.0);
        }
        kernel::sums(self.level, &self.packed, states, actions, scratch);
        for action in actions {
            *action = libm::tanhf(*action);
        }
    }
}

/// Sizes of layers from input to output, as `"25-64-32-1"`.
pub(crate) fn shape(layers: &[Layer]) -> String {
    let outputs = layers.iter().map(|layer| format!("-{}", layer.outputs()));
    format!("{}{}", layers[0].inputs, outputs.collect::<String>())
}

/// Whether layers fit together, all numbers are finite, and there is one at the end.
pub(crate) fn check(layers: &[Layer]) -> Result<(), NetworkError> {
    let outputs = check_chain(layers)?;
    if outputs == 1 { Ok(()) } else { Err(NetworkError::Output(outputs)) }
}

/// Whether layers fit together and all numbers are finite: how many there are at the end.
pub(crate) fn check_chain(layers: &[Layer]) -> Result<usize, NetworkError> {
    if !(1..=MAX_LAYERS).contains(&layers.len()) {
        return Err(NetworkError::Layers(layers.len()));
    }
    let mut expected = layers[0].inputs;
    for (index, layer) in layers.iter().enumerate() {
        let (inputs, outputs) = (layer.inputs, layer.outputs());
        for (size, what) in [(inputs, "inputs"), (outputs, "outputs")] {
            if !(1..=MAX_WIDTH).contains(&size) {
                return Err(NetworkError::Width { layer: index, size, what });
            }
        }
        if inputs != expected {
            return Err(NetworkError::Chain { layer: index, found: inputs, expected });
        }
        if layer.weights.len() != inputs * outputs {
            return Err(NetworkError::Weights { layer: index, found: layer.weights.len(), outputs, inputs });
        }
        for (values, what) in [(&layer.weights, "weight"), (&layer.bias, "bias")] {
            if let Some(&value) = values.iter().find(|value| !value.is_finite()) {
                return Err(NetworkError::NotFinite { layer: index, what, value });
            }
        }
        expected = outputs;
    }
    Ok(expected)
}

#[cfg(test)]
mod tests;
