//! The decisions of several episodes, and the transitions that a learner takes from them.

use super::record::{Record, Row};
use super::snapshots::Statistics;

/// The decisions of several episodes, in the order of the episodes and of time.
#[derive(Debug)]
pub struct Batch {
    records: Vec<Record>,
    global_len: usize,
    local_len: usize,
}

/// n-step transitions; each array has a row for each transition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transitions {
    /// Global states, `global_len` numbers each.
    pub global: Vec<f32>,
    /// Local states, `local_len` numbers each.
    pub local: Vec<f32>,
    /// Actions.
    pub action: Vec<f32>,
    /// Discounted sums of the rewards of the steps.
    pub reward: Vec<f32>,
    /// Global states after the steps.
    pub next_global: Vec<f32>,
    /// Local states after the steps.
    pub next_local: Vec<f32>,
    /// What an estimate of the rewards after the steps is to be multiplied with.
    pub discount: Vec<f32>,
}

impl Batch {
    pub(super) fn new(records: Vec<Record>, global_len: usize, local_len: usize) -> Self {
        Self { records, global_len, local_len }
    }

    /// Length of a global state.
    pub fn global_len(&self) -> usize {
        self.global_len
    }

    /// Length of a local state.
    pub fn local_len(&self) -> usize {
        self.local_len
    }

    /// Number of decisions.
    pub fn decisions(&self) -> usize {
        self.records.iter().map(|r| r.rows.len()).sum()
    }

    /// Number of episodes.
    pub fn episodes(&self) -> usize {
        self.records.len()
    }

    /// Number of episodes that were ended because a flow had lost control: for five seconds its window had stood at its
    /// cap, or it had lost at least half of what it sent.
    pub fn diverged(&self) -> usize {
        self.records.iter().filter(|r| r.diverged).count()
    }

    /// Simulated time in s.
    pub fn seconds(&self) -> f64 {
        self.records.iter().map(|r| r.time as f64 / 1e9).sum()
    }

    /// Mean of the rewards at the decisions, 0 without decisions.
    pub fn reward_mean(&self) -> f64 {
        let sum: f64 = self.rows().map(|row| f64::from(row.reward)).sum();
        sum / self.decisions().max(1) as f64
    }

    fn rows(&self) -> impl Iterator<Item = &Row> {
        self.records.iter().flat_map(|r| &r.rows)
    }

    /// Rewards, one for each decision, as they were at its moment.
    pub fn rewards(&self) -> Vec<f32> {
        self.rows().map(|row| row.reward).collect()
    }

    /// Statistics of all flows at each decision, if they were kept.
    pub fn statistics(&self) -> Option<Statistics> {
        let snapshots: Option<Vec<_>> = self.records.iter().map(|r| r.snapshots.as_ref()).collect();
        snapshots.map(|snapshots| Statistics::new(&snapshots))
    }

    /// Transitions of up to `n` steps (at least 1). Step t of a flow goes from its decision t to its decision t + 1, one
    /// period later, and its reward is the one at that moment; the transition from t sums up
    /// `gamma^k * reward(t + 1 + k)` for k below n and ends at decision t + n with discount `gamma^n`.
    ///
    /// A sequence of decisions ends when the flow leaves, the episode ends, or the policy is not asked for a period. Then
    /// transitions are shorter, and the last decision is only the end of others. Where an episode diverged the discount
    /// is 0. `rewards`, one for each decision, replace the built-in ones.
    ///
    /// # Panics
    /// If there is not a reward for each decision.
    pub fn transitions(&self, gamma: f64, n: usize, rewards: Option<&[f32]>) -> Transitions {
        assert!(rewards.is_none_or(|r| r.len() == self.decisions()), "one reward for each decision");
        let steps = self.rows().filter(|row| row.next != Row::NONE).count();
        let mut transitions = Transitions::with_capacity(steps, self.global_len, self.local_len);
        let mut offset = 0;
        for record in &self.records {
            let own = rewards.map(|r| &r[offset..offset + record.rows.len()]);
            offset += record.rows.len();
            self.append(&mut transitions, record, gamma, n, own);
        }
        transitions
    }

    fn append(&self, to: &mut Transitions, record: &Record, gamma: f64, n: usize, rewards: Option<&[f32]>) {
        let reward = |row: usize| f64::from(rewards.map_or(record.rows[row].reward, |r| r[row]));
        let (global_len, local_len) = (self.global_len, self.local_len);
        let global = |row: usize| &record.globals[row * global_len..][..global_len];
        let local = |row: usize| &record.locals[row * local_len..][..local_len];
        for (first, row) in record.rows.iter().enumerate().filter(|(_, row)| row.next != Row::NONE) {
            let (mut last, mut sum, mut discount) = (first, 0.0, 1.0);
            for _ in 0..n.max(1) {
                if record.rows[last].next == Row::NONE {
                    break;
                }
                last = record.rows[last].next as usize;
                sum += discount * reward(last);
                discount *= gamma;
            }
            to.global.extend_from_slice(global(first));
            to.local.extend_from_slice(local(first));
            to.action.push(row.action);
            to.reward.push(sum as f32);
            to.next_global.extend_from_slice(global(last));
            to.next_local.extend_from_slice(local(last));
            to.discount.push(if record.rows[last].terminal { 0.0 } else { discount as f32 });
        }
    }
}

