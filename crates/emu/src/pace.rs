//! When a thread wakes up.
//!
//! A wake-up costs some microseconds, 15 on some virtual machines, so waking up for each of thousands of packets per
//! second is out of the question; and a real-time thread that never sleeps is stopped by the kernel for 50 ms in every
//! second. A few wake-ups in a row are as early as the packets want them (a packet alone on the network is on time);
//! beyond that they keep a distance, and packets that are due in between are delivered together at its end.

use astraea_sim::{DelayConfig, LinkConfig, Nanos};

use crate::config::Route;

/// Bounds of the distance in ns.
pub(crate) const SHORTEST: Nanos = 50_000;
const LONGEST: Nanos = 333_000;

/// The distance is this part of the shortest one-way delay, so that it hardly shows in round-trip times. CPU time goes by
/// the number of wake-ups: a 40th would take a third more.
const SHARE: Nanos = 30;

/// Wake-ups in a row that need not keep the distance.
const BURST: Nanos = 8;

/// Most that a wake-up is asked for ahead of time, in ns.
const MOST_LAG: Nanos = 60_000;

/// Keeps the distance between wake-ups (the virtual scheduling algorithm of ITU-T I.371).
pub(crate) struct Pace {
    distance: Nanos,
    /// When the next wake-up would be due if all kept the distance.
    expected: Nanos,
    /// How late timers are at the moment, in ns.
    lag: Nanos,
}

impl Pace {
    pub(crate) fn new(distance: Nanos) -> Self {
        Self { distance, expected: 0, lag: 0 }
    }

    /// Notes a wake-up at `now` that found something to do.
    pub(crate) fn worked(&mut self, now: Nanos) {
        let allowance = (BURST - 1) * self.distance;
        self.expected = self.expected.max(now.saturating_sub(allowance)) + self.distance;
    }

    /// How long before a packet is due the thread should ask to be woken at `now`, to wait out the rest at work. That costs
    /// processor time, and is for packets that are alone on the network: under load they keep a distance anyway.
    pub(crate) fn early(&self, now: Nanos) -> Nanos {
        if now >= self.expected { self.lag } else { 0 }
    }

    /// Notes how late a timer was: the average of the last few, within bounds, as what is left is waited out at work.
    pub(crate) fn woken(&mut self, wanted: Nanos, now: Nanos) {
        let late = now.saturating_sub(wanted).min(MOST_LAG);
        self.lag = (7 * self.lag + late) / 8;
    }

    /// When the next wake-up is allowed, at the earliest. A tenth of the time is left to others whatever the load:
    /// `woken` and `done` are the beginning and end of the last work.
    pub(crate) fn earliest(&self, woken: Nanos, done: Nanos) -> Nanos {
        let work = done - woken;
        let rest = if work > self.distance { done + work / 9 } else { done };
        if self.expected > done { rest.max(self.expected.min(woken + self.distance)) } else { rest }
    }
}

/// The distance for these routes, in ns.
pub(crate) fn distance(links: &[LinkConfig], routes: &[Route]) -> Nanos {
    let delay = |link: &usize| match links.get(*link).map(|link| &link.delay) {
        None => 0,
        Some(DelayConfig::Constant(delay)) => *delay,
        Some(DelayConfig::Schedule(steps)) => steps.iter().map(|step| step.1).min().unwrap_or(0),
    };
    let one_way = |route: &Route| route.extra_delay_ns + route.path.iter().map(delay).sum::<Nanos>();
    (routes.iter().map(one_way).min().unwrap_or(0) / SHARE).clamp(SHORTEST, LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_wake_ups_are_at_once_and_then_they_keep_the_distance() {
        let mut pace = Pace::new(100);
        let mut now = 1_000_000;
        for _ in 0..BURST {
            assert_eq!(pace.earliest(now, now + 5), now + 5);
            pace.worked(now);
            now += 5;
        }
        for _ in 0..100 {
            let next = pace.earliest(now, now + 5);
            assert!(next > now + 5 && next <= now + 100, "{next} after {now}");
            now = next;
            pace.worked(now);
        }
        assert_eq!(pace.earliest(now, now + 5), now + 100);
        now += 10_000;
        assert_eq!(pace.earliest(now, now + 5), now + 5, "a pause gives the allowance back");
    }

    #[test]
    fn timers_are_asked_for_as_much_earlier_as_they_are_late() {
        let mut pace = Pace::new(100);
        assert_eq!(pace.early(0), 0);
        (0..100).for_each(|_| pace.woken(1_000_000, 1_020_000));
        assert!((19_000..=20_000).contains(&pace.early(0)), "{}", pace.early(0));
        (0..100).for_each(|_| pace.woken(1_000_000, 9_000_000));
        assert!(pace.early(0) <= MOST_LAG);
        (0..BURST).for_each(|_| pace.worked(1_000_000));
        assert_eq!(pace.early(1_000_000), 0, "not under load");
        assert!(pace.early(1_000_100) > 0, "a distance later it is alone again");
    }

    #[test]
    fn long_work_leaves_a_tenth_to_others() {
        assert_eq!(Pace::new(100).earliest(1000, 10_000), 11_000);
    }

    #[test]
    fn the_distance_follows_the_shortest_delay() {
        let link = |delay| -> LinkConfig {
            let json =
                format!(r#"{{"name": "a", "rate": {{"constant": 1e6}}, "delay": {delay}, "limit": "infinite"}}"#);
            serde_json::from_str(&json).unwrap()
        };
        let links = [link(r#"{"constant": 4000000}"#), link(r#"{"schedule": [[0, 9000000], [5, 800000]]}"#)];
        let route = |path: &[usize], extra_delay_ns| Route { path: path.to_vec(), extra_delay_ns, ..Route::default() };
        assert_eq!(distance(&links, &[route(&[0], 0)]), 133_333);
        assert_eq!(distance(&links, &[route(&[0], 0), route(&[0, 1], 0)]), 133_333);
        assert_eq!(distance(&links, &[route(&[0], 400_000), route(&[1], 2_200_000)]), 100_000);
        assert_eq!(distance(&links, &[route(&[1], 0)]), SHORTEST);
        assert_eq!(distance(&links, &[route(&[0], 1 << 40)]), LONGEST);
    }
}
