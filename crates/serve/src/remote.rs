//! A service in a controller, in whatever clock that runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use astraea_policy::{Agent, AgentConfig, Decide, Pilot};

use crate::client::{Client, Counts};
use crate::report::Reporter;

/// One client for many controllers.
#[derive(Clone, Debug)]
pub struct Link {
    client: Arc<Mutex<(Client, u64)>>,
}

impl Link {
    /// Shares a client.
    pub fn new(client: Client) -> Self {
        Self { client: Arc::new(Mutex::new((client, 0))) }
    }

    /// A controller of a new flow that the service decides for. Each decision is waited for, at most for the client's
    /// timeout; between two decisions no time of the controller's clock passes.
    pub fn controller(&self, config: AgentConfig, mss: u32) -> Pilot<Remote> {
        let mut client = self.lock();
        client.1 += 1;
        let flow = client.1;
        drop(client);
        Pilot::of(config, mss, Remote { link: self.clone(), flow, reporter: Reporter::default() })
    }

    /// What the client has seen.
    pub fn counts(&self) -> Counts {
        self.lock().0.counts()
    }

    fn lock(&self) -> MutexGuard<'_, (Client, u64)> {
        // A client is whole between any two calls.
        self.client.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.link.lock().0.decide(self.flow, &report).action
    }

    fn pass(&mut self, agent: &Agent) {
        if let Some(report) = self.reporter.report(agent) {
            self.link.lock().0.note(self.flow, &report);
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        self.link.lock().0.end(self.flow);
    }
}
