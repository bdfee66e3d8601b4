//! An episode of many flows, driven by their monitoring periods.

use astraea_cc::{MSS, Nanos};
use astraea_policy::{Agent, AgentConfig, Form};
use astraea_sim::{Flow, Simulation, Stop};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::config::MultiFlowConfig;
use super::driver::{Driver, measure};
use super::global::{self, Link, NEIGHBOURS};
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
    agent: AgentConfig,
    aligned_periods: bool,
    slot: Nanos,
    rng: Xoshiro256PlusPlus,
    scenario: Scenario,
    link: Link,
    observer: Observer,
    simulation: Option<Simulation<Driver>>,
}

impl MultiFlow {
    /// An environment that has to be reset before it is used. With `aligned_periods` the monitoring periods of all
    /// flows end together, at multiples of the period; otherwise each counts from its flow's start.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(config: MultiFlowConfig, aligned_periods: bool) -> Result<Self, EnvError> {
        Self::with_form(config, Form::Paper, aligned_periods)
    }

    /// As [`new`](MultiFlow::new), with another embedding of the policy than the papers'.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn with_form(config: MultiFlowConfig, form: Form, aligned_periods: bool) -> Result<Self, EnvError> {
        config.validate()?;
        let agent = AgentConfig { alpha: config.alpha, period: nanos(config.period), ..AgentConfig::new(form) };
        Ok(Self {
            config,
            agent,
            aligned_periods,
            slot: 0,
            rng: Xoshiro256PlusPlus::seed_from_u64(0),
            scenario: Scenario::default(),
            link: Link::default(),
            observer: Observer::default(),
            simulation: None,
        })
    }

    /// Records series in slots of that length (ns), for what is measured after an episode.
    #[must_use]
    pub(crate) fn recording(mut self, slot: Nanos) -> Self {
        self.slot = slot;
        self
    }

    /// The settings.
    pub fn config(&self) -> &MultiFlowConfig {
        &self.config
    }

    /// The link and the flows of the present episode.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The link as it is now.
    pub fn link(&self) -> &Link {
        &self.link
    }

    /// The simulation of the present episode.
    ///
    /// # Panics
    /// Before the first episode.
    pub(crate) fn simulation_mut(&mut self) -> &mut Simulation<Driver> {
        self.simulation.as_mut().expect("an episode has begun")
    }

    /// Largest window of a flow in payload bytes.
    pub fn window_cap(&self, flow: usize) -> f64 {
        self.config.window_limit * self.scenario.largest_bdp(flow)
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

    /// When the simulation of an episode ends, in ns: a period after the episode, so that each flow can show what its
    /// last action within it led to.
    pub fn horizon(&self) -> Nanos {
        self.duration() + self.period()
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
        self.observer.reset(scenario.flows.iter().map(|f| (f.rtt, f.neighbour.is_some())));
        let simulated = scenario.simulation(self.horizon(), self.period(), self.aligned_periods, self.slot);
        let seed = self.rng.random();
        // An episode begins at any time of the day.
        let agent = AgentConfig { clock: seed % AgentConfig::HOUR, ..self.agent };
        let driver = |flow: usize| match scenario.flows[flow].neighbour {
            None => Driver::Agent(Box::new(Agent::new(agent, MSS, self.window_cap(flow)))),
            Some(scheme) => {
                let built = astraea_cc::build(scheme, &[], MSS);
                Driver::Neighbour(Box::new(built.expect("valid settings name schemes that can be built")))
            }
        };
        let simulation =
            Simulation::new(&simulated, seed, driver).expect("an episode drawn from valid settings can be simulated");
        self.simulation = Some(simulation);
        self.link = self.link_at(0);
    }

    /// The link as it is at a time.
    fn link_at(&self, time: Nanos) -> Link {
        let scenario = &self.scenario;
        Link { capacity: scenario.capacity(time), buffer: scenario.buffer_bits(), rtt: scenario.mean_rtt(time) }
    }

    /// Runs until a flow asks for an action, at most until `time` (ns). Flows in slow start do not ask.
    ///
    /// Several flows may ask at the same time; each asks once a period, and its window stays as it is if it gets no
    /// answer. `None`: nobody asks until then.
    pub fn next_decision(&mut self, time: Nanos) -> Option<Decision> {
        let simulation = self.simulation.as_mut()?;
        let mut asking = None;
        while let Stop::Decision(flow) = simulation.run_until(time) {
            let interval = simulation.take_interval(flow, None);
            let now = simulation.now();
            let base_rtt = self.scenario.rtt(flow, now);
            let sender = simulation.flow_mut(flow);
            let asks = if let Some(agent) = sender.controller_mut().agent_mut() {
                let asks = agent.end_period(now);
                self.observer.record(flow, agent.measurement(), base_rtt);
                if !asks {
                    // What the agent's rules did to the window may allow it to send.
                    simulation.pump(flow);
                }
                asks
            } else {
                self.observer.record(flow, &measure(&interval, sender), base_rtt);
                false
            };
            if asks {
                asking = Some(Decision { flow, time: now });
                break;
            }
        }
        self.observer.retain(|flow| simulation.flows()[flow].is_active());
        self.link = self.link_at(self.now());
        asking
    }

    /// Whether a flow has started and not left.
    pub fn is_active(&self, flow: usize) -> bool {
        self.simulation.as_ref().is_some_and(|s| s.flows().get(flow).is_some_and(Flow::is_active))
    }

    /// What the policy of a flow sees, shape [`Form::inputs`]; empty for a neighbour.
    pub fn local_state(&self, flow: usize) -> &[f32] {
        self.agent(flow).map_or(&[], Agent::state)
    }

    /// The agent of a flow, if the flow has one.
    pub fn agent(&self, flow: usize) -> Option<&Agent> {
        self.simulation.as_ref().and_then(|s| s.flows()[flow].controller().agent())
    }

    /// Carries out an action in -1..=1 (clipped).
    pub fn act(&mut self, flow: usize, action: f64) {
        if let Some(simulation) = &mut self.simulation
            && let Some(agent) = simulation.flow_mut(flow).controller_mut().agent_mut()
        {
            agent.act(action);
            simulation.pump(flow);
        }
    }

    /// The global state, see [`GLOBAL_FEATURES`](super::GLOBAL_FEATURES).
    pub fn global_state(&self) -> [f32; 12] {
        global::encode(self.observer.active(), &self.link)
    }

    /// Appends the global state, and in a domain with neighbours their number, [`NEIGHBOURS`]; in all
    /// [`MultiFlowConfig::global_len`] numbers.
    pub fn write_global_state(&self, to: &mut Vec<f32>) {
        to.extend_from_slice(&self.global_state());
        if self.config.neighbours.probability > 0.0 {
            let neighbours = self.observer.active().filter(|f| f.neighbour).count();
            to.push(NEIGHBOURS.encode(neighbours as f64 / 10.0));
        }
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
