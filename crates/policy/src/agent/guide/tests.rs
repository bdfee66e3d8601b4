use super::super::rules::{DrainRules, LeapRules};
use super::super::testing::{MSS, close, ms, signals};
use super::*;

const BASE: f64 = 40.0;
const RATE: f64 = 2000.0;

/// A flow at 2000 packets/s on a path of 40 ms, in periods of 30 ms, which acknowledges from 0 on.
struct Flow {
    guide: Guide,
    now: Nanos,
    window: f64,
}

impl Flow {
    /// One without a clock.
    fn new() -> Self {
        let rules = Rules::default();
        Self::of(&Rules {
            drain: DrainRules { tick: Nanos::MAX, beat: Nanos::MAX, ..rules.drain },
            leap: LeapRules { every: Nanos::MAX, ..rules.leap },
            ..rules
        })
    }

    /// One that hears a clock, and does not leap.
    fn with_clock() -> Self {
        let rules = Rules::default();
        Self::of(&Rules { leap: LeapRules { every: Nanos::MAX, ..rules.leap }, ..rules })
    }

    fn of(rules: &Rules) -> Self {
        let mut guide = Guide::new(rules, MSS, 0);
        guide.on_sample(0, ms(BASE));
        Self { guide, now: 0, window: 100.0 }
    }

    /// A period with this smallest round-trip time in ms.
    fn period(&mut self, low: f64) -> Verdict {
        self.lossy_period(low, 0.0)
    }

    /// A period with this smallest round-trip time in ms and this share of packets lost.
    fn lossy_period(&mut self, low: f64, loss: f64) -> Verdict {
        self.now += ms(30.0);
        self.guide.on_sample(self.now, ms(low));
        let ended = Ended {
            now: self.now,
            length: ms(30.0),
            low: Some(ms(low)),
            srtt: ms(50.0),
            back: 0,
            window: self.window,
            used: true,
            acked: 60.0 * (1.0 - loss),
            lost: 60.0 * loss,
        };
        let queue = low - self.guide.base() as f64 / 1e6;
        let verdict = self.guide.end_period(&ended, &Signals { loss, ..signals(RATE, queue) });
        if let Verdict::Hold(window) = verdict {
            self.window = window;
        }
        verdict
    }

    /// Periods until one does not say "follow".
    #[track_caller]
    fn until_ruled(&mut self, low: f64) -> Verdict {
        let verdict = (0..1000).map(|_| self.period(low)).find(|verdict| *verdict != Verdict::Follow);
        verdict.expect("a rule")
    }

    fn periods(&mut self, count: usize, low: f64) -> Vec<Verdict> {
        (0..count).map(|_| self.period(low)).collect()
    }

    /// Until a period ends at this time in ms.
    fn until(&mut self, at: f64, low: f64) -> Vec<Verdict> {
        let count = (ms(at) - self.now).div_ceil(ms(30.0));
        self.periods(count as usize, low)
    }

    /// A flow that gives up 100 packets to 30 for a queue of 6 ms, which two drains do not empty.
    fn competing() -> Self {
        let mut flow = Self::new();
        for _ in 0..130 {
            assert_eq!(flow.period(BASE + 6.0), Verdict::Follow);
            flow.window = (0.99 * flow.window).max(30.0);
        }
        let Verdict::Hold(_) = flow.until_ruled(BASE + 6.0) else { panic!("a drain") };
        let mut drains = 1;
        let mut last = flow.guide.last_drain;
        while !flow.guide.is_competing() {
            if flow.period(BASE + 6.0) == Verdict::Follow {
                flow.window = (0.97 * flow.window).max(30.0);
            }
            drains += u32::from(flow.guide.last_drain != last);
            last = flow.guide.last_drain;
        }
        assert_eq!(drains, 2);
        flow
    }
}

