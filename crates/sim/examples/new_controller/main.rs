//! A new controller on a link with itself, and with CUBIC: `cargo run --release --example new_controller`.

#![allow(
    clippy::missing_panics_doc,
    clippy::print_stdout,
    unreachable_pub,
    reason = "an example prints, and the tests of the guide call it"
)]

mod delay_aimd;

use astraea_cc::{AnyController, MILLISECOND, MSS, SECOND, build};
use astraea_sim::{Config, Simulation};
use delay_aimd::DelayAimd;

/// Two flows that share 50 Mbit/s and a round trip of 20 ms for a minute, with a buffer of two bandwidth-delay products.
const LINK: &str = r#"{
    "duration_ns": 60000000000,
    "links": [{ "name": "bottleneck", "rate": { "constant": 5e7 }, "delay": { "constant": 10000000 }, "limit": { "bytes": 250000 } }],
    "flows": [{ "start_ns": 0, "path": [0] }, { "start_ns": 5000000000, "path": [0] }]
}"#;

/// Schemes of the first and the second flow.
pub const PAIRS: [[&str; 2]; 3] = [["delay-aimd", "delay-aimd"], ["delay-aimd", "cubic"], ["cubic", "cubic"]];

/// Goodput in Mbit/s of two flows with these schemes while both are there, and the mean queueing delay in ms.
pub fn share(schemes: [&str; 2]) -> ([f64; 2], f64) {
    let config: Config = serde_json::from_str(LINK).expect("a configuration");
    let controller = |flow: usize| match schemes[flow] {
        "delay-aimd" => AnyController::Custom(Box::new(DelayAimd::new(5 * MILLISECOND, MSS))),
        name => build(name, &[], MSS).expect("a scheme of the registry"),
    };
    let mut simulation = Simulation::new(&config, 1, controller).expect("a valid configuration");
    let both = config.flows[1].start_ns;
    simulation.run_until(both);
    let before = [0, 1].map(|flow| simulation.flow_stats(flow).delivered_bytes);
    simulation.run_until(config.duration_ns);
    let seconds = (config.duration_ns - both) as f64 / SECOND as f64;
    let goodput =
        [0, 1].map(|flow| (simulation.flow_stats(flow).delivered_bytes - before[flow]) as f64 * 8e-6 / seconds);
    let link = simulation.link_stats(0);
    (goodput, link.wait_sum as f64 / link.served as f64 / MILLISECOND as f64)
}

/// A line on what two flows with these schemes do.
pub fn describe(schemes: [&str; 2]) -> String {
    let ([first, second], queue) = share(schemes);
    format!("{}: {first:.1} Mbit/s, {}: {second:.1} Mbit/s, queue {queue:.1} ms", schemes[0], schemes[1])
}

fn main() {
    for pair in PAIRS {
        println!("{}", describe(pair));
    }
}