impl Transitions {
    fn with_capacity(n: usize, global_len: usize, local_len: usize) -> Self {
        let of = |len: usize| Vec::with_capacity(n * len);
        Self {
            global: of(global_len),
            local: of(local_len),
            action: of(1),
            reward: of(1),
            next_global: of(global_len),
            next_local: of(local_len),
            discount: of(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Decisions of several flows in turns, each with its flow's sequence number and the number within the sequence.
    struct Made {
        record: Record,
        sequences: Vec<Vec<usize>>,
    }

    /// `turns` says whose sequence goes on; states show the row, rewards are given.
    fn made(turns: &[usize], rewards: &[f32], diverged: bool) -> Made {
        let mut sequences = vec![Vec::new(); 4];
        let mut record = Record { diverged, ..Record::default() };
        for (row, (sequence, reward)) in turns.iter().zip(rewards).enumerate() {
            if let Some(before) = sequences[*sequence].last() {
                let before: &mut Row = &mut record.rows[*before];
                before.next = row as u32;
            }
            sequences[*sequence].push(row);
            record.rows.push(Row { action: row as f32 / 8.0, reward: *reward, next: Row::NONE, terminal: false });
            record.globals.extend([row as f32, -(row as f32)]);
            record.locals.push(100.0 + row as f32);
        }
        for last in sequences.iter().filter_map(|s| s.last()) {
            record.rows[*last].terminal = diverged;
        }
        Made { record, sequences }
    }

    /// The definition, one sequence after the other: (first row, last row, reward, discount) in the order of first rows.
    fn slowly(made: &Made, gamma: f64, n: usize, rewards: &[f32]) -> Vec<(usize, usize, f64, f64)> {
        let mut found = Vec::new();
        for rows in &made.sequences {
            for first in 0..rows.len().saturating_sub(1) {
                let steps = n.min(rows.len() - 1 - first);
                let reward =
                    (0..steps).map(|k| gamma.powf(k as f64) * f64::from(rewards[rows[first + 1 + k]])).sum::<f64>();
                let ends = made.record.diverged && first + steps == rows.len() - 1;
                let discount = if ends { 0.0 } else { gamma.powf(steps as f64) };
                found.push((rows[first], rows[first + steps], reward, discount));
            }
        }
        found.sort_by_key(|f| f.0);
        found
    }

    fn assert_same(transitions: &Transitions, expected: &[(usize, usize, f64, f64)]) {
        assert_eq!(transitions.action.len(), expected.len());
        for (i, (first, last, reward, discount)) in expected.iter().enumerate() {
            let (first, last) = (*first as f32, *last as f32);
            assert_eq!(transitions.global[2 * i..][..2], [first, -first]);
            assert_eq!(transitions.local[i], 100.0 + first);
            assert_eq!(transitions.action[i], first / 8.0);
            assert_eq!(transitions.next_global[2 * i..][..2], [last, -last]);
            assert_eq!(transitions.next_local[i], 100.0 + last);
            assert!((f64::from(transitions.reward[i]) - reward).abs() < 1e-5);
            assert!((f64::from(transitions.discount[i]) - discount).abs() < 1e-6);
        }
    }

    #[test]
    fn two_flows_by_hand() {
        // Flow 0 decides at rows 0, 2, 3, flow 1 at row 1 only.
        let rewards = [9.0, 9.0, 2.0, 4.0];
        let batch = |diverged| Batch::new(vec![made(&[0, 1, 0, 0], &rewards, diverged).record], 2, 1);
        let one = batch(false).transitions(0.5, 1, None);
        assert_same(&one, &[(0, 2, 2.0, 0.5), (2, 3, 4.0, 0.5)]);
        let two = batch(false).transitions(0.5, 2, None);
        assert_same(&two, &[(0, 3, 2.0 + 0.5 * 4.0, 0.25), (2, 3, 4.0, 0.5)]);
        let ended = batch(true).transitions(0.5, 1, None);
        assert_same(&ended, &[(0, 2, 2.0, 0.5), (2, 3, 4.0, 0.0)]);
        assert_eq!(batch(true).diverged(), 1);
        assert_eq!(batch(false).reward_mean(), 6.0);
    }

    proptest! {
        #[test]
        fn transitions_are_those_of_the_definition(
            episodes in prop::collection::vec(
                (prop::collection::vec((0_usize..4, -1.0_f32..1.0, -1.0_f32..1.0), 0..40), any::<bool>()), 1..4),
            n in 1_usize..8,
            gamma in 0.5_f64..1.0,
            own in any::<bool>(),
        ) {
            let mut records = Vec::new();
            let mut expected = Vec::new();
            let mut replacement = Vec::new();
            for (rows, diverged) in &episodes {
                let turns: Vec<usize> = rows.iter().map(|r| r.0).collect();
                let built_in: Vec<f32> = rows.iter().map(|r| r.1).collect();
                let others: Vec<f32> = rows.iter().map(|r| r.2).collect();
                let made = made(&turns, &built_in, *diverged);
                expected.extend(slowly(&made, gamma, n, if own { &others } else { &built_in }));
                replacement.extend(others);
                records.push(made.record);
            }
            let batch = Batch::new(records, 2, 1);
            assert_same(&batch.transitions(gamma, n, own.then_some(&replacement[..])), &expected);
        }
    }
}
