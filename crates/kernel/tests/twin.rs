//! The agent in integers beside the agent in floating point, flow by flow in the simulator: the same events, and the
//! same decisions but for rounding.

mod support;

use std::iter;
use std::sync::{Arc, Mutex};

use astraea_cc::{Ack, AnyController, Congestion, Controller, Loss, MILLISECOND, MSS, Nanos, Rtt, Signal};
use astraea_kernel::intf::{self, Agent as Fixed, Policy as Laid, Probe};
use astraea_kernel::layout;
use astraea_kernel::probe::{Prober, native};
use astraea_policy::state::PERIODS;
use astraea_policy::{Agent, AgentConfig, Form, Metadata, Policy, Scratch, schemes};
use astraea_sim::{Config, Simulation};
use serde_json::json;

use support::{cannot_run, shipped_policy};

const PACKET: f64 = (1 << 20) as f64;

/// How much later it is on the host of the next flow, in ns.
const CLOCK: Nanos = 1_700_000_000;

/// What one pair of flows went through.
#[derive(Default)]
struct Log {
    events: Vec<Probe>,
    periods: u64,
    /// Differences of the logarithm of the window after each period, from equal windows before it.
    differences: Vec<f64>,
    /// Their sum and number where both agents have measured over the same periods.
    sum: f64,
    compared: u64,
    /// Periods in which the base round-trip time fell and the rules lowered the window.
    lowered: u64,
    /// Periods in which a flow saw that it competed with its like.
    liked: u64,
    /// Periods whose acknowledgements waited for 10 ms at least.
    waited: u64,
    /// Periods in which the base loss had been counted, and those in which what was lost beyond it kept a flow from growing
    /// faster and faster.
    counted: u64,
    held: u64,
    /// Periods in which a flow would have grown faster and faster, and knew where that had ended.
    slowed: u64,
    /// Timeouts, and marks.
    timeouts: u64,
    marks: u64,
    /// Periods in which what had been lost for long let losses count more.
    crowded: u64,
    /// Periods in which it was certain that the path loses more by itself than one of the domain does.
    certain: u64,
    /// Periods that made the base round-trip time longer.
    longer: u64,
    /// Periods in which drains by the time of day made a flow compete.
    struck: u64,
    /// Periods that followed a competition with a neighbour that was there, and has gone.
    left: u64,
    /// Periods with a small window.
    small: u64,
}

/// A flow that the floating-point agent drives while the integers look on.
struct Twin {
    float: Agent,
    fixed: Box<Fixed>,
    policy: Arc<Policy>,
    laid: Arc<Laid>,
    scratch: Scratch,
    log: Arc<Mutex<Log>>,
    next: Option<Nanos>,
    srtt: Nanos,
    /// Window and base round-trip time (ns) after the last period.
    noted: u64,
    base: Nanos,
    /// When the last acknowledgement came, or a pause ended.
    heard: Nanos,
    /// Periods that are still to end until no rate that was taken over a silence is among what the policy sees.
    silent: usize,
    begun: bool,
}

fn packets(bytes: u64) -> u64 {
    (bytes + u64::from(MSS) / 2) / u64::from(MSS)
}

impl Twin {
    fn new(policy: Arc<Policy>, clock: Nanos, laid: Arc<Laid>, log: Arc<Mutex<Log>>) -> Self {
        let metadata = policy.metadata();
        let config = AgentConfig { clock, ..AgentConfig::of(metadata) };
        let float = Agent::new(config, MSS, 1e6 * f64::from(MSS));
        let scratch = Scratch::default();
        Self {
            float,
            fixed: intf::zeroed(),
            policy,
            laid,
            scratch,
            log,
            next: None,
            srtt: 0,
            noted: 0,
            base: 0,
            heard: 0,
            silent: 0,
            begun: false,
        }
    }

    fn feed(&mut self, kind: u32, fill: impl FnOnce(&mut Probe)) -> Probe {
        let mut event = *intf::zeroed::<Probe>();
        event.kind = kind;
        fill(&mut event);
        self.log.lock().unwrap().events.push(event);
        native::feed(&mut self.fixed, &self.laid, std::slice::from_mut(&mut event));
        event
    }

