//! Aurora's network, and the file that holds it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

use super::FEATURES;
use crate::file::parts::Parts;
use crate::file::{self, error, write};
use crate::{Layer, PolicyError, Scratch, feature, network};

/// What a file says that it is, where one of Astraea's has its form.
const FORM: &str = "aurora";

/// What the hidden units do (Aurora §3.1).
pub(crate) const ACTIVATION: &str = "tanh";

/// Metadata that decides how a network is run.
pub(crate) const KEYS: [&str; 8] =
    ["format", "form", "definition_hash", "activation", "shape", "alpha", "action_limit", "interval"];

const ALPHA: RangeInclusive<f64> = 1e-4..=1.0;
const LIMIT: RangeInclusive<f64> = 1e-3..=1e12;
const INTERVAL: RangeInclusive<f64> = 0.05..=10.0;

/// What one must know to use the network.
#[derive(Clone, Debug, PartialEq)]
pub struct AuroraTerms {
    /// Change of the rate by an action of 1.
    pub alpha: f64,
    /// Largest magnitude of an action.
    pub limit: f64,
    /// Length of a monitor interval as a multiple of the mean round-trip time of the one before.
    pub interval: f64,
    /// Where the policy comes from and what it is good for, by name.
    pub notes: BTreeMap<String, String>,
}

impl AuroraTerms {
    /// Fails if something is out of range, or if a note is called like one of the `keys`.
    pub(crate) fn check(&self, keys: &[&'static str]) -> Result<(), PolicyError> {
        error::check("alpha", self.alpha, &ALPHA)?;
        error::check("action_limit", self.limit, &LIMIT)?;
        error::check("interval", self.interval, &INTERVAL)?;
        file::check_notes(keys, &self.notes)
    }

    /// Those of a file, without notes.
    pub(crate) fn take(parts: &mut Parts<'_>) -> Result<Self, PolicyError> {
        Ok(Self {
            alpha: parts.number("alpha", &ALPHA)?,
            limit: parts.number("action_limit", &LIMIT)?,
            interval: parts.number("interval", &INTERVAL)?,
            notes: BTreeMap::new(),
        })
    }

    /// A file's metadata: these, and what belongs to a network of this form.
    pub(crate) fn texts(&self, form: &str, definition: &str, layers: &[Layer]) -> BTreeMap<String, String> {
        let own = [
            ("activation", ACTIVATION.to_owned()),
            ("shape", network::shape(layers)),
            ("alpha", self.alpha.to_string()),
            ("action_limit", self.limit.to_string()),
            ("interval", self.interval.to_string()),
        ];
        file::texts(form, definition, own, &self.notes)
    }
}

/// A policy of Aurora's form: from the features of the last intervals to a change of the rate.
#[derive(Clone, Debug, PartialEq)]
pub struct AuroraPolicy {
    layers: Vec<Layer>,
    terms: AuroraTerms,
}

impl AuroraPolicy {
    /// A policy of these layers, with tanh between them and a linear output.
    ///
    /// # Errors
    /// Layers that do not fit together, whose input is no number of whole intervals, or terms out of range.
    pub fn new(layers: Vec<Layer>, terms: AuroraTerms) -> Result<Self, PolicyError> {
        network::check(&layers)?;
        let found = layers[0].inputs;
        if !found.is_multiple_of(FEATURES.len()) {
            return Err(PolicyError::Inputs { form: FORM, found, expected: found.next_multiple_of(FEATURES.len()) });
        }
        terms.check(&KEYS)?;
        Ok(Self { layers, terms })
    }

    /// A policy of parts that are known to be right.
    pub(crate) fn checked(layers: Vec<Layer>, terms: AuroraTerms) -> Self {
        Self { layers, terms }
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
        let layers = parts.layers()?;
        Self::new(layers, AuroraTerms { notes: parts.notes(), ..terms })
    }

    /// The content of a file; the same policy gives the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        write::bytes(self.texts(), write::layers(&self.layers))
    }

    /// Writes a file: at any time the path holds what it held before, or all of it.
    ///
    /// # Errors
    /// Those of the file system, in one line that begins with the path.
    pub fn save(&self, path: &Path) -> Result<(), PolicyError> {
        file::save(path, &self.to_bytes())
    }

