//! Which flows share the link when, and whether they come to equal shares.

use astraea_cc::{MILLISECOND, Nanos, SECOND};

use super::score::SLOT;

/// How near to its fair share a flow has to be, as a part of it.
const TOLERANCE: f64 = 0.1;

/// Slots of the trailing means that are compared with the fair shares.
const TRAILING: usize = (500 * MILLISECOND / SLOT) as usize;

/// Slots for which they must have been near at the end.
const HOLD: usize = (SECOND / SLOT) as usize;

/// Slots after an event in which flows can be expected to settle, at least.
const SHORTEST: usize = (3 * SECOND / SLOT) as usize;

/// Events that follow each other within this time count as one.
const TOGETHER: Nanos = 100 * MILLISECOND;

/// What a flow did: bytes delivered in each slot from the first on, and when it was there (ns).
pub(super) struct Life {
    pub(super) delivered: Vec<f64>,
    pub(super) start: Nanos,
    pub(super) end: Nanos,
    pub(super) neighbour: bool,
}

impl Life {
    /// Whether the flow was there from one time to another (ns).
    pub(super) fn spans(&self, from: Nanos, until: Nanos) -> bool {
        self.start <= from && self.end >= until
    }

    /// Bytes delivered in the slots `from..until`.
    pub(super) fn bytes(&self, from: usize, until: usize) -> f64 {
        self.delivered[from.min(self.delivered.len())..until.min(self.delivered.len())].iter().sum()
    }
}

/// Share of the events after which the flows settled, `None` if there was no event to judge.
///
/// Events are the arrivals and departures of flows and the `changes` of the path (ns), all those within 100 ms counted
/// as one; judged are those without another event for 3 s that leave a flow. The flows have settled if from some moment
/// on, at least 1 s before the next event, the trailing 500 ms mean of each stays within 10 % of an equal share of
/// `capacity` (bytes in each slot).
pub(super) fn settled_share(lives: &[Life], changes: &[Nanos], capacity: &[f64]) -> Option<f64> {
    let end = capacity.len() as Nanos * SLOT;
    let ends = lives.iter().flat_map(|life| [life.start, life.end]).chain(changes.iter().copied());
    let mut times: Vec<Nanos> = ends.filter(|time| *time < end).collect();
    times.sort_unstable();
    let mut groups: Vec<(Nanos, Nanos)> = Vec::new();
    for time in times {
        match groups.last_mut() {
            Some((first, last)) if time - *first < TOGETHER => *last = time,
            _ => groups.push((time, time)),
        }
    }
    let untils = groups.iter().skip(1).map(|group| group.0).chain([end]);
    let mut judged = 0.0;
    let mut settled = 0.0;
    for (time, until) in groups.iter().map(|group| group.1).zip(untils) {
        let active: Vec<&Life> = lives.iter().filter(|life| life.spans(time, until)).collect();
        let (from, until) = (time.div_ceil(SLOT) as usize, (until / SLOT) as usize);
        if until >= from + SHORTEST && !active.is_empty() {
            judged += 1.0;
            settled += f64::from(u8::from(settles(&active, capacity, until)));
        }
    }
    (judged > 0.0).then(|| settled / judged)
}

/// Whether the flows are near their shares throughout the last second before the slot `until`.
fn settles(active: &[&Life], capacity: &[f64], until: usize) -> bool {
    (until - HOLD..=until).all(|slot| {
        let share = capacity[slot - TRAILING..slot].iter().sum::<f64>() / active.len() as f64;
        active.iter().all(|life| (life.bytes(slot - TRAILING, slot) - share).abs() <= TOLERANCE * share)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life(delivered: impl Fn(usize) -> f64, start: Nanos, end: Nanos) -> Life {
        Life { delivered: (0..1000).map(delivered).collect(), start, end, neighbour: false }
    }

    #[test]
    fn a_stable_unfair_split_has_not_settled() {
        let capacity = [100.0; 1000];
        // Alone until 4 s, then 50 to 50; the second event leaves them at 60 to 40.
        let first = |late: f64| {
            life(
                move |slot| {
                    if slot < 400 {
                        100.0
                    } else if slot < 700 {
                        50.0
                    } else {
                        late
                    }
                },
                0,
                10 * SECOND,
            )
        };
        let second = |late: f64| life(move |slot| if slot < 700 { 50.0 } else { late }, 4 * SECOND, 10 * SECOND);
        let share = |late: f64| settled_share(&[first(late), second(100.0 - late)], &[7 * SECOND], &capacity);
        assert_eq!(share(50.0), Some(1.0));
        assert_eq!(share(54.0), Some(1.0), "within a tenth of 50");
        assert_eq!(share(60.0), Some(2.0 / 3.0));
    }

    #[test]
    fn short_pauses_are_not_judged() {
        let capacity = [100.0; 1000];
        let alone = life(|_| 100.0, 0, 10 * SECOND);
        let changes = |times: &[Nanos]| settled_share(std::slice::from_ref(&alone), times, &capacity);
        assert_eq!(changes(&[]), Some(1.0));
        let often: Vec<Nanos> = (0..10).map(|second| second * SECOND).collect();
        assert_eq!(changes(&often), None);
        // A group counts from its last event; 9.95 s leave nothing to judge.
        assert_eq!(changes(&[5 * SECOND, 5 * SECOND + 50_000_000, 9_950_000_000]), Some(1.0));
    }
}
