//! A controller that decides once a monitoring period: an [`Agent`] and what answers it.
//!
//! An agent takes nothing back when a loss or a timeout turns out to have been spurious: after a timeout slow start finds the
//! window again. Its twin in the kernel does restore the window that it had before such a timeout
//! (`agent_on_spurious_timeout` in `crates/kernel/src/bpf/agent.h`).

use std::sync::Arc;

use astraea_cc::{Ack, Congestion, Controller, Loss, Nanos, Rtt, SplitMix64};

use crate::{Agent, AgentConfig, Policy, Scratch};

/// The share of a gap between two packets by which it is longer or shorter, at most, while a flow is
/// [cramped](Agent::is_cramped).
///
/// Real hosts are never exact. Simulated ones are: where the packets of some flows arrive just as a place in a full buffer
/// falls free, again and again, those of another find none for good (Floyd and Jacobson, "On Traffic Phase Effects in
/// Packet-Switched Gateways", 1992).
const WAVER: f64 = 0.1;

/// What answers an agent.
pub trait Decide {
    /// The action for the period that has ended, in -1..=1; `None` if it is still to come ([`late`](Self::late)).
    fn decide(&mut self, agent: &Agent) -> Option<f64>;

    /// The action that `decide` did not have, once it has come. Asked for with each acknowledgement, and at the end of the
    /// next period for the `last` time.
    fn late(&mut self, agent: &Agent, last: bool) -> Option<f64> {
        let _ = (agent, last);
        None
    }

    /// A period has ended for which no action is wanted.
    fn pass(&mut self, agent: &Agent) {
        let _ = agent;
    }
}

/// A policy at work on one flow.
#[derive(Clone, Debug)]
pub struct Answers {
    policy: Arc<Policy>,
    scratch: Scratch,
}

impl Decide for Answers {
    fn decide(&mut self, agent: &Agent) -> Option<f64> {
        Some(f64::from(self.policy.network().forward(agent.state(), &mut self.scratch)))
    }
}

/// A flow whose agent is answered by `D` at the end of each period; the first begins with the first packet.
#[derive(Clone, Debug)]
pub struct Pilot<D = Answers> {
    agent: Agent,
    decide: D,
    next: Option<Nanos>,
    /// Whether the action for the last period is still to come.
    waiting: bool,
}

impl Pilot {
    /// Largest window in packets: one that is not used may grow without end.
    pub(crate) const CAP: f64 = 1e6;

    /// A flow under a policy, with segments of `mss` payload bytes.
    pub fn new(policy: Arc<Policy>, mss: u32) -> Self {
        Self::with_clock(policy, 0, mss)
    }

    /// The same where the time of day is that of the controller's clock and so many ns, see [`AgentConfig::clock`].
    pub fn with_clock(policy: Arc<Policy>, clock: Nanos, mss: u32) -> Self {
        let config = AgentConfig { clock, ..AgentConfig::of(policy.metadata()) };
        Self::of(config, mss, Answers { policy, scratch: Scratch::default() })
    }
}

impl<D: Decide> Pilot<D> {
    /// A flow whose agent is answered by `decide`, with segments of `mss` payload bytes.
    pub fn of(config: AgentConfig, mss: u32, decide: D) -> Self {
        Self { agent: Agent::new(config, mss, Pilot::CAP * f64::from(mss)), decide, next: None, waiting: false }
    }

    /// The agent that is answered.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    fn take_late(&mut self, last: bool) {
        let Some(action) = self.decide.late(&self.agent, last) else { return };
        self.waiting = false;
        // A flow that has begun to compete, or begun again, since has another window.
        if !self.agent.is_competing() && !self.agent.is_starting() {
            self.agent.act(action);
        }
    }
}

impl<D: Decide> Controller for Pilot<D> {
    fn on_sent(&mut self, now: Nanos, bytes: u64, in_flight: u64) {
        self.next.get_or_insert(now + self.agent.config().period);
        self.agent.on_sent(now, bytes, in_flight);
    }

    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        self.agent.on_ack(ack, rtt);
        if self.waiting {
            self.take_late(false);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.agent.on_loss(loss);
    }

    fn on_congestion(&mut self, event: &Congestion) {
        self.agent.on_congestion(event);
    }

    fn on_timeout(&mut self, now: Nanos, flight_size: u64) {
        self.agent.on_timeout(now, flight_size);
    }

    fn on_idle_restart(&mut self, now: Nanos, idle: Nanos) {
        self.agent.on_idle_restart(now, idle);
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.next
    }

    fn on_timer(&mut self, now: Nanos) {
        self.next = Some(now + self.agent.config().period);
        if self.waiting {
            self.take_late(true);
        }
        self.waiting = false;
        if self.agent.end_period(now) {
            match self.decide.decide(&self.agent) {
                Some(action) => self.agent.act(action),
                None => self.waiting = true,
            }
        } else {
            self.decide.pass(&self.agent);
        }
    }

