use astraea_cc::{MILLISECOND, RateSample};

use super::testing::{MSS, ack, close, congestion, ms};
use super::*;

struct Flow {
    agent: Agent,
    rtt: Rtt,
    now: Nanos,
}

impl Flow {
    /// A flow that has sent its first packet.
    fn new(config: &AgentConfig, cap: f64) -> Self {
        let mut agent = Agent::new(*config, MSS, cap);
        agent.on_sent(0, u64::from(MSS), u64::from(MSS));
        Self { agent, rtt: Rtt::default(), now: 0 }
    }

    fn of(form: Form) -> Self {
        Self::new(&AgentConfig::new(form), 1e9)
    }

    /// One that has left slow start, after a round trip of 40 ms, with this window in bytes.
    fn under_way(form: Form, window: f64) -> Self {
        let mut flow = Self::of(form);
        flow.ack(40.0);
        flow.agent.startup.stop();
        flow.agent.set_window(window);
        flow
    }

    /// An acknowledgement of one packet after so many milliseconds.
    fn ack(&mut self, rtt: f64) {
        self.rtt.update(ms(rtt));
        self.agent.on_ack(&ack(self.now, 1, Some(ms(rtt))), &self.rtt);
    }

    fn lose(&mut self, packets: u64) {
        self.agent.on_loss(&Loss { now: self.now, lost: packets * u64::from(MSS), in_flight: 0 });
        self.agent.on_congestion(&congestion(Signal::Loss));
    }

    fn end_period(&mut self) -> bool {
        self.now += 30 * MILLISECOND;
        self.agent.end_period(self.now)
    }
}

#[test]
fn slow_start_ends_after_eight_late_acknowledgements() {
    let mut flow = Flow::of(Form::Paper);
    assert_eq!(flow.agent.pacing_rate(), None);
    flow.ack(40.0);
    assert_eq!(flow.agent.cwnd(), 11_000);
    // Twice 11 kB in 40 ms.
    assert_eq!(flow.agent.pacing_rate(), Some(4.4e6));
    for _ in 0..7 {
        flow.ack(45.0);
    }
    assert!(flow.agent.is_starting() && !flow.end_period(), "the policy is not asked");
    flow.ack(45.0);
    assert!(!flow.agent.is_starting() && flow.end_period());
    let window = flow.agent.window();
    assert_eq!(window, 19_000.0);
    flow.ack(45.0);
    assert_eq!(flow.agent.window(), window, "from now on only actions change the window");
}

#[test]
fn slow_start_with_a_backlog_state_leaves_no_queue() {
    for (form, kept) in [(Form::Pure, 1.0), (Form::Guided, 0.75)] {
        let mut flow = Flow::of(form);
        flow.ack(40.0);
        // Twice an eighth of 40 ms.
        for _ in 0..20 {
            flow.ack(49.0);
        }
        assert!(flow.agent.is_starting());
        for _ in 0..8 {
            flow.ack(60.0);
        }
        assert!(!flow.agent.is_starting());
        close(flow.agent.window(), kept * 39_000.0 * 40.0 / 60.0);
    }
}

#[test]
fn slow_start_ends_with_a_loss_or_at_the_cap() {
    let mut flow = Flow::of(Form::Paper);
    flow.lose(1);
    assert!(!flow.agent.is_starting());
    assert_eq!(flow.agent.window(), 5_000.0, "halved once");
    flow.lose(1);
    assert_eq!(flow.agent.window(), 5_000.0, "later losses are the policy's business");
    let mut flow = Flow::new(&AgentConfig::new(Form::Paper), 10_500.0);
    flow.ack(40.0);
    assert!(!flow.agent.is_starting());
    assert_eq!(flow.agent.window(), 10_500.0);
}

#[test]
fn a_few_losses_do_not_end_slow_start_with_a_backlog_state() {
    for form in [Form::Pure, Form::Guided] {
        let mut flow = Flow::of(form);
        flow.lose(1);
        assert!(flow.agent.is_starting());
        assert_eq!(flow.agent.window(), 10_000.0);
        flow.lose(3);
        assert!(!flow.agent.is_starting(), "four of four");
        assert_eq!(flow.agent.window(), 5_000.0);
    }
}

#[test]
fn slow_start_ends_with_a_mark() {
    for form in Form::ALL {
        let mut flow = Flow::of(form);
        flow.agent.on_congestion(&congestion(Signal::Ecn));
        assert!(!flow.agent.is_starting());
        assert_eq!(flow.agent.window(), 5_000.0);
        flow.agent.on_congestion(&congestion(Signal::Ecn));
        assert_eq!(flow.agent.window(), 5_000.0, "later marks are the policy's business");
    }
}

