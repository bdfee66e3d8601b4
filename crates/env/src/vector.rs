//! Many environments stepped together, on several threads.

use std::sync::Mutex;

use rayon::ThreadPool;

use crate::environment::{Actions, Environment, Outcome};
use crate::error::EnvError;

/// Environments and whether their episode is over.
struct Member<E> {
    env: E,
    over: bool,
}

/// Where the results of a step go: row `i` of each array belongs to environment `i`.
pub struct Batch<'a> {
    /// Observations, shape `n * observation_len`.
    pub observations: &'a mut [f32],
    /// Rewards, shape `n`.
    pub rewards: &'a mut [f64],
    /// Whether the task ended, shape `n`.
    pub terminated: &'a mut [bool],
    /// Whether the episode was cut off, shape `n`.
    pub truncated: &'a mut [bool],
    /// [`Environment::info`], shape `n * info_names().len()`.
    pub info: &'a mut [f64],
}

/// `n` independent environments.
///
/// An environment whose episode is over starts a new one in the next step, whose action it ignores and whose reward is 0
/// (Gymnasium's `AutoresetMode.NEXT_STEP`). Each has its own generator, so results do not depend on the threads.
pub struct Vector<E> {
    members: Vec<Member<E>>,
    observation_len: usize,
    info_len: usize,
    /// Threads besides the caller's, if any.
    helpers: Option<ThreadPool>,
    /// Environments that a thread takes at a time.
    chunk: usize,
}

impl<E: Environment> Vector<E> {
    /// Steps these environments on `threads` threads (0: one per core, never more than environments).
    ///
    /// # Errors
    /// If there is no environment or a thread cannot be started.
    pub fn new(envs: Vec<E>, threads: usize) -> Result<Self, EnvError> {
        let Some(first) = envs.first() else {
            return Err(EnvError::new("num_envs", "is 0, expected at least 1"));
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = if threads == 0 { cores } else { threads }.min(envs.len());
        let helpers = (threads > 1)
            .then(|| rayon::ThreadPoolBuilder::new().num_threads(threads - 1).build())
            .transpose()
            .map_err(|e| EnvError::new("num_threads", e))?;
        Ok(Self {
            observation_len: first.observation_len(),
            info_len: first.info_names().len(),
            helpers,
            // Small enough that the threads finish together, large enough that taking one costs little.
            chunk: envs.len().div_ceil(8 * threads),
            members: envs.into_iter().map(|env| Member { env, over: false }).collect(),
        })
    }

    /// The environments.
    pub fn envs(&self) -> impl ExactSizeIterator<Item = &E> {
        self.members.iter().map(|m| &m.env)
    }

    /// What the actions are, of each environment.
    pub fn actions(&self) -> Actions {
        self.members[0].env.actions()
    }

    /// Number of threads that step the environments.
    pub fn threads(&self) -> usize {
        1 + self.helpers.as_ref().map_or(0, ThreadPool::current_num_threads)
    }

    /// Starts an episode in each environment; `seeds` are theirs, if any.
    ///
    /// # Panics
    /// If an array has not the shape that [`Batch`] says, or there is not a seed per environment.
    pub fn reset(&mut self, seeds: Option<&[u64]>, batch: Batch) {
        assert!(seeds.is_none_or(|s| s.len() == self.members.len()), "one seed per environment");
        self.for_each(batch, |index, member, observation| {
            member.over = false;
            member.env.reset(seeds.map(|s| s[index]), observation);
            Outcome::default()
        });
    }

    /// Steps each environment with its action.
    ///
    /// # Panics
    /// If an array has not the shape that [`Batch`] says, or there is not an action per environment.
    pub fn step(&mut self, actions: &[f32], batch: Batch) {
        assert_eq!(actions.len(), self.members.len(), "one action per environment");
        self.for_each(batch, |index, member, observation| {
            if member.over {
                member.over = false;
                member.env.reset(None, observation);
                return Outcome::default();
            }
            let outcome = member.env.step(f64::from(actions[index]), observation);
            member.over = outcome.is_over();
            outcome
        });
    }

    /// Applies `work` to each environment and its row, and writes down the outcome.
    fn for_each(&mut self, batch: Batch, work: impl Fn(usize, &mut Member<E>, &mut [f32]) -> Outcome + Sync) {
        let n = self.members.len();
        let Batch { observations, rewards, terminated, truncated, info } = batch;
        assert_eq!(observations.len(), n * self.observation_len, "shape of the observations");
        assert_eq!(info.len(), n * self.info_len, "shape of the info");
        let lengths = [rewards.len(), terminated.len(), truncated.len()];
        assert_eq!(lengths, [n; 3], "one reward and two flags per environment");
        let (chunk, observation_len, info_len) = (self.chunk, self.observation_len, self.info_len);
        let chunks = self
            .members
            .chunks_mut(chunk)
            .zip(observations.chunks_mut(chunk * observation_len))
            .zip(info.chunks_mut(chunk * info_len))
            .zip(rewards.chunks_mut(chunk))
            .zip(terminated.chunks_mut(chunk).zip(truncated.chunks_mut(chunk)))
            .enumerate();
        let queue = Mutex::new(chunks);
        let run = || {
            loop {
                let next = queue.lock().expect("taking a chunk does not panic").next();
                let Some((number, ((((members, observations), info), rewards), (terminated, truncated)))) = next else {
                    break;
                };
                let rows = observations.chunks_mut(observation_len).zip(info.chunks_mut(info_len));
                for (i, (member, (observation, info))) in members.iter_mut().zip(rows).enumerate() {
                    let outcome = work(number * chunk + i, member, observation);
                    member.env.info(info);
                    rewards[i] = outcome.reward;
                    terminated[i] = outcome.terminated;
                    truncated[i] = outcome.truncated;
                }
            }
        };
        match &self.helpers {
            None => run(),
            // The caller works too, instead of sleeping until the others have finished.
            Some(pool) => pool.in_place_scope(|scope| {
                for _ in 0..pool.current_num_threads() {
                    scope.spawn(|_| run());
                }
                run();
            }),
        }
    }
}
