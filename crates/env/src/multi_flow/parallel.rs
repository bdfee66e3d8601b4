//! The parallel view: monitoring periods end together, and all flows that ask are answered at once.

use astraea_cc::Nanos;

use super::config::MultiFlowConfig;
use super::episode::MultiFlow;
use crate::error::EnvError;

/// What an agent, the policy of one flow, is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgentStatus {
    /// Its flow has not arrived or is in slow start.
    #[default]
    Waiting,
    /// It asks for an action.
    Live,
    /// Its flow left in the step that has just been taken.
    Left,
    /// Its flow left before.
    Gone,
}

/// [`MultiFlow`] with aligned monitoring periods.
///
/// The agent of a flow appears at the end of the first period in which its slow start was over, acts once a period, and
/// leaves with its flow. When no agent is live, time passes until one is.
pub struct Parallel {
    env: MultiFlow,
    agents: Vec<AgentStatus>,
    over: bool,
}

impl Parallel {
    /// An environment that has to be reset before its first step.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(config: MultiFlowConfig) -> Result<Self, EnvError> {
        Ok(Self { env: MultiFlow::new(config, true)?, agents: Vec::new(), over: false })
    }

    /// The environment behind this view.
    pub fn env(&self) -> &MultiFlow {
        &self.env
    }

    /// Status of each agent, by flow.
    pub fn agents(&self) -> &[AgentStatus] {
        &self.agents
    }

    /// Whether the episode has been cut off: its time is over, or no further flow will ask.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Draws a new episode and goes on to its first decisions.
    pub fn reset(&mut self, seed: Option<u64>) {
        self.env.reset(seed);
        self.agents.clear();
        self.agents.resize(self.env.observer().len(), AgentStatus::Waiting);
        self.over = false;
        self.advance();
    }

    /// Carries out the actions of the live agents (`actions` by flow) and goes on to the next decisions. After the end
    /// of the episode nothing happens any more.
    pub fn step(&mut self, actions: &[f64]) {
        if self.over {
            return;
        }
        for (flow, (agent, action)) in self.agents.iter().zip(actions).enumerate() {
            if *agent == AgentStatus::Live {
                self.env.act(flow, *action);
            }
        }
        self.advance();
    }

    fn advance(&mut self) {
        let mut asking = self.env.next_decision(self.env.horizon());
        for (flow, agent) in self.agents.iter_mut().enumerate() {
            *agent = match *agent {
                AgentStatus::Live if !self.env.is_active(flow) => AgentStatus::Left,
                AgentStatus::Left => AgentStatus::Gone,
                status => status,
            };
        }
        let time: Nanos = self.env.now();
        while let Some(decision) = asking {
            self.agents[decision.flow] = AgentStatus::Live;
            asking = self.env.next_decision(time);
        }
        self.over = time >= self.env.duration();
    }
}