#[test]
fn actions_keep_fractions_and_respect_floor_and_cap() {
    let mut flow = Flow::of(Form::Paper);
    flow.ack(40.0);
    flow.agent.on_timeout(0, 0);
    assert_eq!(flow.agent.window(), 2_000.0);
    flow.agent.act(1.0);
    assert_eq!(flow.agent.window(), 2_050.0);
    assert_eq!(flow.agent.pacing_rate(), Some(2_050.0 * 8.0 / 0.04));
    flow.agent.act(-7.0);
    close(flow.agent.window(), 2_000.0); // an action is clipped to -1..=1
    flow.agent.act(-1.0);
    assert_eq!(flow.agent.window(), 2_000.0);
    let mut capped = Agent::new(AgentConfig::new(Form::Paper), MSS, 10_100.0);
    capped.act(1.0);
    assert_eq!(capped.window(), 10_100.0);
}

/// The relative change of the logarithm of the window by a full action.
fn full_action(form: Form, period: f64, rtt: f64) -> f64 {
    let mut flow = Flow::new(&AgentConfig { period: ms(period), ..AgentConfig::new(form) }, 1e9);
    flow.ack(rtt);
    let before = flow.agent.window();
    flow.agent.act(1.0);
    (flow.agent.window() / before).ln()
}

#[test]
fn an_action_is_scaled_by_the_period_and_by_the_round_trip() {
    close(full_action(Form::Pure, 30.0, 20.0), 0.1);
    close(full_action(Form::Pure, 30.0, 60.0), 0.1 / 2.0);
    close(full_action(Form::Pure, 60.0, 20.0), 0.1 * 2.0);
    close(full_action(Form::Pure, 15.0, 60.0), 0.1 / 4.0);
    // The law says 2.5 % where nothing is known of a queue.
    close(full_action(Form::Guided, 30.0, 20.0), 0.125);
    close(full_action(Form::Guided, 30.0, 60.0), 0.125 / 2.0);
}

/// Whether a window of twelve packets grows by an action after a period with so many of them in flight at most, at
/// acknowledgements that say whether the application had nothing to send.
fn grows(form: Form, in_flight: u64, app_limited: bool) -> bool {
    let mut flow = Flow::under_way(form, 12_000.0);
    // An acknowledgement tells what is left in flight.
    let rate = RateSample { app_limited, ..RateSample::default() };
    let told = Ack { rate, in_flight: (in_flight - 1) * u64::from(MSS), ..ack(flow.now, 1, Some(ms(40.0))) };
    flow.agent.on_ack(&told, &flow.rtt);
    assert!(flow.end_period());
    flow.agent.act(1.0);
    flow.agent.window() > 12_000.0
}

#[test]
fn a_window_that_the_application_leaves_unused_does_not_grow() {
    for form in [Form::Pure, Form::Guided] {
        // Nine and one that may have been lost are five sixths of twelve.
        assert!(grows(form, 9, true) && !grows(form, 8, true));
        assert!(grows(form, 2, false), "of a flow that was never limited less is in flight when a queue falls");
    }
    assert!(grows(Form::Paper, 2, true), "the papers' policy is left alone");
}

#[test]
fn slow_start_does_not_grow_an_unused_window_either() {
    // Twelve acknowledgements of one packet each, of which the first says that the application had nothing to send.
    let grown = |form: Form, in_flight: u64| {
        let mut flow = Flow::of(form);
        for index in 0..12 {
            let rate = RateSample { app_limited: index == 0, ..RateSample::default() };
            let told = Ack { rate, in_flight: (in_flight - 1) * u64::from(MSS), ..ack(flow.now, 1, Some(ms(40.0))) };
            flow.agent.on_ack(&told, &flow.rtt);
        }
        flow.agent.window() / 1000.0
    };
    // Eight in flight, and one that may have been lost, are five sixths of ten packets, and not of eleven.
    for form in [Form::Pure, Form::Guided] {
        assert_eq!([5, 7, 8, 17].map(|in_flight| grown(form, in_flight)), [10.0, 10.0, 11.0, 21.0]);
    }
}

#[test]
fn after_a_window_was_unused_growth_does_not_hurry() {
    let mut flow = Flow::under_way(Form::Guided, 50_000.0);
    let limited = RateSample { app_limited: true, ..RateSample::default() };
    for _ in 0..200 {
        // Long without a queue, and with ten packets in flight.
        let told = Ack { rate: limited, in_flight: 9_000, ..ack(flow.now, 1, Some(ms(40.0))) };
        flow.agent.on_ack(&told, &flow.rtt);
        if flow.end_period() {
            flow.agent.act(0.0);
        }
        assert!(flow.agent.window() <= 50_000.0);
    }
    let before = flow.agent.window();
    let used = Ack { in_flight: 60_000, ..ack(flow.now, 1, Some(ms(40.0))) };
    flow.agent.on_ack(&used, &flow.rtt);
    flow.end_period();
    flow.agent.act(0.0);
    let grown = (flow.agent.window() / before).ln();
    let rules = &flow.agent.config().rules;
    close(grown, 0.75 * (rules.up + rules.fair)); // the law's step for a path without a queue, not `rules.hurry`
}

