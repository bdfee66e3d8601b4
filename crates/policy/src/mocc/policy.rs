//! MOCC's network, and the file that holds it.

use std::collections::BTreeMap;
use std::path::Path;

use super::{FEATURES, Preference};
use crate::aurora::{self, ACTIVATION, AuroraPolicy, AuroraTerms, KEYS};
use crate::file::parts::Parts;
use crate::file::{self, write};
use crate::network::dense::{sum, sums};
use crate::{Layer, PolicyError, Scratch, feature, network};

/// What a file says that it is.
const FORM: &str = "mocc";

/// How the tensors of the layer for the preference are called.
const PREFERENCE: &str = "preference";

/// A policy of MOCC's form: from the features of the last intervals, and from what is asked for, to a change of the rate.
///
/// A layer of its own makes some numbers of the preference, which join the intervals at the input of the other layers. As
/// long as a preference holds these are constants, and what is left is a policy of Aurora's: see [`prefer`](Self::prefer).
#[derive(Clone, Debug, PartialEq)]
pub struct MoccPolicy {
    preference: Layer,
    layers: Vec<Layer>,
    terms: AuroraTerms,
}

impl MoccPolicy {
    /// A policy of these layers: one from the three weights of a preference, and those from the intervals followed by its
    /// units, with tanh after all but the last.
    ///
    /// # Errors
    /// Layers that do not fit together, whose input is no number of whole intervals, or terms out of range.
    pub fn new(preference: Layer, layers: Vec<Layer>, terms: AuroraTerms) -> Result<Self, PolicyError> {
        if preference.inputs != FEATURES.len() {
            let (found, expected) = (preference.inputs, FEATURES.len());
            return Err(PolicyError::Inputs { form: "preference", found, expected });
        }
        network::check_chain(std::slice::from_ref(&preference))?;
        network::check(&layers)?;
        let (found, units, interval) = (layers[0].inputs, preference.outputs(), aurora::FEATURES.len());
        if found <= units || !(found - units).is_multiple_of(interval) {
            let expected = units + found.saturating_sub(units).next_multiple_of(interval).max(interval);
            return Err(PolicyError::Inputs { form: FORM, found, expected });
        }
        terms.check(&KEYS)?;
        Ok(Self { preference, layers, terms })
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Whatever is wrong with it, in one line that begins with the path.
    pub fn load(path: &Path) -> Result<Self, PolicyError> {
        file::load(path, Self::from_bytes)
    }

    /// Reads the content of a file.
    ///
    /// # Errors
    /// Whatever is wrong with it, in one line.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PolicyError> {
        let mut parts = Parts::of(bytes, FORM, &Self::definition())?;
        parts.expect("activation", ACTIVATION)?;
        let terms = AuroraTerms::take(&mut parts)?;
        let (preference, layers) = parts.layers_beside(PREFERENCE, FEATURES.len())?;
        Self::new(preference, layers, AuroraTerms { notes: parts.notes(), ..terms })
    }

