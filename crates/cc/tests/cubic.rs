//! CUBIC against hand-worked numbers.

use astraea_cc::{Ack, Congestion, Controller, Cubic, CubicConfig, MSS, Nanos, Rtt, SECOND, Signal};

const RTT: Nanos = SECOND / 10;

fn rtt() -> Rtt {
    let mut rtt = Rtt::default();
    rtt.update(RTT);
    rtt
}

fn ack(now: Nanos, packets: f64) -> Ack {
    Ack {
        now,
        acked: (packets * f64::from(MSS)) as u64,
        sent_at: now - RTT,
        rtt: Some(RTT),
        cwnd_limited: true,
        ..Ack::default()
    }
}

fn congestion(now: Nanos, packets: u64, signal: Signal) -> Congestion {
    Congestion { now, signal, flight_size: packets * u64::from(MSS), sent_at: now - RTT }
}

/// In slow start with a window of `packets`, at least ten of them.
fn at(packets: f64, config: CubicConfig) -> Cubic {
    let mut cubic = Cubic::new(CubicConfig { hystart: false, ..config }, MSS);
    cubic.on_ack(&ack(SECOND, packets - 10.0), &rtt());
    cubic
}

fn packets(cubic: &Cubic) -> f64 {
    cubic.cwnd() as f64 / f64::from(MSS)
}

#[test]
fn an_acknowledgement_moves_the_window_towards_the_cubic_one_round_trip_ahead() {
    let mut cubic = at(100.0, CubicConfig::RFC_9438);
    cubic.on_congestion(&congestion(SECOND, 100, Signal::Loss));
    assert_eq!((packets(&cubic), cubic.ssthresh(), cubic.w_max()), (70.0, 70.0, Some(100.0)));
    cubic.on_ack(&ack(2 * SECOND, 0.0), &rtt());
    // K = cbrt(30 / 0.4) = 4.217 s; 0.1 s later the target is W(0.2) = 100 - 0.4 * 4.017^3 = 74.07, of which a
    // tenth of a round trip brings a tenth: 70.41.
    cubic.on_ack(&ack(2 * SECOND + RTT, 7.0), &rtt());
    let cwnd = packets(&cubic);
    assert!((cwnd - 70.407).abs() < 0.001, "{cwnd}");
}

#[test]
fn a_short_round_trip_follows_reno() {
    let mut short = Rtt::default();
    short.update(SECOND / 100);
    let mut cubic = at(100.0, CubicConfig::RFC_9438);
    cubic.on_congestion(&congestion(SECOND, 100, Signal::Loss));
    cubic.on_ack(&ack(2 * SECOND, 0.0), &short);
    // W(0.01) = 70.21 is below 70 + 0.5294, so a window acknowledged in 10 ms brings alpha = 0.9 / 1.7.
    cubic.on_ack(&ack(2 * SECOND + SECOND / 100, 70.0), &short);
    let cwnd = packets(&cubic);
    assert!((cwnd - 70.529).abs() < 0.001, "{cwnd}");
}

#[test]
fn growth_is_at_most_half_a_window_per_round_trip() {
    let mut cubic = at(100.0, CubicConfig::RFC_9438);
    cubic.on_congestion(&congestion(SECOND, 100, Signal::Loss));
    cubic.on_ack(&ack(2 * SECOND, 0.0), &rtt());
    // 20 s later the cubic is far above: 100 + 0.4 * 15.9^3 = 1700. A whole window acknowledged adds a half.
    cubic.on_ack(&ack(22 * SECOND, 70.0), &rtt());
    let cwnd = packets(&cubic);
    assert!((cwnd - 105.0).abs() < 0.1, "{cwnd}");
}

#[test]
fn fast_convergence_gives_up_more_of_a_shrinking_path() {
    for (fast_convergence, expected) in [(true, 70.0 * 0.85), (false, 70.0)] {
        let mut cubic = at(100.0, CubicConfig { fast_convergence, ..CubicConfig::RFC_9438 });
        cubic.on_congestion(&congestion(SECOND, 100, Signal::Loss));
        cubic.on_congestion(&congestion(2 * SECOND, 70, Signal::Loss));
        assert_eq!(cubic.w_max(), Some(expected));
        assert!((packets(&cubic) - 49.0).abs() < 0.001);
    }
}

