//! The selectors' environment.

use astraea_cc::{Controller, MSS, Nanos, SECOND};
use astraea_policy::Feature;
use astraea_policy::selector::{CANDIDATES, Choose, Form, Interval, Selector};
use astraea_sim::Simulation;
use astraea_sim::config::LONGEST;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::config::SelectorConfig;
use crate::environment::{Environment, Outcome};
use crate::error::EnvError;
use crate::multi_flow::{MultiFlowConfig, Scenario};

/// Longest wait for an interval to end, in ns; where nothing comes back any more, the step ends without one.
const PATIENCE: Nanos = 60 * SECOND;

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
    form: Form,
    paths: MultiFlowConfig,
    rng: Xoshiro256PlusPlus,
    scenario: Scenario,
    simulation: Option<Simulation<Selector<Later>>>,
    decided: u64,
    reward: f64,
}

impl SelectorFlow {
    /// An environment that has to be reset before its first step.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(config: SelectorConfig) -> Result<Self, EnvError> {
        config.validate()?;
        Ok(Self {
            form: config.form()?,
            paths: config.paths(),
            config,
            rng: Xoshiro256PlusPlus::seed_from_u64(0),
            scenario: Scenario::default(),
            simulation: None,
            decided: 0,
            reward: 0.0,
        })
    }

    /// The link and the flow of the present episode.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Window in payload bytes that the last choice led to.
    pub fn decided(&self) -> u64 {
        self.decided
    }

    /// Runs until the flow asks for a choice.
    fn advance(&mut self, observation: &mut [f32]) {
        let simulation = self.simulation.as_mut().expect("an episode has begun");
        let end = simulation.now() + PATIENCE;
        while !simulation.flows()[0].controller().asks() {
            match simulation.next_event() {
                Some(at) if at <= end => simulation.run_until(at),
                _ => {
                    simulation.run_until(end);
                    break;
                }
            };
        }
        let selector = simulation.flows()[0].controller();
        self.reward = if selector.asks() { selector.newest().reward(self.form) } else { 0.0 };
        selector.newest().observe(self.form, observation);
    }
}

impl Environment for SelectorFlow {
    fn features(&self) -> &'static [Feature] {
        self.form.features()
    }

    fn observation_repeats(&self) -> usize {
        1
    }

    fn action_limit(&self) -> f64 {
        (CANDIDATES.len() - 1) as f64
    }

    fn info_names(&self) -> &'static [&'static str] {
        &["time", "scheme", "throughput", "rtt", "lost", "bandwidth", "base_rtt", "buffer", "loss_probability"]
    }

    fn reset(&mut self, seed: Option<u64>, observation: &mut [f32]) {
        if let Some(seed) = seed {
            self.rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        }
        self.scenario = Scenario::draw(&self.paths, &mut self.rng);
        let simulated = self.scenario.simulation(LONGEST, 0, false, 0);
        let form = self.form;
        let simulation = Simulation::new(&simulated, self.rng.random(), |_| Selector::new(form, Later, MSS));
        self.simulation = Some(simulation.expect("an episode drawn from valid settings can be simulated"));
        self.advance(observation);
    }

    fn step(&mut self, action: f64, observation: &mut [f32]) -> Outcome {
        let choice = action.clamp(0.0, self.action_limit()).round() as usize;
        let simulation = self.simulation.as_mut().expect("an episode has begun");
        let selector = simulation.flow_mut(0).controller_mut();
        selector.act(choice);
        self.decided = selector.cwnd();
        simulation.pump(0);
        self.advance(observation);
        let now = self.simulation.as_ref().map_or(0, Simulation::now);
        let truncated = now as f64 / 1e9 >= self.config.duration;
        Outcome { reward: self.reward, terminated: false, truncated }
    }

    fn info(&self, info: &mut [f64]) {
        let simulation = self.simulation.as_ref().expect("an episode has begun");
        let selector = simulation.flows()[0].controller();
        let newest = selector.newest();
        info.copy_from_slice(&[
            simulation.now() as f64 / 1e9,
            selector.current() as f64,
            newest.throughput(),
            newest.rtt / 1e9,
            newest.lost as f64,
            self.scenario.path.bandwidth[0].1,
            self.scenario.flows[0].rtt,
            self.scenario.buffer as f64,
            self.scenario.loss,
        ]);
    }
}
