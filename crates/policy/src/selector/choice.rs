//! How a selector makes up its mind.

use std::sync::Arc;

use super::candidate::CANDIDATES;
use super::interval::{Interval, Kind, MOST_FEATURES};
use super::policy::SelectorPolicy;

/// What decides under which scheme a flow goes on.
pub trait Choose {
    /// The scheme, as an index into [`CANDIDATES`], after this interval under `current`; `None` if
    /// [`Selector::act`](super::Selector::act) will bring it.
    fn choose(&mut self, interval: &Interval, current: usize) -> Option<usize>;
}

/// What HACC's decision module goes by, where the paper gives no numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Caution {
    /// What a change of the scheme must be expected to gain (alpha of equation 1).
    pub price: f64,
    /// How many times as large, or as small, something must have become for the path to be another one.
    pub disparity: f64,
}

impl Default for Caution {
    /// The price is the paper's, the disparity ours.
    fn default() -> Self {
        Self { price: 0.05, disparity: 1.5 }
    }
}

/// A policy at work on one flow.
#[derive(Clone, Debug)]
pub struct Judge {
    policy: Arc<SelectorPolicy>,
    mind: Mind,
    looks: u64,
}

#[derive(Clone, Copy, Debug)]
enum Mind {
    Antelope(Twice),
    Hacc(Caution, Watch),
}

impl Judge {
    /// One that has seen nothing. `caution` counts for a policy of HACC's.
    pub fn new(policy: Arc<SelectorPolicy>, caution: Caution) -> Self {
        let mind = match policy.kind() {
            Kind::Antelope => Mind::Antelope(Twice::default()),
            Kind::Hacc => Mind::Hacc(caution, Watch::default()),
        };
        Self { policy, mind, looks: 0 }
    }

    /// How often it has asked the models.
    pub fn looks(&self) -> u64 {
        self.looks
    }

    fn predict(&mut self, interval: &Interval) -> [f32; CANDIDATES.len()] {
        self.looks += 1;
        let mut observation = [0.0; MOST_FEATURES];
        interval.observe(self.policy.kind(), &mut observation);
        self.policy.predict(&observation)
    }
}

/// The first of those that are worth most.
fn best(predicted: &[f32; CANDIDATES.len()]) -> usize {
    (1..predicted.len()).fold(0, |best, scheme| if predicted[scheme] > predicted[best] { scheme } else { best })
}

impl Choose for Judge {
    fn choose(&mut self, interval: &Interval, current: usize) -> Option<usize> {
        match self.mind {
            Mind::Antelope(mut twice) => {
                let predicted = self.predict(interval);
                let chosen = twice.choose(best(&predicted));
                self.mind = Mind::Antelope(twice);
                Some(chosen)
            }
            Mind::Hacc(caution, mut watch) => {
                let another = watch.is_another_path(interval, caution.disparity);
                self.mind = Mind::Hacc(caution, watch);
                if !another {
                    return Some(current);
                }
                let predicted = self.predict(interval);
                let best = best(&predicted);
                let gain = f64::from(predicted[best]) - f64::from(predicted[current]);
                Some(if gain > caution.price { best } else { current })
            }
        }
    }
}

/// Antelope's rule (`predicCC`): the first prediction counts at once, a later one when the one before was the same.
#[derive(Clone, Copy, Debug, Default)]
struct Twice {
    chosen: Option<usize>,
    last: Option<usize>,
}

impl Twice {
    fn choose(&mut self, predicted: usize) -> usize {
        let again = self.last.replace(predicted) == Some(predicted);
        match self.chosen {
            Some(chosen) if !again => chosen,
            _ => *self.chosen.insert(predicted),
        }
    }
}

/// Share of an interval in the averages that are compared: what comes and goes within some round trips, as the teeth of a
/// window do, is no other path.
const SHARE: f64 = 0.125;

/// Share in the averages that tell whether the others have arrived …
const QUICK_SHARE: f64 = 0.5;

/// … which is so when they are no further apart than by this factor: one change of the path is one decision.
const ARRIVED: f64 = 1.25;

/// Difference in the share of packets lost that makes another path.
const LOSS_DISPARITY: f64 = 0.02;

/// HACC's decision module: compares what it sees with what it saw when it last had a scheme chosen.
#[derive(Clone, Copy, Debug, Default)]
struct Watch {
    seen: Option<Seen>,
    recorded: Option<Measured>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    slow: Measured,
    quick: Measured,
}

/// Averages over intervals.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// Rates and delays.
    sizes: [f64; 3],
    loss: f64,
}

impl Measured {
    fn of(interval: &Interval) -> Self {
        let sent = interval.delivered + interval.lost;
        let sizes = [interval.throughput(), interval.rtt, interval.min_rtt];
        Self { sizes, loss: interval.lost as f64 / sent.max(1) as f64 }
    }

    fn approach(&mut self, other: &Self, share: f64) {
        for (mine, other) in self.sizes.iter_mut().zip(other.sizes) {
            *mine += share * (other - *mine);
        }
        self.loss += share * (other.loss - self.loss);
    }

