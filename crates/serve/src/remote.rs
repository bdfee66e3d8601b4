//! A service in a controller, in whatever clock that runs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use astraea_policy::{Agent, AgentConfig, Decide, Pilot, Policy};

use crate::client::{Client, ClientError, Counts, Decision};
use crate::report::Reporter;
use crate::rule;

/// One client for many controllers.
#[derive(Clone, Debug)]
pub struct Link {
    shared: Arc<Mutex<Shared>>,
}

/// What a controller does until its answer comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// It waits, at most for the client's timeout: no time of its clock passes.
    Wait,
    /// The same, but one decision that is missing makes all others worthless.
    AllOrNothing,
    /// It goes on: its clock does not stand still.
    GoOn,
}

#[derive(Debug)]
struct Shared {
    client: Client,
    flows: u64,
    manner: Manner,
    /// Decisions that their flows have not taken yet.
    decided: HashMap<u64, f64>,
    /// What the client has just said; kept for its memory.
    fresh: Vec<Decision>,
}

impl Shared {
    /// Sends what waits and takes what has come.
    fn exchange(&mut self) {
        self.client.poll(Duration::ZERO, &mut self.fresh);
        self.decided.extend(self.fresh.drain(..).map(|decision| (decision.flow, decision.action)));
    }
}

impl Link {
    /// Shares a client among controllers in a clock that stands still while one of them waits for its decision.
    pub fn new(client: Client) -> Self {
        Self::with(client, Manner::Wait)
    }

    /// Shares a client whose decisions count only if the service makes all of them: after the first one that it does not
    /// make nobody waits for it any more, and [`counts`](Self::counts) tells.
    pub fn all_or_nothing(client: Client) -> Self {
        Self::with(client, Manner::AllOrNothing)
    }

    /// Shares a client among controllers in real time, which never wait: a request leaves at the end of a period, its answer
    /// is carried out with the first acknowledgement after it has come, and one that has not come by the end of the next
    /// period is given up for the [rule](crate::rule). The client's timeout should be a period.
    pub fn in_real_time(client: Client) -> Self {
        Self::with(client, Manner::GoOn)
    }

    fn with(client: Client, manner: Manner) -> Self {
        let shared = Shared { client, flows: 0, manner, decided: HashMap::new(), fresh: Vec::new() };
        Self { shared: Arc::new(Mutex::new(shared)) }
    }

    /// A controller of a new flow that the service decides for.
    pub fn controller(&self, config: AgentConfig, mss: u32) -> Pilot<Remote> {
        let mut shared = self.lock();
        shared.flows += 1;
        let flow = shared.flows;
        drop(shared);
        Pilot::of(config, mss, Remote { link: self.clone(), flow, reporter: Reporter::default() })
    }

    /// See [`Client::check_policy`].
    ///
    /// # Errors
    /// Those of the client's.
    pub fn check_policy(&self, scheme: &str, policy: &Policy) -> Result<(), ClientError> {
        self.lock().client.check_policy(scheme, policy)
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
    fn decide(&mut self, agent: &Agent) -> Option<f64> {
        let Some(report) = self.reporter.report(agent) else { return Some(0.0) };
        let shared = &mut *self.link.lock();
        match shared.manner {
            Manner::AllOrNothing if shared.client.counts().ruled > 0 => {
                Some(rule::action(agent.config(), &report.signals))
            }
            Manner::Wait | Manner::AllOrNothing => Some(shared.client.decide(self.flow, &report).action),
            Manner::GoOn => {
                shared.client.ask(self.flow, &report);
                shared.exchange();
                shared.decided.remove(&self.flow)
            }
        }
    }

    fn late(&mut self, _agent: &Agent, last: bool) -> Option<f64> {
        let shared = &mut *self.link.lock();
        shared.exchange();
        let come = shared.decided.remove(&self.flow);
        if come.is_some() || !last {
            return come;
        }
        shared.client.give_up_on(self.flow).map(|decision| decision.action)
    }

    fn pass(&mut self, agent: &Agent) {
        if let Some(report) = self.reporter.report(agent) {
            self.link.lock().client.note(self.flow, &report);
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let shared = &mut *self.link.lock();
        shared.decided.remove(&self.flow);
        shared.client.end(self.flow);
    }
}