    /// What the hidden units do (Aurora §3.1).
    pub fn activation(&self) -> &'static str {
        ACTIVATION
    }

    /// How to use it.
    pub fn terms(&self) -> &AuroraTerms {
        &self.terms
    }

    /// The layers as given to [`new`](Self::new).
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Length of an observation.
    pub fn inputs(&self) -> usize {
        self.layers[0].inputs
    }

    /// Intervals in an observation.
    pub fn history(&self) -> usize {
        self.inputs() / FEATURES.len()
    }

    /// Everything that the weights depend on, as text.
    pub fn definition() -> String {
        feature::defined(format!("form: {FORM}\nintervals, oldest first, 0, 1, 1 before the first\n"), &FEATURES)
    }

    /// All metadata as the file has it: names and texts, in the order of the names.
    pub fn texts(&self) -> BTreeMap<String, String> {
        self.terms.texts(FORM, &Self::definition(), &self.layers)
    }

    /// The action for an observation, within the limit. Each unit adds its inputs in their order by fused multiply-add: the
    /// same bits on every processor.
    ///
    /// # Panics
    /// If the observation has another length than [`inputs`](Self::inputs).
    pub fn act(&self, observation: &[f32], scratch: &mut Scratch) -> f64 {
        assert_eq!(observation.len(), self.inputs(), "an observation of {} numbers", self.inputs());
        scratch.action([observation, &[]], &self.layers, self.terms.limit)
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

    fn policy() -> AuroraPolicy {
        let layers = vec![layer(3, &[1.0, 0.0, -1.0, 0.0, 0.5, 0.0], &[0.0, 0.1]), layer(2, &[2.0, -1.0], &[0.25])];
        AuroraPolicy::new(layers, terms()).unwrap()
    }

    #[test]
    fn an_action_by_hand() {
        let act = |observation: &[f32]| policy().act(observation, &mut Scratch::default());
        let expected = 2.0 * (-1.0_f64).tanh() - 0.6_f64.tanh() + 0.25;
        assert!((act(&[0.0, 1.0, 1.0]) - expected).abs() < 1e-6);
        // The output is linear and ends at the limit: 2 - tanh(0.6) + 0.25 is below it.
        assert_eq!(act(&[9.0, -1e3, 0.0]), 2.0);
        assert!((act(&[9.0, 1.0, 0.0]) - (2.25 - 0.6_f64.tanh())).abs() < 1e-6);
    }

    #[test]
    fn a_file_gives_back_the_policy() {
        let notes = BTreeMap::from([("name".to_owned(), "mine".to_owned())]);
        let policy = AuroraPolicy { terms: AuroraTerms { notes, ..terms() }, ..policy() };
        assert_eq!(AuroraPolicy::from_bytes(&policy.to_bytes()).unwrap(), policy);
        let directory = std::env::temp_dir().join(format!("astraea-aurora-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("mine.aurora");
        policy.save(&path).unwrap();
        let read = AuroraPolicy::load(&path);
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(read.unwrap(), policy);
    }

    #[test]
    fn the_shipped_policy_is_the_papers() {
        let policy = super::super::shipped();
        assert_eq!(policy.texts()["shape"], "30-32-16-1");
        assert_eq!((policy.terms().alpha, policy.terms().interval, policy.history()), (0.025, 0.5, 10));
    }

    #[test]
    fn what_is_wrong_has_one_line() {
        let refused = |layers, terms| AuroraPolicy::new(layers, terms).unwrap_err().to_string();
        assert_eq!(
            refused(vec![layer(4, &[0.0; 4], &[0.0])], terms()),
            r#"4 inputs, expected 6 for the form "aurora""#
        );
        let one = || vec![layer(3, &[0.0; 3], &[0.0])];
        assert_eq!(refused(one(), AuroraTerms { alpha: 2.0, ..terms() }), r#"alpha is "2", expected 0.0001 to 1"#);
        let notes = BTreeMap::from([("form".to_owned(), String::new())]);
        assert_eq!(refused(one(), AuroraTerms { notes, ..terms() }), r#"metadata "form" is set by the policy itself"#);
        let astraea = crate::shipped::file("astraea").unwrap();
        let read = |bytes: &[u8]| AuroraPolicy::from_bytes(bytes).unwrap_err().to_string();
        assert!(read(astraea).ends_with(", expected aurora"), "{}", read(astraea));
        assert_eq!(
            crate::Policy::from_bytes(&policy().to_bytes()).unwrap_err().to_string(),
            r#"no "period_ms" in its metadata, expected a policy written by astraea"#
        );
        assert!(read(b"hello").starts_with("not a safetensors file"));
        let bytes = policy().to_bytes();
        assert!(read(&bytes[..bytes.len() - 1]).starts_with("truncated"));
    }

    #[test]
    fn definition_is_pinned() {
        assert_eq!(
            AuroraPolicy::definition(),
            "form: aurora\nintervals, oldest first, 0, 1, 1 before the first\n\
             latency_gradient: change of the mean round-trip time between the halves of the interval / interval, \
             Linear -1e0..1e1\n\
             latency_ratio: mean round-trip time / smallest such mean of any interval of the flow, Linear 1e0..1e4\n\
             send_ratio: packets sent / packets acknowledged, Linear 0e0..1e3\n"
        );
    }
}
