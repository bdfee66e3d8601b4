//! A selector's models, and the file that holds them.

use std::collections::BTreeMap;
use std::path::Path;

use super::candidate::CANDIDATES;
use super::forest::Forest;
use super::interval::Kind;
use crate::file::parts::{Parts, one_of};
use crate::file::{self, error, write};
use crate::{PolicyError, feature};

/// Metadata that decides how the models are run.
const KEYS: [&str; 6] = ["format", "form", "definition_hash", "candidates", "trees", "depth"];

/// A policy of a selector's: for each scheme that it chooses from a model of what the next interval would be worth under it.
///
/// In the file the model of `bbr` is `bbr.feature`, `bbr.threshold` (trees, 2^depth - 1), `bbr.answer` (trees, 2^depth) and
/// `bbr.base` (1); so are the others.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectorPolicy {
    kind: Kind,
    models: Vec<Forest>,
    notes: BTreeMap<String, String>,
}

impl SelectorPolicy {
    /// A policy of these models, in the order of [`CANDIDATES`]; `notes` say where it comes from and what it is good for, by
    /// name.
    ///
    /// # Errors
    /// Another number of models, trees that ask for what there is not, or of different numbers and depths, a note with a name
    /// that the file needs itself.
    pub fn new(kind: Kind, models: Vec<Forest>, notes: BTreeMap<String, String>) -> Result<Self, PolicyError> {
        error::check("models", models.len() as f64, &(CANDIDATES.len() as f64..=CANDIDATES.len() as f64))?;
        for model in &models {
            model.check(kind.features().len())?;
            if (model.depth, model.trees()) != (models[0].depth, models[0].trees()) {
                return Err(PolicyError::Forest("expected as many of the same depth in each model".into()));
            }
        }
        file::check_notes(&KEYS, &notes)?;
        Ok(Self { kind, models, notes })
    }

    /// Reads a file, whose name ends with the kind's.
    ///
    /// # Errors
    /// Whatever is wrong with it, in one line that begins with the path.
    pub fn load(path: &Path) -> Result<Self, PolicyError> {
        let suffix = path.extension().and_then(|suffix| suffix.to_str()).unwrap_or_default();
        file::load(path, |bytes| {
            let expected = "the name of a file that ends in .antelope or .hacc".into();
            let unknown = PolicyError::Value { name: "form", found: suffix.to_owned(), expected };
            Self::from_bytes(Kind::from_name(suffix).ok_or(unknown)?, bytes)
        })
    }

    /// Reads the content of a file of that kind.
    ///
    /// # Errors
    /// Whatever is wrong with it, in one line.
    pub fn from_bytes(kind: Kind, bytes: &[u8]) -> Result<Self, PolicyError> {
        let mut parts = Parts::of(bytes, kind.name(), &Self::definition(kind))?;
        parts.expect("candidates", &CANDIDATES.join(" "))?;
        let mut number = |name| parts.take(name, "a whole number", |text| text.parse::<u16>().ok());
        let (trees, depth) = (usize::from(number("trees")?), usize::from(number("depth")?.min(15)));
        let questions = (1_usize << depth) - 1;
        let mut tensors = parts.tensors();
        let models = CANDIDATES.map(|scheme| {
            let mut take = |part: &str, shape: &[usize]| tensors.take(format!("{scheme}.{part}"), shape);
            let features = take("feature", &[trees, questions])?;
            if features.iter().any(|feature| feature.fract() != 0.0 || !(0.0..1e6).contains(feature)) {
                return Err(PolicyError::Forest(format!("{scheme}.feature: expected whole numbers")));
            }
            Ok(Forest {
                base: take("base", &[1])?[0],
                depth,
                features: features.into_iter().map(|feature| feature as u32).collect(),
                thresholds: take("threshold", &[trees, questions])?,
                answers: take("answer", &[trees, questions + 1])?,
            })
        });
        let models = models.into_iter().collect::<Result<Vec<_>, PolicyError>>()?;
        tensors.end(&format!("feature, threshold, answer and base of {}", one_of(CANDIDATES)))?;
        Self::new(kind, models, parts.notes())
    }

