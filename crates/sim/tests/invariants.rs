//! What must hold in every simulation, on random topologies.

use astraea_cc::{MSS, Nanos, NewReno};
use astraea_sim::{
    AckConfig, Config, FlowConfig, LinkConfig, LossConfig, RateConfig, Simulation, SourceConfig,
    config::{DelayConfig, ReorderConfig},
    queue::{Limit, QueueConfig},
};
use proptest::prelude::*;

const MTU: f64 = 1500.0;

fn queue(kind: &str) -> QueueConfig {
    let kind = format!(r#"{{"kind": "{kind}"}}"#);
    serde_json::from_str(&kind).expect("a discipline with its defaults")
}

fn rates() -> impl Strategy<Value = RateConfig> {
    let rate = 1e6..2e8_f64;
    prop_oneof![
        rate.clone().prop_map(RateConfig::Constant),
        (rate.clone(), rate).prop_map(|(a, b)| RateConfig::Schedule {
            pieces: vec![(0, a), (500_000_000, b)],
            repeat_ns: 1_300_000_000,
        }),
    ]
}

fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![
        (1_u64..400).prop_map(Limit::Packets),
        (3000_u64..600_000).prop_map(Limit::Bytes),
        Just(Limit::Infinite)
    ]
}

fn links() -> impl Strategy<Value = LinkConfig> {
    let kinds = prop::sample::select(vec!["droptail", "droptail", "codel", "fq_codel", "pie", "red_default"]);
    let delays = prop_oneof![
        (0_u64..40_000_000).prop_map(DelayConfig::Constant),
        (0_u64..40_000_000, 0_u64..40_000_000).prop_map(|(a, b)| DelayConfig::Schedule(vec![
            (0, a),
            (700_000_000, b),
            (1_500_000_000, a)
        ])),
    ];
    let losses = prop_oneof![Just(LossConfig::None), (0.0..0.05_f64).prop_map(LossConfig::Bernoulli)];
    (rates(), delays, limits(), kinds, losses, 0_u64..3_000_000, prop::bool::weighted(0.2)).prop_map(
        |(rate, delay, limit, kind, loss, jitter_ns, reorders)| LinkConfig {
            name: "link".into(),
            rate,
            delay,
            limit,
            queue: match kind {
                "red_default" => serde_json::from_str(
                    r#"{"kind": "red", "min_bytes": 15000, "max_bytes": 60000, "max_p": 0.1, "weight": 0.002, "gentle": true}"#,
                )
                .expect("a RED queue"),
                kind => queue(kind),
            },
            loss,
            jitter_ns,
            reorder: if reorders {
                ReorderConfig { probability: 0.05, delay_ns: 5_000_000 }
            } else {
                ReorderConfig::default()
            },
        },
    )
}

fn flows(links: usize) -> impl Strategy<Value = FlowConfig> {
    let sources = prop_oneof![
        4 => Just(SourceConfig::Bulk),
        1 => (1_u64..3_000_000).prop_map(SourceConfig::Sized),
        1 => Just(SourceConfig::OnOff { on_ns: 300_000_000, off_ns: 200_000_000, exponential: true }),
        1 => Just(SourceConfig::Poisson { every_ns: 20_000_000, bytes: 20_000 }),
    ];
    let acks = prop_oneof![
        3 => Just(AckConfig::default()),
        1 => (2_u32..4, prop::sample::select(vec![0, 2_000_000]), 0.0..0.2_f64)
            .prop_map(|(every, aggregate_ns, loss)| AckConfig { every, aggregate_ns, loss, ..AckConfig::default() }),
    ];
    let path = prop::sample::subsequence((0..links).collect::<Vec<_>>(), 1..=links);
    (
        0_u64..1_000_000_000,
        prop::option::of(1_u64..2_000_000_000),
        path,
        0_u64..20_000_000,
        sources,
        acks,
        any::<bool>(),
    )
        .prop_map(|(start_ns, length, path, extra_delay_ns, source, ack, ecn)| FlowConfig {
            start_ns,
            stop_ns: length.map(|l| start_ns + l),
            path,
            return_path: vec![],
            extra_delay_ns,
            source,
            ack,
            ecn,
            burst_ns: 0,
            period_ns: 0,
            mss: MSS,
        })
}

