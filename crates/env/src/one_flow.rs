//! One flow from beginning to end on a link that is drawn for each episode, in the packet simulator.

use astraea_cc::{Controller, Nanos, SECOND};
use astraea_sim::Simulation;
use astraea_sim::config::LONGEST;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::multi_flow::{MultiFlowConfig, Scenario};
use crate::range::{Range, Spread};

/// Longest wait for a decision, in ns; where nothing comes back any more, the step ends without one.
const PATIENCE: Nanos = 60 * SECOND;

/// What episodes of one flow have in common, where their own settings say no more.
pub(crate) fn paths() -> MultiFlowConfig {
    MultiFlowConfig {
        bandwidth_scale: Spread::Log,
        rtt_scale: Spread::Log,
        heterogeneous: 0.0,
        flows: Range::new(1.0, 1.0),
        lifetime: None,
        ..MultiFlowConfig::default()
    }
}

/// A flow whose controller is steered from outside.
pub(crate) struct OneFlow<C> {
    paths: MultiFlowConfig,
    rng: Xoshiro256PlusPlus,
    scenario: Scenario,
    simulation: Option<Simulation<C>>,
    decided: u64,
}

impl<C: Controller> OneFlow<C> {
    /// One that has to [`begin`](Self::begin), on links drawn from these.
    pub(crate) fn new(paths: MultiFlowConfig) -> Self {
        let rng = Xoshiro256PlusPlus::seed_from_u64(0);
        Self { paths, rng, scenario: Scenario::default(), simulation: None, decided: 0 }
    }

    /// Begins an episode, which the environment ends. With a seed the generator starts anew from it.
    pub(crate) fn begin(&mut self, seed: Option<u64>, controller: impl Fn(&Scenario) -> C) {
        if let Some(seed) = seed {
            self.rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        }
        self.scenario = Scenario::draw(&self.paths, &mut self.rng);
        let simulated = self.scenario.simulation(LONGEST, 0, false, 0);
        let simulation = Simulation::new(&simulated, self.rng.random(), |_| controller(&self.scenario));
        self.simulation = Some(simulation.expect("an episode drawn from valid settings can be simulated"));
    }

    /// The present episode.
    pub(crate) fn simulation(&self) -> &Simulation<C> {
        self.simulation.as_ref().expect("an episode has begun")
    }

    /// The present episode, to go on with.
    pub(crate) fn simulation_mut(&mut self) -> &mut Simulation<C> {
        self.simulation.as_mut().expect("an episode has begun")
    }

    /// The flow's controller.
    pub(crate) fn controller(&self) -> &C {
        self.simulation().flows()[0].controller()
    }

    /// Runs until the flow asks for a decision, and says whether it does. `next` is when it may ask next, given the
    /// simulation and the time until which one waits.
    pub(crate) fn advance(
        &mut self,
        asks: impl Fn(&C) -> bool,
        next: impl Fn(&mut Simulation<C>, Nanos) -> Nanos,
    ) -> bool {
        let simulation = self.simulation_mut();
        let end = simulation.now() + PATIENCE;
        while !asks(simulation.flows()[0].controller()) && simulation.now() < end {
            let next = next(simulation, end);
            simulation.run_until(next);
        }
        asks(self.controller())
    }

    /// Does something to the controller, and lets the flow send what it then may.
    pub(crate) fn decide(&mut self, act: impl FnOnce(&mut C)) {
        let simulation = self.simulation_mut();
        let controller = simulation.flow_mut(0).controller_mut();
        act(controller);
        let decided = controller.cwnd();
        simulation.pump(0);
        self.decided = decided;
    }

    /// Window in payload bytes that the last decision led to.
    pub(crate) fn decided(&self) -> u64 {
        self.decided
    }

    /// What was drawn: rate of the bottleneck (bit/s on the wire), base round-trip time (s), buffer (wire bytes), share of
    /// packets lost at random.
    pub(crate) fn drawn(&self) -> [f64; 4] {
        let Scenario { path, flows, buffer, loss, .. } = &self.scenario;
        [path.bandwidth[0].1, flows[0].rtt, *buffer as f64, *loss]
    }
}
