//! Events that flows in the simulator hardly have, on the agent in integers: above all timeouts that prove to be spurious.

mod support;

use astraea_cc::MSS;
use astraea_kernel::intf::{self, Agent, Policy, Probe};
use astraea_kernel::layout;
use astraea_kernel::probe::native;

use support::shipped_policy;

const PACKET: u64 = 1 << 20;

/// A flow of the default policy that began with a window of ten packets.
struct Flow {
    agent: Box<Agent>,
    policy: Box<Policy>,
}

impl Flow {
    fn new() -> Self {
        let mut flow = Self { agent: intf::zeroed(), policy: layout::policy(&shipped_policy("astraea"), 1).unwrap() };
        flow.feed(intf::PROBE_BEGIN, |event| (event.now, event.value, event.acked) = (1_000_000, 10 * PACKET, MSS));
        flow.agent.startup.running = 0;
        flow
    }

    fn feed(&mut self, kind: u32, fill: impl FnOnce(&mut Probe)) {
        let mut event = *intf::zeroed::<Probe>();
        event.kind = kind;
        fill(&mut event);
        native::feed(&mut self.agent, &self.policy, std::slice::from_mut(&mut event));
    }

    fn timeout(&mut self, now: u64) {
        self.feed(intf::PROBE_TIMEOUT, |event| (event.now, event.value) = (now, 10));
        assert_eq!((self.agent.window, self.agent.startup.running), (2 * PACKET, 1));
    }
}

#[test]
fn a_spurious_timeout_gives_back_the_window_and_slow_start_if_it_was_running() {
    for running in [0, 1] {
        let mut flow = Flow::new();
        flow.agent.startup.running = running;
        flow.timeout(300_000_000);
        flow.feed(intf::PROBE_SPURIOUS, |_| ());
        assert_eq!((flow.agent.window, flow.agent.startup.running), (10 * PACKET, running));
    }
}

#[test]
fn a_timeout_forgets_what_the_window_had_been_through() {
    let mut flow = Flow::new();
    let guide = &mut flow.agent.guide;
    (guide.suspicion.reference, guide.suspicion.last_window, guide.suspicion.yielded) = (99, 99, 99);
    (guide.law.hurry.idle_rounds, guide.law.hurry.brink) = (99, 99);
    flow.timeout(300_000_000);
    let guide = &flow.agent.guide;
    let suspicion = &guide.suspicion;
    assert_eq!((suspicion.reference, suspicion.last_window, suspicion.yielded), (0, 0, 0));
    assert_eq!((guide.law.hurry.idle_rounds, guide.law.hurry.brink), (0, 0));
}

#[test]
fn the_second_in_a_row_has_none_and_slow_start_goes_on() {
    let mut flow = Flow::new();
    flow.timeout(300_000_000);
    flow.timeout(900_000_000);
    flow.feed(intf::PROBE_SPURIOUS, |_| ());
    assert_eq!((flow.agent.window, flow.agent.startup.running), (2 * PACKET, 1));
}

#[test]
fn a_competing_flow_keeps_two_packets_after_a_loss_and_one_after_a_mark() {
    for (mark, window) in [(0, 2 * PACKET), (1, 2 * PACKET * 7 / 10)] {
        let mut flow = Flow::new();
        flow.agent.guide.mode = intf::MODE_COMPETE;
        flow.agent.guide.compete.cubic.cwnd = 2 * PACKET;
        flow.feed(intf::PROBE_CONGESTION, |event| (event.value, event.in_flight) = (mark, 2));
        assert!(flow.agent.window.abs_diff(window) < 10, "{} of {window}", flow.agent.window);
    }
}

#[test]
fn a_window_that_is_not_used_does_not_grow_in_slow_start() {
    for (form, packets) in [(intf::FORM_PAPER, 21), (intf::FORM_PURE, 10), (intf::FORM_GUIDED, 10)] {
        let mut flow = Flow::new();
        flow.policy.form = form;
        flow.agent.startup.running = 1;
        for index in 0..12 {
            flow.feed(intf::PROBE_ACK, |event| {
                (event.now, event.rtt, event.srtt) = (40_000_000 + index, 30_000_000, 30_000_000);
                (event.acked, event.used, event.in_flight) = (1, 3, 2);
                event.app_limited = u32::from(index == 0);
            });
        }
        assert_eq!(flow.agent.window, packets * PACKET);
    }
}
