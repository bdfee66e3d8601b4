//! Retransmission timeouts that turn out to have been spurious, on the agent in integers.

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
fn a_spurious_timeout_gives_the_window_back() {
    let mut flow = Flow::new();
    flow.timeout(300_000_000);
    flow.feed(intf::PROBE_SPURIOUS, |_| ());
    assert_eq!((flow.agent.window, flow.agent.startup.running), (10 * PACKET, 0));
}

#[test]
fn the_second_in_a_row_has_none_and_slow_start_goes_on() {
    let mut flow = Flow::new();
    flow.timeout(300_000_000);
    flow.timeout(900_000_000);
    flow.feed(intf::PROBE_SPURIOUS, |_| ());
    assert_eq!((flow.agent.window, flow.agent.startup.running), (2 * PACKET, 1));
}
