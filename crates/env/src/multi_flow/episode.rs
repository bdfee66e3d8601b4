//! An episode of many flows, driven by their monitoring periods.

use astraea_cc::{Controller, MSS, Nanos};
use astraea_policy::state::LENGTH;
use astraea_policy::{AgentController, Measurement};
use astraea_sim::{Flow, Interval, Simulation, Stop};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::config::MultiFlowConfig;
use super::global::{self, Link};
use super::observer::{FlowStatistics, Observer};
use super::reward::RewardTerms;
use super::scenario::{Scenario, nanos};
use crate::error::EnvError;

/// A flow asks for an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Index of the flow.
    pub flow: usize,
    /// Time in ns.
    pub time: Nanos,
}

/// Many flows on one bottleneck.
pub struct MultiFlow {
    config: MultiFlowConfig,
    aligned_periods: bool,
    rng: Xoshiro256PlusPlus,
    scenario: Scenario,
    link: Link,
    observer: Observer,
    simulation: Option<Simulation<AgentController>>,
}

impl MultiFlow {
    /// An environment that has to be reset before it is used. With `aligned_periods` the monitoring periods of all
    /// flows end together, at multiples of the period; otherwise each counts from its flow's start.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(config: MultiFlowConfig, aligned_periods: bool) -> Result<Self, EnvError> {
        config.validate()?;
        Ok(Self {
            config,
            aligned_periods,
            rng: Xoshiro256PlusPlus::seed_from_u64(0),
            scenario: Scenario::default(),
            link: Link::default(),
            observer: Observer::default(),
            simulation: None,
        })
    }

    /// The settings.
    pub fn config(&self) -> &MultiFlowConfig {
        &self.config
    }

    /// The link and the flows of the present episode.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Statistics of all flows.
    pub fn observer(&self) -> &Observer {
        &self.observer
    }

    /// Length of an episode in ns.
    pub fn duration(&self) -> Nanos {
        nanos(self.config.duration)
    }

    /// Monitoring period in ns.
    pub fn period(&self) -> Nanos {
        nanos(self.config.period)
    }

    /// Present time in ns.
    pub fn now(&self) -> Nanos {
        self.simulation.as_ref().map_or(0, Simulation::now)
    }

    /// Draws a new episode. With a seed the generator starts anew from it, without one it goes on.
    ///
    /// # Panics
    /// If the simulator rejects an episode drawn from valid settings, which would be a bug.
    pub fn reset(&mut self, seed: Option<u64>) {
        if let Some(seed) = seed {
            self.rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        }
        self.scenario = Scenario::draw(&self.config, &mut self.rng);
        let scenario = &self.scenario;
        let mean_rtt = scenario.flows.iter().map(|f| f.rtt).sum::<f64>() / scenario.flows.len() as f64;
        let capacity = scenario.capacity();
        let buffer = scenario.buffer as f64 * 8.0 * capacity / scenario.bandwidth;
        self.link = Link { capacity, buffer, rtt: mean_rtt };
        self.observer.reset(scenario.flows.iter().map(|f| f.rtt));
        let period = self.period();
        // One period more, so that each flow can show what its last action within the episode led to.
        let simulated = scenario.simulation(self.duration() + period, period, self.aligned_periods);
        let limit = self.config.window_limit;
        let controller = |flow: usize| {
            let bdp = capacity * scenario.flows[flow].rtt / 8.0;
            AgentController::new(MSS, limit * bdp)
        };
        let simulation = Simulation::new(&simulated, self.rng.random(), controller)
            .expect("an episode drawn from valid settings can be simulated");
        self.simulation = Some(simulation);
    }

    /// Runs until a flow asks for an action, at most until `time` (ns). Flows in slow start do not ask.
    ///
    /// Several flows may ask at the same time; each asks once a period, and its window stays as it is if it gets no
    /// answer. `None`: nobody asks until then.
    pub fn next_decision(&mut self, time: Nanos) -> Option<Decision> {
        let simulation = self.simulation.as_mut()?;
        while let Stop::Decision(flow) = simulation.run_until(time) {
            let interval = simulation.take_interval(flow, None);
            self.observer.record(flow, &measurement(&interval, &simulation.flows()[flow]));
            if !simulation.flows()[flow].controller().is_starting() {
                let time = simulation.now();
                self.note_departures();
                return Some(Decision { flow, time });
            }
        }
        self.note_departures();
        None
    }

    /// Tells the observer which flows have left.
    fn note_departures(&mut self) {
        let Some(simulation) = &self.simulation else { return };
        for (index, flow) in simulation.flows().iter().enumerate() {
            if !flow.is_active() {
                self.observer.leave(index);
            }
        }
    }

    /// Whether a flow has started and not left.
    pub fn is_active(&self, flow: usize) -> bool {
        self.simulation.as_ref().is_some_and(|s| s.flows().get(flow).is_some_and(Flow::is_active))
    }

    /// What the policy of a flow sees, shape [`LENGTH`]; see [`astraea_policy::state`].
    pub fn local_state(&self, flow: usize) -> &[f32; LENGTH] {
        self.observer.local(flow).values()
    }

    /// Carries out an action in -1..=1 (clipped): equation 3.
    pub fn act(&mut self, flow: usize, action: f64) {
        let alpha = self.config.alpha;
        if let Some(simulation) = &mut self.simulation {
            simulation.flow_mut(flow).controller_mut().act(action, alpha);
            simulation.pump(flow);
        }
    }

    /// The global state, see [`GLOBAL_FEATURES`](super::GLOBAL_FEATURES).
    pub fn global_state(&self) -> [f32; 12] {
        global::encode(self.observer.active(), &self.link)
    }

    /// The reward of the last monitoring periods of all active flows.
    pub fn reward(&self) -> RewardTerms {
        RewardTerms::new(&self.config.reward, &self.observer.active(), &self.link)
    }

    /// Statistics of a flow.
    pub fn statistics(&self, flow: usize) -> &FlowStatistics {
        self.observer.statistics(flow)
    }
}

fn measurement(interval: &Interval, flow: &Flow<AgentController>) -> Measurement {
    let bit_rate = |bytes: u64| bytes as f64 * 8e9 / interval.length().max(1) as f64;
    let controller = flow.controller();
    Measurement {
        throughput: bit_rate(interval.acked),
        latency: interval.rtt_mean().map(|ns| ns / 1e9),
        latency_min: flow.rtt().min().unwrap_or(0) as f64 / 1e9,
        loss: bit_rate(interval.lost),
        in_flight: flow.in_flight() as f64,
        cwnd: controller.window(),
        pacing_rate: controller.pacing_rate().unwrap_or(0.0),
    }
}