#[test]
fn a_timeout_restarts_from_one_segment_and_forgets_w_max() {
    let mut cubic = at(100.0, CubicConfig::RFC_9438);
    cubic.on_timeout(SECOND, 100 * u64::from(MSS));
    assert_eq!((packets(&cubic), cubic.ssthresh(), cubic.w_max()), (1.0, 70.0, None));
    // The same data times out again: the threshold stays.
    cubic.on_timeout(3 * SECOND, u64::from(MSS));
    assert_eq!(cubic.ssthresh(), 70.0);
    // Slow start to the threshold, then the cubic starts flat from there.
    cubic.on_ack(&Ack { in_recovery: true, ..ack(4 * SECOND, 69.0) }, &rtt());
    assert_eq!(packets(&cubic), 70.0);
    cubic.on_ack(&ack(5 * SECOND, 1.0), &rtt());
    assert_eq!(cubic.w_max(), Some(70.0));
    assert!((packets(&cubic) - 70.0).abs() < 0.01);
}

#[test]
fn a_spurious_loss_is_undone_unless_the_window_is_back_already() {
    let mut cubic = at(100.0, CubicConfig::RFC_9438);
    cubic.on_congestion(&congestion(SECOND, 100, Signal::Loss));
    cubic.on_spurious_congestion(2 * SECOND);
    assert_eq!((packets(&cubic), cubic.ssthresh(), cubic.w_max()), (100.0, f64::INFINITY, None));
    // Nothing is left to undo.
    cubic.on_spurious_congestion(2 * SECOND);
    assert_eq!(packets(&cubic), 100.0);

    cubic.on_congestion(&congestion(2 * SECOND, 100, Signal::Loss));
    for second in 3..30 {
        cubic.on_ack(&ack(second * SECOND, 50.0), &rtt());
    }
    let grown = packets(&cubic);
    assert!(grown > 100.0);
    cubic.on_spurious_congestion(31 * SECOND);
    assert_eq!((packets(&cubic), cubic.ssthresh()), (grown, 70.0));
}

#[test]
fn in_linux_an_undone_loss_leaves_a_cubic_that_is_flat_at_the_window() {
    for linux in [false, true] {
        let mut cubic = at(1000.0, CubicConfig { linux, ..CubicConfig::RFC_9438 });
        cubic.on_congestion(&congestion(SECOND, 1000, Signal::Loss));
        // From 700 back to the plateau at 1000 in cbrt(300 / 0.4) = 9.09 s, and up from there: 1000 + 0.4 * 6.01^3 = 1087.
        for tenth in 0..=150 {
            let window = packets(&cubic);
            cubic.on_ack(&ack(2 * SECOND + tenth * RTT, window), &rtt());
        }
        let before = packets(&cubic);
        assert!((before - 1085.0).abs() < 5.0, "{before}");
        cubic.on_congestion(&congestion(17 * SECOND, 1085, Signal::Loss));
        cubic.on_spurious_congestion(17 * SECOND);
        assert!((packets(&cubic) - before).abs() < 0.01, "{} is not {before}", packets(&cubic));
        // A round trip: 0.4 * (6.11^3 - 6.01^3) = 4.4 on the old curve, and less than Reno's segment at a plateau.
        cubic.on_ack(&ack(17 * SECOND, 0.0), &rtt());
        cubic.on_ack(&ack(17 * SECOND + RTT, before), &rtt());
        let grown = packets(&cubic) - before;
        assert!(if linux { grown < 1.0 } else { grown > 4.0 }, "{grown}");
    }
}

#[test]
fn in_linux_an_undone_timeout_leaves_no_plateau() {
    let mut cubic = at(100.0, CubicConfig::LINUX);
    cubic.on_congestion(&congestion(SECOND, 100, Signal::Loss));
    cubic.on_timeout(2 * SECOND, 70 * u64::from(MSS));
    cubic.on_spurious_congestion(2 * SECOND);
    assert_eq!((packets(&cubic), cubic.ssthresh(), cubic.w_max()), (70.0, 70.0, None));
}

#[test]
fn marks_reduce_the_window_to_one_segment_in_linux_to_two_and_are_not_undone() {
    for (linux, least) in [(false, 1.0), (true, 2.0)] {
        let mut cubic = at(10.0, CubicConfig { linux, ..CubicConfig::RFC_9438 });
        for flight in [10, 7, 5, 3, 2, 1, 1] {
            cubic.on_congestion(&congestion(SECOND, flight, Signal::Ecn));
        }
        assert_eq!((packets(&cubic), cubic.ssthresh()), (least, 2.0));
        cubic.on_spurious_congestion(SECOND);
        assert_eq!(packets(&cubic), least);
    }
}

/// After a loss at 100: the window at `t` seconds on the cubic, when the sender used none of its window during
/// `pause` seconds before.
fn after_pause(linux: bool, pause: impl Fn(&mut Cubic)) -> f64 {
    let mut cubic = at(100.0, CubicConfig { linux, ..CubicConfig::RFC_9438 });
    cubic.on_congestion(&congestion(SECOND, 100, Signal::Loss));
    cubic.on_ack(&ack(2 * SECOND, 1.0), &rtt());
    pause(&mut cubic);
    cubic.on_ack(&ack(8 * SECOND, 30.0), &rtt());
    packets(&cubic)
}