#[test]
fn a_rise_of_the_queue_is_drained() {
    let mut flow = Flow::new();
    assert_eq!(flow.periods(60, BASE + 1.0), [Verdict::Follow; 60]);
    // .15 of 40 ms is 6 ms.
    assert_eq!(flow.period(BASE + 6.9), Verdict::Follow);
    let Verdict::Hold(hold) = flow.period(BASE + 15.0) else { panic!("a drain") };
    close(hold, 0.98 * (80.0 - 0.00375 * RATE));
    assert_eq!(flow.periods(2, BASE), [Verdict::Leave; 2], "a round trip of 50 ms and a period");
    for _ in 0..2 {
        let Verdict::Hold(back) = flow.period(BASE) else { panic!("back to the product and the wanted backlog") };
        close(back, 80.0 + 10.0 * (RATE / 2777.0).powf(0.375));
    }
    assert_eq!(flow.period(BASE), Verdict::Follow);
    // Not again at once.
    assert_eq!(flow.periods(30, BASE + 30.0)[..10], [Verdict::Follow; 10]);
}

#[test]
fn the_first_rises_are_left_alone() {
    let mut flow = Flow::new();
    assert_eq!(flow.periods(40, BASE + 1.0), [Verdict::Follow; 40]);
    assert_eq!(flow.period(BASE + 20.0), Verdict::Follow, "1.5 s have not passed");
}

#[test]
fn a_base_that_is_not_seen_for_5_s_is_looked_for() {
    let mut flow = Flow::new();
    assert_eq!(flow.periods(166, BASE + 5.0), [Verdict::Follow; 166]);
    let Verdict::Hold(hold) = flow.period(BASE + 5.0) else { panic!("a drain") };
    close(hold, 0.98 * (80.0 - 0.00125 * RATE));
    flow.periods(6, BASE);
    assert_eq!(flow.guide.failures, 0);
    // Whoever sees it goes on: 41 ms is near enough (2 % and .2 ms).
    assert_eq!(flow.periods(400, BASE + 1.0), vec![Verdict::Follow; 400]);
}

#[test]
fn three_drains_that_fail_make_the_base_longer() {
    let mut flow = Flow::new();
    for failures in 1..=2 {
        let Verdict::Hold(_) = flow.until_ruled(BASE + 5.0) else { panic!("a drain") };
        flow.periods(12, BASE + 5.0);
        assert_eq!((flow.guide.failures, flow.guide.base()), (failures, ms(BASE)));
    }
    let Verdict::Hold(_) = flow.until_ruled(BASE + 5.0) else { panic!("a drain") };
    flow.periods(12, BASE + 5.0);
    assert_eq!((flow.guide.failures, flow.guide.base()), (0, ms(BASE + 5.0)));
}

#[test]
fn a_rise_that_cannot_be_drained_is_a_longer_path() {
    let mut flow = Flow::new();
    flow.periods(60, BASE);
    let Verdict::Hold(_) = flow.period(BASE + 20.0) else { panic!("a drain") };
    let verdicts = flow.periods(10, BASE + 20.0);
    assert!(verdicts.contains(&Verdict::Hold(100.0)), "the window before: {verdicts:?}");
    assert_eq!(flow.guide.base(), ms(BASE + 20.0));
    // A shorter path is believed at once.
    flow.period(BASE - 10.0);
    assert_eq!(flow.guide.base(), ms(BASE - 10.0));
}

#[test]
fn losses_without_a_queue_cast_doubt_on_the_base() {
    let mut flow = Flow::new();
    // The first 1.5 s are left alone.
    assert_eq!(flow.periods(50, BASE), [Verdict::Follow; 50]);
    let mut between = Vec::new();
    let mut count = 0;
    while between.len() < 3 {
        count += 1;
        if flow.lossy_period(BASE, 0.01) != Verdict::Follow {
            close(flow.window, 50.0);
            between.push(count);
            flow.periods(5, BASE);
            close(flow.window, 100.0);
            count = 0;
        }
    }
    assert_eq!(between, [34, 67, 134], "periods of 30 ms in 1, 2 and 4 s of doubt");
    flow.periods(20, BASE);
    while flow.lossy_period(BASE, 0.01) == Verdict::Follow {}
    flow.periods(4, BASE - 5.0);
    assert_eq!(flow.guide.base(), ms(BASE - 5.0), "it was a full buffer");
    flow.periods(60, BASE - 5.0);
    let again = (0..100).take_while(|_| flow.lossy_period(BASE - 5.0, 0.01) == Verdict::Follow).count();
    assert_eq!(again, 33);
}

