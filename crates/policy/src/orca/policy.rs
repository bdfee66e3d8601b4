//! Orca's network, and the file that holds it.

use std::collections::BTreeMap;
use std::path::Path;

use astraea_cc::Nanos;

use super::FEATURES;
use crate::file::parts::Parts;
use crate::file::{self, error, write};
use crate::{Activation, Layer, Network, PolicyError, Scratch, feature};

/// What a file says that it is, where one of Astraea's has its form.
const FORM: &str = "orca";

/// Metadata that decides how a network is run.
const KEYS: [&str; 6] = ["format", "form", "definition_hash", "activation", "shape", "period_ms"];

/// A policy of Orca's form: from the features of the last reports to the power of four that CUBIC's window is multiplied
/// by. Hidden units are rectified, the output is a tanh.
///
/// The authors' networks have batch normalisation and leaky units. At run time the former is part of the weights before it,
/// and one of the latter is two that are rectified: `leaky(x) = relu(x) - 0.2 relu(-x)`.
#[derive(Clone, Debug)]
pub struct OrcaPolicy {
    network: Network,
    period: Nanos,
    notes: BTreeMap<String, String>,
}

impl OrcaPolicy {
    /// A policy of these layers, for reports a `period` (ns) apart; `notes` say where it comes from and what it is good for,
    /// by name.
    ///
    /// # Errors
    /// Layers that do not fit together or whose input is no number of whole reports, a period of less than 1 ms or more than
    /// 1 s, a note with a name that the file needs itself.
    pub fn new(layers: Vec<Layer>, period: Nanos, notes: BTreeMap<String, String>) -> Result<Self, PolicyError> {
        let network = Network::new(layers, Activation::Relu)?;
        let found = network.inputs();
        if !found.is_multiple_of(FEATURES.len()) {
            return Err(PolicyError::Inputs { form: FORM, found, expected: found.next_multiple_of(FEATURES.len()) });
        }
        error::check("period_ms", file::period_ms(period), &file::PERIOD_MS)?;
        file::check_notes(&KEYS, &notes)?;
        Ok(Self { network, period, notes })
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
        parts.expect("activation", Activation::Relu.name())?;
        let period = file::take_period(&mut parts)?;
        let layers = parts.layers()?;
        Self::new(layers, period, parts.notes())
    }

