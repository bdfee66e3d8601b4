//! Series as columns of numbers: what results hand on, whatever recorded the slots.

use std::ops::Range;

use astraea_cc::{MSS, Nanos};

use crate::record::{FlowSlot, LinkSlot};

/// The mean in s of `count` times that add up to `sum` ns. Zero over zero would be a NaN whose sign depends on the build.
fn mean(sum: u64, count: u32) -> f32 {
    if count == 0 { f32::NAN } else { (sum as f64 / f64::from(count) / 1e9) as f32 }
}

/// A column: its name and how it is read from a slot.
type Column = (&'static str, fn(&FlowSlot) -> f32);

/// Columns in which an empty slot has a value of its own.
const SAMPLED: [Column; 3] =
    [("delivered", |s| s.delivered as f32), ("lost", |s| s.lost as f32), ("rtt", |s| mean(s.rtt_sum, s.rtt_count))];

/// Columns in which an empty slot repeats the one before.
const HELD: [Column; 3] = [
    ("cwnd", |s| s.cwnd / MSS as f32),
    ("pacing", |s| if s.pacing > 0.0 { s.pacing } else { f32::NAN }),
    ("inflight", |s| s.in_flight / MSS as f32),
];

/// The recorded slots of a flow, and the slots in which it lived.
#[derive(Clone, Debug)]
pub struct FlowSeries<'a> {
    /// Slots from the beginning of the trial, up to the last in which something happened.
    pub slots: &'a [FlowSlot],
    /// Slots between the flow's start and end.
    pub life: Range<usize>,
}

impl<'a> FlowSeries<'a> {
    /// The series of a flow that lived from `start` (never: `None`) to `end`, in slots of `length` ns.
    pub fn new(slots: &'a [FlowSlot], start: Option<Nanos>, end: Nanos, length: Nanos) -> Self {
        let first = start.map_or(usize::MAX, |time| (time / length) as usize);
        Self { slots, life: first..end.div_ceil(length) as usize }
    }
}

/// The series of all flows by name, each `flows.len()` rows of `slots` values: delivered (payload bytes), lost
/// (packets), rtt (s; NaN: no sample), and, NaN outside a flow's life, cwnd (packets), pacing (bit/s; NaN: unpaced) and
/// inflight (packets).
pub fn of_flows(flows: &[FlowSeries<'_>], slots: usize) -> Vec<(&'static str, Vec<f32>)> {
    let mut columns = Vec::with_capacity(SAMPLED.len() + HELD.len());
    for (name, value) in SAMPLED {
        let empty = value(&FlowSlot::default());
        let mut column = Vec::with_capacity(flows.len() * slots);
        for (index, flow) in flows.iter().enumerate() {
            column.extend(flow.slots.iter().take(slots).map(value));
            column.resize((index + 1) * slots, empty);
        }
        columns.push((name, column));
    }
    for (name, value) in HELD {
        let mut column = Vec::with_capacity(flows.len() * slots);
        for flow in flows {
            hold(&mut column, flow, value, slots);
        }
        columns.push((name, column));
    }
    columns
}

fn hold(column: &mut Vec<f32>, flow: &FlowSeries<'_>, value: fn(&FlowSlot) -> f32, slots: usize) {
    let mut last = f32::NAN;
    for slot in 0..slots {
        if let Some(entry) = flow.slots.get(slot).filter(|s| s.cwnd > 0.0) {
            last = value(entry);
        }
        column.push(if flow.life.contains(&slot) { last } else { f32::NAN });
    }
}

/// The series of a link, one value per slot.
#[derive(Clone, Debug, Default)]
pub struct LinkColumns {
    /// Mean waiting time in s of the packets whose transmission began; NaN: none.
    pub queue_delay: Vec<f32>,
    /// Wire bytes transmitted.
    pub served: Vec<f64>,
    /// Packets that the queue dropped or that were lost at random.
    pub dropped: Vec<u32>,
    /// Wire bytes that could have been transmitted.
    pub capacity: Vec<f64>,
}

/// The series of a link over `slots` slots of `length` ns within `duration`; `capacity` tells the wire bytes that the
/// link could carry from one time to another.
pub fn of_link(
    recorded: &[LinkSlot],
    slots: usize,
    length: Nanos,
    duration: Nanos,
    mut capacity: impl FnMut(Nanos, Nanos) -> f64,
) -> LinkColumns {
    let slot = |index: usize| recorded.get(index).copied().unwrap_or_default();
    let all = || (0..slots).map(slot);
    LinkColumns {
        queue_delay: all().map(|s| mean(s.wait_sum, s.served)).collect(),
        served: all().map(|s| s.served_bytes as f64).collect(),
        dropped: all().map(|s| s.dropped + s.lost).collect(),
        capacity: (0..slots as Nanos).map(|s| capacity(s * length, ((s + 1) * length).min(duration))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column<'a>(columns: &'a [(&str, Vec<f32>)], name: &str) -> &'a [f32] {
        &columns.iter().find(|(n, _)| *n == name).unwrap().1
    }

    #[test]
    fn windows_are_held_within_a_life_and_samples_are_not() {
        let sample = |cwnd: f32| FlowSlot {
            rtt_sum: 60_000_000,
            rtt_count: 2,
            delivered: 1448,
            lost: 1,
            cwnd: cwnd * MSS as f32,
            pacing: 0.0,
            in_flight: 4.0 * MSS as f32,
        };
        let recorded = [FlowSlot::default(), sample(10.0), FlowSlot::default(), sample(12.0)];
        let series = FlowSeries::new(&recorded, Some(15), 45, 10);
        assert_eq!(series.life, 1..5);
        let never = FlowSeries::new(&[], None, 60, 10);
        let columns = of_flows(&[series, never], 6);
        assert_eq!(column(&columns, "delivered"), [0., 1448., 0., 1448., 0., 0., 0., 0., 0., 0., 0., 0.]);
        let rtt = column(&columns, "rtt");
        assert!(rtt[0].is_nan() && (rtt[1] - 0.03).abs() < 1e-6 && rtt[2].is_nan() && rtt[6].is_nan());
        let cwnd = column(&columns, "cwnd");
        assert_eq!(cwnd[1..5], [10., 10., 12., 12.]);
        assert!(cwnd[0].is_nan() && cwnd[5].is_nan() && cwnd[6..].iter().all(|c| c.is_nan()));
        assert!(column(&columns, "pacing").iter().all(|p| p.is_nan()));
    }

    #[test]
    fn a_link_has_a_value_for_every_slot() {
        let recorded = [LinkSlot { wait_sum: 3_000_000, served: 3, served_bytes: 4500, dropped: 1, lost: 2 }];
        let columns = of_link(&recorded, 3, 10, 25, |from, to| (to - from) as f64);
        assert!((columns.queue_delay[0] - 1e-3).abs() < 1e-9 && columns.queue_delay[1].is_nan());
        assert_eq!(columns.served, [4500.0, 0.0, 0.0]);
        assert_eq!(columns.dropped, [3, 0, 0]);
        assert_eq!(columns.capacity, [10.0, 10.0, 5.0]);
    }
}