#[test]
fn giving_way_in_vain_begins_a_competition() {
    let flow = Flow::competing();
    close(flow.window, 0.6 * 100.0);
    assert_eq!(flow.guide.base(), ms(BASE), "it was no longer path");
}

#[test]
fn a_test_that_finds_nobody_ends_a_competition() {
    let mut flow = Flow::competing();
    let began = flow.now;
    let verdict = (0..100).map(|_| flow.period(BASE + 6.0)).find(|verdict| *verdict != Verdict::Leave);
    assert!(matches!(verdict, Some(Verdict::Hold(_))) && !flow.guide.is_competing());
    assert_eq!(flow.now - began, ms(720.0), "the first period that ends after more than .7 s");
    let verdicts = flow.periods(14, BASE);
    assert_eq!(verdicts[13], Verdict::Follow, "{verdicts:?}");
    assert!(!flow.guide.is_competing());
}

#[test]
fn a_test_that_finds_a_queue_goes_on_with_it() {
    let mut flow = Flow::competing();
    while flow.guide.is_competing() {
        flow.period(BASE + 6.0);
    }
    let verdicts = flow.periods(14, BASE + 6.0);
    assert!(flow.guide.is_competing() && verdicts[13] == Verdict::Leave, "{verdicts:?}");
    let Mode::Compete(compete) = &flow.guide.mode else { panic!("competing") };
    assert!(compete.confirmed);
    close(compete.window(), 60.0);
}

#[test]
fn who_has_not_seen_the_base_drains_when_the_clock_strikes() {
    let mut flow = Flow::with_clock();
    flow.until(3_900.0, BASE);
    assert!(flow.until(4_980.0, BASE + 2.0).iter().all(|verdict| *verdict == Verdict::Follow));
    let Verdict::Hold(hold) = flow.period(BASE + 2.0) else { panic!("a drain") };
    close(hold, 1.02 * (80.0 - 0.0005 * RATE));
    flow.until(9_700.0, BASE);
    assert!(flow.until(10_200.0, BASE + 2.0).iter().all(|verdict| *verdict == Verdict::Follow), "just seen");
}

/// A flow that drains at 5 s, and what happens then if its smallest round-trip times are so many ms above its base of 40.
fn ticked(low: f64) -> (Flow, Vec<Verdict>) {
    let mut flow = Flow::with_clock();
    flow.until(3_900.0, BASE);
    flow.until(4_980.0, BASE + 2.0);
    let Verdict::Hold(_) = flow.period(BASE + 5.0) else { panic!("a drain") };
    let verdicts = flow.periods(12, BASE + low);
    (flow, verdicts)
}

#[test]
fn a_tick_that_shows_nothing_leaves_nothing_behind() {
    let (flow, verdicts) = ticked(4.0);
    assert!(verdicts[8..].iter().all(|verdict| *verdict == Verdict::Follow), "{verdicts:?}");
    let Guide { base, last_drain, failures, average, .. } = flow.guide;
    assert_eq!((base, last_drain, failures), (ms(BASE), 0, 0));
    assert!(average > 0.001, "not begun anew");
}

#[test]
fn a_tick_that_changes_nothing_shows_a_longer_path() {
    let (flow, verdicts) = ticked(5.0);
    assert!(verdicts.contains(&Verdict::Hold(100.0)), "{verdicts:?}");
    assert_eq!(flow.guide.base, ms(BASE + 5.0));
}

/// A flow whose queue rises from 1 ms to this delay (ms) after a second, before the half second and before drains rest.
fn risen(delay: f64) -> Flow {
    let mut flow = Flow::with_clock();
    flow.until(1_010.0, BASE + 1.0);
    flow.until(1_470.0, BASE + delay);
    flow
}

#[test]
fn all_who_have_seen_the_queue_rise_drain_at_the_next_half_second() {
    // At 2000 packets/s 4.4 ms are wanted: 8 ms are no pressure, and a rise of 7 is more than .15 of 40.
    let mut flow = risen(8.0);
    assert!(flow.guide.risen && matches!(flow.guide.mode, Mode::Follow));
    let Verdict::Hold(hold) = flow.period(BASE + 8.0) else { panic!("a drain") };
    close(hold, 1.02 * (80.0 - 0.002 * RATE));
    assert!(!flow.guide.risen);
    // 6 ms are none: .15 of 40 over the average.
    let mut flow = risen(6.5);
    assert!(!flow.guide.risen && flow.period(BASE + 6.5) == Verdict::Follow);
}