    /// The content of a file; the same policy gives the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        write::bytes(self.texts(), write::layers(self.network.layers()))
    }

    /// Writes a file: at any time the path holds what it held before, or all of it.
    ///
    /// # Errors
    /// Those of the file system, in one line that begins with the path.
    pub fn save(&self, path: &Path) -> Result<(), PolicyError> {
        file::save(path, &self.to_bytes())
    }

    /// The layers as given to [`new`](Self::new).
    pub fn layers(&self) -> &[Layer] {
        self.network.layers()
    }

    /// What the hidden units do.
    pub fn activation(&self) -> &'static str {
        self.network.activation().name()
    }

    /// Length of an observation.
    pub fn inputs(&self) -> usize {
        self.network.inputs()
    }

    /// Time between reports in ns.
    pub fn period(&self) -> Nanos {
        self.period
    }

    /// Reports in an observation.
    pub fn history(&self) -> usize {
        self.inputs() / FEATURES.len()
    }

    /// Everything that the weights depend on, as text.
    pub fn definition() -> String {
        let reports = "reports, without what came with no round-trip time, oldest first, zeros before the first";
        feature::defined(format!("form: {FORM}\n{reports}\n"), &FEATURES)
    }

    /// All metadata as the file has it: names and texts, in the order of the names.
    pub fn texts(&self) -> BTreeMap<String, String> {
        let own = [
            ("activation", Activation::Relu.name().to_owned()),
            ("shape", self.network.shape()),
            ("period_ms", file::period_ms(self.period).to_string()),
        ];
        file::texts(FORM, &Self::definition(), own, &self.notes)
    }

    /// The action for an observation, in -1..=1.
    ///
    /// # Panics
    /// If the observation has another length than [`inputs`](Self::inputs).
    pub fn act(&self, observation: &[f32], scratch: &mut Scratch) -> f64 {
        f64::from(self.network.forward(observation, scratch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orca::PERIOD;

    fn layer(inputs: usize, outputs: usize, weight: f32) -> Layer {
        Layer { inputs, weights: vec![weight; inputs * outputs], bias: vec![0.5; outputs] }
    }

    fn policy() -> OrcaPolicy {
        let notes = BTreeMap::from([("name".to_owned(), "mine".to_owned())]);
        OrcaPolicy::new(vec![layer(14, 3, 0.1), layer(3, 1, -0.2)], 30_000_000, notes).unwrap()
    }

    #[test]
    fn an_action_by_hand() {
        let act = |value: f32| policy().act(&[value; 14], &mut Scratch::default());
        assert!((act(0.1) - (0.5 - 0.6 * (0.14 + 0.5_f64)).tanh()).abs() < 1e-6);
        assert!((act(-1.0) - 0.5_f64.tanh()).abs() < 1e-6, "hidden units are rectified");
    }

    #[test]
    fn a_file_gives_back_the_policy() {
        let bytes = policy().to_bytes();
        let read = OrcaPolicy::from_bytes(&bytes).unwrap();
        assert_eq!((read.to_bytes(), read.texts(), read.history()), (bytes, policy().texts(), 2));
        assert_eq!(read.period(), 30_000_000);
        let directory = std::env::temp_dir().join(format!("astraea-orca-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("mine.orca");
        policy().save(&path).unwrap();
        let read = OrcaPolicy::load(&path);
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(read.unwrap().to_bytes(), policy().to_bytes());
    }

    #[test]
    fn the_shipped_policy_is_the_papers() {
        let policy = super::super::shipped();
        assert_eq!((policy.texts()["shape"].as_str(), policy.history()), ("70-256-256-1", 10));
        assert_eq!(policy.period(), PERIOD);
    }

    #[test]
    fn what_is_wrong_has_one_line() {
        let refused = |layers, notes| OrcaPolicy::new(layers, PERIOD, notes).unwrap_err().to_string();
        assert_eq!(refused(vec![layer(8, 1, 0.0)], BTreeMap::new()), r#"8 inputs, expected 14 for the form "orca""#);
        let notes = BTreeMap::from([("form".to_owned(), String::new())]);
        assert_eq!(refused(vec![layer(7, 1, 0.0)], notes), r#"metadata "form" is set by the policy itself"#);
        let short = OrcaPolicy::new(vec![layer(7, 1, 0.0)], 0, BTreeMap::new()).unwrap_err();
        assert_eq!(short.to_string(), r#"period_ms is "0", expected 1 to 1000"#);
        let read = |bytes: &[u8]| OrcaPolicy::from_bytes(bytes).unwrap_err().to_string();
        assert_eq!(read(&crate::aurora::shipped().to_bytes()), r#"form is "aurora", expected orca"#);
        assert!(read(b"hello").starts_with("not a safetensors file"));
        let bytes = policy().to_bytes();
        assert!(read(&bytes[..bytes.len() - 1]).starts_with("truncated"));
    }

    #[test]
    fn definition_is_pinned() {
        assert_eq!(
            OrcaPolicy::definition(),
            "form: orca\nreports, without what came with no round-trip time, oldest first, zeros before the first\n\
             thr_ratio: mean delivery rate / largest of any report, Linear 0e0..1e0\n\
             pacing_ratio: pacing rate / largest mean delivery rate of any report, Linear 0e0..1e1\n\
             loss_ratio: 5 * rate of losses / largest mean delivery rate of any report, Linear 0e0..1e1\n\
             samples_ratio: round-trip times measured / window in packets, Linear 0e0..1e1\n\
             interval: time since the report before in s, Linear 0e0..1e0\n\
             rtt_ratio: smallest round-trip time of the flow / smoothed one, Linear 0e0..1e0\n\
             delay_metric: 1.25 * rtt_ratio, at most 1, Linear 0e0..1e0\n"
        );
    }
}
