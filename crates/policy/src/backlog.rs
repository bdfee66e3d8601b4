//! The backlog state: five features of each of the last five periods, from which the flow's own packets in the queue
//! can be told.
//!
//! None of them contains the round-trip time or its minimum: an input that does makes flows of different round-trip
//! times settle at different rates. The first three say how much a flow takes; a policy whose action falls with each of
//! them ([`DECREASING`]) makes flows that see the same queue and the same loss agree at equal rates only.

use crate::state::PERIODS;

/// Raw quantities of a period, as the formulas of [`FEATURES`] call them: [`Signals::rate`], [`Signals::ahead`],
/// [`Signals::loss`] and [`Signals::spread`].
///
/// `q` looks ahead because a window takes a round trip to show in the queue: to answer the delay that was measured
/// would be to answer one's own last steps again. It says nothing of the round-trip time where a flow is at rest.
pub const QUANTITIES: [(&str, &str); 4] = [
    ("x", "packets acknowledged per second over about a round trip"),
    (
        "q",
        "queueing delay in s to be expected once the window of the last round trip has had its effect: \
         smallest round-trip time of the period less the base one, plus srtt ln(window / window a round trip before), at least 0",
    ),
    ("l", "share of packets lost, over the time of x or as long as 200 packets need"),
    ("spread", "mean less smallest round-trip time of the period in s"),
];

/// Features of a period: name and how it is made from the [`QUANTITIES`].
pub const FEATURES: [(&str, &str); 5] = [
    ("rate", "1 + 0.25 ln(x / 1666.7)"),
    ("delay", "ln(0.2 + 20 q)"),
    ("backlog", "0.5 ln(0.3 + x q)"),
    ("loss", "3 sqrt(l)"),
    ("spread", "0.5 ln(0.05 + 1000 spread)"),
];

/// Whether a monotone policy's action must fall with the feature.
pub const DECREASING: [bool; 5] = [true, true, true, false, false];

/// Length of a state.
pub const LENGTH: usize = PERIODS * FEATURES.len();

/// Rates below one packet in 100 s count as that.
const SLOWEST: f64 = 0.01;

/// The definition as text.
pub fn definition() -> String {
    use std::fmt::Write as _;
    let mut text = format!("backlog state: {PERIODS} periods, oldest first, the first repeated before it\n");
    for (name, formula) in FEATURES {
        writeln!(text, "{name}: {formula}").expect("writing to a string cannot fail");
    }
    for (name, meaning) in QUANTITIES {
        writeln!(text, "where {name} is: {meaning}").expect("writing to a string cannot fail");
    }
    text
}

/// What a flow takes from the path and what it finds there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Signals {
    /// Acknowledged packets per second over about a round trip.
    pub rate: f64,
    /// Queueing delay in s: smallest round-trip time of the period less the base one.
    pub queue: f64,
    /// Queueing delay in s to be expected once the window of the last round trip has had its effect, if the others do as
    /// this flow does; never negative. At rest it is the queueing delay.
    pub ahead: f64,
    /// Share of packets lost, over as long as 200 packets need.
    pub loss: f64,
    /// Share of packets lost over the time of `rate`, if they are at least four; else 0.
    pub burst: f64,
    /// Mean less smallest round-trip time of the period in s.
    pub spread: f64,
}

impl Signals {
    /// The flow's own packets in the queue.
    pub fn backlog(&self) -> f64 {
        self.rate * self.ahead
    }

    /// The features, in the order of [`FEATURES`].
    pub fn encode(&self) -> [f32; FEATURES.len()] {
        let ln = |x: f64| libm::log(x);
        [
            1.0 + 0.25 * ln(self.rate.max(SLOWEST) / 1666.7),
            ln(0.2 + 20.0 * self.ahead),
            0.5 * ln(0.3 + self.backlog()),
            3.0 * self.loss.sqrt(),
            0.5 * ln(0.05 + 1000.0 * self.spread),
        ]
        .map(|value| value as f32)
    }
}

/// The state of one flow.
#[derive(Clone, Debug)]
pub struct BacklogState {
    values: [f32; LENGTH],
    empty: bool,
}

impl Default for BacklogState {
    fn default() -> Self {
        Self { values: [0.0; LENGTH], empty: true }
    }
}

impl BacklogState {
    /// Adds a period. The first one stands for those before it too: no value has the meaning of "nothing yet".
    pub fn push(&mut self, signals: &Signals) {
        let features = signals.encode();
        if self.empty {
            self.empty = false;
            for period in self.values.chunks_exact_mut(features.len()) {
                period.copy_from_slice(&features);
            }
        } else {
            self.values.copy_within(features.len().., 0);
            self.values[LENGTH - features.len()..].copy_from_slice(&features);
        }
    }

    /// The state, shape `PERIODS * FEATURES.len()`.
    pub fn values(&self) -> &[f32; LENGTH] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature::fnv1a;

    #[test]
    fn a_period_by_hand() {
        // 10 ms of queue at 1666.7 packets/s: 16.667 own packets.
        let signals = Signals { rate: 1666.7, queue: 0.01, ahead: 0.01, loss: 0.01, burst: 0.0, spread: 0.001 };
        let expected = [1.0, -0.916_290_7, 1.415_639, 0.3, 0.024_395_082];
        for (value, expected) in signals.encode().iter().zip(expected) {
            assert!((value - expected).abs() < 1e-5, "{value} is not {expected}");
        }
    }

    /// A change of this text changes what every trained policy sees: it must be on purpose.
    #[test]
    fn definition_is_pinned() {
        assert_eq!(
            definition(),
            "backlog state: 5 periods, oldest first, the first repeated before it\n\
             rate: 1 + 0.25 ln(x / 1666.7)\n\
             delay: ln(0.2 + 20 q)\n\
             backlog: 0.5 ln(0.3 + x q)\n\
             loss: 3 sqrt(l)\n\
             spread: 0.5 ln(0.05 + 1000 spread)\n\
             where x is: packets acknowledged per second over about a round trip\n\
             where q is: queueing delay in s to be expected once the window of the last round trip has had its effect: \
             smallest round-trip time of the period less the base one, plus srtt ln(window / window a round trip before), at least 0\n\
             where l is: share of packets lost, over the time of x or as long as 200 packets need\n\
             where spread is: mean less smallest round-trip time of the period in s\n"
        );
        assert_eq!(format!("{:016x}", fnv1a(definition())), "1ec1204a1204aa92");
    }

    #[test]
    fn the_first_period_stands_for_those_before_it() {
        let mut state = BacklogState::default();
        let first = Signals { rate: 100.0, ..Signals::default() };
        state.push(&first);
        assert!(state.values().chunks(5).all(|period| period == first.encode()));
        let second = Signals { rate: 200.0, ..Signals::default() };
        state.push(&second);
        assert_eq!(state.values()[15..20], first.encode());
        assert_eq!(state.values()[20..], second.encode());
    }

    #[test]
    fn extremes_are_finite() {
        for rate in [0.0, 1e-9, 1e9] {
            for (queue, loss, spread) in [(0.0, 0.0, 0.0), (100.0, 1.0, 100.0)] {
                assert!(
                    Signals { rate, queue, ahead: queue, loss, burst: 0.0, spread }
                        .encode()
                        .iter()
                        .all(|v| v.is_finite())
                );
            }
        }
    }
}