    fn float_window(&self) -> f64 {
        self.float.window() / f64::from(MSS)
    }
}

impl Controller for Twin {
    fn on_sent(&mut self, now: Nanos, bytes: u64, in_flight: u64) {
        self.float.on_sent(now, bytes, in_flight);
        if !self.begun {
            self.begun = true;
            self.next = Some(now + self.float.config().period);
            let clock = self.float.config().clock;
            self.feed(intf::PROBE_BEGIN, |event| {
                (event.now, event.clock, event.value, event.acked) = (now, clock, 10 << 20, MSS);
            });
        }
    }

    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        self.float.on_ack(ack, rtt);
        self.heard = ack.now;
        self.srtt = rtt.smoothed();
        let srtt = self.srtt;
        self.feed(intf::PROBE_ACK, |event| {
            event.now = ack.now;
            event.rtt = ack.rtt.unwrap_or(0);
            event.srtt = srtt;
            event.stamped = ack.stamped.unwrap_or(0);
            event.acked = packets(ack.acked) as u32;
            event.in_flight = packets(ack.in_flight) as u32;
            event.used = packets(ack.in_flight + ack.acked) as u32;
            event.delivered = packets(ack.rate.total_delivered) as u32;
            event.prior_delivered = packets(ack.rate.prior_delivered) as u32;
            event.app_limited = u32::from(ack.rate.app_limited);
            event.cwnd_limited = u32::from(ack.cwnd_limited);
            event.in_recovery = u32::from(ack.in_recovery || ack.hole_open);
        });
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.float.on_loss(loss);
        self.feed(intf::PROBE_LOSS, |event| {
            (event.value, event.in_flight) = (packets(loss.lost), packets(loss.in_flight) as u32);
        });
    }

    fn on_congestion(&mut self, congestion: &Congestion) {
        self.float.on_congestion(congestion);
        self.log.lock().unwrap().marks += u64::from(congestion.signal == Signal::Ecn);
        self.feed(intf::PROBE_CONGESTION, |event| {
            event.value = u64::from(congestion.signal == Signal::Ecn);
            event.in_flight = packets(congestion.flight_size) as u32;
        });
    }

    fn on_timeout(&mut self, now: Nanos, flight_size: u64) {
        self.float.on_timeout(now, flight_size);
        self.log.lock().unwrap().timeouts += 1;
        self.feed(intf::PROBE_TIMEOUT, |event| (event.now, event.value) = (now, packets(flight_size)));
    }

    fn on_idle_restart(&mut self, now: Nanos, idle: Nanos) {
        self.float.on_idle_restart(now, idle);
        self.heard = now;
        // What is measured begins anew.
        self.silent = 0;
        // The transport has seen to it that a timeout is over.
        self.feed(intf::PROBE_IDLE, |event| (event.now, event.value) = (now, idle));
    }

    fn next_timer(&self) -> Option<Nanos> {
        self.next
    }

    fn on_timer(&mut self, now: Nanos) {
        self.next = Some(now + self.float.config().period);
        if now - self.heard > 200 * MILLISECOND {
            // Nothing is decided in silence, and in the kernel acknowledgements end periods: the first rate after it is taken
            // over another time there (of a packet or two at first, for a few periods), and seen for as many as the state holds.
            assert!(!self.float.end_period(now));
            self.silent = 2 * PERIODS;
            return;
        }
        // Equal before the period, in the memory too, so that what differs afterwards is this period's.
        self.fixed.window = (self.float_window() * PACKET) as u64;
        let newest = (self.fixed.monitor.closed as usize + intf::ENDS - 1) % intf::ENDS;
        if self.fixed.monitor.closed > 1 {
            self.fixed.monitor.ends[newest].window = self.noted;
        }
        let (before, competed) = (self.float_window(), self.float.is_competing());
        let known = std::mem::replace(&mut self.base, self.float.base_rtt());
        let fell = known.saturating_sub(self.base) > MILLISECOND / 2;
        let asked = self.float.end_period(now);
        let struck = !competed && self.float.is_competing() && self.fixed.guide.suspicion.strikes_in_vain > 1;
        let longer = self.float.base_rtt().saturating_sub(self.base) > MILLISECOND / 2;
        let lowered = fell && !asked && self.float_window() < 0.9 * before;
        // A delay that is the path's own ends a competition too, and makes the base longer.
        let liked = competed && asked && self.float.base_rtt() == self.base;
        if asked {
            let action = f64::from(self.policy.network().forward(self.float.state(), &mut self.scratch));
            self.float.act(action);
        }
        let event = self.feed(intf::PROBE_DECIDE, |event| event.now = now);
        self.noted = (self.float_window() * PACKET) as u64;
        let left = !self.float.is_competing() && self.fixed.guide.suspicion.past_ended > 0;
        let waited = self.fixed.way_back.standing > 10 * MILLISECOND;
        let guide = &self.fixed.guide;
        let (counted, held) = (guide.base_loss.found[0] > 0, guide.law.excess > self.laid.rules.losses_hurried);
        let crowded = guide.law.crowding > 0;
        let certain = guide.base_loss.certain > self.laid.rules.crowd_seen;
        let hurry = guide.law.hurry;
        let slowed = hurry.brink > 0 && hurry.idle_rounds > self.laid.rules.hurry_after;
        // One packet more than the window may be in flight, or none: at 40 packets the last digits decide.
        let roomy = self.float.cwnd() as f64 > self.float.window() + 0.5 * f64::from(MSS);
        let plain = self.float_window() > 2.0 && !(39.9..40.1).contains(&self.float_window());
        assert!(!plain || roomy == (event.room > 0), "{} packets at {now} ns", self.float_window());
        assert!(!roomy || !self.float.is_competing() && !self.float.is_starting());
        let small = plain && roomy;
        let difference = (event.window as f64 / PACKET / self.float_window()).ln().abs();
        let mut log = self.log.lock().unwrap();
        log.periods += 1;
        log.lowered += u64::from(lowered);
        log.liked += u64::from(liked);
        log.waited += u64::from(waited);
        log.counted += u64::from(counted);
        log.held += u64::from(held);
        log.slowed += u64::from(slowed);
        log.crowded += u64::from(crowded);
        log.certain += u64::from(certain);
        log.longer += u64::from(longer);
        log.struck += u64::from(struck);
        log.left += u64::from(left);
        log.small += u64::from(small);
        log.differences.push(difference);
        if self.silent == 0 {
            log.sum += difference;
            log.compared += 1;
        }
        self.silent = self.silent.saturating_sub(1);
    }

    fn cwnd(&self) -> u64 {
        self.float.cwnd()
    }

    fn pacing_rate(&self) -> Option<f64> {
        self.float.pacing_rate()
    }
}

