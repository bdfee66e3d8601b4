//! Orca's environment.

use astraea_cc::{Controller, MSS, Nanos};
use astraea_policy::Feature;
use astraea_policy::orca::{Answer, FEATURES, MOST, Orca, PERIOD, Terms};

use super::config::OrcaConfig;
use crate::environment::{Actions, Environment, Outcome};
use crate::error::EnvError;
use crate::one_flow::OneFlow;

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
    flow: OneFlow<Orca<Later>>,
    steps: u32,
    reward: f64,
}

impl OrcaFlow {
    /// An environment that has to be reset before its first step.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(config: OrcaConfig) -> Result<Self, EnvError> {
        config.validate()?;
        Ok(Self { flow: OneFlow::new(config.paths()), config, steps: 0, reward: 0.0 })
    }

    /// Window in payload bytes that the last action led to.
    pub fn decided(&self) -> u64 {
        self.flow.decided()
    }

    /// Runs until the flow asks for an action, from timer to timer. An action that nobody asked for changes nothing.
    fn advance(&mut self, observation: &mut [f32]) {
        let asked = self.flow.advance(Orca::asks, |simulation, _| {
            let look = simulation.flows()[0].controller().next_timer();
            look.unwrap_or(simulation.now() + PERIOD)
        });
        let history = self.flow.controller().history();
        self.reward = if asked { history.reward() } else { 0.0 };
        observation.copy_from_slice(history.values());
    }
}

impl Environment for OrcaFlow {
    fn features(&self) -> &'static [Feature] {
        &FEATURES
    }

    fn observation_repeats(&self) -> usize {
        self.config.history
    }

    fn actions(&self) -> Actions {
        Actions::Within(1.0)
    }

    fn info_names(&self) -> &'static [&'static str] {
        &["time", "cwnd", "throughput", "rtt", "bandwidth", "base_rtt", "buffer", "loss_probability"]
    }

    fn reset(&mut self, seed: Option<u64>, observation: &mut [f32]) {
        let OrcaConfig { history, period, window_limit, .. } = self.config;
        // Steps end the episode, however long they take.
        self.flow.begin(seed, |scenario| {
            let cap = window_limit * scenario.largest_bdp(0) / f64::from(MSS);
            let period = (period * 1e9).round() as Nanos;
            Orca::new(Later, Terms { reports: history, period, most: cap.clamp(16.0, MOST) }, MSS)
        });
        self.steps = 0;
        self.advance(observation);
    }

    fn step(&mut self, action: f64, observation: &mut [f32]) -> Outcome {
        self.flow.decide(|orca| orca.act(action));
        self.advance(observation);
        self.steps += 1;
        Outcome { reward: self.reward, terminated: false, truncated: self.steps >= self.config.steps }
    }

    fn info(&self, info: &mut [f64]) {
        let simulation = self.flow.simulation();
        let flow = &simulation.flows()[0];
        let (own, drawn) = info.split_at_mut(4);
        own.copy_from_slice(&[
            simulation.now() as f64 / 1e9,
            flow.controller().cwnd() as f64,
            flow.controller().history().newest().throughput,
            flow.rtt().smoothed() as f64 / 1e9,
        ]);
        drawn.copy_from_slice(&self.flow.drawn());
    }
}