#[test]
fn an_unused_window_shrinks() {
    let mut flow = Flow::of(Form::Pure);
    flow.ack(40.0);
    flow.agent.used = false;
    flow.agent.act(-1.0);
    close(flow.agent.window(), 11_000.0 * (-0.075_f64).exp());
}

#[test]
fn each_second_of_a_pause_halves_the_window() {
    let mut flow = Flow::under_way(Form::Guided, 100_000.0);
    let mut pause = |milliseconds: f64| {
        flow.now += ms(milliseconds);
        flow.agent.on_idle_restart(flow.now, ms(milliseconds));
        (flow.agent.window(), flow.agent.is_starting())
    };
    assert_eq!(pause(999.0), (100_000.0, false));
    assert_eq!(pause(2_999.0), (25_000.0, true), "and slow start finds out");
    assert_eq!(pause(1e6), (10_000.0, true), "no less than at the start");
    flow.agent.on_timeout(flow.now, 0);
    flow.agent.on_idle_restart(flow.now, ms(5_000.0));
    assert_eq!(flow.agent.window(), 2_000.0, "and no more than before");
}

#[test]
fn slow_start_after_a_pause_goes_by_the_longer_path() {
    let mut flow = Flow::under_way(Form::Guided, 20_000.0);
    for _ in 0..1_000 {
        flow.ack(60.0);
        flow.end_period();
    }
    assert_eq!(flow.agent.base_rtt(), ms(60.0), "a drain has shown that it is no queue");
    flow.now += ms(5_000.0);
    flow.agent.on_idle_restart(flow.now, ms(5_000.0));
    (0..20).for_each(|_| flow.ack(61.0));
    assert!(flow.agent.is_starting());
    (0..8).for_each(|_| flow.ack(80.0));
    assert!(!flow.agent.is_starting());
}

#[test]
fn an_action_before_the_first_packet_is_no_trouble() {
    for form in Form::ALL {
        let mut agent = Agent::new(AgentConfig::new(form), MSS, 1e9);
        agent.act(1.0);
        assert!(agent.window() >= 10_000.0);
    }
}

#[test]
fn what_was_measured_before_a_pause_is_not_averaged_with_what_comes_after() {
    let mut flow = Flow::of(Form::Guided);
    (0..20).for_each(|_| flow.ack(40.0));
    flow.end_period();
    flow.now += ms(5_000.0);
    flow.agent.on_idle_restart(flow.now, ms(5_000.0));
    (0..6).for_each(|_| flow.ack(40.0));
    flow.end_period();
    close(flow.agent.signals().rate, 200.0); // six packets in 30 ms
}

#[test]
fn a_queue_on_the_way_back_is_left_out() {
    for (form, expected) in [(Form::Guided, 42.0), (Form::Pure, 90.0)] {
        let mut flow = Flow::of(form);
        // The receiver's clock is an hour ahead. From 1.5 s on acknowledgements take 50 ms longer.
        for step in 0..200_u64 {
            let (sent, back) = (10.0 * step as f64, if step < 150 { 20.0 } else { 70.0 });
            flow.now = ms(sent + 20.0 + back);
            let sample = ms(20.0 + back);
            flow.rtt.update(sample);
            let stamped = Some(ms(3_600_000.0 + (sent + 20.0).floor()));
            flow.agent.on_ack(&Ack { stamped, ..ack(flow.now, 1, Some(sample)) }, &flow.rtt);
            if step % 3 == 2 {
                flow.agent.end_period(flow.now);
            }
        }
        assert_eq!(flow.agent.base_rtt(), ms(40.0));
        let low = flow.agent.last_rtt as f64 / 1e6;
        assert!((low - expected).abs() <= 2.0, "{form:?}: {low} ms");
        assert!(flow.agent.is_starting() == (form == Form::Guided), "slow start takes it for no queue either");
        // The pace is that of the whole round trip.
        let pace = flow.agent.pacing_rate().unwrap() * flow.agent.srtt() as f64 / 8e9;
        let gain = if form == Form::Guided { 2.0 } else { 1.0 };
        close(pace, gain * flow.agent.window());
    }
}

