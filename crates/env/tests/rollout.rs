//! Whole episodes with a policy: the same for any number of threads, and measured rightly.

use std::sync::atomic::{AtomicUsize, Ordering};

use astraea_env::Range;
use astraea_env::multi_flow::{Changes, MultiFlowConfig, Neighbours, Outages, ShortFlows};
use astraea_env::rollout::{Act, Batch, Request, Rollout, SCORES, Score};
use astraea_policy::Form;

/// A policy by hand for the paper's form: aim at a queueing delay of a tenth of the round trip.
struct TargetDelay;

impl Act for TargetDelay {
    fn act(&mut self, state: &[f32]) -> f32 {
        (10.0 * (1.1 - state[state.len() - 6])).clamp(-1.0, 1.0)
    }
}

/// A policy that always wants the same.
#[derive(Clone, Copy)]
struct Always(f32);

impl Act for Always {
    fn act(&mut self, _state: &[f32]) -> f32 {
        self.0
    }
}

fn short() -> MultiFlowConfig {
    MultiFlowConfig { duration: 8.0, arrival_gap: Range::new(1.0, 1.0), ..MultiFlowConfig::default() }
}

/// Everything at once.
fn wild() -> MultiFlowConfig {
    MultiFlowConfig {
        bandwidth: Range::new(5e6, 50e6),
        loss: Range::new(0.0, 0.02),
        lossy: 0.5,
        jittered: 0.5,
        aggregated: 0.5,
        codel: 0.5,
        neighbours: Neighbours { probability: 0.5, ..Neighbours::default() },
        changes: Changes { bandwidth: 0.5, rtt: 0.5, every: Range::new(1.0, 3.0) },
        outages: Outages { probability: 0.5, every: Range::new(1.0, 3.0), ..Outages::default() },
        short_flows: ShortFlows { probability: 0.5, ..ShortFlows::default() },
        offload: 1e-3,
        ..short()
    }
}

fn request(iteration: u64) -> Request {
    Request { iteration, episodes: 12, noise: 0.3, statistics: true }
}

fn rollout(config: MultiFlowConfig, threads: usize) -> Rollout {
    Rollout::new(config, Form::Paper, threads, 7).unwrap()
}

fn run<A: Act>(rollout: &Rollout, policy: impl Fn() -> A + Sync, request: &Request) -> Batch {
    rollout.run(policy, request, || false).expect("nobody stops it")
}

fn score<A: Act>(rollout: &Rollout, policy: impl Fn() -> A + Sync, seeds: &[u64]) -> Vec<Score> {
    rollout.score(policy, seeds, || false).expect("nobody stops it")
}

fn bits(batch: &Batch) -> Vec<u32> {
    let transitions = batch.transitions(0.98, 5, None);
    let arrays =
        [&transitions.global, &transitions.local, &transitions.action, &transitions.reward, &transitions.discount];
    arrays.iter().flat_map(|array| array.iter().map(|value| value.to_bits())).collect()
}

#[test]
fn episodes_do_not_depend_on_threads_or_on_those_before() {
    let (one, three) = (rollout(wild(), 1), rollout(wild(), 3));
    let first = run(&one, || TargetDelay, &request(0));
    let second = run(&one, || TargetDelay, &request(1));
    assert_eq!(bits(&first), bits(&run(&three, || TargetDelay, &request(0))));
    assert_eq!(bits(&second), bits(&run(&rollout(wild(), 2), || TargetDelay, &request(1))));
    assert_ne!(bits(&first), bits(&second));
    assert_eq!(first.global_len(), 13, "neighbours are possible");
}

#[test]
fn everything_that_is_handed_over_is_finite() {
    for form in Form::ALL {
        let batch = run(&Rollout::new(wild(), form, 2, 3).unwrap(), || Always(0.02), &request(0));
        assert_eq!((batch.episodes(), batch.local_len()), (12, form.inputs()));
        let n = batch.decisions();
        let transitions = batch.transitions(0.98, 5, None);
        assert!(n > 1000 && transitions.action.len() < n);
        for array in [
            &transitions.global,
            &transitions.local,
            &transitions.action,
            &transitions.reward,
            &transitions.next_global,
            &transitions.next_local,
            &transitions.discount,
        ] {
            assert!(array.iter().all(|value| value.is_finite()));
        }
        assert!(transitions.action.iter().all(|action| action.abs() <= 1.0));
    }
}

