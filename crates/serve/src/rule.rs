//! The local rule: what a sender does in a period for which it has no answer.

use astraea_policy::{AgentConfig, Form, Rules, Signals, law_step};

/// The action in place of the service's.
///
/// It is the law of the default policy ([`law_step`]), which needs nothing but the signals: a flow keeps the queue it
/// should and gives way to losses. In the form `guided` the agent adds the law's step by itself, so the action is 0.
pub fn action(config: &AgentConfig, signals: &Signals) -> f64 {
    match config.form {
        Form::Guided => 0.0,
        Form::Paper | Form::Pure => (law_step(&config.rules, signals) / config.alpha).clamp(-1.0, 1.0),
    }
}

/// The window in bytes that the rule makes of a window, for a sender without an agent.
pub fn window(config: &AgentConfig, signals: &Signals, window: f64, srtt_ns: u64) -> f64 {
    let law = law(config, signals);
    config.answered(window, action(config, signals), law, srtt_ns)
}

/// The step of the law that a form adds to the action.
pub(crate) fn law(config: &AgentConfig, signals: &Signals) -> f64 {
    if config.form == Form::Guided { law_step(&config.rules, signals) } else { 0.0 }
}

/// The numbers of the law that an implementation in another language needs, by name.
pub fn constants() -> [(&'static str, f64); 8] {
    let rules = Rules::default();
    [
        ("reference", Rules::REFERENCE),
        ("backlog", rules.backlog),
        ("gain", rules.gain),
        ("up", rules.up),
        ("down", rules.down),
        ("loss", rules.loss),
        ("loss_most", rules.loss_most),
        ("burst", rules.burst),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_without_answers_follows_the_law() {
        let full = Signals { rate: 2777.0, queue: 0.1, ahead: 0.1, ..Signals::default() };
        let idle = Signals { rate: 2777.0, ..Signals::default() };
        for form in Form::ALL {
            let config = AgentConfig::new(form);
            let srtt = 20_000_000;
            assert!(window(&config, &full, 1e6, srtt) < 1e6, "{form:?} gives way to a queue");
            assert!(window(&config, &idle, 1e6, srtt) > 1e6, "{form:?} fills an idle path");
        }
        assert_eq!(action(&AgentConfig::new(Form::Guided), &full), 0.0, "its agent adds the law");
        assert_eq!(action(&AgentConfig::new(Form::Paper), &full), -1.0);
    }
}
