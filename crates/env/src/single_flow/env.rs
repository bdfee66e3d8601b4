//! The single-flow environment.

use astraea_cc::Nanos;
use astraea_policy::aurora::{FEATURES, History};
use astraea_policy::mocc::{self, Preference};
use astraea_policy::{Feature, action};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::config::{DelayMeaning, SingleFlowConfig};
use super::path::{Path, Report};
use crate::environment::{Actions, Environment, Outcome};
use crate::error::EnvError;
use crate::range::Range;

/// Round trips of the two intervals before the first decision.
const WARM_UP: f64 = 1.5;

/// What was drawn for an episode.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkDraw {
    /// Capacity in packets/s.
    pub bandwidth: f64,
    /// Base round-trip time in s, without the transmission of a packet.
    pub base_rtt: f64,
    /// Room for waiting packets.
    pub queue: u32,
    /// Share of packets lost at random.
    pub loss: f64,
}

/// One flow on one link.
///
/// An action `a` changes the sending rate to `rate * (1 + alpha a)`, or `rate / (1 - alpha a)` if it is negative. The
/// rate then holds for one monitor interval, after which the next decision is due.
///
/// With [`preferences`](SingleFlowConfig::preferences) it is MOCC's environment: each episode has one of them.
pub struct SingleFlow {
    config: SingleFlowConfig,
    asked: Vec<Preference>,
    /// Of the present episode.
    preference: Option<Preference>,
    rng: Xoshiro256PlusPlus,
    link: LinkDraw,
    path: Path,
    history: History,
    rate: f64,
    interval: Nanos,
    steps: u32,
    last: Report,
}

impl SingleFlow {
    /// An environment that has to be reset before its first step.
    ///
    /// # Errors
    /// If a setting is out of range.
    pub fn new(config: SingleFlowConfig) -> Result<Self, EnvError> {
        config.validate()?;
        Ok(Self {
            history: History::new(config.history),
            asked: config.asked()?,
            preference: None,
            config,
            rng: Xoshiro256PlusPlus::seed_from_u64(0),
            link: LinkDraw::default(),
            path: Path::default(),
            rate: 0.0,
            interval: 0,
            steps: 0,
            last: Report::default(),
        })
    }

    /// The link of the present episode.
    pub fn link(&self) -> LinkDraw {
        self.link
    }

    fn draw_link(&mut self) -> LinkDraw {
        let config = &self.config;
        let round_trip = match config.delay_is {
            DelayMeaning::OneWay => 2.0,
            DelayMeaning::RoundTrip => 1.0,
        };
        // One more than a log-uniform number, as the original draws it: short queues are likelier.
        let Range { low, high } = config.queue;
        let queue = 1.0 + Range::new(low - 1.0, high - 1.0).log_uniform(&mut self.rng);
        LinkDraw {
            bandwidth: config.bandwidth.uniform(&mut self.rng),
            base_rtt: round_trip * config.delay.uniform(&mut self.rng),
            queue: queue as u32,
            loss: config.loss.uniform(&mut self.rng),
        }
    }

    fn set_rate(&mut self, rate: f64) {
        let Range { low, high } = self.config.rate_limits;
        self.rate = rate.clamp(low, high);
    }

    /// Sends for an interval at the present rate and remembers what came of it.
    fn run(&mut self) {
        self.last = self.path.run(self.rate, self.interval, &mut self.rng);
        self.history.push(&self.last.interval, 1);
        if let Some(length) = self.history.next_length(self.config.interval) {
            self.interval = length;
        }
    }

    /// Reward of the last interval: Aurora's (§3.1), of throughput in packets/s, latency in s and loss as a share, or that
    /// of the episode's preference.
    pub fn reward(&self) -> f64 {
        let config = &self.config;
        config.reward_scale
            * match self.preference {
                Some(preference) => preference.reward(self.reached()),
                None => {
                    config.throughput_weight * self.last.throughput()
                        - config.latency_weight * self.history.latency()
                        - config.loss_weight * self.last.loss()
                }
            }
    }

    /// To what extent MOCC's three objectives were reached in the last interval: throughput over capacity, round-trip time
    /// of an idle link over the mean one, share of packets not lost.
    fn reached(&self) -> [f64; 3] {
        let LinkDraw { bandwidth, base_rtt, .. } = self.link;
        let (idle, latency) = (base_rtt + 1.0 / bandwidth, self.history.latency());
        let unqueued = if latency > 0.0 { idle / latency } else { 1.0 };
        [self.last.throughput() / bandwidth, unqueued, 1.0 - self.last.loss()]
    }

    fn observe(&self, observation: &mut [f32]) {
        let (intervals, end) = observation.split_at_mut(self.history.values().len());
        intervals.copy_from_slice(self.history.values());
        if let Some(preference) = self.preference {
            end.copy_from_slice(&preference.values());
        }
    }
}

/// A duration in s as ns, of which it is one at least.
fn nanos(seconds: f64) -> Nanos {
    ((seconds * 1e9).round() as Nanos).max(1)
}

impl Environment for SingleFlow {
    fn features(&self) -> &'static [Feature] {
        &FEATURES
    }

    fn observation_repeats(&self) -> usize {
        self.config.history
    }

    fn features_at_the_end(&self) -> &'static [Feature] {
        if self.asked.is_empty() { &[] } else { &mocc::FEATURES }
    }

    fn actions(&self) -> Actions {
        Actions::Within(self.config.action_limit)
    }

    fn info_names(&self) -> &'static [&'static str] {
        &["time", "rate", "throughput", "latency", "loss", "bandwidth", "base_rtt", "queue", "loss_probability"]
    }

    fn reset(&mut self, seed: Option<u64>, observation: &mut [f32]) {
        if let Some(seed) = seed {
            self.rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        }
        let link = self.draw_link();
        self.link = link;
        if !self.asked.is_empty() {
            self.preference = Some(self.asked[self.rng.random_range(0..self.asked.len())]);
        }
        let start = self.config.start.uniform(&mut self.rng) * link.bandwidth;
        self.set_rate(start);
        self.path.reset(link.bandwidth, link.base_rtt, link.queue, link.loss, &mut self.rng);
        self.history.reset();
        self.steps = 0;
        // Nothing comes back for a round trip; the interval after that is the first to be seen.
        self.interval = nanos(WARM_UP * link.base_rtt);
        self.path.run(self.rate, self.interval, &mut self.rng);
        self.run();
        self.observe(observation);
    }

    fn step(&mut self, action: f64, observation: &mut [f32]) -> Outcome {
        let limit = self.config.action_limit;
        self.set_rate(action::scaled(self.rate, action.clamp(-limit, limit), self.config.alpha));
        self.run();
        self.steps += 1;
        self.observe(observation);
        Outcome { reward: self.reward(), terminated: false, truncated: self.steps >= self.config.steps }
    }

    fn info(&self, info: &mut [f64]) {
        info.copy_from_slice(&[
            self.path.now() as f64 / 1e9,
            self.rate,
            self.last.throughput(),
            self.history.latency(),
            self.last.loss(),
            self.link.bandwidth,
            self.link.base_rtt,
            f64::from(self.link.queue),
            self.link.loss,
        ]);
    }
}
