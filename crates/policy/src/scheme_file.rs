//! What a file holds that stands for a scheme.

use std::path::Path;
use std::sync::Arc;

use astraea_cc::{AnyController, Controller, Nanos, Remy, RemyTable, SchemeError};

use crate::aurora::{Aurora, AuroraConfig, AuroraPolicy};
use crate::file::{self, parts};
use crate::mocc::{MoccConfig, MoccPolicy};
use crate::orca::{MOST, Orca, OrcaPolicy};
use crate::selector::{Caution, Selector, SelectorPolicy};
use crate::{Policy, PolicyError, schemes};

/// What a file holds that stands for a scheme.
#[derive(Clone, Debug)]
pub enum SchemeFile {
    /// A policy.
    Policy(Arc<Policy>),
    /// The rules of a `RemyCC`.
    Table(Arc<RemyTable>),
    /// A policy of Aurora's.
    Aurora(Arc<AuroraPolicy>),
    /// A policy of MOCC's, which takes the parameters of its scheme.
    Mocc(Arc<MoccPolicy>),
    /// A policy of Orca's.
    Orca(Arc<OrcaPolicy>),
    /// A policy of a selector's.
    Selector(Arc<SelectorPolicy>),
}

/// Why parameters do not go with a file. Displays as one line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SchemeFileError {
    /// The file of this name takes none.
    #[error("file {0:?} takes no parameters")]
    Parameters(String),
    /// It takes others, or other values.
    #[error(transparent)]
    Scheme(#[from] SchemeError),
}

impl SchemeFile {
    /// What kinds of files are called.
    pub const KINDS: [&str; 7] = ["policy", "table", "aurora", "mocc", "orca", "antelope", "hacc"];

    /// Reads a file of one of the [`KINDS`](Self::KINDS).
    ///
    /// # Errors
    /// A kind that there is not, or whatever is wrong with the file, in one line that begins with the path.
    pub fn load(kind: &str, path: &Path) -> Result<Self, PolicyError> {
        Ok(match kind {
            "policy" => Self::Policy(Arc::new(Policy::load(path)?)),
            "table" => Self::Table(Arc::new(file::load(path, |bytes| Ok(RemyTable::from_dna(bytes)?))?)),
            "aurora" => Self::Aurora(Arc::new(AuroraPolicy::load(path)?)),
            "mocc" => Self::Mocc(Arc::new(MoccPolicy::load(path)?)),
            "orca" => Self::Orca(Arc::new(OrcaPolicy::load(path)?)),
            "antelope" | "hacc" => Self::Selector(Arc::new(SelectorPolicy::load(path)?)),
            _ => {
                let expected = parts::one_of(Self::KINDS);
                return Err(PolicyError::Value { name: "kind", found: kind.to_owned(), expected });
            }
        })
    }

    /// The policy for which an inference service can decide, if it is one.
    pub fn policy(&self) -> Option<&Arc<Policy>> {
        match self {
            Self::Policy(policy) => Some(policy),
            _ => None,
        }
    }

    /// Checks the parameters, in SI units, of the file of that name.
    ///
    /// # Errors
    /// Parameters that it does not take, or values out of range.
    pub fn check(&self, name: &str, params: &[(String, f64)]) -> Result<(), SchemeFileError> {
        match self {
            Self::Mocc(_) => MoccConfig::of(params).map(|_| ()).map_err(SchemeFileError::from),
            _ if params.is_empty() => Ok(()),
            _ => Err(SchemeFileError::Parameters(name.to_owned())),
        }
    }

    /// A controller for segments of `mss` payload bytes, on a host whose time of day is that of the controller's clock and
    /// `clock` ns.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn controller(
        &self,
        name: &str,
        params: &[(String, f64)],
        clock: Nanos,
        mss: u32,
    ) -> Result<AnyController, SchemeFileError> {
        self.check(name, params)?;
        Ok(match self {
            Self::Policy(policy) => schemes::learned(policy.clone(), clock, mss),
            Self::Table(table) => AnyController::Remy(Remy::new(table.clone(), mss)),
            Self::Aurora(policy) => custom(Aurora::new(policy.clone(), AuroraConfig::of(policy), mss)),
            Self::Mocc(policy) => custom(MoccConfig::of(params)?.sender(policy, mss)),
            Self::Orca(policy) => custom(Orca::of(policy.clone(), MOST, mss)),
            Self::Selector(policy) => custom(Selector::of(policy.clone(), Caution::default(), mss)),
        })
    }
}

fn custom(controller: impl Controller + Send + Sync + 'static) -> AnyController {
    AnyController::Custom(Box::new(controller))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{aurora, mocc, orca, selector, shipped};
    use astraea_cc::MSS;

    /// What each kind of file holds, in the order of [`SchemeFile::KINDS`].
    fn contents() -> [Vec<u8>; 7] {
        let [antelope, hacc] = selector::Kind::ALL.map(|kind| selector::shipped(kind).to_bytes());
        let table = include_bytes!("../../cc/src/remy/shipped.dna").to_vec();
        let policy = shipped::file("astraea").unwrap().to_vec();
        let (aurora, mocc, orca) = (aurora::shipped(), mocc::shipped(), orca::shipped());
        [policy, table, aurora.to_bytes(), mocc.to_bytes(), orca.to_bytes(), antelope, hacc]
    }

    #[test]
    fn each_kind_is_read_and_takes_its_own_parameters() {
        let directory = std::env::temp_dir().join(format!("astraea-scheme-file-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        for (kind, content) in SchemeFile::KINDS.into_iter().zip(contents()) {
            let path = directory.join(format!("mine.{kind}"));
            std::fs::write(&path, content).unwrap();
            let file = SchemeFile::load(kind, &path).unwrap();
            assert_eq!(file.policy().is_some(), kind == "policy");
            let made = |params: &[(String, f64)]| file.controller("mine", params, 0, MSS);
            assert!(made(&[]).unwrap().cwnd() >= u64::from(MSS), "{kind}");
            let refused = made(&[("latency".to_owned(), -1.0)]).unwrap_err().to_string();
            if kind == "mocc" {
                assert!(made(&[("latency".to_owned(), 0.5)]).is_ok());
                assert!(refused.starts_with(r#"parameter "latency" of scheme "mocc" is -1, "#), "{refused}");
            } else {
                assert_eq!(refused, r#"file "mine" takes no parameters"#);
            }
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn what_is_wrong_with_a_file_has_one_line() {
        let refused = |kind: &str, path: &str| SchemeFile::load(kind, path.as_ref()).unwrap_err().to_string();
        for kind in SchemeFile::KINDS {
            let nowhere = format!("/nowhere.{kind}");
            assert_eq!(refused(kind, &nowhere), format!("{nowhere}: cannot be read: No such file or directory"));
        }
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert!(refused("table", manifest).starts_with(&format!("{manifest}: not a RemyCC rule table: ")));
        assert_eq!(
            refused("vegas", "mine"),
            r#"kind is "vegas", expected one of policy, table, aurora, mocc, orca, antelope, hacc"#
        );
    }
}