    fn cwnd(&self) -> u64 {
        self.agent.cwnd()
    }

    fn pacing_rate(&self) -> Option<f64> {
        let rate = self.agent.pacing_rate()?;
        Some(if self.agent.is_cramped() { rate / waver(self.agent.heard()) } else { rate })
    }
}

/// What gaps between packets are multiplied by after an acknowledgement that came at this time: as good as random.
fn waver(heard: Nanos) -> f64 {
    let share = SplitMix64::new(heard).next_u64() as f64 / 2.0_f64.powi(64);
    1.0 + WAVER * (2.0 * share - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Form;
    use astraea_cc::{MILLISECOND, MSS};

    struct Still;

    impl Decide for Still {
        fn decide(&mut self, _agent: &Agent) -> Option<f64> {
            Some(0.0)
        }
    }

    #[test]
    fn the_pace_wavers_where_the_buffer_has_no_room() {
        let gaps: Vec<f64> = (0..10_000).map(|k| waver(k * MILLISECOND)).collect();
        assert!(gaps.iter().all(|gap| (gap - 1.0).abs() <= WAVER));
        assert!((gaps.iter().sum::<f64>() / 1e4 - 1.0).abs() < 0.003, "no faster on the whole");
        assert!(gaps.windows(2).filter(|pair| (pair[0] - pair[1]).abs() > WAVER / 2.0).count() > 4000);

        let mut pilot = Pilot::of(AgentConfig::new(Form::Guided), MSS, Still);
        let mut rtt = Rtt::default();
        rtt.update(40 * MILLISECOND);
        pilot.on_sent(0, 1448, 1448);
        pilot.on_ack(&Ack { now: 40 * MILLISECOND, acked: 1448, rtt: Some(40 * MILLISECOND), ..Ack::default() }, &rtt);
        pilot.on_loss(&Loss { now: 50 * MILLISECOND, lost: 20_000, in_flight: 0 }); // the end of slow start
        let mut cramped = Vec::new();
        for now in (2..200).map(|k| 40 * k * MILLISECOND) {
            pilot.on_ack(&Ack { now, acked: 20_000, rtt: Some(40 * MILLISECOND), ..Ack::default() }, &rtt);
            let gap = pilot.agent.pacing_rate().unwrap() / pilot.pacing_rate().unwrap();
            cramped.push(pilot.agent.is_cramped());
            assert!((gap - if pilot.agent.is_cramped() { waver(now) } else { 1.0 }).abs() < 1e-12);
            pilot.on_loss(&Loss { now, lost: 1448, in_flight: 20_000 });
            pilot.on_timer(now);
        }
        assert!(!cramped[0] && cramped[197], "{cramped:?}");
    }

    /// Answers once, and late.
    struct Late(Option<f64>);

    impl Decide for Late {
        fn decide(&mut self, _agent: &Agent) -> Option<f64> {
            None
        }

        fn late(&mut self, _agent: &Agent, _last: bool) -> Option<f64> {
            self.0.take()
        }
    }

    #[test]
    fn a_late_action_counts_unless_slow_start_has_begun_again() {
        for timeout in [false, true] {
            let mut pilot = Pilot::of(AgentConfig::new(Form::Guided), MSS, Late(Some(1.0)));
            let mut rtt = Rtt::default();
            rtt.update(40 * MILLISECOND);
            let acked = |now| Ack { now, acked: u64::from(MSS), rtt: Some(40 * MILLISECOND), ..Ack::default() };
            pilot.on_sent(0, 1448, 1448);
            pilot.on_ack(&acked(40 * MILLISECOND), &rtt);
            pilot.on_loss(&Loss { now: 50 * MILLISECOND, lost: 20_000, in_flight: 0 });
            pilot.on_timer(60 * MILLISECOND);
            assert!(pilot.waiting, "asked");
            if timeout {
                pilot.on_timeout(70 * MILLISECOND, 0);
            }
            let before = pilot.agent.window();
            pilot.on_ack(&Ack { acked: 0, rtt: None, ..acked(80 * MILLISECOND) }, &rtt);
            assert_eq!(pilot.agent.window() != before, !timeout);
        }
    }

    #[test]
    fn decides_every_period_from_the_first_packet_on() {
        let mut pilot = Pilot::of(AgentConfig::new(Form::Pure), MSS, Still);
        assert_eq!(pilot.next_timer(), None);
        pilot.on_sent(7, 1448, 1448);
        assert_eq!(pilot.next_timer(), Some(30 * MILLISECOND + 7));
        pilot.on_timer(30 * MILLISECOND + 7);
        assert_eq!(pilot.next_timer(), Some(60 * MILLISECOND + 7));
    }
}
