//! Statistics of all flows at each decision: what a reward of one's own is made from.

use astraea_cc::Nanos;

use crate::multi_flow::{FlowStatistics, Link, MultiFlow};

/// Statistics per flow.
const COLUMNS: usize = FlowStatistics::NAMES.len();

/// The statistics at each decision of an episode. Only active flows are kept.
#[derive(Debug, Default)]
pub(super) struct Snapshots {
    /// Time (ns), link, and how many flows the decisions up to this one had, for each decision.
    moments: Vec<(Nanos, Link, usize)>,
    flows: Vec<([f32; COLUMNS], bool)>,
}

impl Snapshots {
    pub(super) fn push(&mut self, env: &MultiFlow) {
        let numbers = |f: &FlowStatistics| (f.values().map(|value| value as f32), f.neighbour);
        self.flows.extend(env.observer().active().map(numbers));
        self.moments.push((env.now(), *env.link(), self.flows.len()));
    }

    /// Each decision's moment, link and flows.
    fn rows(&self) -> impl Iterator<Item = (Nanos, &Link, &[([f32; COLUMNS], bool)])> {
        let begins = std::iter::once(0).chain(self.moments.iter().map(|m| m.2));
        self.moments.iter().zip(begins).map(|((time, link, end), begin)| (*time, link, &self.flows[begin..*end]))
    }
}

/// Statistics at each of N decisions, as arrays.
#[derive(Clone, Debug, Default)]
pub struct Statistics {
    /// F, the largest number of active flows at a decision. The active ones come first, in the order of the flows.
    pub flows: usize,
    /// One array for each of [`FlowStatistics::NAMES`], shape (N, F); NaN where there is no flow.
    pub columns: [Vec<f32>; COLUMNS],
    /// Whether there is a flow, shape (N, F).
    pub active: Vec<bool>,
    /// Whether it is a neighbour with a scheme of its own, shape (N, F).
    pub neighbour: Vec<bool>,
    /// Simulated time in s, shape (N).
    pub time: Vec<f32>,
    /// Capacity of the link in payload bit/s, shape (N).
    pub capacity: Vec<f32>,
    /// Buffer of the link in payload bits, shape (N).
    pub buffer: Vec<f32>,
    /// Mean base round-trip time of all flows of the episode in s, shape (N).
    pub rtt: Vec<f32>,
}

impl Statistics {
    pub(super) fn new(episodes: &[&Snapshots]) -> Self {
        let rows = || episodes.iter().flat_map(|e| e.rows());
        let width = rows().map(|(_, _, flows)| flows.len()).max().unwrap_or(0);
        let cells = rows().count() * width;
        let mut all = Self {
            flows: width,
            columns: std::array::from_fn(|_| vec![f32::NAN; cells]),
            active: vec![false; cells],
            neighbour: vec![false; cells],
            ..Self::default()
        };
        for (row, (time, link, flows)) in rows().enumerate() {
            all.time.push(time as f32 / 1e9);
            all.capacity.push(link.capacity as f32);
            all.buffer.push(link.buffer as f32);
            all.rtt.push(link.rtt as f32);
            for (cell, (values, neighbour)) in (row * width..).zip(flows) {
                all.active[cell] = true;
                all.neighbour[cell] = *neighbour;
                for (column, value) in all.columns.iter_mut().zip(values) {
                    column[cell] = *value;
                }
            }
        }
        all
    }
}
