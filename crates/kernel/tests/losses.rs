//! Packets that real connections lose, and what is known of them: they are counted, once each, whoever finds them, and a timeout
//! that was spurious takes no window.

mod support;

use std::io::Write as _;

use serde_json::json;

use support::transfer::{ms, over, until};
use support::{Deaf, Flow, Own, cannot_run, connected, emulator, info, link};

#[test]
fn random_losses_are_counted_once() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = own.attach("astraea");
    let (rate, delay) = (json!({"constant": 4e7}), json!({"constant": 10_000_000}));
    let buffer = json!({"bytes": 150_000});
    let emulator = emulator(
        json!({"name": "link", "rate": rate, "delay": delay, "limit": buffer, "loss": {"bernoulli": 0.02}}),
        1,
    );
    over(&emulator, own.name(), 6_000_000, || {});
    until("the flow to go", || attached.flows().unwrap().is_empty());
    let counters = attached.counters().unwrap();
    let mut report = emulator.stop();
    let stats = report.link_stats(0);
    let dropped = stats.lost + stats.dropped;
    assert!(dropped > 20, "{stats:?}");
    // The first packet and the last one are the connection's, not the flow's.
    assert!(counters.lost.abs_diff(dropped) <= 3, "{counters:?}, {stats:?}");
    assert!(counters.acked.abs_diff(stats.served) <= 5, "{counters:?}, {stats:?}");
}

#[test]
fn losses_that_a_timeout_finds_are_counted_once() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = own.attach("astraea");
    let emulator = link(4e7, ms(10), 150_000, 1);
    let (mut sender, mut receiver) = connected(&emulator, own.name(), |_| ());
    let ears = receiver.try_clone().unwrap();
    let reader = std::thread::spawn(move || std::io::copy(&mut receiver, &mut std::io::sink()));
    let data = vec![1; 1 << 16];
    let silences = 3;
    for _ in 0..silences {
        until("a window", || {
            sender.write_all(&data).unwrap();
            info(&sender).tcpi_snd_cwnd > 40
        });
        let before = attached.counters().unwrap().timeouts;
        let deaf = Deaf::new(&ears).unwrap();
        sender.write_all(&data).unwrap();
        until("a timeout", || attached.counters().unwrap().timeouts > before);
        drop(deaf);
    }
    sender.write_all(&data).unwrap();
    until("the end", || info(&sender).tcpi_unacked == 0);
    let again = u64::from(info(&sender).tcpi_total_retrans);
    drop(sender);
    reader.join().unwrap().unwrap();
    until("the flow to go", || attached.flows().unwrap().is_empty());
    let counters = attached.counters().unwrap();
    assert!(counters.lost > 60, "{counters:?}");
    // Before each timeout a probe may be sent again that nobody counts.
    assert!((counters.lost..=counters.lost + 3 * silences).contains(&again), "{again} sent again, {counters:?}");
}

#[test]
fn a_spurious_timeout_takes_no_window() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = own.attach("astraea");
    // 33 packets fill the path. The timer waits for half a second after the last acknowledgement, and then twice as long.
    let pieces = json!([(0, 4e6), (2_000_000_000, 0.0), (2_800_000_000u64, 4e6)]);
    let rate = json!({"schedule": pieces, "repeat_ns": 4_000_000_000u64});
    let link = json!({"name": "link", "rate": rate, "delay": {"constant": 50_000_000}, "limit": {"bytes": 150_000}});
    let emulator = emulator(link, 1);
    let flow = Flow::start(&emulator, 0, own.name(), ms(0), ms(16_000));
    let counters = || attached.counters().unwrap();
    let window = || attached.flows().unwrap().iter().map(|flow| flow.view.window >> 20).max().unwrap_or(0);
    // The window at the end of the first period, in which one acknowledgement has come, and what was lost since the timeout.
    // Whoever looks too late, on a busy machine, and after the second timeout in a row, which gives nothing back, gets another
    // try; and where the window was small, of which a drain that begins just then leaves three tenths.
    let after = (0..4).find_map(|_| {
        until("a window", || window() > 20);
        let before = counters();
        let mut full = 0;
        until("a timeout", || {
            let now = window();
            let timed_out = counters().timeouts > before.timeouts;
            full = if timed_out { full } else { now };
            timed_out
        });
        let periods = counters().periods;
        let looks = (0..10_000).find(|_| {
            std::thread::sleep(ms(1));
            counters().periods > periods
        });
        assert!(looks.is_some(), "no acknowledgement after the outage");
        let (seen, now) = (window(), counters());
        let in_time = now.periods == periods + 1 && now.timeouts == before.timeouts + 1;
        (in_time && full > 34).then_some((seen, now.lost - before.lost))
    });
    let (window, lost) = after.expect("one of four outages to be looked at in time");
    assert!(window > 10, "{window} packets: slow start began with two, and one has arrived");
    assert_eq!(lost, 0, "nothing was");
    flow.finish().unwrap();
}
