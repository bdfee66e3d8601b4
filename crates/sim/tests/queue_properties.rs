//! What holds for every queue discipline, whatever arrives and whenever the link takes a packet.

use std::collections::{HashMap, VecDeque};

use astraea_sim::queue::{
    CodelConfig, Discipline, FqCodelConfig, Limit, Packet, PieConfig, QueueConfig, RedConfig, Verdict,
};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

#[derive(Clone, Debug, PartialEq)]
struct Item {
    id: usize,
    flow: u32,
    size: u32,
    capable: bool,
    marked: bool,
    enqueued: u64,
}

impl Packet for Item {
    fn size(&self) -> u32 {
        self.size
    }
    fn flow(&self) -> u32 {
        self.flow
    }
    fn ecn_capable(&self) -> bool {
        self.capable
    }
    fn mark_ce(&mut self) {
        self.marked = true;
    }
    fn is_marked(&self) -> bool {
        self.marked
    }
    fn enqueued_at(&self) -> u64 {
        self.enqueued
    }
    fn set_enqueued_at(&mut self, now: u64) {
        self.enqueued = now;
    }
}

#[derive(Clone, Debug)]
enum Step {
    Arrive { after: u64, flow: u32, size: u32, capable: bool },
    Take { after: u64 },
}

/// Steps of up to `gap` ns. Small times and targets, so that the disciplines act within a few hundred steps.
fn steps() -> impl Strategy<Value = Vec<Step>> {
    let size = prop_oneof![3 => Just(1500_u32), 1 => 40_u32..1500];
    let arrive = (0_u64..1000, 0_u32..6, size, any::<bool>()).prop_map(|(after, flow, size, capable)| Step::Arrive {
        after,
        flow,
        size,
        capable,
    });
    let take = (0_u64..1000).prop_map(|after| Step::Take { after });
    (1_u32..6).prop_flat_map(move |arrivals| {
        prop::collection::vec(prop_oneof![arrivals => arrive.clone(), 2 => take.clone()], 1..400)
    })
}

fn disciplines() -> impl Strategy<Value = QueueConfig> {
    let times = (1_u64..5000, 1_u64..20_000, any::<bool>());
    prop_oneof![
        Just(QueueConfig::Droptail {}),
        times.clone().prop_map(|(target_ns, interval_ns, ecn)| {
            QueueConfig::Codel(CodelConfig { target_ns, interval_ns, ecn })
        }),
        (times.clone(), 1_u32..8, 40_u32..3000).prop_map(|((target_ns, interval_ns, ecn), flows, quantum)| {
            QueueConfig::FqCodel(FqCodelConfig { target_ns, interval_ns, ecn, flows, quantum })
        }),
        (times, 0_u64..20_000).prop_map(|((target_ns, tupdate_ns, ecn), burst_ns)| {
            // Gains in Hz for delays of microseconds.
            QueueConfig::Pie(PieConfig { target_ns, tupdate_ns, burst_ns, ecn, alpha: 1e4, beta: 1e5 })
        }),
        (1_u64..5000, 1_u64..10_000, 0.01_f64..1.0, 0.01_f64..1.0, any::<(bool, bool)>()).prop_map(
            |(min_bytes, range, max_p, weight, (gentle, ecn))| {
                QueueConfig::Red(RedConfig { min_bytes, max_bytes: min_bytes + range, max_p, weight, gentle, ecn })
            }
        ),
    ]
}

fn limits() -> impl Strategy<Value = Limit> {
    prop_oneof![(1500_u64..40_000).prop_map(Limit::Bytes), (1_u64..40).prop_map(Limit::Packets), Just(Limit::Infinite),]
}

/// Books of what should be in the queue.
#[derive(Default)]
struct Books {
    /// Waiting packets of each flow in order of arrival (all flows are one if the discipline is a single FIFO).
    waiting: HashMap<u32, VecDeque<Item>>,
    single: bool,
}

impl Books {
    fn line(&mut self, flow: u32) -> &mut VecDeque<Item> {
        self.waiting.entry(if self.single { 0 } else { flow }).or_default()
    }

    /// A packet left the queue at its head, sent or dropped.
    fn head_left(&mut self, item: &Item) -> Result<(), TestCaseError> {
        let expected = self.line(item.flow).pop_front();
        prop_assert_eq!(expected.map(|e| (e.id, e.enqueued)), Some((item.id, item.enqueued)), "order not kept");
        Ok(())
    }

    fn totals(&self) -> (usize, u64) {
        let all = self.waiting.values().flatten();
        all.fold((0, 0), |(packets, bytes), item| (packets + 1, bytes + u64::from(item.size)))
    }
}

fn ecn(config: &QueueConfig) -> bool {
    match config {
        QueueConfig::Droptail {} => false,
        QueueConfig::Codel(config) => config.ecn,
        QueueConfig::FqCodel(config) => config.ecn,
        QueueConfig::Pie(config) => config.ecn,
        QueueConfig::Red(config) => config.ecn,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    /// Every packet is sent once, dropped once or still waiting; order is kept (in each flow); the limit holds at all
    /// times; only capable packets are marked, and only with ECN; a link that asks gets a packet if one survives.
    #[test]
    fn conservation_order_and_limit(
        config in disciplines(), limit in limits(), steps in steps(), seed in any::<u64>()
    ) {
        prop_assert_eq!(config.validate(), Ok(()));
        let mut queue = config.build::<Item>(limit);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut books = Books { single: !matches!(config, QueueConfig::FqCodel(_)), ..Books::default() };
        let mut now = 0;
        for (id, step) in steps.into_iter().enumerate() {
            match step {
                Step::Arrive { after, flow, size, capable } => {
                    now += after;
                    let item = Item { id, flow, size, capable, marked: false, enqueued: u64::MAX };
                    match queue.enqueue(now, item.clone(), &mut rng) {
                        Verdict::Queued => books.line(flow).push_back(Item { enqueued: now, ..item }),
                        Verdict::Dropped(dropped) => prop_assert_eq!(dropped, item),
                        Verdict::Evicted(evicted) => {
                            prop_assert!(!evicted.is_empty());
                            books.line(flow).push_back(Item { enqueued: now, ..item });
                            for item in &evicted {
                                books.head_left(item)?;
                            }
                        }
                    }
                }
                Step::Take { after } => {
                    now += after;
                    let mut dropped = Vec::new();
                    let sent = queue.dequeue(now, &mut dropped);
                    for item in &dropped {
                        books.head_left(item)?;
                        prop_assert!(!(item.marked || ecn(&config) && item.capable));
                    }
                    if let Some(item) = &sent {
                        books.head_left(item)?;
                        prop_assert!(!item.marked || (ecn(&config) && item.capable));
                    } else {
                        prop_assert!(queue.is_empty(), "a packet waits and the link gets none");
                    }
                }
            }
            prop_assert_eq!((queue.len(), queue.bytes()), books.totals());
            prop_assert!(limit.allows(queue.len(), queue.bytes()));
        }
    }
}
