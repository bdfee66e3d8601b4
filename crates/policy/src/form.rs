//! How a policy is embedded in a controller: what it sees, and what its answer does.

use crate::feature::fnv1a;
use crate::{action, backlog, state};

/// The embedding of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// The papers': eight features of five periods ([`state`]), the action changes the window (eq. 3), no rules.
    Paper,
    /// The action alone sets the window; the policy sees its backlog in the queue ([`backlog`]).
    Pure,
    /// The action is added to a law, and rules find the base round-trip time and deal with neighbours of other kinds.
    Guided,
}

impl Form {
    /// All forms.
    pub const ALL: [Self; 3] = [Self::Paper, Self::Pure, Self::Guided];

    /// Its name in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Pure => "pure",
            Self::Guided => "guided",
        }
    }

    /// The form of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.name() == name)
    }

    /// Length of a state.
    pub fn inputs(self) -> usize {
        match self {
            Self::Paper => state::LENGTH,
            Self::Pure | Self::Guided => backlog::LENGTH,
        }
    }

    /// Action scale unless a recipe says otherwise: eq. 3's for the paper's form, else the largest relative change of
    /// the window in a period.
    pub fn default_alpha(self) -> f64 {
        match self {
            Self::Paper => action::ALPHA,
            Self::Pure | Self::Guided => 0.1,
        }
    }

    /// Everything that a policy's weights depend on, as text.
    pub fn definition(self) -> String {
        let state = match self {
            Self::Paper => state::definition(),
            Self::Pure | Self::Guided => backlog::definition(),
        };
        format!("form: {}\n{state}", self.name())
    }

    /// Hash of the [`definition`](Form::definition) (FNV-1a, 64 bits).
    pub fn definition_hash(self) -> u64 {
        fnv1a(self.definition())
    }
}
