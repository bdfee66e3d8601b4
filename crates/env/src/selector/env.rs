//! The selectors' environment.

use astraea_cc::MSS;
use astraea_policy::Feature;
use astraea_policy::selector::{CANDIDATES, Choose, Interval, Kind, Selector};

use super::config::SelectorConfig;
use crate::environment::{Actions, Environment, Outcome};
use crate::error::EnvError;
use crate::one_flow::OneFlow;

/// The choice comes with the next step.
#[derive(Clone, Copy, Debug)]
struct Later;

impl Choose for Later {
    fn choose(&mut self, _interval: &Interval, _current: usize) -> Option<usize> {
        None
    }
}

/// One flow on one link, in the packet simulator, whose controller is a [`Selector`] without a policy.
///
/// An action is the index of a scheme in [`CANDIDATES`]; the step ends with the next interval.
pub struct SelectorFlow {
    config: SelectorConfig,
    form: Kind,
    flow: OneFlow<Selector<Later>>,
    reward: f64,
}

impl SelectorFlow {
    /// An environment that has to be reset before its first step.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(config: SelectorConfig) -> Result<Self, EnvError> {
        config.validate()?;
        Ok(Self { form: config.form()?, flow: OneFlow::new(config.paths()), config, reward: 0.0 })
    }

    /// Window in payload bytes that the last choice led to.
    pub fn decided(&self) -> u64 {
        self.flow.decided()
    }

    /// Runs until the flow asks for a choice, which no timer tells beforehand.
    fn advance(&mut self, observation: &mut [f32]) {
        let asked =
            self.flow.advance(Selector::asks, |simulation, end| simulation.next_event().unwrap_or(end).min(end));
        let newest = self.flow.controller().newest();
        self.reward = if asked { newest.reward(self.form) } else { 0.0 };
        newest.observe(self.form, observation);
    }
}

impl Environment for SelectorFlow {
    fn features(&self) -> &'static [Feature] {
        self.form.features()
    }

    fn observation_repeats(&self) -> usize {
        1
    }

    fn actions(&self) -> Actions {
        Actions::Below(CANDIDATES.len())
    }

    fn info_names(&self) -> &'static [&'static str] {
        &["time", "scheme", "throughput", "rtt", "lost", "bandwidth", "base_rtt", "buffer", "loss_probability"]
    }

    fn reset(&mut self, seed: Option<u64>, observation: &mut [f32]) {
        let form = self.form;
        self.flow.begin(seed, |_| Selector::new(form, Later, MSS));
        self.advance(observation);
    }

    fn step(&mut self, action: f64, observation: &mut [f32]) -> Outcome {
        self.flow.decide(|selector| selector.act(action as usize));
        self.advance(observation);
        let truncated = self.flow.simulation().now() as f64 / 1e9 >= self.config.duration;
        Outcome { reward: self.reward, terminated: false, truncated }
    }

    fn info(&self, info: &mut [f64]) {
        let selector = self.flow.controller();
        let newest = selector.newest();
        let (own, drawn) = info.split_at_mut(5);
        own.copy_from_slice(&[
            self.flow.simulation().now() as f64 / 1e9,
            selector.current() as f64,
            newest.throughput(),
            newest.rtt / 1e9,
            newest.lost as f64,
        ]);
        drawn.copy_from_slice(&self.flow.drawn());
    }
}