fn configs() -> impl Strategy<Value = Config> {
    prop::collection::vec(links(), 1..4)
        .prop_flat_map(|links| {
            let flows = prop::collection::vec(flows(links.len()), 1..6);
            (Just(links), flows)
        })
        .prop_map(|(links, flows)| Config {
            duration_ns: 3_000_000_000,
            slot_ns: 10_000_000,
            aligned_periods: false,
            links,
            flows,
        })
}

fn simulation(config: &Config, seed: u64) -> Simulation<NewReno> {
    Simulation::new(config, seed, |_| NewReno::new(MSS)).expect("a valid configuration")
}

/// Everything that a simulation counts, to compare two of them.
fn summary(simulation: &mut Simulation<NewReno>) -> String {
    let flows: Vec<_> = (0..simulation.flows().len()).map(|f| simulation.flow_stats(f)).collect();
    let recorder = simulation.recorder().expect("recording is on");
    let series: Vec<_> = (0..flows.len()).map(|f| recorder.flow(f).to_vec()).collect();
    format!("{flows:?} {series:?}")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// sent = lost or dropped + arrived + in the network, for all flows together; no queue beyond its limit; the clock
    /// never runs backwards.
    #[test]
    fn packets_are_conserved(config in configs(), seed: u64, steps in prop::collection::vec(1_u64..400_000_000, 1..12)) {
        let mut simulation = simulation(&config, seed);
        let mut time: Nanos = 0;
        for step in steps {
            time += step;
            simulation.run_until(time);
            prop_assert_eq!(simulation.now(), time);
            let stats: Vec<_> = (0..config.flows.len()).map(|f| simulation.flow_stats(f)).collect();
            let sent: u64 = stats.iter().map(|s| s.sent).sum();
            let gone: u64 = stats.iter().map(|s| s.dropped).sum();
            let arrived: u64 = stats.iter().map(|s| s.arrived).sum();
            prop_assert_eq!(sent, gone + arrived + simulation.data_packets_in_network() as u64);
            for (index, link) in config.links.iter().enumerate() {
                let waiting = simulation.queue_length(index) as u64;
                let stats = simulation.link_stats(index);
                prop_assert_eq!(stats.offered, stats.lost + stats.dropped + stats.served + waiting);
                if let Limit::Packets(limit) = link.limit {
                    prop_assert!(waiting <= limit, "{} packets in a queue of {}", waiting, limit);
                }
            }
        }
    }

    /// The same for each flow alone, once all have stopped and the network has drained.
    #[test]
    fn every_packet_arrives_or_is_gone(mut config in configs(), seed: u64) {
        for flow in &mut config.flows {
            flow.stop_ns = flow.stop_ns.or(Some(2_500_000_000));
        }
        let mut simulation = simulation(&config, seed);
        simulation.run_until(600_000_000_000);
        prop_assert_eq!(simulation.data_packets_in_network(), 0);
        for flow in 0..config.flows.len() {
            let stats = simulation.flow_stats(flow);
            prop_assert_eq!(stats.sent, stats.dropped + stats.arrived);
        }
    }

    /// A discipline that is never provoked does what drop-tail does, to the nanosecond.
    #[test]
    fn a_patient_discipline_is_drop_tail(mut config in configs(), seed: u64, kind in 0_usize..3) {
        config.links.truncate(1);
        config.links[0] = LinkConfig {
            loss: LossConfig::None,
            jitter_ns: 0,
            reorder: ReorderConfig::default(),
            queue: queue("droptail"),
            ..config.links[0].clone()
        };
        for flow in &mut config.flows {
            flow.path = vec![0];
        }
        let mut plain = simulation(&config, seed);
        config.links[0].queue = serde_json::from_str([
            r#"{"kind": "codel", "target_ns": 1000000000000}"#,
            r#"{"kind": "pie", "burst_ns": 1000000000000}"#,
            r#"{"kind": "red", "min_bytes": 1000000000, "max_bytes": 2000000000}"#,
        ][kind]).expect("a discipline");
        let mut managed = simulation(&config, seed);
        plain.run_until(config.duration_ns);
        managed.run_until(config.duration_ns);
        prop_assert_eq!(format!("{:?}", plain.link_stats(0)), format!("{:?}", managed.link_stats(0)));
        prop_assert_eq!(summary(&mut plain), summary(&mut managed));
    }

    /// An acknowledgement that travels as the echo of its packet does what one of its own would do.
    #[test]
    fn the_echo_equals_the_general_path(mut config in configs(), seed: u64) {
        config.flows.truncate(1);
        let flow = &mut config.flows[0];
        flow.ack = AckConfig::default();
        flow.stop_ns = flow.stop_ns.or(Some(2_500_000_000));
        for link in &mut config.links {
            if let DelayConfig::Schedule(steps) = &link.delay {
                link.delay = DelayConfig::Constant(steps[0].1);
            }
        }
        let mut short = simulation(&config, seed);
        // Released at multiples of a nanosecond, which is at once.
        config.flows[0].ack.aggregate_ns = 1;
        let mut general = simulation(&config, seed);
        short.run_until(600_000_000_000);
        general.run_until(600_000_000_000);
        prop_assert_eq!(summary(&mut short), summary(&mut general));
    }

    /// Over any run of slots, no link carries more than its capacity and one packet.
    #[test]
    fn no_link_exceeds_its_capacity(config in configs(), seed: u64) {
        let mut simulation = simulation(&config, seed);
        simulation.run_until(config.duration_ns);
        for link in 0..config.links.len() {
            let recorder = simulation.recorder().expect("recording is on");
            let length = recorder.slot_ns();
            let served: Vec<f64> = recorder.link(link).iter().map(|s| s.served_bytes as f64).collect();
            for window in [1, 7, 50] {
                for (first, slots) in served.windows(window).enumerate() {
                    let from = first as Nanos * length;
                    let capacity = simulation.capacity_bytes(link, from, from + window as Nanos * length);
                    let carried: f64 = slots.iter().sum();
                    prop_assert!(carried <= capacity + MTU, "{} bytes of {}", carried, capacity);
                }
            }
        }
    }

    /// Without reordering links, packets of a flow arrive in the order in which they were sent.
    #[test]
    fn order_is_kept(mut config in configs(), seed: u64) {
        for link in &mut config.links {
            link.reorder = ReorderConfig::default();
        }
        let mut simulation = simulation(&config, seed);
        simulation.run_until(config.duration_ns);
        for flow in 0..config.flows.len() {
            prop_assert_eq!(simulation.flow_stats(flow).overtaken, 0);
        }
    }

    /// The same seed gives the same run, in one piece or in many.
    #[test]
    fn runs_are_reproducible(config in configs(), seed: u64, step in 1_000_000_u64..900_000_000) {
        let mut whole = simulation(&config, seed);
        whole.run_until(config.duration_ns);
        let mut pieces = simulation(&config, seed);
        let mut time = 0;
        while time < config.duration_ns {
            time = (time + step).min(config.duration_ns);
            pieces.run_until(time);
        }
        prop_assert_eq!(summary(&mut whole), summary(&mut pieces));
    }

    /// A receiver gets every byte of a sized flow, whatever the network does, and exactly once.
    #[test]
    fn sized_flows_complete(mut config in configs(), seed: u64, bytes in 1_u64..500_000) {
        config.duration_ns = 300_000_000_000;
        config.slot_ns = 0;
        config.flows.truncate(1);
        config.flows[0].stop_ns = None;
        config.flows[0].source = SourceConfig::Sized(bytes);
        let mut simulation = simulation(&config, seed);
        simulation.run_until(config.duration_ns);
        let stats = simulation.flow_stats(0);
        prop_assert_eq!(stats.delivered_bytes, bytes);
        prop_assert_eq!(stats.completions.len(), 1);
        prop_assert!(!simulation.flows()[0].is_active());
    }
}
