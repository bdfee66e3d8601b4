//! What the vector environment asks of an environment.

use astraea_policy::Feature;

use crate::multi_flow::Observer;

/// What a step led to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Reward of the step.
    pub reward: f64,
    /// The task ended: nothing follows.
    pub terminated: bool,
    /// The episode was cut off: the last observation may be used to estimate what would have followed.
    pub truncated: bool,
}

impl Outcome {
    /// Whether the episode is over.
    pub fn is_over(&self) -> bool {
        self.terminated || self.truncated
    }
}

/// What the actions of an environment are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Actions {
    /// Numbers of at most this magnitude; larger ones are clipped.
    Within(f64),
    /// Whole numbers from 0 to below this: a choice.
    Below(usize),
}

impl Actions {
    /// Whether an environment takes this.
    pub fn accept(self, action: f64) -> bool {
        match self {
            Self::Within(_) => action.is_finite(),
            Self::Below(choices) => action.fract() == 0.0 && (0.0..choices as f64).contains(&action),
        }
    }
}

/// An environment with one decision per step: an action is one number, an observation a fixed number of them.
pub trait Environment: Send + Sync {
    /// The numbers of an observation that repeat: see [`observation_repeats`](Environment::observation_repeats).
    fn features(&self) -> &'static [Feature];

    /// How many times the [`features`](Environment::features) follow each other in an observation.
    fn observation_repeats(&self) -> usize;

    /// Numbers that an observation ends with, once.
    fn features_at_the_end(&self) -> &'static [Feature] {
        &[]
    }

    /// Length of an observation.
    fn observation_len(&self) -> usize {
        self.features().len() * self.observation_repeats() + self.features_at_the_end().len()
    }

    /// What an action may be.
    fn actions(&self) -> Actions;

    /// Names of the numbers that [`info`](Environment::info) writes.
    fn info_names(&self) -> &'static [&'static str];

    /// Starts an episode. With a seed the generator starts anew from it, without one it goes on from where it is.
    fn reset(&mut self, seed: Option<u64>, observation: &mut [f32]);

    /// Carries out an action, one of [`actions`](Environment::actions), and goes on to the next decision.
    ///
    /// # Panics
    /// If it is a choice that there is not.
    fn step(&mut self, action: f64, observation: &mut [f32]) -> Outcome;

    /// Describes the present decision.
    fn info(&self, info: &mut [f64]);

    /// Statistics of all flows, if there is more than one.
    fn observer(&self) -> Option<&Observer> {
        None
    }
}

impl<E: Environment + ?Sized> Environment for Box<E> {
    fn features(&self) -> &'static [Feature] {
        (**self).features()
    }

    fn observation_repeats(&self) -> usize {
        (**self).observation_repeats()
    }

    fn features_at_the_end(&self) -> &'static [Feature] {
        (**self).features_at_the_end()
    }

    fn actions(&self) -> Actions {
        (**self).actions()
    }

    fn info_names(&self) -> &'static [&'static str] {
        (**self).info_names()
    }

    fn reset(&mut self, seed: Option<u64>, observation: &mut [f32]) {
        (**self).reset(seed, observation);
    }

    fn step(&mut self, action: f64, observation: &mut [f32]) -> Outcome {
        (**self).step(action, observation)
    }

    fn info(&self, info: &mut [f64]) {
        (**self).info(info);
    }

    fn observer(&self) -> Option<&Observer> {
        (**self).observer()
    }
}
