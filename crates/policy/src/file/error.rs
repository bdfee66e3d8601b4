//! What is wrong with a policy file.

use std::io;
use std::ops::RangeInclusive;

use astraea_cc::RemyTableError;

use crate::NetworkError;

/// Why there is no policy. Displays as one line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum PolicyError {
    #[error("{path}: {reason}")]
    At { path: String, reason: Box<PolicyError> },
    #[error("cannot be read: {0}")]
    Read(String),
    #[error("cannot be written: {0}")]
    Write(String),
    #[error("{0} bytes, expected a policy of at most {max}", max = super::MAX_BYTES)]
    TooLarge(u64),
    #[error("not a safetensors file ({0}), expected a policy")]
    NotSafetensors(String),
    #[error("truncated: ends within its header")]
    ShortHeader,
    #[error("truncated or overwritten: {0} bytes are not what its header describes")]
    Length(usize),
    #[error("damaged: {0}")]
    Damaged(String),
    #[error("no {0:?} in its metadata, expected a policy written by astraea")]
    Missing(&'static str),
    #[error("{name} is {found:?}, expected {expected}")]
    Value { name: &'static str, found: String, expected: String },
    #[error("was trained with another state definition ({found}), expected {expected} for the form {form:?}")]
    Definition { form: &'static str, found: String, expected: String },
    #[error("tensor {0} is missing")]
    NoTensor(String),
    #[error("unexpected tensor {name:?}, expected only {expected}")]
    ExtraTensor { name: String, expected: String },
    #[error("tensor {name} is {found}, expected F32")]
    Type { name: String, found: String },
    #[error("tensor {name} has shape {found:?}, expected {expected:?}")]
    Shape { name: String, found: Vec<usize>, expected: Vec<usize> },
    #[error(transparent)]
    Network(#[from] NetworkError),
    #[error("{found} inputs, expected {expected} for the form {form:?}")]
    Inputs { form: &'static str, found: usize, expected: usize },
    #[error(transparent)]
    Table(#[from] RemyTableError),
    #[error("trees: {0}")]
    Forest(String),
    #[error("metadata {0:?} is set by the policy itself")]
    Reserved(&'static str),
}

/// Whether a number is in its range.
pub(crate) fn check(name: &'static str, value: f64, range: &RangeInclusive<f64>) -> Result<(), PolicyError> {
    if range.contains(&value) {
        return Ok(());
    }
    let expected = format!("{} to {}", range.start(), range.end());
    Err(PolicyError::Value { name, found: value.to_string(), expected })
}

/// What an error of the file system is called, without its number.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}
