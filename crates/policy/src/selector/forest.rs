//! Boosted trees: what a flow would come to under a scheme.

use crate::PolicyError;
use crate::file::error;

/// Deepest trees that are read.
const MAX_DEPTH: usize = 8;

/// Most trees of a model that are read.
const MAX_TREES: usize = 1000;

/// Trees of one depth, each complete: `2^depth - 1` questions and `2^depth` answers, level by level from the root.
///
/// A question is whether a feature is above a threshold; yes goes to the right. Where a tree ends sooner, its answer stands
/// below on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Forest {
    /// What all trees start from.
    pub base: f32,
    /// Questions that lead to an answer.
    pub depth: usize,
    /// Which feature each question is about, tree by tree.
    pub features: Vec<u32>,
    /// The thresholds.
    pub thresholds: Vec<f32>,
    /// The answers, whose sum over the trees, and the base, is the prediction.
    pub answers: Vec<f32>,
}

impl Forest {
    /// Checks that the arrays belong together and ask for nothing beyond `inputs` features.
    pub(super) fn check(&self, inputs: usize) -> Result<(), PolicyError> {
        let trees = self.trees();
        error::check("depth", self.depth as f64, &(1.0..=MAX_DEPTH as f64))?;
        error::check("trees", trees as f64, &(1.0..=MAX_TREES as f64))?;
        let questions = trees * self.questions();
        let lengths = [self.features.len(), self.thresholds.len(), self.answers.len()];
        if lengths != [questions, questions, trees * (self.questions() + 1)] {
            return Err(PolicyError::Forest("arrays of lengths that do not belong together".into()));
        }
        if let Some(feature) = self.features.iter().find(|feature| **feature as usize >= inputs) {
            return Err(PolicyError::Forest(format!(
                "a question about feature {feature}, expected 0 to {}",
                inputs - 1
            )));
        }
        let answers = self.answers.iter().chain([&self.base]);
        if self.thresholds.iter().any(|threshold| threshold.is_nan()) || answers.into_iter().any(|a| !a.is_finite()) {
            return Err(PolicyError::Forest("thresholds or answers that are no numbers".into()));
        }
        Ok(())
    }

    fn questions(&self) -> usize {
        (1_usize << self.depth.min(MAX_DEPTH)) - 1
    }

    /// How many there are.
    pub fn trees(&self) -> usize {
        self.answers.len() / (self.questions() + 1)
    }

    /// The prediction for these features.
    ///
    /// # Panics
    /// If there are fewer features than the trees ask for.
    pub fn predict(&self, features: &[f32]) -> f32 {
        let questions = self.questions();
        let trees = self.features.chunks_exact(questions).zip(self.thresholds.chunks_exact(questions));
        let answers = self.answers.chunks_exact(questions + 1);
        trees.zip(answers).fold(self.base, |sum, ((asked, thresholds), answers)| {
            let mut node = 0;
            for _ in 0..self.depth {
                node = 2 * node + 1 + usize::from(features[asked[node] as usize] > thresholds[node]);
            }
            sum + answers[node - questions]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Above .5 in feature 1: 10 or, above .25 in feature 0, 20; below: 1.
    fn forest() -> Forest {
        Forest {
            base: 0.5,
            depth: 2,
            features: vec![1, 0, 0, 0, 0, 0],
            thresholds: vec![0.5, f32::INFINITY, 0.25, 0.0, 0.0, 0.0],
            answers: vec![1.0, 1.0, 10.0, 20.0, 100.0, 200.0, 300.0, 400.0],
        }
    }

    #[test]
    fn predictions_by_hand() {
        let forest = forest();
        assert_eq!(forest.trees(), 2);
        // The second tree: feature 0 above 0 is right twice.
        assert_eq!(forest.predict(&[0.3, 0.4]), 0.5 + 1.0 + 400.0);
        assert_eq!(forest.predict(&[0.3, 0.6]), 0.5 + 20.0 + 400.0);
        assert_eq!(forest.predict(&[0.2, 0.6]), 0.5 + 10.0 + 400.0);
        assert_eq!(forest.predict(&[0.0, 0.5]), 0.5 + 1.0 + 100.0, "on the threshold is not above it");
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        assert!(forest().check(2).is_ok());
        let refused = |change: fn(&mut Forest)| {
            let mut forest = forest();
            change(&mut forest);
            forest.check(2).unwrap_err().to_string()
        };
        assert_eq!(refused(|f| f.depth = 9), r#"depth is "9", expected 1 to 8"#);
        assert_eq!(refused(|f| f.answers.clear()), r#"trees is "0", expected 1 to 1000"#);
        assert!(refused(|f| f.thresholds.truncate(5)).starts_with("trees: arrays of lengths"));
        assert!(refused(|f| f.features[3] = 2).ends_with("about feature 2, expected 0 to 1"));
        assert!(refused(|f| f.thresholds[0] = f32::NAN).starts_with("trees: thresholds or answers"));
        assert!(refused(|f| f.answers[0] = f32::INFINITY).starts_with("trees: thresholds or answers"));
    }
}
