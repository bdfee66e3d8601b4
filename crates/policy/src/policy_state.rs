//! What a policy sees of a flow, by its form.

use crate::{BacklogState, Form, LocalState};

/// What a policy sees of one flow.
#[derive(Clone, Debug)]
pub enum PolicyState {
    /// In the papers' form.
    Paper(LocalState),
    /// In the others.
    Backlog(BacklogState),
}

impl PolicyState {
    /// That of a flow of which nothing is known yet.
    pub fn new(form: Form) -> Self {
        match form {
            Form::Paper => Self::Paper(LocalState::default()),
            Form::Pure | Form::Guided => Self::Backlog(BacklogState::default()),
        }
    }

    /// The state, shape [`Form::inputs`].
    pub fn values(&self) -> &[f32] {
        match self {
            Self::Paper(state) => state.values(),
            Self::Backlog(state) => state.values(),
        }
    }
}