#[test]
fn statistics_are_those_that_the_reward_is_made_of() {
    let batch = run(&rollout(short(), 2), || TargetDelay, &request(0));
    let statistics = batch.statistics().unwrap();
    let (n, width) = (batch.decisions(), statistics.flows);
    assert_eq!((statistics.active.len(), statistics.capacity.len()), (n * width, n));
    assert_eq!(width, 5, "up to five flows in one of twelve episodes");
    let config = short().reward;
    let rewards = batch.rewards();
    for row in (0..n).step_by(7) {
        let cells = row * width..(row + 1) * width;
        let there: Vec<usize> = cells.filter(|cell| statistics.active[*cell]).collect();
        let columns = &statistics.columns;
        let column = |index: usize| there.iter().map(move |cell| f64::from(columns[index][*cell]));
        let (count, capacity) = (there.len() as f64, f64::from(statistics.capacity[row]));
        let mean = |values: &[f64]| values.iter().sum::<f64>() / count;
        let means: Vec<f64> = column(1).collect();
        let deviation = mean(&means.iter().map(|m| (m - mean(&means)).powi(2)).collect::<Vec<_>>()).sqrt();
        let latency = column(3).sum::<f64>() / column(8).sum::<f64>();
        let ratios = column(4).zip(column(0)).map(|(loss, thr)| if loss > 0.0 { (loss / thr).min(1.0) } else { 0.0 });
        let variation =
            column(2).zip(column(1)).map(|(deviation, mean)| if mean > 0.0 { deviation / mean } else { 0.0 });
        let reward = config.throughput * column(0).sum::<f64>() / capacity
            - config.latency * (latency - 1.2).max(0.0) * column(6).sum::<f64>() / capacity
            - config.loss * ratios.sum::<f64>() / count
            - config.fairness * deviation / means.iter().sum::<f64>()
            - config.stability * variation.sum::<f64>() / count;
        assert!((reward.clamp(-0.1, 0.1) - f64::from(rewards[row])).abs() < 1e-5, "row {row}");
    }
}

#[test]
fn a_policy_that_only_grows_is_stopped() {
    let config = MultiFlowConfig { buffer: Range::new(0.5, 1.0), alpha: 0.1, duration: 20.0, ..short() };
    let batch = run(&rollout(config, 2), || Always(1.0), &Request { noise: 0.0, ..request(0) });
    assert_eq!(batch.diverged(), batch.episodes());
    assert!(batch.seconds() < 12.0 * 15.0);
    let transitions = batch.transitions(0.98, 1, None);
    assert!(transitions.discount.contains(&0.0));
    let calm = run(&rollout(short(), 2), || TargetDelay, &request(0));
    assert_eq!(calm.diverged(), 0);
    assert!(!calm.transitions(0.98, 1, None).discount.contains(&0.0));
}

#[test]
fn flows_that_would_have_asked_at_the_instant_of_divergence_end_with_it() {
    // All start at once, so all ask at the same instants, one after the other.
    let config = MultiFlowConfig {
        buffer: Range::new(0.5, 1.0),
        flows: Range::new(3.0, 3.0),
        heterogeneous: 0.0,
        arrival_gap: Range::new(0.0, 0.0),
        lifetime: None,
        alpha: 0.1,
        duration: 20.0,
        ..MultiFlowConfig::default()
    };
    let batch = run(&rollout(config, 2), || Always(1.0), &Request { noise: 0.0, ..request(0) });
    assert_eq!(batch.diverged(), batch.episodes());
    let ends = batch.transitions(0.98, 1, None).discount.iter().filter(|discount| **discount == 0.0).count();
    assert_eq!(ends, 3 * batch.episodes(), "the last step of each flow");
}

#[test]
fn what_is_stopped_has_no_result() {
    let asked = AtomicUsize::new(0);
    let stop = || asked.fetch_add(1, Ordering::Relaxed) >= 100;
    assert!(rollout(short(), 2).run(|| TargetDelay, &request(0), stop).is_none());
    assert!(asked.load(Ordering::Relaxed) <= 102, "each thread asks at its next decision");
    assert!(rollout(short(), 2).score(|| TargetDelay, &[1, 2], || true).is_none());
}

#[test]
fn episodes_that_do_not_fit_into_memory_are_refused() {
    let error = |config| Rollout::new(config, Form::Pure, 1, 0).err().map(|error| error.to_string());
    let long = MultiFlowConfig { duration: 3600.0, flows: Range::new(2.0, 1000.0), period: 0.01, ..short() };
    assert_eq!(
        error(MultiFlowConfig { lifetime: None, ..long.clone() }).unwrap(),
        "duration: 3600 s of 1000 flows are 360000000 decisions with a period of 0.01 s, expected at most 10000000"
    );
    assert_eq!(
        error(long.clone()).unwrap(),
        "duration: 3600 s of 1000 flows are 360000000 slots of 10 ms in a score, expected at most 100000000"
    );
    assert_eq!(
        error(MultiFlowConfig { duration: 1e5, ..short() }).unwrap(),
        "duration: is 100000, expected 0.001 to 86400"
    );
    assert_eq!(error(MultiFlowConfig { flows: Range::new(2.0, 200.0), ..long }), None);
}

