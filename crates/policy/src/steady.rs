//! What a policy sees of a flow whose situation has not changed for as long as it remembers.

use crate::agent::{Rules, law_step};
use crate::backlog::{BacklogState, Signals};
use crate::form::Form;
use crate::state::{LocalState, Measurement, PERIODS};

/// A flow at rest: it sends what it gets, its window is its rate times its round-trip time, all of it in flight and paced
/// evenly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// Packets per second.
    pub rate: f64,
    /// Queueing delay in s.
    pub queue: f64,
    /// Share of packets lost.
    pub loss: f64,
    /// Mean less smallest round-trip time of a period in s.
    pub spread: f64,
    /// Base round-trip time in s; only the papers' form sees it.
    pub base_rtt: f64,
    /// Largest rate that it has seen, in packets per second; only the papers' form sees it.
    pub peak: f64,
}

impl Steady {
    /// What the sensors say. A queue that stays is the queue to be expected.
    pub fn signals(&self) -> Signals {
        let Self { rate, queue, loss, spread, .. } = *self;
        Signals { rate, queue, ahead: queue, loss, burst: 0.0, spread }
    }

    /// The law's step, see [`law_step`].
    pub fn law(&self, rules: &Rules) -> f64 {
        law_step(rules, &self.signals())
    }

    /// Hands the state that a policy of this form sees, shape [`Form::inputs`], to `use_state`.
    pub fn with_state<T>(&self, form: Form, use_state: impl FnOnce(&[f32]) -> T) -> T {
        match form {
            Form::Paper => use_state(self.local_state().values()),
            Form::Pure | Form::Guided => {
                let mut state = BacklogState::default();
                state.push(&self.signals());
                use_state(state.values())
            }
        }
    }

    fn local_state(&self) -> LocalState {
        let bits = 8.0 * f64::from(astraea_cc::MSS);
        let throughput = bits * self.rate;
        let latency = self.base_rtt + self.queue;
        let cwnd = throughput / 8.0 * latency;
        let period = Measurement {
            throughput,
            latency: Some(latency),
            latency_min: self.base_rtt,
            loss: self.loss * throughput,
            in_flight: cwnd,
            cwnd,
            pacing_rate: throughput,
        };
        let mut state = LocalState::default();
        state.push(&Measurement { throughput: bits * self.peak, ..period });
        (0..PERIODS).for_each(|_| state.push(&period));
        state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 ms of queue at 1666.7 packets/s.
    const FLOW: Steady =
        Steady { rate: 1666.7, queue: 0.01, loss: 0.01, spread: 0.001, base_rtt: 0.04, peak: 2.0 * 1666.7 };

    fn expect(form: Form, expected: &[f32]) {
        FLOW.with_state(form, |state| {
            assert_eq!(state.len(), form.inputs());
            for (value, expected) in state.iter().zip(expected.iter().cycle()) {
                assert!((value - expected).abs() < 1e-5, "{value} is not {expected}");
            }
        });
    }

    #[test]
    fn every_period_looks_alike() {
        expect(Form::Guided, &[1.0, -0.916_290_7, 1.415_639, 0.3, 0.024_395_082]);
        // Half of 38.6 Mbit/s, which is 10^2.5867 times 10^5; 40 ms are 400 times 0.1 ms; 50 ms of round trip.
        expect(Form::Paper, &[0.5, 0.517_349, 1.25, 0.520_412, 0.625, 0.005, 1.0, 0.5]);
    }

    #[test]
    fn the_law_by_hand() {
        let rules = Rules::default();
        let law = |rate: f64, backlog: f64, loss: f64| Steady { rate, queue: backlog / rate, loss, ..FLOW }.law(&rules);
        // At 2^(8/3) times the reference rate twenty packets are wanted, 1.1 ms: half of the gain.
        let rate = 256.0_f64.cbrt() * Rules::REFERENCE;
        for (backlog, loss, expected) in [
            (0.0, 0.0, 0.025),
            (18.0, 0.0, 0.005),
            (20.0, 0.0, 0.0),
            (22.0, 0.0, -0.005),
            (36.0, 0.0, -0.04),
            (40.0, 0.0, -0.05),
            (400.0, 0.0, -0.1),
            // A loss of 1 % counts like six packets more, one of 2 % or more like twelve.
            (14.0, 0.01, 0.0),
            (8.0, 0.02, 0.0),
            (8.0, 0.5, 0.0),
        ] {
            assert!((law(rate, backlog, loss) - expected).abs() < 1e-12, "{backlog} packets, loss {loss}");
        }
    }
}
