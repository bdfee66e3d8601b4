//! The law of FAST TCP, the analytic yardstick of the learned policies (Wei, Jin, Low and Hegde 2006).
//!
//! Each flow keeps the same number of its own packets in the queue: with the rate x and the queueing delay q, the
//! window grows while x q is below that number and shrinks while it is above. Flows that know their base round-trip time
//! then share equally whatever their round-trip times; losses do not count at all.

use astraea_cc::{AnyController, Nanos, Parameter, SECOND, Scheme, Values};

use crate::{Agent, AgentConfig, Decide, Form, Pilot, Signals};

/// How much of the relative error of the backlog becomes a change of the window.
const GAIN: f64 = 0.1;

/// Largest relative change of the window in a period of at most a round trip.
const ALPHA: f64 = 0.025;

const BACKLOG: Parameter = Parameter {
    name: "backlog",
    default: 10.0,
    min: 0.1,
    max: 1e4,
    unit: "packets",
    doc: "own packets that a flow keeps in the queue",
};

const PERIOD: Parameter =
    Parameter { name: "period", default: 0.03, min: 0.001, max: 1.0, unit: "s", doc: "time between two decisions" };

/// FAST with the smallest round-trip time that it has seen, and with the true one.
pub(crate) static SCHEMES: [Scheme; 2] = [
    Scheme {
        name: "fast",
        title: "FAST",
        kind: "delay",
        year: 2006,
        reference: "Wei, Jin, Low and Hegde 2006",
        parameters: &[BACKLOG, PERIOD],
        build: |values, mss| build(values, None, mss),
    },
    Scheme {
        name: "fast-oracle",
        title: "FAST, true base RTT",
        kind: "delay",
        year: 2006,
        reference: "Wei, Jin, Low and Hegde 2006",
        parameters: &[
            BACKLOG,
            PERIOD,
            Parameter {
                name: "base_rtt",
                default: 0.0,
                min: 0.0,
                max: 100.0,
                unit: "s",
                doc: "round-trip time of the empty path; 0: that of the simulated path",
            },
        ],
        build: |values, mss| build(values, Some(values.get("base_rtt")), mss),
    },
];

fn build(values: &Values<'_>, base_rtt: Option<f64>, mss: u32) -> AnyController {
    let nanos = |seconds: f64| (seconds * SECOND as f64).round() as Nanos;
    let law = Fast { backlog: values.get("backlog"), base: base_rtt.filter(|base| *base > 0.0).map(nanos) };
    let period = nanos(values.get("period"));
    let config = AgentConfig { alpha: ALPHA, period, ..AgentConfig::new(Form::Pure) };
    AnyController::Custom(Box::new(Pilot::of(config, mss, law)))
}

/// The law of one flow.
#[derive(Clone, Debug)]
struct Fast {
    backlog: f64,
    /// Round-trip time of the empty path in ns, if it is known; else the smallest that was seen stands for it.
    base: Option<Nanos>,
}

impl Fast {
    /// The action for these signals, whose queue is what exceeds the smallest round-trip time `seen`.
    fn action(&self, signals: &Signals, seen: Nanos) -> f64 {
        let unseen = self.base.map_or(0.0, |base| (seen as f64 - base as f64) / SECOND as f64);
        let error = 1.0 - signals.rate * (signals.queue + unseen).max(0.0) / self.backlog;
        (GAIN * error / ALPHA).clamp(-1.0, 1.0)
    }
}

impl Decide for Fast {
    fn decide(&mut self, agent: &Agent) -> Option<f64> {
        Some(self.action(agent.signals(), agent.base_rtt()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use astraea_cc::MILLISECOND;

    fn action(base: Option<Nanos>, rate: f64, queue: f64) -> f64 {
        let signals = Signals { rate, queue, ..Signals::default() };
        Fast { backlog: 10.0, base }.action(&signals, 42 * MILLISECOND)
    }

    #[test]
    fn the_law_by_hand() {
        // 2000 packets/s and 5 ms of queue: ten own packets.
        assert!(action(None, 2000.0, 0.005).abs() < 1e-12);
        // Nine: a tenth of the error of a tenth, of 2.5 %.
        assert!((action(None, 1800.0, 0.005) - 0.4).abs() < 1e-12);
        assert_eq!(action(None, 2000.0, 0.0), 1.0);
        assert_eq!(action(None, 2000.0, 1.0), -1.0);
        // Of the 42 ms that it has seen at least, 2 ms are queue in truth.
        assert!(action(Some(40 * MILLISECOND), 2000.0, 0.003).abs() < 1e-9);
        // A true round-trip time above the measured one leaves no queue, not a negative one.
        assert_eq!(action(Some(50 * MILLISECOND), 2000.0, 0.003), 1.0);
    }
}
