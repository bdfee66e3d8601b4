//! A service in a controller, in whatever clock that runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use astraea_policy::{Agent, AgentConfig, Decide, Pilot};

use crate::client::{Client, Counts};
use crate::report::Reporter;
use crate::rule;

/// One client for many controllers.
#[derive(Clone, Debug)]
pub struct Link {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    client: Client,
    flows: u64,
    /// Whether one decision that is missing makes all others worthless.
    all_or_nothing: bool,
}

impl Link {
    /// Shares a client.
    pub fn new(client: Client) -> Self {
        Self::with(client, false)
    }

    /// Shares a client whose decisions count only if the service makes all of them: after the first one that it does not
    /// make nobody waits for it any more, and [`counts`](Self::counts) tells.
    pub fn all_or_nothing(client: Client) -> Self {
        Self::with(client, true)
    }

    fn with(client: Client, all_or_nothing: bool) -> Self {
        Self { shared: Arc::new(Mutex::new(Shared { client, flows: 0, all_or_nothing })) }
    }

    /// A controller of a new flow that the service decides for. Each decision is waited for, at most for the client's
    /// timeout; between two decisions no time of the controller's clock passes.
    pub fn controller(&self, config: AgentConfig, mss: u32) -> Pilot<Remote> {
        let mut shared = self.lock();
        shared.flows += 1;
        let flow = shared.flows;
        drop(shared);
        Pilot::of(config, mss, Remote { link: self.clone(), flow, reporter: Reporter::default() })
    }

    /// What the client has seen.
    pub fn counts(&self) -> Counts {
        self.lock().client.counts()
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // A client is whole between any two calls.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What answers an agent through a service.
#[derive(Debug)]
pub struct Remote {
    link: Link,
    flow: u64,
    reporter: Reporter,
}

impl Decide for Remote {
    fn decide(&mut self, agent: &Agent) -> f64 {
        let Some(report) = self.reporter.report(agent) else { return 0.0 };
        let mut shared = self.link.lock();
        if shared.all_or_nothing && shared.client.counts().ruled > 0 {
            return rule::action(agent.config(), &report.signals);
        }
        shared.client.decide(self.flow, &report).action
    }

    fn pass(&mut self, agent: &Agent) {
        if let Some(report) = self.reporter.report(agent) {
            self.link.lock().client.note(self.flow, &report);
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.link.lock().client.end(self.flow);
    }
}