/// A flow under test, or one of CUBIC's or BBR's beside it.
enum Driver {
    Twin(Box<Twin>),
    Neighbour(Box<AnyController>),
}

astraea_cc::forward_controller!(Driver: Twin, Neighbour);

/// Flows in the simulator: starts in s, one-way delays in ms, and a few links' properties.
struct Case {
    policy: &'static str,
    /// Whether its network is run without law and rules.
    pure: bool,
    rate: f64,
    buffer: u64,
    loss: f64,
    flows: &'static [(f64, f64)],
    /// Scheme of one more flow from the start on, and until when (s).
    neighbour: Option<&'static str>,
    leaves: f64,
    /// One-way delay of the link from 8 s on, ms, and between which times (s) nothing gets through.
    longer: f64,
    outage: Option<(f64, f64)>,
    /// Whether the queue marks packets.
    marks: bool,
    /// Whether the link has half more of its rate for 150 ms of each half second from 9 s on: a queue that falls at the beat.
    surges: bool,
    /// Where the flows' data come from, as the simulator's configuration has it; none: there is always more.
    source: Option<&'static str>,
    /// Rate of a link that acknowledgements share with an upload under CUBIC from 6 s on.
    upload: Option<f64>,
}

const ALONE: Case = Case {
    policy: "astraea",
    pure: false,
    rate: 3e7,
    buffer: 300_000,
    loss: 0.0,
    flows: &[(0.0, 15.0)],
    neighbour: None,
    leaves: 24.0,
    longer: 0.0,
    outage: None,
    marks: false,
    surges: false,
    source: None,
    upload: None,
};

