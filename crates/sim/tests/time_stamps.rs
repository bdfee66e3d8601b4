//! What controllers are told of when a receiver sent an acknowledgement: its clock's tick, on every way that there is.

use std::cell::RefCell;
use std::rc::Rc;

use astraea_cc::{Ack, AnyController, Congestion, Controller, MILLISECOND, MSS, Nanos, Rtt, SECOND, build};
use astraea_sim::{Config, HEADER, Simulation};
use serde_json::{Value, json};

const WINDOW: u64 = 6;
const RATE: f64 = 12e6;

/// For each acknowledgement of the first flow: when its packet was sent, its time stamp, and when it came.
type Seen = Rc<RefCell<Vec<(Nanos, Nanos, Nanos)>>>;

/// A constant window that notes what it is told.
struct Witness {
    inner: AnyController,
    seen: Option<Seen>,
}

impl Controller for Witness {
    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        if let Some(seen) = &self.seen {
            seen.borrow_mut().push((ack.sent_at, ack.stamped.expect("a time stamp"), ack.now));
        }
        self.inner.on_ack(ack, rtt);
    }
    fn on_congestion(&mut self, event: &Congestion) {
        self.inner.on_congestion(event);
    }
    fn on_timeout(&mut self, now: Nanos, flight_size: u64) {
        self.inner.on_timeout(now, flight_size);
    }
    fn cwnd(&self) -> u64 {
        self.inner.cwnd()
    }
    fn pacing_rate(&self) -> Option<f64> {
        self.inner.pacing_rate()
    }
}

/// Runs flows over a link of 12 Mbit/s and 10 ms there, and one like it back.
fn run(flows: &[Value]) -> Vec<(Nanos, Nanos, Nanos)> {
    let link = |name: &str| json!({"name": name, "rate": {"constant": RATE}, "delay": {"constant": 10 * MILLISECOND}, "limit": "infinite"});
    let config = json!({"duration_ns": 5 * SECOND, "links": [link("there"), link("back")], "flows": flows});
    let config: Config = serde_json::from_value(config).expect("a configuration");
    let seen = Seen::default();
    let witness = |flow: usize| {
        let window = if flow == 0 { WINDOW as f64 } else { 200.0 };
        let inner = build("constant-window", &[("window".to_owned(), window)], MSS).expect("a scheme");
        Witness { inner, seen: (flow == 0).then(|| seen.clone()) }
    };
    let mut simulation = Simulation::new(&config, 1, witness).expect("a valid configuration");
    simulation.run_until(simulation.duration());
    drop(simulation);
    Rc::try_unwrap(seen).expect("nobody else holds it").into_inner()
}

/// The transmission of a full packet, in ns.
fn transmission() -> Nanos {
    (f64::from(MSS + HEADER) * 8e9 / RATE) as Nanos
}

#[test]
fn a_stamp_is_the_tick_in_which_the_packet_arrived() {
    // With an echo, with an acknowledgement for every other packet, and with one that crosses a link.
    for flow in [json!({}), json!({"ack": {"every": 2}}), json!({"return_path": [1]})] {
        let mut all = json!({"start_ns": 300_000, "path": [0]});
        all.as_object_mut().unwrap().extend(flow.as_object().unwrap().clone());
        let seen = run(&[all]);
        assert!(seen.len() > 200);
        for (sent, stamped, came) in seen {
            assert_eq!(stamped % MILLISECOND, 0);
            // At most the five packets ahead of it wait for the link.
            let there = 10 * MILLISECOND + transmission()..=10 * MILLISECOND + WINDOW * transmission() + 10;
            let (earliest, latest) = (stamped - sent.min(stamped), stamped + MILLISECOND - sent);
            assert!(latest > *there.start() && earliest <= *there.end(), "{flow}: sent {sent}, stamped {stamped}");
            assert!(stamped + 10 * MILLISECOND <= came && came <= stamped + 12 * MILLISECOND, "{flow}: came {came}");
        }
    }
}

#[test]
fn what_an_acknowledgement_waits_for_is_not_in_its_stamp() {
    // 200 packets of an upload are a queue of about 180 ms where the acknowledgements go.
    let upload = json!({"start_ns": SECOND, "path": [1], "return_path": [0]});
    let seen = run(&[json!({"start_ns": 0, "path": [0], "return_path": [1]}), upload]);
    let late: Vec<_> = seen.iter().filter(|seen| seen.2 > 3 * SECOND).collect();
    assert!(late.len() > 30);
    for (sent, stamped, came) in late {
        assert!(stamped - sent <= 18 * MILLISECOND && came - stamped > 150 * MILLISECOND, "{sent} {stamped} {came}");
    }
}