    /// The content of a file; the same policy gives the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let whole: Vec<Vec<f32>> =
            self.models.iter().map(|model| model.features.iter().map(|feature| *feature as f32).collect()).collect();
        let tensors = CANDIDATES.iter().zip(&self.models).zip(&whole).flat_map(|((scheme, model), features)| {
            let (name, trees) = (|part| format!("{scheme}.{part}"), model.trees());
            let questions = features.len() / trees;
            [
                (name("answer"), vec![trees, questions + 1], model.answers.as_slice()),
                (name("base"), vec![1], std::slice::from_ref(&model.base)),
                (name("feature"), vec![trees, questions], features.as_slice()),
                (name("threshold"), vec![trees, questions], model.thresholds.as_slice()),
            ]
        });
        write::bytes(self.texts(), tensors)
    }

    /// Writes a file: at any time the path holds what it held before, or all of it.
    ///
    /// # Errors
    /// Those of the file system, in one line that begins with the path.
    pub fn save(&self, path: &Path) -> Result<(), PolicyError> {
        file::save(path, &self.to_bytes())
    }

    /// Which selector it is for.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The models, in the order of [`CANDIDATES`].
    pub fn models(&self) -> &[Forest] {
        &self.models
    }

    /// Length of an observation.
    pub fn inputs(&self) -> usize {
        self.kind.features().len()
    }

    /// Everything that the models depend on, as text.
    pub fn definition(kind: Kind) -> String {
        feature::defined(format!("form: {}\nof one interval\n", kind.name()), kind.features())
    }

    /// All metadata as the file has it: names and texts, in the order of the names.
    pub fn texts(&self) -> BTreeMap<String, String> {
        let own = [
            ("candidates", CANDIDATES.join(" ")),
            ("trees", self.models[0].trees().to_string()),
            ("depth", self.models[0].depth.to_string()),
        ];
        file::texts(self.kind.name(), &Self::definition(self.kind), own, &self.notes)
    }

    /// What the next interval would be worth under each scheme, after one of these features.
    ///
    /// # Panics
    /// If the observation is shorter than [`inputs`](Self::inputs).
    pub fn predict(&self, observation: &[f32]) -> [f32; CANDIDATES.len()] {
        std::array::from_fn(|scheme| self.models[scheme].predict(observation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(kind: Kind) -> SelectorPolicy {
        let model = |scheme: usize| Forest {
            base: scheme as f32,
            depth: 1,
            features: vec![2, 0],
            thresholds: vec![0.5, f32::INFINITY],
            answers: vec![0.0, 0.25, 0.5, 9.0],
        };
        let notes = BTreeMap::from([("name".to_owned(), "mine".to_owned())]);
        SelectorPolicy::new(kind, (0..CANDIDATES.len()).map(model).collect(), notes).unwrap()
    }

    #[test]
    fn predictions_by_hand() {
        let predicted = policy(Kind::Hacc).predict(&[0.0, 0.0, 0.6, 0.0, 0.0, 0.0]);
        assert_eq!(predicted, [0.75, 1.75, 2.75, 3.75, 4.75, 5.75]);
    }

    #[test]
    fn a_file_gives_back_the_policy() {
        for kind in Kind::ALL {
            let policy = policy(kind);
            let read = SelectorPolicy::from_bytes(kind, &policy.to_bytes()).unwrap();
            assert_eq!((read.to_bytes(), &read), (policy.to_bytes(), &policy));
            let directory = std::env::temp_dir().join(format!("astraea-{}-{}", kind.name(), std::process::id()));
            std::fs::create_dir_all(&directory).unwrap();
            let path = directory.join(format!("mine.{}", kind.name()));
            policy.save(&path).unwrap();
            let (read, unnamed) = (SelectorPolicy::load(&path), directory.join("mine"));
            std::fs::copy(&path, &unnamed).unwrap();
            let refused = SelectorPolicy::load(&unnamed).unwrap_err().to_string();
            std::fs::remove_dir_all(&directory).unwrap();
            assert_eq!(read.unwrap(), policy);
            assert!(refused.ends_with(r#"form is "", expected the name of a file that ends in .antelope or .hacc"#));
        }
    }

    #[test]
    fn what_is_wrong_has_one_line() {
        let read = |bytes: &[u8]| SelectorPolicy::from_bytes(Kind::Antelope, bytes).unwrap_err().to_string();
        assert_eq!(read(&policy(Kind::Hacc).to_bytes()), r#"form is "hacc", expected antelope"#);
        assert!(read(b"hello").starts_with("not a safetensors file"));
        let bytes = policy(Kind::Antelope).to_bytes();
        assert!(read(&bytes[..bytes.len() - 1]).starts_with("truncated"));
        let swapped = |from: &str, to: &str| {
            let at = bytes.windows(from.len()).position(|part| part == from.as_bytes()).expect("it is there");
            let mut bytes = bytes.clone();
            bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
            read(&bytes)
        };
        assert_eq!(
            swapped("bbr cubic", "bbr qubic"),
            format!(
                r#"candidates is "{}", expected {}"#,
                CANDIDATES.join(" ").replace("cubic", "qubic").chars().take(40).collect::<String>(),
                CANDIDATES.join(" ")
            )
        );
        assert_eq!(swapped(r#""trees":"2""#, r#""trees":"3""#), "tensor bbr.feature has shape [2, 1], expected [3, 1]");
        assert_eq!(swapped("bbr.base", "bbr.bass"), "tensor bbr.base is missing");
        let mut policy = policy(Kind::Antelope);
        policy.models[3].features[0] = 7;
        let refused = SelectorPolicy::new(Kind::Antelope, policy.models.clone(), BTreeMap::new()).unwrap_err();
        assert_eq!(refused.to_string(), "trees: a question about feature 7, expected 0 to 6");
        policy.models.truncate(5);
        let refused = SelectorPolicy::new(Kind::Antelope, policy.models, BTreeMap::new()).unwrap_err();
        assert_eq!(refused.to_string(), r#"models is "5", expected 6 to 6"#);
    }
}