const BESIDE_CUBIC: Case = Case { neighbour: Some("cubic"), ..ALONE };

const CASES: [Case; 25] = [
    Case { rate: 1e8, buffer: 375_000, flows: &[(0.0, 15.0), (8.0, 15.0), (16.0, 15.0)], ..ALONE },
    Case { rate: 2e7, buffer: 40_000, flows: &[(0.0, 10.0), (3.0, 60.0)], ..ALONE },
    Case { rate: 5e7, buffer: 1_000_000, loss: 0.01, flows: &[(0.0, 20.0), (5.0, 20.0)], ..ALONE },
    // More of them than a path of the domain loses.
    Case { rate: 1e8, buffer: 1_000_000, loss: 0.04, flows: &[(0.0, 20.0)], ..ALONE },
    // A buffer that the last to come takes for path, until it doubts that.
    Case { rate: 8.8e7, buffer: 23_000, flows: &[(0.0, 7.0), (2.0, 7.0), (4.0, 7.0), (6.0, 7.0), (8.0, 7.0)], ..ALONE },
    // One of a few packets, in which nothing but losses brings flows together.
    Case { rate: 1e8, buffer: 15_000, flows: &[(0.0, 15.0), (0.3, 15.0)], ..ALONE },
    // Newcomers that go by the others' drains.
    Case {
        rate: 4e7,
        buffer: 400_000,
        flows: &[
            (0.0, 20.0),
            (0.7, 20.0),
            (1.4, 20.0),
            (2.1, 20.0),
            (2.8, 20.0),
            (3.5, 20.0),
            (4.2, 20.0),
            (4.9, 20.0),
            (5.6, 20.0),
            (6.3, 20.0),
        ],
        ..ALONE
    },
    // A crowd whose backlogs do not fit into the buffer.
    Case {
        rate: 2e7,
        buffer: 24_000,
        flows: &[
            (0.3, 15.0),
            (0.6, 15.0),
            (0.9, 15.0),
            (1.2, 15.0),
            (1.5, 15.0),
            (1.8, 15.0),
            (2.1, 15.0),
            (0.0, 15.0),
        ],
        ..ALONE
    },
    // A newcomer that at times found no queue, and is raised by the longest.
    Case { rate: 1e8, buffer: 375_000, flows: &[(0.0, 15.0), (7.11, 15.0)], ..ALONE },
    // One that is raised after a drain that the other had begun before.
    Case { rate: 1e8, buffer: 375_000, flows: &[(0.0, 15.0), (7.0, 15.0)], ..ALONE },
    Case { policy: "astraea-pure", rate: 1e8, buffer: 375_000, flows: &[(0.0, 15.0), (8.0, 15.0)], ..ALONE },
    Case { policy: "astraea-paper", rate: 1e8, buffer: 375_000, flows: &[(0.0, 15.0), (8.0, 15.0)], ..ALONE },
    BESIDE_CUBIC,
    Case { buffer: 150_000, neighbour: Some("bbr"), ..BESIDE_CUBIC },
    // What a flow takes for its like, and stops competing with.
    Case { surges: true, ..BESIDE_CUBIC },
    // Applications that send now and then: windows that are not used, and pauses that halve them.
    Case { flows: &[(0.0, 15.0), (0.05, 15.0)], source: Some(MESSAGES), ..ALONE },
    Case { flows: &[(0.0, 15.0), (1.0, 15.0)], source: Some(PAUSES), ..ALONE },
    // A queue on the way back that is none of theirs.
    Case { flows: &[(0.0, 15.0), (9.0, 20.0)], upload: Some(5e6), ..ALONE },
    // One beside which the law comes to rest.
    Case { rate: 6e7, buffer: 375_000, flows: &[(0.35, 15.0)], ..BESIDE_CUBIC },
    // A neighbour that is found, and leaves.
    Case { leaves: 11.0, buffer: 150_000, neighbour: Some("bbr"), ..BESIDE_CUBIC },
    // A path that becomes longer, and pauses after that.
    Case { longer: 12.0, flows: &[(0.0, 15.0), (4.0, 15.0)], ..ALONE },
    Case { longer: 12.0, source: Some(PAUSES), ..ALONE },
    // Timeouts, and the slow start after them.
    Case { outage: Some((9.0, 10.5)), flows: &[(0.0, 15.0), (1.0, 15.0)], ..ALONE },
    // Marks instead of losses, beside CUBIC.
    Case { marks: true, ..BESIDE_CUBIC },
    // The backlog state without a law, and an application that sends now and then.
    Case { pure: true, flows: &[(0.0, 15.0), (0.05, 15.0)], source: Some(MESSAGES), ..ALONE },
];