#[test]
fn the_queue_that_comes_back_after_a_drain_is_no_rise() {
    let again = |wait: usize| {
        let mut flow = risen(8.0);
        flow.period(BASE + 8.0);
        flow.periods(5, BASE);
        assert!(matches!(flow.guide.mode, Mode::Follow) && flow.guide.drained == flow.now);
        flow.periods(wait, BASE + 0.1);
        flow.period(BASE + 8.0);
        flow.guide.risen
    };
    // .1 s and two round trips of 50 ms.
    assert!(!again(5) && again(6));
}

#[test]
fn where_a_neighbour_is_suspected_a_rise_is_not_drained_together() {
    // More than twice 4.4 ms.
    let mut flow = risen(9.0);
    assert!(flow.guide.risen && flow.period(BASE + 9.0) == Verdict::Follow);
}

#[test]
fn a_flow_leaps_at_full_seconds() {
    let rules = Rules::default();
    let leapt_within = |youth: Nanos, queue: f64, window: f64, until: f64| {
        let mut flow = Flow::of(&Rules { leap: LeapRules { youth, ..rules.leap }, ..rules });
        flow.window = window;
        flow.until(until, BASE + queue);
        flow.window / window
    };
    let leapt = |queue, window, until| leapt_within(0, queue, window, until);
    // 4 ms are what the law wants at 2348 packets/s: of 103 packets. Half of what is beyond .3, and at most .2 up.
    let fair = rules.resting_window(0.040, 0.004);
    close(leapt(4.0, 3.0 * fair, 2_010.0), (-0.5 * (3.0_f64.ln() - 0.3)).exp());
    close(leapt(4.0, fair / 1.5, 2_010.0), (0.5 * (1.5_f64.ln() - 0.3)).exp());
    close(leapt(4.0, fair / 9.0, 2_010.0), 0.2_f64.exp());
    close(leapt(4.0, 1.3 * fair, 2_010.0), 1.0);
    close(leapt(4.0, 3.0 * fair, 990.0), 1.0);
    assert_eq!(leapt(9.0, 3.0 * fair, 2_010.0), 1.0, "more than twice the wanted delay: a neighbour's, perhaps");
    // Just after slow start the second before is enough, and three quarters of the way are leapt over.
    close(leapt_within(ms(1_100.0), 4.0, 3.0 * fair, 1_010.0), (-0.75 * (3.0_f64.ln() - 0.3)).exp());
    close(leapt_within(ms(1_100.0), 4.0, fair / 9.0, 1_010.0), 0.7_f64.exp());
}

#[test]
fn a_competing_flow_tests_when_the_clock_strikes() {
    let mut flow = Flow::competing();
    flow.guide.rules.drain.tick = ms(100.0);
    assert_eq!(flow.periods(3, BASE + 6.0), [Verdict::Leave; 3]);
    assert!(matches!(flow.period(BASE + 6.0), Verdict::Hold(_)));
}

#[test]
fn a_timeout_ends_everything() {
    let mut flow = Flow::competing();
    flow.guide.restart();
    assert!(!flow.guide.is_competing());
    assert_eq!(flow.guide.on_loss(1), None);
}

/// A flow that found 50 ms on a path of 40, left slow start at 10 s, and sees the queue rise: it drains.
fn newcomer() -> Flow {
    newcomer_that_found(50.0, 9.0)
}

/// The same for another round-trip time, and another rise (both ms).
fn newcomer_that_found(rtt: f64, rise: f64) -> Flow {
    let mut flow = Flow::new();
    flow.now = ms(10_000.0);
    flow.guide.base = ms(rtt);
    flow.guide.arrives(Some(ms(rtt)), 0, 10.0);
    assert_eq!(flow.period(rtt), Verdict::Follow);
    let Verdict::Hold(_) = flow.period(rtt + rise) else { panic!("a drain") };
    flow
}