#[test]
fn the_largest_episode_is_that_of_most_flows_that_stay_longest() {
    let largest = |config| Rollout::new(config, Form::Pure, 1, 0).unwrap().largest_episode();
    let at_once = Range::new(0.0, 5.0);
    let config = MultiFlowConfig { duration: 30.0, flows: Range::new(1.0, 50.0), period: 0.01, ..short() };
    let config = MultiFlowConfig { arrival_gap: at_once, ..config };
    let staying = |lifetime| MultiFlowConfig { lifetime, ..config.clone() };
    assert_eq!(largest(staying(Some(Range::new(5.0, 20.0)))), (100_000.0, 50.0));
    assert_eq!(largest(staying(Some(Range::new(5.0, 60.0)))), (150_000.0, 50.0));
    let neighbours = Neighbours { probability: 0.1, ..Neighbours::default() };
    assert_eq!(largest(MultiFlowConfig { neighbours, ..staying(None) }), (150_000.0, 53.0));
    // Some are too late.
    let arrival_gap = Range::new(2.0, 5.0);
    assert_eq!(largest(MultiFlowConfig { arrival_gap, ..staying(None) }), (48_000.0, 16.0));
}

fn value(score: &Score, name: &str) -> f64 {
    score.0[SCORES.iter().position(|(known, _)| *known == name).unwrap()]
}

#[test]
fn scores_of_a_flow_alone() {
    let config = MultiFlowConfig {
        bandwidth: Range::new(40e6, 40e6),
        rtt: Range::new(0.03, 0.03),
        buffer: Range::new(1.0, 1.0),
        flows: Range::new(1.0, 1.0),
        lifetime: None,
        duration: 20.0,
        ..MultiFlowConfig::default()
    };
    let score = self::score(&rollout(config, 1), || TargetDelay, &[1])[0];
    assert!((0.95..=1.0).contains(&value(&score, "utilization")), "{score:?}");
    // The target is 1.1 round trips; slow start is above it.
    assert!((1.05..1.2).contains(&value(&score, "rtt_inflation")), "{score:?}");
    let queue = value(&score, "queue_delay_ms");
    assert!((queue / 30.0 - (value(&score, "rtt_inflation") - 1.0)).abs() < 0.02, "{score:?}");
    assert_eq!((value(&score, "jain"), value(&score, "shared")), (1.0, 0.0));
    assert_eq!((value(&score, "loss"), value(&score, "settled")), (0.0, 1.0));
    assert!(value(&score, "neighbour_ratio").is_nan());
}

#[test]
fn packets_of_several_segments_change_little() {
    let scored = |offload| {
        let config = MultiFlowConfig {
            bandwidth: Range::new(200e6, 200e6),
            rtt: Range::new(0.03, 0.03),
            buffer: Range::new(1.0, 1.0),
            flows: Range::new(2.0, 2.0),
            arrival_gap: Range::new(0.0, 0.0),
            lifetime: None,
            duration: 20.0,
            offload,
            ..MultiFlowConfig::default()
        };
        score(&rollout(config, 1), || TargetDelay, &[1])[0]
    };
    // Of one segment, and of eight.
    let (single, several) = (scored(0.0), scored(5e-4));
    assert_ne!(single, several);
    for (name, margin) in [("jain", 0.02), ("utilization", 0.02), ("rtt_inflation", 0.05), ("decisions", 10.0)] {
        let (single, several) = (value(&single, name), value(&several, name));
        assert!((single - several).abs() < margin, "{name}: {single}, {several}");
    }
    assert!(value(&several, "utilization") <= 1.0, "{several:?}");
}

#[test]
fn scores_do_not_depend_on_threads() {
    let seeds = [3, 1, 4, 1, 5];
    let scores = |threads| -> Vec<Vec<u64>> {
        let scores = score(&rollout(wild(), threads), || TargetDelay, &seeds);
        scores.iter().map(|score| score.0.iter().map(|x| x.to_bits()).collect()).collect()
    };
    let one = scores(1);
    assert_eq!(one, scores(3));
    assert_eq!(one[1], one[3], "the same seed");
    assert_ne!(one[0], one[1]);
}