/// 120 packets every .11 s, too often to be silence.
const MESSAGES: &str = r#"{"periodic": {"every_ns": 110000000, "bytes": 173760}}"#;
const PAUSES: &str = r#"{"on_off": {"on_ns": 1000000000, "off_ns": 2500000000}}"#;

/// Runs a case for 24 s and gives the logs of its flows.
fn run(case: &Case) -> (Arc<Laid>, Vec<Arc<Mutex<Log>>>) {
    let surges = (18_u64..48).flat_map(|half| {
        let beat = half * 500_000_000;
        [(beat + 270_000_000, 1.5 * case.rate), (beat + 420_000_000, case.rate)]
    });
    let rate = if case.surges {
        json!({"schedule": iter::once((0, case.rate)).chain(surges).collect::<Vec<_>>(), "repeat_ns": 0})
    } else if let Some((from, to)) = case.outage {
        let at = |seconds: f64| (seconds * 1e9) as u64;
        json!({"schedule": [(0, case.rate), (at(from), 0.0), (at(to), case.rate)], "repeat_ns": 0})
    } else {
        json!({"constant": case.rate})
    };
    let source = case.source.map_or(json!("bulk"), |source| serde_json::from_str(source).unwrap());
    let back: &[usize] = if case.upload.is_some() { &[1] } else { &[] };
    let flow = |start: f64, delay: f64, path: &[usize], back: &[usize]| {
        json!({
            "start_ns": (start * 1e9) as u64, "path": path, "return_path": back, "ecn": case.marks,
            "extra_delay_ns": (delay * 1e6) as u64, "source": source,
        })
    };
    let neighbour = case.neighbour.map(|_| &(0.0, 15.0));
    let mut flows: Vec<_> = case.flows.iter().chain(neighbour).map(|at| flow(at.0, at.1, &[0], back)).collect();
    if case.neighbour.is_some() {
        flows.last_mut().unwrap()["stop_ns"] = ((case.leaves * 1e9) as u64).into();
    }
    let delay = json!({"schedule": [(0, 0), (8_000_000_000_u64, (case.longer * 1e6) as u64)]});
    let queue = if case.marks { json!({"kind": "codel", "ecn": true}) } else { json!({"kind": "droptail"}) };
    let mut links = vec![json!({"name": "link", "rate": rate, "delay": delay, "queue": queue,
                                "limit": {"bytes": case.buffer}, "loss": {"bernoulli": case.loss}})];
    if let Some(rate) = case.upload {
        links.push(json!({"name": "back", "rate": {"constant": rate}, "delay": {"constant": 0},
                          "limit": {"bytes": 60_000}}));
        flows.push(flow(6.0, 15.0, &[1], &[0]));
    }
    let config: Config =
        serde_json::from_value(json!({"duration_ns": 24_000_000_000_u64, "links": links, "flows": flows})).unwrap();
    let shipped = shipped_policy(case.policy);
    let form = if case.pure { Form::Pure } else { shipped.metadata().form };
    let metadata = Metadata { form, ..shipped.metadata().clone() };
    let policy = Arc::new(Policy::new(shipped.network().clone(), metadata).unwrap());
    let laid: Arc<Laid> = layout::policy(&policy, 1).unwrap().into();
    let logs: Vec<Arc<Mutex<Log>>> = case.flows.iter().map(|_| Arc::default()).collect();
    let driver = |flow: usize| match logs.get(flow) {
        Some(log) => {
            let clock = (flow as Nanos + 1) * CLOCK;
            Driver::Twin(Box::new(Twin::new(policy.clone(), clock, laid.clone(), log.clone())))
        }
        None => Driver::Neighbour(Box::new(schemes::build(case.neighbour.unwrap_or("cubic"), &[], MSS).unwrap())),
    };
    let mut simulation = Simulation::new(&config, 1, driver).unwrap();
    simulation.run_until(simulation.duration());
    (laid, logs)
}

