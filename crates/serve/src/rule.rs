//! The local rule: what a sender does in a period for which it has no answer.
//!
//! It is part of the protocol, so that every client does the same, and stays as it is when the law of the shipped policies
//! changes: FAST TCP's idea with a wanted backlog that grows with the root of the rate.

use astraea_policy::{AgentConfig, Form, Signals};

/// Own packets in the queue that are wanted at [`REFERENCE`].
const BACKLOG: f64 = 10.0;

/// Rate in packets/s at which [`BACKLOG`] holds.
const REFERENCE: f64 = 2777.0;

/// Step for an error of 1, and the largest ones down and up.
const GAIN: f64 = 0.1;
const DOWN: f64 = -0.1;
const UP: f64 = 0.025;

/// Error added per unit of loss share: a share of 0.01 adds 0.3. And the most that losses add.
const LOSS: f64 = 30.0;
const LOSS_MOST: f64 = 0.6;

/// Losses of a round trip that count as a burst, and the share of them that the window follows.
const BURST: f64 = 0.05;
const FOLLOWED: f64 = 0.5;

/// The rule's step, as a relative change of the window per round trip. It needs nothing but the signals: a flow keeps the
/// queue it should and gives way to losses.
pub fn law(signals: &Signals) -> f64 {
    let wanted = (BACKLOG * (signals.rate / REFERENCE).sqrt()).max(1e-3);
    let error = 1.0 - signals.backlog() / wanted - (LOSS * signals.loss).min(LOSS_MOST);
    let step = (GAIN * error).clamp(DOWN, UP);
    if signals.burst > BURST { step + FOLLOWED * libm::log(1.0 - signals.burst.min(0.95)) } else { step }
}

/// The action in place of the service's. In the form `guided` it is 0, because the agent adds a law by itself.
pub fn action(config: &AgentConfig, signals: &Signals) -> f64 {
    match config.form {
        Form::Guided => 0.0,
        Form::Paper | Form::Pure => (law(signals) / config.alpha).clamp(-1.0, 1.0),
    }
}

/// The window in bytes that an action makes of a window, for a sender without an agent: in the form `guided` the law is
/// added here. Without floor or cap.
pub fn window(config: &AgentConfig, signals: &Signals, action: f64, window: f64, srtt_ns: u64) -> f64 {
    let law = if config.form == Form::Guided { law(signals) } else { 0.0 };
    config.answered(window, action, law, srtt_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_by_hand() {
        let signals = |ahead, loss, burst| Signals { rate: REFERENCE, ahead, loss, burst, ..Signals::default() };
        let is = |signals, step: f64| assert!((law(&signals) - step).abs() < 1e-12, "{} is not {step}", law(&signals));
        is(signals(0.0, 0.0, 0.0), 0.025);
        is(signals(10.0 / REFERENCE, 0.0, 0.0), 0.0);
        is(signals(15.0 / REFERENCE, 0.0, 0.0), -0.05);
        is(signals(1.0, 0.0, 0.0), -0.1);
        is(signals(10.0 / REFERENCE, 0.01, 0.0), -0.03);
        is(signals(10.0 / REFERENCE, 0.5, 0.0), -0.06);
        is(signals(10.0 / REFERENCE, 0.0, 0.5), 0.5 * 0.5_f64.ln());
        is(Signals::default(), 0.025);
    }

    #[test]
    fn a_flow_without_answers_follows_the_law() {
        let full = Signals { rate: 2777.0, queue: 0.1, ahead: 0.1, ..Signals::default() };
        let idle = Signals { rate: 2777.0, ..Signals::default() };
        for form in Form::ALL {
            let config = AgentConfig::new(form);
            let next = |signals| window(&config, signals, action(&config, signals), 1e6, 20_000_000);
            assert!(next(&full) < 1e6, "{form:?} gives way to a queue");
            assert!(next(&idle) > 1e6, "{form:?} fills an idle path");
        }
        assert_eq!(action(&AgentConfig::new(Form::Guided), &full), 0.0, "its agent has a law");
        assert_eq!(action(&AgentConfig::new(Form::Paper), &full), -1.0);
    }
}