#[test]
fn one_packet_more_than_a_small_window_may_be_in_flight() {
    let cwnd = |form, window: f64| Flow::under_way(form, window).agent.cwnd();
    assert_eq!(cwnd(Form::Guided, 3_700.0), 4_700, "the pace keeps to 3.7");
    assert_eq!((cwnd(Form::Guided, 40_000.0), cwnd(Form::Guided, 40_001.0)), (41_000, 40_001));
    assert_eq!(cwnd(Form::Pure, 3_700.0), 3_700);
    let mut starting = Flow::of(Form::Guided);
    starting.agent.set_window(3_700.0);
    assert_eq!(starting.agent.cwnd(), 3_700);
}

#[test]
fn a_window_below_two_packets_is_paced() {
    let mut flow = Flow::under_way(Form::Guided, 500.0);
    assert_eq!(flow.agent.cwnd(), 2_000, "two packets may be in flight");
    assert_eq!(flow.agent.window(), 500.0);
    assert_eq!(flow.agent.pacing_rate(), Some(500.0 * 8.0 / 0.04));
    flow.agent.set_window(1.0);
    assert_eq!(flow.agent.window(), 100.0, "a tenth of a packet");
    flow = Flow::of(Form::Pure);
    flow.agent.set_window(1.0);
    assert_eq!(flow.agent.window(), 2_000.0);
}

#[test]
fn a_timeout_collapses_the_window() {
    for form in Form::ALL {
        let mut flow = Flow::of(form);
        flow.ack(40.0);
        flow.agent.on_timeout(0, 7_000);
        assert_eq!(flow.agent.is_starting(), form == Form::Guided);
        assert_eq!(flow.agent.window(), 2_000.0);
        flow.end_period();
        close(flow.agent.measurement().loss, 56_000.0 / 0.03); // what was in flight is lost
    }
}

#[test]
fn what_waited_through_an_outage_tells_nothing() {
    let mut flow = Flow::of(Form::Guided);
    flow.ack(40.0);
    flow.end_period();
    let timeout = ms(1_000.0);
    flow.agent.on_timeout(timeout, 7_000);
    let acknowledge = |flow: &mut Flow, now: Nanos, sample: f64| {
        let before = flow.agent.window();
        flow.agent.on_ack(&ack(now, 1, Some(ms(sample))), &flow.rtt);
        flow.agent.window() - before
    };
    for _ in 0..20 {
        assert_eq!(acknowledge(&mut flow, timeout + ms(10.0), 900.0), 1_000.0, "slow start goes on");
    }
    assert!(flow.agent.is_starting());
    // What was sent after it counts.
    (0..8).for_each(|_| _ = acknowledge(&mut flow, timeout + ms(950.0), 900.0));
    assert!(!flow.agent.is_starting());
}

#[test]
fn the_policy_is_not_asked_before_the_first_round_trip() {
    for form in Form::ALL {
        let mut flow = Flow::of(form);
        flow.agent.on_congestion(&congestion(Signal::Ecn));
        assert!(!flow.end_period(), "nothing is known");
        assert!(flow.agent.state().iter().all(|value| *value == 0.0));
        flow.ack(40.0);
        assert!(flow.end_period());
        assert_eq!(flow.agent.base_rtt(), ms(40.0));
        assert_eq!(flow.agent.state().len(), form.inputs());
        assert!(flow.agent.state().iter().any(|value| *value != 0.0));
    }
}

#[test]
fn nothing_is_decided_in_silence() {
    let mut flow = Flow::of(Form::Guided);
    flow.ack(40.0);
    flow.lose(8);
    assert!(!flow.agent.is_starting());
    let asked: Vec<bool> = (0..10).map(|_| flow.end_period()).collect();
    // 120 ms are usual for 40 ms and a whole packet, but no timeout is shorter than 200 ms: six periods.
    assert_eq!(asked.iter().filter(|asked| **asked).count(), 6, "{asked:?}");
    flow.ack(40.0);
    assert!(flow.end_period());
}

#[test]
fn a_pause_of_the_application_is_no_period() {
    for form in [Form::Paper, Form::Pure] {
        let mut flow = Flow::under_way(form, 50_000.0);
        assert!(flow.end_period());
        let seen = flow.agent.state().to_vec();
        // Nothing in flight, nothing acknowledged: the policy is not asked, and will not have seen it.
        assert!(!(0..10).any(|_| flow.end_period()), "{form:?}");
        assert_eq!(flow.agent.state(), seen);
        // With packets in flight it is asked, though no acknowledgement comes.
        flow.agent.on_sent(flow.now, 1000, 1000);
        assert!(flow.end_period(), "{form:?}");
    }
}
