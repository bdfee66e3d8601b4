//! The flow-driven view: each step answers the flow that asks.

use astraea_policy::{Feature, state};

use super::config::MultiFlowConfig;
use super::episode::{Decision, MultiFlow};
use super::observer::Observer;
use crate::environment::{Actions, Environment, Outcome};
use crate::error::EnvError;

/// [`MultiFlow`] as an environment with one decision per step.
///
/// An observation is the local state of the flow that asks, an action answers that flow, and the reward is the shared
/// one at the moment when the next flow asks. The first decision at or after the end of the episode is its last
/// observation.
pub struct FlowDriven {
    env: MultiFlow,
    decision: Decision,
    nobody_left: bool,
}

impl FlowDriven {
    /// An environment that has to be reset before its first step.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(config: MultiFlowConfig) -> Result<Self, EnvError> {
        let env = MultiFlow::new(config, false)?;
        Ok(Self { env, decision: Decision { flow: 0, time: 0 }, nobody_left: false })
    }

    /// The environment behind this view.
    pub fn env(&self) -> &MultiFlow {
        &self.env
    }

    /// The flow that asks, and when.
    pub fn decision(&self) -> Decision {
        self.decision
    }

    /// Goes on to the next decision. If there is none, the last flow's state stands for the end of the episode.
    fn advance(&mut self, observation: &mut [f32]) {
        let next = self.env.next_decision(self.env.horizon());
        self.nobody_left = next.is_none();
        self.decision = next.unwrap_or(Decision { time: self.env.now(), ..self.decision });
        observation.copy_from_slice(self.env.local_state(self.decision.flow));
    }
}

impl Environment for FlowDriven {
    fn features(&self) -> &'static [Feature] {
        &state::FEATURES
    }

    fn observation_repeats(&self) -> usize {
        state::PERIODS
    }

    fn actions(&self) -> Actions {
        Actions::Within(1.0)
    }

    fn info_names(&self) -> &'static [&'static str] {
        &[
            "flow",
            "time",
            "ovr_thr",
            "min_thr",
            "max_thr",
            "avg_lat",
            "min_cwnd",
            "max_cwnd",
            "avg_cwnd",
            "loss_ratio",
            "num_flow",
            "d0",
            "buf",
            "c",
        ]
    }

    fn reset(&mut self, seed: Option<u64>, observation: &mut [f32]) {
        self.env.reset(seed);
        self.decision = Decision { flow: 0, time: 0 };
        self.advance(observation);
    }

    fn step(&mut self, action: f64, observation: &mut [f32]) -> Outcome {
        if !self.nobody_left {
            self.env.act(self.decision.flow, action);
            self.advance(observation);
        }
        let truncated = self.nobody_left || self.decision.time >= self.env.duration();
        Outcome { reward: self.env.reward().total, terminated: false, truncated }
    }

    fn info(&self, info: &mut [f64]) {
        info[0] = self.decision.flow as f64;
        info[1] = self.decision.time as f64 / 1e9;
        for (info, value) in info[2..].iter_mut().zip(self.env.global_state()) {
            *info = f64::from(value);
        }
    }

    fn observer(&self) -> Option<&Observer> {
        Some(self.env.observer())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multi_flow::GLOBAL_FEATURES;

    #[test]
    fn info_has_the_names_of_the_global_state() {
        let env = FlowDriven::new(MultiFlowConfig::default()).unwrap();
        assert!(env.info_names()[2..].iter().eq(GLOBAL_FEATURES.iter().map(|f| &f.name)));
    }
}