    /// The content of a file; the same policy gives the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let preference = write::layer(PREFERENCE, &self.preference);
        write::bytes(self.texts(), preference.into_iter().chain(write::layers(&self.layers)))
    }

    /// Writes a file: at any time the path holds what it held before, or all of it.
    ///
    /// # Errors
    /// Those of the file system, in one line that begins with the path.
    pub fn save(&self, path: &Path) -> Result<(), PolicyError> {
        file::save(path, &self.to_bytes())
    }

    /// What the hidden units do.
    pub fn activation(&self) -> &'static str {
        ACTIVATION
    }

    /// How to use it.
    pub fn terms(&self) -> &AuroraTerms {
        &self.terms
    }

    /// The layers as given to [`new`](Self::new), but for the one for the preference.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The layer for the preference.
    pub fn preference(&self) -> &Layer {
        &self.preference
    }

    /// Length of an observation: the intervals, and the three weights.
    pub fn inputs(&self) -> usize {
        self.intervals() + FEATURES.len()
    }

    /// Numbers of an observation that are of intervals.
    fn intervals(&self) -> usize {
        self.layers[0].inputs - self.preference.outputs()
    }

    /// Everything that the weights depend on, as text.
    pub fn definition() -> String {
        let intervals = format!("form: {FORM}\nintervals, oldest first, 0, 1, 1 before the first\n");
        let end = "at the end, once\n";
        feature::defined(feature::defined(intervals, &aurora::FEATURES) + end, &FEATURES)
    }

    /// All metadata as the file has it: names and texts, in the order of the names.
    pub fn texts(&self) -> BTreeMap<String, String> {
        self.terms.texts(FORM, &Self::definition(), &self.layers)
    }

    /// The policy of Aurora's that this one is for as long as a preference holds: what stays the same becomes a part of the
    /// first layer's biases.
    pub fn prefer(&self, preference: Preference) -> AuroraPolicy {
        let units = self.units(&preference.values());
        let (first, rest) = (&self.layers[0], &self.layers[1..]);
        let rows = || first.weights.chunks_exact(first.inputs).map(|row| row.split_at(self.intervals()));
        let bias = first.bias.iter().zip(rows());
        let first = Layer {
            inputs: self.intervals(),
            weights: rows().flat_map(|(intervals, _)| intervals).copied().collect(),
            // Finite weights may add up to more than a number holds.
            bias: bias.map(|(bias, (_, row))| sum(*bias, row, &units).clamp(f32::MIN, f32::MAX)).collect(),
        };
        AuroraPolicy::checked(std::iter::once(first).chain(rest.iter().cloned()).collect(), self.terms.clone())
    }

    /// The action for an observation, within the limit. In [`prefer`](Self::prefer) sums have another order, and differ by
    /// what rounding differs by.
    ///
    /// # Panics
    /// If the observation has another length than [`inputs`](Self::inputs).
    pub fn act(&self, observation: &[f32], scratch: &mut Scratch) -> f64 {
        assert_eq!(observation.len(), self.inputs(), "an observation of {} numbers", self.inputs());
        let (intervals, weights) = observation.split_at(self.intervals());
        scratch.action([intervals, &self.units(weights)], &self.layers, self.terms.limit)
    }

    /// What the layer for the preference makes of its weights.
    fn units(&self, weights: &[f32]) -> Vec<f32> {
        sums(&self.preference, weights).map(libm::tanhf).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(inputs: usize, weights: &[f32], bias: &[f32]) -> Layer {
        Layer { inputs, weights: weights.to_vec(), bias: bias.to_vec() }
    }

    fn terms() -> AuroraTerms {
        AuroraTerms { alpha: 0.025, limit: 2.0, interval: 0.5, notes: BTreeMap::new() }
    }

    /// One interval, two units for the preference, of which the first sees throughput less latency.
    fn policy() -> MoccPolicy {
        let preference = layer(3, &[1.0, -1.0, 0.0, 0.0, 0.0, 2.0], &[0.5, 0.0]);
        let layers = vec![layer(5, &[0.0, 1.0, -1.0, 3.0, 1.0], &[0.25]), layer(1, &[2.0], &[0.0])];
        MoccPolicy::new(preference, layers, terms()).unwrap()
    }

    #[test]
    fn an_action_by_hand() {
        let preference = Preference::new([0.5, 0.25, 0.25]).unwrap();
        let (first, second) = (0.75_f64.tanh(), 0.5_f64.tanh());
        let expected = 2.0 * (0.25 + 1.5 - 1.25 + 3.0 * first + second).tanh();
        let policy = policy();
        assert_eq!(policy.inputs(), 6);
        let intervals = [0.0, 1.5, 1.25];
        let joined = [&intervals[..], &preference.values()].concat();
        let mut scratch = Scratch::default();
        assert!((policy.act(&joined, &mut scratch) - expected).abs() < 1e-6);
        let auroras = policy.prefer(preference);
        assert_eq!(auroras.inputs(), 3);
        assert!((auroras.act(&intervals, &mut scratch) - expected).abs() < 1e-6);
        // Who wants a short queue has a lower rate.
        let latency = policy.prefer(Preference::new([0.1, 0.8, 0.1]).unwrap());
        assert!(latency.act(&intervals, &mut scratch) < expected - 0.1);
    }

    #[test]
    fn a_file_gives_back_the_policy() {
        let notes = BTreeMap::from([("name".to_owned(), "mine".to_owned())]);
        let policy = MoccPolicy { terms: AuroraTerms { notes, ..terms() }, ..policy() };
        let bytes = policy.to_bytes();
        assert_eq!(MoccPolicy::from_bytes(&bytes).unwrap(), policy);
        let cut = MoccPolicy::from_bytes(&bytes[..bytes.len() - 1]).unwrap_err().to_string();
        assert!(cut.starts_with("truncated"), "{cut}");
    }

    #[test]
    fn the_shipped_policy_has_the_papers_sizes() {
        let policy = super::super::shipped();
        assert_eq!(policy.texts()["shape"], "46-64-32-1");
        assert_eq!((policy.terms().alpha, policy.terms().interval, policy.inputs()), (0.025, 0.5, 33));
    }

    #[test]
    fn what_is_wrong_has_one_line() {
        let preference = || layer(3, &[0.0; 6], &[0.0; 2]);
        let refused = |preference, inputs: usize, terms| {
            MoccPolicy::new(preference, vec![layer(inputs, &vec![0.0; inputs], &[0.0])], terms).unwrap_err().to_string()
        };
        assert_eq!(refused(preference(), 6, terms()), r#"6 inputs, expected 8 for the form "mocc""#);
        assert_eq!(refused(preference(), 2, terms()), r#"2 inputs, expected 5 for the form "mocc""#);
        let four = layer(4, &[0.0; 4], &[0.0]);
        assert_eq!(refused(four, 5, terms()), r#"4 inputs, expected 3 for the form "preference""#);
        let nan = layer(3, &[f32::NAN, 0.0, 0.0], &[0.0]);
        assert!(refused(nan, 4, terms()).starts_with("layer 0 has a weight that is NaN"));
        let notes = BTreeMap::from([("shape".to_owned(), String::new())]);
        let reserved = refused(preference(), 5, AuroraTerms { notes, ..terms() });
        assert_eq!(reserved, r#"metadata "shape" is set by the policy itself"#);
        let read = |bytes: &[u8]| MoccPolicy::from_bytes(bytes).unwrap_err().to_string();
        assert_eq!(read(&crate::aurora::shipped().to_bytes()), r#"form is "aurora", expected mocc"#);
        let auroras = crate::aurora::shipped();
        let texts = auroras.terms().texts(FORM, &MoccPolicy::definition(), auroras.layers());
        let without = write::bytes(texts, write::layers(auroras.layers()));
        assert_eq!(read(&without), "tensor preference.bias is missing");
    }

    #[test]
    fn definition_is_pinned() {
        let text = MoccPolicy::definition();
        let intervals = AuroraPolicy::definition().replacen("form: aurora", "form: mocc", 1);
        let end = text.strip_prefix(&intervals).unwrap();
        assert_eq!(
            end,
            "at the end, once\n\
             throughput_weight: share of the throughput in the three weights, Linear 0e0..1e0\n\
             latency_weight: share of the latency in the three weights, Linear 0e0..1e0\n\
             loss_weight: share of the losses in the three weights, Linear 0e0..1e0\n"
        );
    }
}