/// The application sends less than the window.
fn limited(cubic: &mut Cubic) {
    for tenth in 21..80 {
        cubic.on_ack(&Ack { cwnd_limited: false, ..ack(tenth * RTT, 5.0) }, &rtt());
    }
}

/// A packet at a time, each after the one before was acknowledged.
fn idle(cubic: &mut Cubic) {
    for step in 1..=59 {
        cubic.on_sent(2 * SECOND + step * RTT, 1000, 1000);
    }
}

/// All but 0.1 s of the six is taken out: target W(0.2) = 100 - 0.4 * 4.017^3 = 74.07, 30/70 of a round trip:
/// 70.03 + 4.04 * 30 / 70.03 = 71.76. Without the pause W(6.1) = 102.67 brings 70.03 + 32.64 * 0.428 = 84.01.
const PAUSED: f64 = 71.76;
const BUSY: f64 = 84.01;

#[test]
fn unused_time_does_not_count() {
    for (what, window, expected) in [
        ("busy", after_pause(false, |_| {}), BUSY),
        ("limited", after_pause(false, limited), PAUSED),
        ("idle", after_pause(false, idle), PAUSED),
    ] {
        assert!((window - expected).abs() < 0.05, "{what}: {window}");
    }
}

#[test]
fn in_linux_only_pauses_do_not_count_from_the_last_packet_on() {
    // The round trips of a window of one packet are time in which it is used, but not in Linux.
    let stop_and_wait = |cubic: &mut Cubic| {
        for tenth in 20..80 {
            cubic.on_sent(tenth * RTT, 1000, 1000);
            cubic.on_ack(&ack((tenth + 1) * RTT, 0.0), &rtt());
        }
    };
    for (what, window, expected) in [
        ("busy", after_pause(true, |_| {}), BUSY),
        ("limited", after_pause(true, limited), BUSY),
        ("idle", after_pause(true, idle), PAUSED),
        ("a packet at a time", after_pause(true, stop_and_wait), PAUSED),
        ("in the RFC", after_pause(false, stop_and_wait), BUSY),
    ] {
        assert!((window - expected).abs() < 0.05, "{what}: {window}");
    }
}

#[test]
fn a_long_idle_period_restarts_from_the_initial_window() {
    let mut cubic = at(100.0, CubicConfig::RFC_9438);
    cubic.on_idle_restart(3 * SECOND, SECOND / 4);
    assert_eq!(packets(&cubic), 100.0, "the timeout is srtt + 4 rttvar = 0.3 s");
    cubic.on_idle_restart(3 * SECOND, 2 * SECOND);
    assert_eq!(packets(&cubic), 10.0);
}

#[test]
fn in_linux_a_long_idle_period_halves_the_window_with_every_timeout() {
    // The timeout is 0.3 s.
    for (idle, window) in [(SECOND / 4, 100.0), (SECOND / 2, 50.0), (SECOND, 12.5), (2 * SECOND, 10.0)] {
        let mut cubic = at(100.0, CubicConfig::LINUX);
        cubic.on_idle_restart(3 * SECOND, idle);
        assert_eq!(packets(&cubic), window, "{idle}");
    }
    let mut cubic = blind(100);
    for step in 1..=12 {
        let window = packets(&cubic);
        cubic.on_ack(&ack(4 * SECOND + step * RTT, window), &rtt());
    }
    let (threshold, kept) = (cubic.ssthresh(), 0.75 * packets(&cubic));
    assert!(kept > threshold, "{kept} {threshold}");
    cubic.on_idle_restart(9 * SECOND, 2 * SECOND);
    assert!((cubic.ssthresh() - kept).abs() < 1.0, "{} is not {kept}", cubic.ssthresh());
}

#[test]
fn in_linux_only_a_loss_shows_how_large_the_window_may_be() {
    let mut cubic = blind(100);
    assert_eq!(cubic.w_max(), None);
    cubic.on_idle_restart(9 * SECOND, 2 * SECOND);
    let before = packets(&cubic);
    for step in 1..=2 {
        cubic.on_ack(&ack(9 * SECOND + step * RTT, before), &rtt());
    }
    assert_eq!(cubic.w_max(), None, "nor has a pause shown it");
    cubic.on_congestion(&congestion(10 * SECOND, 100, Signal::Loss));
    assert!(cubic.w_max().is_some());
}

