//! Whole episodes with a policy that is evaluated here: what a learner learns from, and what it is judged by.
//!
//! A [`Rollout`] runs episodes of the multi-flow environment to their end on all cores. [`Rollout::run`] explores and
//! keeps every decision; [`Batch::transitions`] makes n-step transitions of them. [`Rollout::score`] runs given episodes
//! without noise and measures how fair and how fast they were.
//!
//! Episode `i` of iteration `k` depends on the seed, `k`, `i` and the policy alone: results do not depend on the number
//! of threads, and a run that was interrupted goes on with the next iteration as if nothing had happened.

mod batch;
mod divergence;
mod events;
mod noise;
mod record;
mod score;
mod snapshots;

use std::sync::atomic::{AtomicUsize, Ordering};

use astraea_cc::SplitMix64;
use astraea_policy::{Form, Network, Scratch};

use crate::error::EnvError;
use crate::multi_flow::{MultiFlow, MultiFlowConfig};
pub use batch::{Batch, Transitions};
use record::Record;
pub use score::{SCORES, Score};
pub use snapshots::Statistics;

/// A policy under evaluation, with whatever memory it needs for that.
pub trait Act {
    /// The action in -1..=1 for a state.
    fn act(&mut self, state: &[f32]) -> f32;
}

/// A network and its working memory.
pub struct Actor<'a> {
    network: &'a Network,
    scratch: Scratch,
}

impl<'a> Actor<'a> {
    /// Evaluates this network.
    pub fn new(network: &'a Network) -> Self {
        Self { network, scratch: Scratch::default() }
    }
}

impl Act for Actor<'_> {
    fn act(&mut self, state: &[f32]) -> f32 {
        self.network.forward(state, &mut self.scratch)
    }
}

/// What [`Rollout::run`] is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Request {
    /// Number of the iteration: each has episodes of its own.
    pub iteration: u64,
    /// Episodes to run.
    pub episodes: usize,
    /// Scale of the exploration noise in units of the action: see [`Rollout::run`].
    pub noise: f64,
    /// Whether to keep the statistics of all flows at each decision.
    pub statistics: bool,
}

/// Decisions of an episode, of which each takes some 200 bytes.
const MOST_DECISIONS: f64 = 1e7;

/// Recording slots of all flows of an episode that is scored, of which each takes some 50 bytes.
const MOST_SLOTS: f64 = 1e8;

/// Longest episode in s: a day.
const LONGEST: f64 = 86_400.0;

/// Checks that an episode of these settings fits into memory, as the longest of those drawn from them do.
fn check_size(config: &MultiFlowConfig) -> Result<(), EnvError> {
    let MultiFlowConfig { duration, period, .. } = *config;
    EnvError::unless_within("duration", duration, 1e-3, LONGEST)?;
    let flows = config.flows.high;
    let unless_few = |number: f64, most: f64, what: &str| {
        let problem = || format!("{duration} s of {flows} flows are {number:.0} {what}, expected at most {most:.0}");
        if number <= most { Ok(()) } else { Err(EnvError::new("duration", problem())) }
    };
    unless_few(most_decisions(config), MOST_DECISIONS, &format!("decisions with a period of {period} s"))?;
    unless_few(flows * duration / (score::SLOT as f64 / 1e9), MOST_SLOTS, "slots of 10 ms in a score")
}

/// About how many decisions the longest episode of these settings has.
fn most_decisions(config: &MultiFlowConfig) -> f64 {
    let MultiFlowConfig { duration, period, .. } = *config;
    let life = config.lifetime.map_or(duration, |lifetime| lifetime.high.min(duration));
    config.flows.high * life / period
}

/// Runs episodes of one domain on several threads.
pub struct Rollout {
    config: MultiFlowConfig,
    form: Form,
    threads: usize,
    seed: u64,
}

