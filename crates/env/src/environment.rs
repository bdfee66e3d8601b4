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

/// An environment with one decision per step: an action is one number, an observation a fixed number of them.
pub trait Environment: Send + Sync {
    /// The numbers of an observation that repeat: see [`observation_repeats`](Environment::observation_repeats).
    fn features(&self) -> &'static [Feature];

    /// How many times the [`features`](Environment::features) follow each other in an observation.
    fn observation_repeats(&self) -> usize;

    /// Length of an observation.
    fn observation_len(&self) -> usize {
        self.features().len() * self.observation_repeats()
    }

    /// Largest magnitude of an action; larger ones are clipped.
    fn action_limit(&self) -> f64;

    /// Names of the numbers that [`info`](Environment::info) writes.
    fn info_names(&self) -> &'static [&'static str];

    /// Starts an episode. With a seed the generator starts anew from it, without one it goes on from where it is.
    fn reset(&mut self, seed: Option<u64>, observation: &mut [f32]);

    /// Carries out an action and goes on to the next decision.
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

    fn action_limit(&self) -> f64 {
        (**self).action_limit()
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
