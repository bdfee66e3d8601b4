//! Everything that was decided in an episode.

use astraea_cc::Nanos;

use super::divergence::Divergence;
use super::noise::Noise;
use super::snapshots::Snapshots;
use super::{Act, Request};
use crate::multi_flow::MultiFlow;

/// A decision. Those of one flow form sequences with one decision each period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    /// The action taken.
    pub(super) action: f32,
    /// The shared reward at the moment of the decision: what the flow's decision before led to.
    pub(super) reward: f32,
    /// Index of the flow's next decision, one period later; [`Row::NONE`] if it has none.
    pub(super) next: u32,
    /// Whether the episode diverged here: nothing that could be estimated follows.
    pub(super) terminal: bool,
}

/// Rows that memory is reserved for at once, some 200 MB: a long episode may be over early.
const AT_ONCE: usize = 1 << 20;

impl Row {
    pub(super) const NONE: u32 = u32::MAX;
}

/// The decisions of an episode in the order of their times.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) rows: Vec<Row>,
    /// Global states, row by row.
    pub(super) globals: Vec<f32>,
    /// Local states, row by row.
    pub(super) locals: Vec<f32>,
    /// Statistics of all flows at each decision, if asked for.
    pub(super) snapshots: Option<Snapshots>,
    /// Simulated time in ns.
    pub(super) time: Nanos,
    /// Whether the episode was ended because a flow had lost control.
    pub(super) diverged: bool,
}

impl Record {
    /// Runs an episode that has just been reset, to its end; `None` if `stop` says so before that.
    pub(super) fn run(
        env: &mut MultiFlow,
        policy: &mut impl Act,
        request: &Request,
        seed: u64,
        stop: impl Fn() -> bool,
    ) -> Option<Self> {
        let flows = env.observer().len();
        let mut noise = Noise::new(seed, request.noise, flows);
        let mut divergence = Divergence::new(env);
        let mut last: Vec<Option<(Nanos, u32)>> = vec![None; flows];
        let mut record = Self { snapshots: request.statistics.then(Snapshots::default), ..Self::default() };
        // As many rows as the flows can make, so that they are not moved as they grow.
        let capacity = env.scenario().decisions(env.duration(), env.period()).min(AT_ONCE);
        record.rows.reserve_exact(capacity);
        record.globals.reserve_exact(capacity * env.config().global_len());
        let period = env.period();
        let end = env.horizon();
        while let Some(decision) = env.next_decision(end) {
            if stop() {
                return None;
            }
            let (flow, time) = (decision.flow, decision.time);
            let state = env.local_state(flow);
            let action = (f64::from(policy.act(state)) + noise.next(flow)).clamp(-1.0, 1.0);
            let index = record.rows.len() as u32;
            if let Some((before, row)) = last[flow]
                && time - before == period
            {
                record.rows[row as usize].next = index;
            }
            last[flow] = Some((time, index));
            if record.locals.is_empty() {
                record.locals.reserve_exact(capacity * state.len());
            }
            record.locals.extend_from_slice(state);
            env.write_global_state(&mut record.globals);
            let reward = env.reward().total as f32;
            record.rows.push(Row { action: action as f32, reward, next: Row::NONE, terminal: false });
            if let Some(snapshots) = &mut record.snapshots {
                snapshots.push(env);
            }
            if divergence.sees(env, flow, time) {
                record.diverged = true;
                // With equal starts flows ask at the same instant: those whose turn had not come yet are among them.
                for (_, row) in last.iter().flatten().filter(|(before, _)| time - before <= period) {
                    record.rows[*row as usize].terminal = true;
                }
                break;
            }
            env.act(flow, action);
        }
        record.time = env.now();
        Some(record)
    }
}