#[test]
fn integers_decide_as_floating_point_does() {
    let mut all = Log::default();
    for case in &CASES {
        let (_, logs) = run(case);
        for (flow, log) in logs.iter().enumerate() {
            let mut log = log.lock().unwrap();
            log.differences.sort_by(f64::total_cmp);
            assert!(log.compared > log.periods * 19 / 20, "{} of {} periods compared", log.compared, log.periods);
            let (mean, count) = (log.sum / log.compared as f64, log.differences.len());
            let (p99, most) = (log.differences[count * 99 / 100], log.differences[count - 1]);
            all.lowered += log.lowered;
            all.liked += log.liked;
            all.waited += log.waited;
            all.counted += log.counted;
            all.held += log.held;
            all.slowed += log.slowed;
            all.timeouts += log.timeouts;
            all.marks += log.marks;
            all.crowded += log.crowded;
            all.certain += log.certain;
            all.longer += log.longer;
            all.struck += log.struck;
            all.left += log.left;
            all.small += log.small;
            let name = format!("{} at {:.0e} bit/s, flow {flow}", case.policy, case.rate);
            eprintln!(
                "{name}: ln window off by {mean:.1e} on average, {p99:.1e} p99, {most:.1e} at most, {count} periods, \
                 lowered in {}, among its like in {}",
                log.lowered, log.liked
            );
            // Of the papers' form the quantities in flight are only near (monitor.h); while a flow competes, each has a
            // CUBIC of its own that goes on from where it was.
            let bound = match (case.policy, case.neighbour) {
                ("astraea", None) => 1e-4,
                (_, None) => 5e-3,
                _ => 5e-2,
            };
            assert!(mean < bound && p99 < 10.0 * bound, "{name}: mean {mean}, p99 {p99}");
        }
    }
    assert!(all.lowered > 0, "no newcomer has seen the others drain");
    assert!(all.liked > 0, "no flow has seen a queue that falls at the beat");
    assert!(all.waited > 100, "no acknowledgement has waited behind an upload");
    assert!(all.counted > 100, "no flow has counted what its path loses");
    assert!(all.held > 100, "no flow has lost more than that");
    assert!(all.slowed > 100, "no flow has hurried that knew where it had ended");
    assert!(all.timeouts > 2, "no flow has timed out");
    assert!(all.marks > 10, "no packet was marked");
    assert!(all.crowded > 100, "no flow has lost much for long");
    assert!(all.certain > 100, "no flow was certain that its path loses much by itself");
    assert!(all.longer > 2, "no path has become longer");
    assert!(all.struck > 0, "no flow has come to rest beside a neighbour whose queue stayed when it struck");
    assert!(all.left > 100, "no neighbour that was found has gone");
    assert!(all.small > 100, "no window was small");
}

#[test]
fn the_kernel_follows_to_the_bit() {
    if cannot_run() {
        return;
    }
    let mut prober: Option<Prober> = None;
    for case in &CASES {
        let (laid, logs) = run(case);
        let prober = match &mut prober {
            Some(prober) => {
                prober.swap(&laid).unwrap();
                prober
            }
            none => none.insert(Prober::new(&laid).unwrap()),
        };
        // One flow each: here the integers go on from their own windows.
        let log = logs[logs.len() - 1].lock().unwrap();
        let mut in_kernel: Vec<_> = log.events.iter().take(60_000).copied().collect();
        let mut here = in_kernel.clone();
        prober.reset().unwrap();
        prober.feed(&mut in_kernel).unwrap();
        let mut agent = intf::zeroed();
        native::feed(&mut agent, &laid, &mut here);
        for (index, (kernel, native)) in in_kernel.iter().zip(&here).enumerate() {
            let found = |event: &Probe| (event.window, event.pacing, event.room, event.action, event.state);
            assert_eq!(found(kernel), found(native), "event {index}");
        }
        assert!(here.iter().any(|event| event.window > 20 << 20), "the flow went somewhere");
    }
}
