//! Orca's environment.

use astraea_cc::{Controller, MSS, Nanos, SECOND};
use astraea_policy::Feature;
use astraea_policy::orca::{Answer, FEATURES, MOST, Orca, PERIOD, Terms};
use astraea_sim::Simulation;
use astraea_sim::config::LONGEST;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::config::OrcaConfig;
use crate::environment::{Environment, Outcome};
use crate::error::EnvError;
use crate::multi_flow::{MultiFlowConfig, Scenario};

/// Longest wait for a report, in ns; where nothing comes back any more, the step ends without one, and the action of the next
/// changes nothing.
const PATIENCE: Nanos = 60 * SECOND;

/// The action comes with the next step.
#[derive(Clone, Copy, Debug)]
struct Later;

impl Answer for Later {
    fn answer(&mut self, _observation: &[f32]) -> Option<f64> {
        None
    }
}

/// One flow on one link, in the packet simulator, whose controller is [`Orca`] without a policy.
///
/// An action `a` multiplies the window by `4^a`; the step ends with the next report, a period later or when there is something
/// to report.
pub struct OrcaFlow {
    config: OrcaConfig,
    paths: MultiFlowConfig,
    rng: Xoshiro256PlusPlus,
    scenario: Scenario,
    simulation: Option<Simulation<Orca<Later>>>,
    steps: u32,
    decided: u64,
    reward: f64,
}

impl OrcaFlow {
    /// An environment that has to be reset before its first step.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(config: OrcaConfig) -> Result<Self, EnvError> {
        config.validate()?;
        Ok(Self {
            paths: config.paths(),
            config,
            rng: Xoshiro256PlusPlus::seed_from_u64(0),
            scenario: Scenario::default(),
            simulation: None,
            steps: 0,
            decided: 0,
            reward: 0.0,
        })
    }

    /// The link and the flow of the present episode.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Window in payload bytes that the last action led to.
    pub fn decided(&self) -> u64 {
        self.decided
    }

    /// Runs until the flow asks for an action.
    fn advance(&mut self, observation: &mut [f32]) {
        let simulation = self.simulation.as_mut().expect("an episode has begun");
        let end = simulation.now() + PATIENCE;
        while !simulation.flows()[0].controller().asks() && simulation.now() < end {
            let look = simulation.flows()[0].controller().next_timer();
            simulation.run_until(look.unwrap_or(simulation.now() + PERIOD));
        }
        let orca = simulation.flows()[0].controller();
        self.reward = if orca.asks() { orca.history().reward() } else { 0.0 };
        observation.copy_from_slice(orca.history().values());
    }
}

impl Environment for OrcaFlow {
    fn features(&self) -> &'static [Feature] {
        &FEATURES
    }

    fn observation_repeats(&self) -> usize {
        self.config.history
    }

    fn action_limit(&self) -> f64 {
        1.0
    }

    fn info_names(&self) -> &'static [&'static str] {
        &["time", "cwnd", "throughput", "rtt", "bandwidth", "base_rtt", "buffer", "loss_probability"]
    }

    fn reset(&mut self, seed: Option<u64>, observation: &mut [f32]) {
        if let Some(seed) = seed {
            self.rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        }
        self.scenario = Scenario::draw(&self.paths, &mut self.rng);
        let scenario = &self.scenario;
        let cap = self.config.window_limit * scenario.largest_bdp(0) / f64::from(MSS);
        // Steps end the episode, however long they take.
        let simulated = scenario.simulation(LONGEST, 0, false, 0);
        let OrcaConfig { history, period, .. } = self.config;
        let terms = Terms { reports: history, period: (period * 1e9).round() as Nanos, most: cap.clamp(16.0, MOST) };
        let controller = |_| Orca::new(Later, terms, MSS);
        let simulation = Simulation::new(&simulated, self.rng.random(), controller);
        self.simulation = Some(simulation.expect("an episode drawn from valid settings can be simulated"));
        self.steps = 0;
        self.advance(observation);
    }

    fn step(&mut self, action: f64, observation: &mut [f32]) -> Outcome {
        let simulation = self.simulation.as_mut().expect("an episode has begun");
        let orca = simulation.flow_mut(0).controller_mut();
        orca.act(action);
        self.decided = orca.cwnd();
        simulation.pump(0);
        self.advance(observation);
        self.steps += 1;
        Outcome { reward: self.reward, terminated: false, truncated: self.steps >= self.config.steps }
    }

    fn info(&self, info: &mut [f64]) {
        let simulation = self.simulation.as_ref().expect("an episode has begun");
        let flow = &simulation.flows()[0];
        info.copy_from_slice(&[
            simulation.now() as f64 / 1e9,
            flow.controller().cwnd() as f64,
            flow.controller().history().newest().throughput,
            flow.rtt().smoothed() as f64 / 1e9,
            self.scenario.path.bandwidth[0].1,
            self.scenario.flows[0].rtt,
            self.scenario.buffer as f64,
            self.scenario.loss,
        ]);
    }
}