/// What a flow's drain leads to when it shows the base: the last window that is held.
fn fitted(mut flow: Flow) -> f64 {
    let held = |verdict| if let Verdict::Hold(window) = verdict { Some(window) } else { None };
    (0..6).filter_map(|_| held(flow.period(BASE))).last().expect("a window")
}

#[test]
fn a_newcomer_beside_few_takes_what_they_had() {
    // What the drain goes back to: the product at a base of 43 ms, and the wanted backlog.
    let back = 2000.0 * 0.043 + Rules::default().wanted(2000.0);
    // 3 ms are what the law wants at 3719 packets/s; at 2000, the flow's own rate, it wants 4.4 ms.
    close(
        fitted(newcomer_that_found(43.0, 9.0)),
        Rules::REFERENCE * (10.0 / (0.003 * Rules::REFERENCE)).powf(1.6) * 0.043,
    );
    close(fitted(newcomer_that_found(43.0, 13.5)), back); // 13.5 ms are more than 3 x 4.4: flows are many
    // 1 ms is what it wants at 21 568 packets/s: three times the window are enough.
    close(fitted(newcomer_that_found(41.0, 9.0)), 3.0 * (back - 2000.0 * 0.002));
}

#[test]
fn a_newcomer_with_a_small_window_is_not_raised() {
    let after = |window| {
        let mut flow = newcomer_that_found(43.0, 9.0);
        flow.periods(4, BASE);
        flow.window = window;
        (0..6).map(|_| flow.period(BASE)).find(|verdict| *verdict != Verdict::Follow)
    };
    assert_eq!(after(40.0), None, "what it found may be its own queue");
    assert_eq!(after(41.0), Some(Verdict::Hold(123.0)));
}

#[test]
fn a_newcomer_is_not_raised_for_a_single_short_round_trip() {
    let after = |held: f64, others: f64| {
        let mut flow = newcomer_that_found(43.0, 9.0);
        let lows = [BASE + 9.0, held, others, BASE, others, others];
        lows.map(|low| flow.period(low)).into_iter().any(|verdict| matches!(verdict, Verdict::Hold(w) if w > 100.0))
    };
    // A quarter of a queue of 9 ms.
    assert!(after(BASE + 9.0, BASE + 2.2));
    assert!(!after(BASE + 9.0, BASE + 2.3));
    assert!(after(BASE, BASE + 2.3), "the others' drain began before");
}

#[test]
fn a_newcomer_s_first_drain_leaves_it_what_the_others_had() {
    let mut flow = newcomer();
    let fitted =
        (0..10).map(|_| flow.period(BASE)).find(|verdict| matches!(verdict, Verdict::Hold(window) if *window < 30.0));
    let Some(Verdict::Hold(window)) = fitted else { panic!("27 packets") };
    close(window, others());
}

/// What the others had whose queue of 10 ms a newcomer found: what the law wants at 542 packets/s.
fn others() -> f64 {
    Rules::REFERENCE * (10.0 / (0.01 * Rules::REFERENCE)).powf(1.6) * 0.05
}

#[test]
fn a_newcomer_goes_by_the_others_drains() {
    let after = |seconds: f64, low: f64| {
        let mut flow = Flow::new();
        flow.guide.base = ms(50.0);
        flow.guide.arrives(Some(ms(50.0)), 0, 10.0);
        flow.until(1000.0 * seconds, 50.0);
        flow.period(low)
    };
    let Verdict::Hold(window) = after(2.0, BASE) else { panic!("less") };
    assert!((window / others() - 1.0).abs() < 0.03, "{window}: the others' drain is among what it met");
    assert_eq!(after(2.0, 49.6), Verdict::Follow, ".4 ms are noise");
    assert_eq!(after(3.0, BASE), Verdict::Follow, "it is no newcomer any more");
}

#[test]
fn slow_start_ends_when_the_others_drain() {
    let after = |window: f64, low: f64| {
        let mut flow = Flow::new();
        flow.guide.base = ms(50.0);
        assert_eq!(flow.guide.arrives(Some(ms(50.0)), 0, 10.0), None);
        flow.guide.on_sample(0, ms(low));
        flow.guide.arrives(Some(ms(low)), 0, window)
    };
    close(after(100.0, BASE).expect("less"), others());
    assert_eq!(after(20.0, BASE), None, "they have more");
    assert_eq!(after(100.0, 49.6), None, ".4 ms are noise");
}

