//! What is wrong with a scheme that a user asked for.

use std::fmt;

use super::{Parameter, SWITCH, Scheme};

/// Why a scheme cannot be built. Displays as one line.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemeError {
    /// No scheme has this name.
    UnknownScheme {
        /// What was asked for.
        name: String,
        /// The name most like it, if one is.
        nearest: Option<&'static str>,
        /// The names that there are.
        known: Vec<&'static str>,
    },
    /// The scheme has no such parameter.
    UnknownParameter {
        /// The scheme.
        scheme: &'static Scheme,
        /// What was set.
        name: String,
        /// The name most like it, if one is.
        nearest: Option<&'static str>,
    },
    /// A parameter is set twice.
    Repeated {
        /// The scheme.
        scheme: &'static Scheme,
        /// The parameter.
        parameter: &'static Parameter,
    },
    /// A value is outside its range.
    OutOfRange {
        /// The scheme.
        scheme: &'static Scheme,
        /// The parameter.
        parameter: &'static Parameter,
        /// What was set.
        value: f64,
    },
}

impl std::error::Error for SchemeError {}

impl fmt::Display for SchemeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownScheme { name, nearest, known } => {
                write!(f, "unknown scheme {name:?}, ")?;
                expected(f, *nearest, known.iter().copied())
            }
            Self::UnknownParameter { scheme, name, .. } if scheme.parameters.is_empty() => {
                write!(f, "scheme {:?} has no parameter {name:?}, it takes none", scheme.name)
            }
            Self::UnknownParameter { scheme, name, nearest } => {
                write!(f, "scheme {:?} has no parameter {name:?}, ", scheme.name)?;
                expected(f, *nearest, scheme.parameters.iter().map(|parameter| parameter.name))
            }
            Self::Repeated { scheme, parameter } => {
                write!(f, "parameter {:?} of scheme {:?} is given twice", parameter.name, scheme.name)
            }
            Self::OutOfRange { scheme, parameter, value } => {
                let Parameter { name, min, max, unit, .. } = parameter;
                write!(f, "parameter {name:?} of scheme {:?} is {value}, expected ", scheme.name)?;
                match *unit {
                    SWITCH => f.write_str(SWITCH),
                    "1" => write!(f, "{min} to {max}"),
                    unit => write!(f, "{min} to {max} {unit}"),
                }
            }
        }
    }
}

/// "did you mean" the nearest name, or else every name.
fn expected(
    f: &mut fmt::Formatter<'_>,
    nearest: Option<&str>,
    names: impl Iterator<Item = &'static str>,
) -> fmt::Result {
    match nearest {
        Some(name) => write!(f, "did you mean {name:?}?"),
        None => write!(f, "expected one of {}", names.collect::<Vec<_>>().join(", ")),
    }
}

/// The candidate most like `name`: at most a third of it may be mistyped, or `name` is a part of it.
pub(super) fn nearest(name: &str, candidates: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let name = name.to_lowercase();
    let distance = |candidate: &str| {
        if name.len() >= 3 && candidate.contains(&name) { 1 } else { edit_distance(&name, candidate) }
    };
    candidates
        .map(|candidate| (distance(candidate), candidate))
        .filter(|(distance, candidate)| 3 * distance <= name.len().max(candidate.len()))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Insertions, deletions and substitutions that turn `a` into `b` (Levenshtein).
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.chars().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[row.len() - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distances() {
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("cubic", "cubic"), 0);
    }
}