impl Rollout {
    /// Episodes of these settings with a policy of that form, on `threads` threads (0: one per core).
    ///
    /// # Errors
    /// If a setting is out of range, or an episode would not fit into memory.
    pub fn new(config: MultiFlowConfig, form: Form, threads: usize, seed: u64) -> Result<Self, EnvError> {
        config.validate()?;
        check_size(&config)?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self { config, form, threads: if threads == 0 { cores } else { threads }, seed })
    }

    /// The settings.
    pub fn config(&self) -> &MultiFlowConfig {
        &self.config
    }

    /// The embedding of the policy.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// About how large an episode can be: its decisions, and the flows that are there at one of them, short ones aside.
    pub fn largest_episode(&self) -> (f64, f64) {
        let MultiFlowConfig { flows, neighbours, arrival_gap, duration, .. } = &self.config;
        // The first is there at once; of the others some may be too late.
        let come = 1.0 + duration / arrival_gap.low;
        let others = if neighbours.probability > 0.0 { neighbours.flows.high } else { 0.0 };
        let share = (come / flows.high).min(1.0);
        (most_decisions(&self.config) * share, come.min(flows.high + others))
    }

    /// Runs episodes with the policy and exploration noise. `policy` is called once on each thread.
    ///
    /// The noise of a flow is a first-order autoregressive process with coefficient 0.7, so that it leads somewhere; its
    /// standard deviation is `noise` times a number drawn for the episode from 0.2 to 1.5. What goes beyond -1..=1 is
    /// clipped.
    ///
    /// `None` if `stop`, which is asked at every decision, says so before the end.
    pub fn run<A: Act>(
        &self,
        policy: impl Fn() -> A + Sync,
        request: &Request,
        stop: impl Fn() -> bool + Sync,
    ) -> Option<Batch> {
        let worker = || (self.env(0), policy());
        let records = self.in_parallel(request.episodes, worker, |(env, policy), episode| {
            let seed = self.episode_seed(request.iteration, episode as u64);
            env.reset(Some(seed));
            Record::run(env, policy, request, seed, &stop)
        })?;
        Some(Batch::new(records, self.config.global_len(), self.form.inputs()))
    }

    /// Runs the episodes of these seeds without noise and measures them; one score for each, in their order.
    ///
    /// `None` if `stop`, which is asked at every decision, says so before the end.
    pub fn score<A: Act>(
        &self,
        policy: impl Fn() -> A + Sync,
        seeds: &[u64],
        stop: impl Fn() -> bool + Sync,
    ) -> Option<Vec<Score>> {
        let worker = || (self.env(score::SLOT), policy());
        self.in_parallel(seeds.len(), worker, |(env, policy), index| {
            env.reset(Some(seeds[index]));
            Score::run(env, policy, &stop)
        })
    }

    fn env(&self, slot: astraea_cc::Nanos) -> MultiFlow {
        let env = MultiFlow::with_form(self.config.clone(), self.form, false).expect("the settings are valid");
        env.recording(slot)
    }

    fn episode_seed(&self, iteration: u64, episode: u64) -> u64 {
        let mix =
            |seed: u64, number: u64| SplitMix64::new(seed ^ number.wrapping_mul(0xD1B5_4A32_D192_ED03)).next_u64();
        mix(mix(self.seed, iteration), episode)
    }

    /// Does `n` pieces of work, each on the thread that is free next; the results are in the order of the pieces. `None`
    /// if a piece has none.
    fn in_parallel<W, T: Send>(
        &self,
        n: usize,
        worker: impl Fn() -> W + Sync,
        work: impl Fn(&mut W, usize) -> Option<T> + Sync,
    ) -> Option<Vec<T>> {
        let next = AtomicUsize::new(0);
        let share = || {
            let mut worker = worker();
            let mut done = Vec::new();
            loop {
                let piece = next.fetch_add(1, Ordering::Relaxed);
                if piece >= n {
                    return Some(done);
                }
                done.push((piece, work(&mut worker, piece)?));
            }
        };
        let shares: Option<Vec<_>> = std::thread::scope(|scope| {
            let helpers: Vec<_> = (1..self.threads.min(n)).map(|_| scope.spawn(share)).collect();
            let own = share();
            let others = helpers.into_iter().map(|helper| helper.join().expect("an episode does not panic"));
            std::iter::once(own).chain(others).collect()
        });
        let mut done: Vec<_> = shares?.into_iter().flatten().collect();
        done.sort_by_key(|(piece, _)| *piece);
        Some(done.into_iter().map(|(_, result)| result).collect())
    }
}