#[test]
fn nothing_grows_in_recovery_or_while_a_loss_is_suspected() {
    let mut cubic = at(100.0, CubicConfig::RFC_9438);
    cubic.on_ack(&Ack { hole_open: true, ..ack(SECOND, 50.0) }, &rtt());
    assert_eq!(packets(&cubic), 100.0);
    cubic.on_congestion(&congestion(SECOND, 100, Signal::Loss));
    cubic.on_ack(&Ack { in_recovery: true, ..ack(2 * SECOND, 50.0) }, &rtt());
    assert_eq!(packets(&cubic), 70.0);
}

/// The window of Linux's CUBIC: in congestion avoidance at `packets` before any loss, after a round trip.
fn blind(packets: u64) -> Cubic {
    let mut cubic = Cubic::new(CubicConfig::LINUX, MSS);
    let round = |cubic: &mut Cubic, now: Nanos, sent_at: Nanos, count: u64, rtt_ns: Nanos| {
        for index in 0..count {
            let now = now + index;
            cubic.on_ack(&Ack { now, sent_at, rtt: Some(rtt_ns), ..ack(SECOND, 1.0) }, &rtt());
        }
    };
    // The first samples set the base; the rise of the second round's ends slow start with its ninth.
    round(&mut cubic, SECOND, SECOND - RTT, packets - 10 - 9, RTT);
    round(&mut cubic, 2 * SECOND, 2 * SECOND - RTT, 9, RTT + SECOND / 50);
    cubic
}

/// Ten packets fill the window, two more leave with the first acknowledgement, and then the application pauses.
#[test]
fn in_linux_a_message_longer_than_the_window_opens_it() {
    let packet = u64::from(MSS);
    for (linux, expected) in [(false, 11.0), (true, 22.0)] {
        let mut cubic = Cubic::new(CubicConfig { linux, ..CubicConfig::RFC_9438 }, MSS);
        for left in (0..12).rev() {
            let cwnd_limited = left == 11;
            let in_flight = if cwnd_limited { 9 } else { left } * packet;
            cubic.on_ack(&Ack { in_flight, cwnd_limited, ..ack(SECOND, 1.0) }, &rtt());
        }
        assert_eq!(packets(&cubic), expected, "{linux}");
        // Five packets of the next flight do not.
        for left in (0..5).rev() {
            let in_flight = left * packet;
            let ack = Ack { sent_at: 2 * SECOND, in_flight, cwnd_limited: false, ..ack(2 * SECOND + RTT, 1.0) };
            cubic.on_ack(&ack, &rtt());
        }
        assert_eq!(packets(&cubic), expected, "{linux}");
    }
}

#[test]
fn linux_grows_by_a_twentieth_a_round_trip_before_the_first_loss() {
    let mut cubic = blind(200);
    assert_eq!((cubic.ssthresh().floor(), packets(&cubic).floor()), (199.0, 199.0));
    let before = packets(&cubic);
    cubic.on_ack(&Ack { now: 2 * SECOND + RTT, ..ack(3 * SECOND, before) }, &rtt());
    assert!((packets(&cubic) / before - 1.05).abs() < 0.001, "{} after {before}", packets(&cubic));
    // Once a loss has shown where the cubic is flat, the first round trip brings alpha = 0.9 / 1.7 as with the RFC.
    cubic.on_congestion(&congestion(3 * SECOND, 200, Signal::Loss));
    let reduced = packets(&cubic);
    cubic.on_ack(&ack(4 * SECOND, 0.0), &rtt());
    cubic.on_ack(&ack(4 * SECOND + SECOND / 1000, reduced), &rtt());
    assert!(packets(&cubic) - reduced < 5.0, "{} after {reduced}", packets(&cubic));
}

#[test]
fn linux_reduces_the_window_whatever_is_in_flight() {
    for (linux, expected) in [(false, 35.0), (true, 70.0)] {
        let mut cubic = at(100.0, CubicConfig { linux, ..CubicConfig::RFC_9438 });
        cubic.on_congestion(&congestion(SECOND, 50, Signal::Loss));
        assert_eq!(packets(&cubic), expected);
    }
}

#[test]
fn linux_looks_the_smallest_round_trip_ahead() {
    let mut inflated = rtt();
    for _ in 0..100 {
        inflated.update(4 * RTT);
    }
    let mut cubic = at(100.0, CubicConfig::LINUX);
    cubic.on_congestion(&congestion(SECOND, 100, Signal::Loss));
    cubic.on_ack(&ack(2 * SECOND, 0.0), &inflated);
    // As in the first test, although the smoothed round-trip time is now 0.4 s.
    cubic.on_ack(&ack(2 * SECOND + RTT, 7.0), &inflated);
    assert!((packets(&cubic) - 70.407).abs() < 0.001, "{}", packets(&cubic));
}
