//! Controllers that go on while they wait for a service.

mod common;

use std::time::Duration;

use astraea_cc::{Ack, Congestion, Controller, MILLISECOND, MSS, Nanos, RateSample, Rtt, Signal};
use astraea_policy::{Agent, AgentConfig, Decide, Pilot};
use astraea_serve::{Client, Link};
use common::{Directory, PATIENT, Running, config, eventually, policy};

const PERIOD: Nanos = AgentConfig::PERIOD;

/// A flow in the clock of a test: 20 ms of round trip, one packet acknowledged each time.
struct Flow<D> {
    pilot: Pilot<D>,
    rtt: Rtt,
    now: Nanos,
}

impl<D: Decide> Flow<D> {
    /// A flow that has left slow start.
    fn new(pilot: Pilot<D>) -> Self {
        let mut flow = Self { pilot, rtt: Rtt::default(), now: 0 };
        flow.pilot.on_sent(0, u64::from(MSS), u64::from(MSS));
        flow.ack(20 * MILLISECOND);
        let congestion = Congestion { now: flow.now, signal: Signal::Ecn, flight_size: 10, sent_at: 0 };
        flow.pilot.on_congestion(&congestion);
        flow
    }

    fn ack(&mut self, now: Nanos) {
        self.now = now;
        let sample = 20 * MILLISECOND;
        self.rtt.update(sample);
        let ack = Ack {
            now,
            acked: u64::from(MSS),
            sent_at: now - sample,
            rtt: Some(sample),
            rate: RateSample::default(),
            in_flight: u64::from(MSS),
            cwnd_limited: true,
            in_recovery: false,
            hole_open: false,
            stamped: None,
            ce_marked: 0,
        };
        self.pilot.on_ack(&ack, &self.rtt);
    }

    fn end_period(&mut self) {
        self.now = self.pilot.next_timer().unwrap();
        self.pilot.on_timer(self.now);
    }

    fn window(&self) -> f64 {
        self.pilot.agent().window()
    }
}

/// Every action is 0.
struct Still;

impl Decide for Still {
    fn decide(&mut self, _agent: &Agent) -> Option<f64> {
        Some(0.0)
    }
}

#[test]
fn the_answer_that_comes_later_does_what_the_awaited_one_would() {
    let directory = Directory::new();
    let _service = Running::start(config(&directory));
    let client = || Client::connect(directory.socket(), None, PATIENT, PATIENT).unwrap();
    let terms = client().terms().unwrap().agent();
    let (waiting, real) = (Link::new(client()), Link::in_real_time(client()));
    let mut awaited = Flow::new(waiting.controller(terms, MSS));
    let mut flow = Flow::new(real.controller(terms, MSS));
    for period in 1..=8 {
        let before = flow.window();
        assert_eq!(before, awaited.window());
        awaited.end_period();
        flow.end_period();
        eventually("an answer", || {
            flow.ack(flow.now + 1);
            real.counts().answered == period && flow.window() != before
        });
        // The same acknowledgements at the same time as those before the answer came.
        while awaited.now < flow.now {
            awaited.ack(awaited.now + 1);
        }
    }
    assert_eq!((real.counts().ruled, waiting.counts().answered), (0, 8));
}

#[test]
fn without_an_answer_the_rule_decides_when_the_next_period_ends() {
    let directory = Directory::new();
    let terms = AgentConfig::of(policy(1).metadata());
    let link = Link::in_real_time(Client::new(directory.socket(), None, PATIENT, terms));
    let mut flow = Flow::new(link.controller(terms, MSS));
    let mut ruled = Flow::new(Pilot::of(terms, MSS, Still));
    let before = flow.window();
    flow.end_period();
    ruled.end_period();
    flow.ack(flow.now + PERIOD / 2);
    ruled.ack(flow.now);
    assert_eq!((flow.window(), link.counts().ruled), (before, 0), "nobody has answered, and nobody waits");
    flow.end_period();
    assert_eq!(link.counts().ruled, 1);
    assert_ne!(flow.window(), before);
    assert_eq!(flow.window(), ruled.window(), "in the form guided the rule is the agent's own law");

    // A service appears, and the flow is its from the next period on.
    let service = Running::start(config(&directory));
    eventually("the service takes over", || {
        flow.end_period();
        std::thread::sleep(Duration::from_millis(5));
        flow.ack(flow.now + 1);
        link.counts().answered > 0
    });
    drop(service);
    let answered = link.counts().answered;
    let ruled = link.counts().ruled;
    for _ in 0..3 {
        flow.end_period();
    }
    assert!(link.counts().ruled > ruled, "it has gone again");
    assert!(link.counts().answered <= answered + 1);
}
