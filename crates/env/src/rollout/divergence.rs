//! Policies that have lost control: an episode of theirs costs much and teaches nothing.

use astraea_cc::Nanos;

use crate::multi_flow::MultiFlow;

/// How long a flow may be out of control, in ns.
const PATIENCE: Nanos = 5_000_000_000;

/// Windows up to so many payload bytes (four full packets) are innocent: the smallest window may be too large.
const SMALL: f64 = 4.0 * astraea_cc::MSS as f64;

/// Since when each flow has been out of control.
pub(super) struct Divergence {
    since: Vec<Option<Nanos>>,
    caps: Vec<f64>,
}

impl Divergence {
    pub(super) fn new(env: &MultiFlow) -> Self {
        let flows = env.observer().len();
        Self { since: vec![None; flows], caps: (0..flows).map(|flow| env.window_cap(flow)).collect() }
    }

    /// Looks at a flow that asks at `now`. Returns whether the episode is to be ended: for five seconds the flow's window
    /// has stood at its cap, or it has lost at least half of what it sent.
    pub(super) fn sees(&mut self, env: &MultiFlow, flow: usize, now: Nanos) -> bool {
        let statistics = env.statistics(flow);
        let capped = statistics.cwnd >= 0.999 * self.caps[flow];
        let storm = statistics.loss > 0.0 && statistics.loss >= statistics.throughput;
        if statistics.cwnd > SMALL && (capped || storm) {
            now - *self.since[flow].get_or_insert(now) > PATIENCE
        } else {
            self.since[flow] = None;
            false
        }
    }
}
