//! The vector environment against its members, one at a time.

use astraea_env::multi_flow::{FlowDriven, MultiFlowConfig};
use astraea_env::single_flow::SingleFlowConfig;
use astraea_env::{Batch, Environment, SingleFlow, Vector};

/// Arrays for `n` environments.
struct Arrays {
    observations: Vec<f32>,
    rewards: Vec<f64>,
    terminated: Vec<bool>,
    truncated: Vec<bool>,
    info: Vec<f64>,
}

impl Arrays {
    fn new(n: usize, env: &impl Environment) -> Self {
        Self {
            observations: vec![0.0; n * env.observation_len()],
            rewards: vec![0.0; n],
            terminated: vec![false; n],
            truncated: vec![false; n],
            info: vec![0.0; n * env.info_names().len()],
        }
    }

    fn batch(&mut self) -> Batch<'_> {
        Batch {
            observations: &mut self.observations,
            rewards: &mut self.rewards,
            terminated: &mut self.terminated,
            truncated: &mut self.truncated,
            info: &mut self.info,
        }
    }
}

fn action(step: usize, env: usize) -> f32 {
    ((step * 7 + env * 13) % 21) as f32 / 10.0 - 1.0
}

/// Steps `n` environments together on each number of threads and one by one, and compares every number.
fn compare<E: Environment>(make: impl Fn() -> E, n: usize, steps: usize) {
    let seeds: Vec<u64> = (0..n as u64).collect();
    let mut alone: Vec<(E, Vec<f32>, bool)> = seeds
        .iter()
        .map(|seed| {
            let mut env = make();
            let mut observation = vec![0.0; env.observation_len()];
            env.reset(Some(*seed), &mut observation);
            (env, observation, false)
        })
        .collect();
    let mut vectors: Vec<Vector<E>> =
        [1, 2, 3, 8].iter().map(|threads| Vector::new((0..n).map(|_| make()).collect(), *threads).unwrap()).collect();
    let mut arrays = Arrays::new(n, &make());
    for vector in &mut vectors {
        vector.reset(Some(&seeds), arrays.batch());
    }
    let mut episodes = 0;
    for step in 0..steps {
        let actions: Vec<f32> = (0..n).map(|env| action(step, env)).collect();
        let outcomes: Vec<(f64, bool, bool)> = alone
            .iter_mut()
            .zip(&actions)
            .map(|((env, observation, over), action)| {
                if std::mem::take(over) {
                    env.reset(None, observation);
                    episodes += 1;
                    return (0.0, false, false);
                }
                let outcome = env.step(f64::from(*action), observation);
                *over = outcome.is_over();
                (outcome.reward, outcome.terminated, outcome.truncated)
            })
            .collect();
        for vector in &mut vectors {
            vector.step(&actions, arrays.batch());
            for (i, (env, observation, _)) in alone.iter().enumerate() {
                let length = observation.len();
                assert_eq!(observation[..], arrays.observations[i * length..][..length]);
                assert_eq!(outcomes[i], (arrays.rewards[i], arrays.terminated[i], arrays.truncated[i]));
                let mut info = vec![0.0; env.info_names().len()];
                env.info(&mut info);
                assert_eq!(info[..], arrays.info[i * info.len()..][..info.len()]);
            }
        }
    }
    assert!(episodes > n, "{episodes} episodes have ended");
}

#[test]
fn single_flow_is_the_same_on_any_number_of_threads() {
    let config = SingleFlowConfig { steps: 20, ..SingleFlowConfig::default() };
    compare(|| SingleFlow::new(config.clone()).unwrap(), 37, 100);
}

#[test]
fn multi_flow_is_the_same_on_any_number_of_threads() {
    let config = MultiFlowConfig { duration: 3.0, ..MultiFlowConfig::default() };
    compare(|| FlowDriven::new(config.clone()).unwrap(), 5, 1500);
}

#[test]
fn there_must_be_an_environment() {
    let error = Vector::<SingleFlow>::new(vec![], 1).err().unwrap();
    assert_eq!(error.to_string(), "num_envs: is 0, expected at least 1");
}
