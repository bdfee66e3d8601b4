//! The policy that is served, and where it comes from.

use std::path::PathBuf;
use std::sync::Arc;
use std::{fmt, fs};

use crate::version;
use astraea_policy::{Policy, PolicyError, schemes};

/// Where a policy comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// One of those that come with the program, and its name.
    Shipped(Arc<Policy>, String),
    /// A file.
    File(PathBuf),
}

impl Source {
    /// The shipped policy of that name if there is one, else a file.
    pub fn new(text: &str) -> Self {
        match schemes::policy(text) {
            Some(policy) => Self::Shipped(policy, text.to_owned()),
            None => Self::File(text.into()),
        }
    }

    /// Reads the policy.
    ///
    /// # Errors
    /// Those of [`Policy::load`].
    pub fn load(&self) -> Result<Loaded, PolicyError> {
        match self {
            Self::Shipped(policy, _) => Ok(Loaded::new(policy.clone())),
            Self::File(path) => Policy::load(path).map(|policy| Loaded::new(Arc::new(policy))),
        }
    }

    /// Reads the policy again, which may not wait for anybody: meanwhile nobody gets an answer.
    ///
    /// # Errors
    /// Those of [`Policy::load`], and a path that leads to no regular file.
    pub fn reload(&self) -> Result<Loaded, PolicyError> {
        match self {
            Self::File(path) if fs::metadata(path).is_ok_and(|found| !found.is_file()) => {
                let reason = Box::new(PolicyError::Read("expected a regular file".to_owned()));
                Err(PolicyError::At { path: path.display().to_string(), reason })
            }
            _ => self.load(),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shipped(_, name) => f.write_str(name),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A policy with its version.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The policy.
    pub policy: Arc<Policy>,
    /// Its [`version`].
    pub version: u64,
}

impl Loaded {
    /// A policy with the version that its file has.
    pub fn new(policy: Arc<Policy>) -> Self {
        Self { version: version(&policy), policy }
    }
}