    /// Whether one of the sizes is more than so many times the other's.
    fn is_apart(&self, other: &Self, factor: f64) -> bool {
        self.sizes.into_iter().zip(other.sizes).any(|(a, b)| a.max(b) > factor * a.min(b))
    }

    fn differs(&self, other: &Self, disparity: f64) -> bool {
        self.is_apart(other, disparity) || (self.loss - other.loss).abs() > LOSS_DISPARITY
    }
}

impl Watch {
    fn is_another_path(&mut self, interval: &Interval, disparity: f64) -> bool {
        let now = Measured::of(interval);
        let Seen { slow, quick } = self.seen.get_or_insert(Seen { slow: now, quick: now });
        slow.approach(&now, SHARE);
        quick.approach(&now, QUICK_SHARE);
        let arrived = !slow.is_apart(quick, ARRIVED) && (slow.loss - quick.loss).abs() < LOSS_DISPARITY / 2.0;
        let another = arrived && self.recorded.is_none_or(|recorded| recorded.differs(slow, disparity));
        if another {
            self.recorded = Some(*slow);
        }
        another
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selector::Forest;
    use std::collections::BTreeMap;

    /// Expects `worth` of each scheme, but twice as much of it from 10 Mbit/s on.
    fn judge(kind: Kind, worth: [f32; CANDIDATES.len()], above: [f32; CANDIDATES.len()]) -> Judge {
        let throughput = kind.features().iter().position(|feature| feature.name == "throughput").unwrap();
        let threshold = kind.features()[throughput].encode(10.0);
        let models = worth.into_iter().zip(above).map(|(worth, above)| Forest {
            base: 0.0,
            depth: 1,
            features: vec![throughput as u32],
            thresholds: vec![threshold],
            answers: vec![worth, above],
        });
        let policy = SelectorPolicy::new(kind, models.collect(), BTreeMap::new()).unwrap();
        Judge::new(Arc::new(policy), Caution::default())
    }

    /// A tenth of a second at this rate (Mbit/s) and round-trip time (ms).
    fn interval(rate: f64, rtt: f64, lost: u64) -> Interval {
        let delivered = (rate * 1e6 / 80.0) as u64;
        let length = 100_000_000;
        Interval { length, acks: 21, delivered, lost, rtt: rtt * 1e6, min_rtt: 20e6, ..Interval::default() }
    }

    const BBR: [f32; 6] = [0.9, 0.5, 0.5, 0.5, 0.5, 0.5];
    const VEGAS: [f32; 6] = [0.5, 0.5, 0.5, 0.5, 0.5, 0.9];

    #[test]
    fn antelope_changes_its_mind_when_it_thinks_so_twice() {
        let mut judge = judge(Kind::Antelope, BBR, VEGAS);
        let (slow, fast) = (interval(5.0, 20.0, 0), interval(15.0, 20.0, 0));
        let chosen: Vec<_> = [slow, fast, slow, fast, fast, slow, slow]
            .iter()
            .scan(1, |current, interval| {
                *current = judge.choose(interval, *current).unwrap();
                Some(*current)
            })
            .collect();
        assert_eq!(chosen, [0, 0, 0, 0, 5, 5, 0]);
        assert_eq!(judge.looks(), 7);
    }

    #[test]
    fn of_equals_the_first_is_chosen() {
        assert_eq!(best(&[0.5; 6]), 0);
        assert_eq!(best(&[0.1, 0.3, 0.2, 0.3, 0.0, 0.0]), 1);
    }

    #[test]
    fn hacc_asks_its_models_once_for_each_path() {
        let mut judge = judge(Kind::Hacc, BBR, VEGAS);
        let mut current = 1;
        let mut play = |interval: Interval, times: usize| {
            for _ in 0..times {
                current = judge.choose(&interval, current).unwrap();
            }
            (current, judge.looks())
        };
        assert_eq!(play(interval(5.0, 20.0, 0), 100), (0, 1), "a first decision, and none in a steady state");
        assert_eq!(play(interval(5.0, 28.0, 0), 100), (0, 1), "less than half as much again is the same path");
        // Three times the rate is another one, and one decision, once the averages have got there.
        assert_eq!(play(interval(16.0, 20.0, 0), 100), (5, 2));
    }

    #[test]
    fn hacc_sees_a_route_that_became_longer_and_losses_that_begin() {
        for changed in [interval(5.0, 40.0, 0), interval(5.0, 20.0, 5000), interval(2.0, 20.0, 0)] {
            let mut judge = judge(Kind::Hacc, BBR, BBR);
            for _ in 0..100 {
                judge.choose(&interval(5.0, 20.0, 0), 0);
            }
            assert_eq!(judge.looks(), 1);
            for _ in 0..100 {
                judge.choose(&changed, 0);
            }
            assert_eq!(judge.looks(), 2, "{changed:?}");
        }
    }

    #[test]
    fn hacc_changes_nothing_for_less_than_the_price() {
        let gain = |worth: f32| {
            let mut schemes = [0.5; 6];
            schemes[2] += worth;
            judge(Kind::Hacc, schemes, schemes).choose(&interval(5.0, 20.0, 0), 1)
        };
        assert_eq!((gain(0.04), gain(0.06)), (Some(1), Some(2)));
    }
}