#[test]
fn a_newcomer_keeps_a_tenth_of_its_window_at_least() {
    let mut flow = newcomer();
    flow.periods(4, BASE);
    flow.window = 1000.0;
    let fitted = (0..6).map(|_| flow.period(BASE)).find(|verdict| *verdict != Verdict::Follow);
    assert_eq!(fitted, Some(Verdict::Hold(100.0)));
}

#[test]
fn a_drain_that_shows_nothing_new_leaves_a_newcomer_alone() {
    let mut flow = newcomer();
    let held: Vec<_> = (0..10).map(|_| flow.period(50.0)).collect();
    assert_eq!(flow.guide.base(), ms(50.0));
    assert!(held.iter().all(|verdict| !matches!(verdict, Verdict::Hold(window) if *window < 50.0)), "{held:?}");
}

#[test]
fn after_a_timeout_a_newcomer_knows_nothing_of_the_time_before() {
    let mut flow = newcomer();
    let share = |flow: &Flow| flow.guide.newcomer.share(&flow.guide.rules, ms(BASE), 0);
    assert!(share(&flow).is_some());
    flow.guide.restart();
    flow.period(50.0);
    assert_eq!(share(&flow), None);
}

#[test]
fn a_queue_shorter_than_a_fiftieth_of_the_base_is_not_taken_for_it() {
    // At 2000 packets/s the law wants 4.4 ms: a round trip may be 1.31 ms longer than the base and show it. A fiftieth of
    // 100 ms and .2 are 2.2.
    let unseen = |low: f64| {
        let mut flow = Flow::new();
        flow.guide.base = ms(100.0);
        // The rate is known from the end of a period on.
        flow.period(100.0);
        flow.period(low);
        flow.guide.touched != flow.now
    };
    assert!(unseen(101.4) && !unseen(101.3));
}

#[test]
fn all_who_lose_packets_without_a_queue_hold_back_at_a_tick() {
    let mut flow = Flow::with_clock();
    flow.guide.failures = 2;
    let ruled = (0..1000).find_map(|_| match flow.lossy_period(BASE, 0.0028) {
        Verdict::Follow => None,
        verdict => Some(verdict),
    });
    assert_eq!(flow.now, ms(5010.0), "the first period that ends after 5 s");
    let Some(Verdict::Hold(hold)) = ruled else { panic!("a count: {ruled:?}") };
    close(hold, 100.0 * (1.0 - 0.0028) * 0.95);
    flow.guide.average = 0.5;
    // 400 ms of holding back and a round trip of 50 ms, of which the last 200 ms are counted. All is well, but for others.
    let held: Vec<Verdict> = (0..15).map(|_| flow.lossy_period(BASE, 0.0)).collect();
    assert_eq!(held[..13], [Verdict::Leave; 13]);
    assert_eq!((held[13], held[14]), (Verdict::Hold(100.0), Verdict::Follow));
    assert!(flow.guide.average > 0.1 && flow.guide.failures == 2, "no word about the queue: {:?}", flow.guide);
    // Then a loss in a hundred is too much.
    (0..200).for_each(|_| _ = flow.lossy_period(BASE, 0.01));
    assert!(flow.guide.law.excess > 0.1, "{}", flow.guide.law.excess);
}

#[test]
fn where_hurry_ended_is_forgotten_with_a_longer_path_and_at_a_new_start() {
    let rules = Rules::default();
    let forgets: [fn(&mut Guide); 3] = [|_| (), |guide| guide.believe(guide.touched, ms(60.0)), Guide::restart];
    let steps = forgets.map(|forget| {
        let mut flow = Flow::new();
        for _ in 0..10 {
            flow.period(BASE);
        }
        flow.lossy_period(BASE + 10.0, 0.01);
        forget(&mut flow.guide);
        flow.guide.law.hurry.end_period(&rules, 30.0, flow.window, true, false);
        flow.guide.law.hurry.step(&rules, 100.0)
    });
    assert!(steps[0] < Some(2.0 * rules.up), "{steps:?}");
    assert_eq!(steps[1..], [Some(rules.hurry); 2]);
}
