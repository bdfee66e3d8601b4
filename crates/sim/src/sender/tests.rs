//! A sender against a network that the test plays itself.

use std::collections::BTreeSet;

use astraea_cc::{Congestion, Loss, MILLISECOND, MSS, SECOND};
use proptest::prelude::*;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::config::SourceConfig;

/// A fixed window that counts what it is told.
#[derive(Default)]
struct Counter {
    cwnd: u64,
    proportional: bool,
    congestions: u32,
    undone: u32,
    timeouts: u32,
    lost: u64,
}

impl Controller for Counter {
    fn on_ack(&mut self, _ack: &Ack, _rtt: &Rtt) {}
    fn on_loss(&mut self, loss: &Loss) {
        self.lost += loss.lost;
    }
    fn on_congestion(&mut self, _event: &Congestion) {
        self.congestions += 1;
    }
    fn reduces_proportionally(&self) -> bool {
        self.proportional
    }
    fn on_timeout(&mut self, _now: Nanos, _flight_size: u64) {
        self.timeouts += 1;
    }
    fn on_spurious_congestion(&mut self, _now: Nanos) {
        self.undone += 1;
    }
    fn cwnd(&self) -> u64 {
        self.cwnd
    }
}

/// A sender, its data, and the packets that are on their way.
struct Bench {
    now: Nanos,
    sender: Sender<Counter>,
    source: Source,
    on_the_way: Vec<Transmission>,
    sent: BTreeSet<u32>,
    acked: BTreeSet<u32>,
}

impl Bench {
    /// `bytes` of data and a window of `packets`; packet numbers begin at `first`.
    fn new(bytes: u64, mss: u32, packets: u64, first: u64) -> Self {
        let cc = Counter { cwnd: packets * u64::from(mss), ..Counter::default() };
        let mut source = Source::new(SourceConfig::Sized(bytes));
        source.advance(0, &mut Xoshiro256PlusPlus::seed_from_u64(0));
        let mut sender = Sender::new(cc, mss, 0, 0);
        sender.board = Scoreboard::starting_at(first);
        (sender.acked_end, sender.recovery_start, sender.recovery_end, sender.timeout_end) =
            (first, first, first, first);
        let (on_the_way, sent, acked) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        let mut bench = Self { now: 0, sender, source, on_the_way, sent, acked };
        bench.pump();
        bench
    }

    fn put(&mut self, transmission: Transmission) {
        self.sent.insert(transmission.segment);
        self.on_the_way.push(transmission);
    }

    fn pump(&mut self) {
        self.sender.refresh();
        while let Ok(transmission) = self.sender.next_packet(self.now, &mut self.source) {
            self.put(transmission);
        }
    }

    /// Packets, by their place on the way, arrive in one acknowledgement.
    fn acknowledge(&mut self, places: &[usize]) {
        let mut batch = AckBatch::default();
        for &place in places {
            let Transmission { number, segment, .. } = self.on_the_way[place];
            self.sender.ack_packet(self.now, number as u32, false, &mut batch);
            self.acked.insert(segment);
        }
        let mut place = 0;
        self.on_the_way.retain(|_| {
            place += 1;
            !places.contains(&(place - 1))
        });
        self.sender.finish_ack(self.now, &batch);
        self.pump();
    }

    /// Time passes, but no deadline.
    fn pass(&mut self, time: Nanos) {
        self.now = (self.now + time).min(self.sender.deadline()).max(self.now);
    }

    /// Goes on to the next deadline.
    fn wait(&mut self) {
        let deadline = self.sender.deadline();
        if deadline < NEVER {
            self.now = self.now.max(deadline);
            if let Some(probe) = self.sender.on_deadline(self.now) {
                self.put(probe);
            }
            self.pump();
        }
    }

    /// Counters, sums and queues agree with the scoreboard.
    fn check(&mut self) {
        let board = &self.sender.board;
        let (base, next) = (board.base(), board.next());
        let open: Vec<_> = (base..next).map(|n| *board.get(n)).filter(|s| s.state == State::InFlight).collect();
        assert_eq!(self.sender.in_flight(), open.iter().map(|s| u64::from(s.payload)).sum::<u64>());
        let pending: BTreeSet<_> = self.sender.repairs.iter().map(|r| r.segment).collect();
        let in_flight: BTreeSet<_> = open.iter().map(|s| s.segment).collect();
        for segment in &self.sent {
            assert!(
                self.acked.contains(segment) || pending.contains(segment) || in_flight.contains(segment),
                "segment {segment} is forgotten"
            );
        }
    }
}

/// A packet of the 10 in flight is lost when four later ones have arrived.
fn lose_first(bench: &mut Bench) {
    bench.now += 10 * MILLISECOND;
    bench.acknowledge(&[1, 2, 3, 4]);
    assert_eq!(bench.sender.stats.lost, 1);
}

#[test]
fn a_loss_is_one_congestion_event_and_a_late_acknowledgement_undoes_it() {
    let mut bench = Bench::new(1_000_000, MSS, 10, 0);
    lose_first(&mut bench);
    assert_eq!((bench.sender.cc.congestions, bench.sender.in_recovery), (1, true));
    bench.acknowledge(&[0]);
    assert_eq!((bench.sender.cc.undone, bench.sender.in_recovery, bench.sender.stats.spurious), (1, false, 1));
    // Of the same flight another packet is lost for good: that is a congestion event again.
    let lost = bench.on_the_way.remove(0);
    assert_eq!(lost.number, 5);
    bench.acknowledge(&[0, 1, 2, 3]);
    assert_eq!((bench.sender.cc.congestions, bench.sender.stats.lost), (2, 2));
}

#[test]
fn small_packets_count_as_packets() {
    // Five packets of 100 bytes are given up, and one of them was only late.
    let mut bench = Bench::new(100, 100, 10, 0);
    bench.source = Source::new(SourceConfig::Sized(100 * 9));
    bench.source.advance(0, &mut Xoshiro256PlusPlus::seed_from_u64(0));
    bench.sender.mss = u64::from(MSS);
    for _ in 0..9 {
        let transmission = bench.sender.transmit(0, bench.sender.next_segment, 100, false);
        bench.sender.next_segment += 1;
        bench.put(transmission);
    }
    bench.now = 10 * MILLISECOND;
    bench.acknowledge(&[6, 7]);
    assert_eq!((bench.sender.stats.lost, bench.sender.event_losses), (5, 5));
    bench.acknowledge(&[0]);
    assert_eq!((bench.sender.cc.undone, bench.sender.event_losses), (0, 4));
}

#[test]
fn a_late_packet_of_an_older_event_does_not_undo_a_newer_one() {
    let mut bench = Bench::new(1_000_000, MSS, 10, 0);
    lose_first(&mut bench);
    // Nothing more is sent, so that the scoreboard remembers. On the way: 0, 5 to 9, and from the second flight 10 to 14.
    bench.sender.cc.cwnd = 1;
    assert_eq!(bench.on_the_way.iter().map(|t| t.number).collect::<Vec<_>>(), [0, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
    bench.acknowledge(&[1, 2, 3, 4, 5, 6]);
    assert!(!bench.sender.in_recovery);
    bench.acknowledge(&[2, 3, 4]);
    assert_eq!((bench.sender.cc.congestions, bench.sender.stats.lost), (2, 2));
    for (number, spurious, undone) in [(0, 1, 0), (11, 2, 1)] {
        assert_eq!(bench.on_the_way[0].number, number);
        bench.acknowledge(&[0]);
        assert_eq!((bench.sender.stats.spurious, bench.sender.cc.undone), (spurious, undone));
    }
}

#[test]
fn a_late_acknowledgement_undoes_a_timeout() {
    let mut bench = Bench::new(1_000_000, MSS, 10, 0);
    bench.sender.cc.cwnd = u64::from(MSS);
    bench.wait();
    assert_eq!((bench.sender.cc.timeouts, bench.sender.stats.lost, bench.on_the_way.len()), (1, 10, 11));
    assert_eq!(bench.sender.interval.lost, 10 * u64::from(MSS));
    // The second of them arrives after all; the first has been sent again.
    bench.acknowledge(&[1]);
    assert_eq!((bench.sender.cc.undone, bench.sender.stats.lost), (1, 2));
    assert_eq!(bench.sender.in_flight(), 9 * u64::from(MSS));
    // Those of the first packet, which has been sent again, and of the second.
    assert_eq!(bench.sender.interval.lost, 2 * u64::from(MSS));
    bench.check();
}

/// Two timeouts in a row. On the way: 0 to 9, given up, and 10 and 11 with the data of the first of them.
fn time_out_twice() -> Bench {
    let mut bench = Bench::new(1_000_000, MSS, 10, 0);
    bench.sender.cc.cwnd = u64::from(MSS);
    bench.wait();
    bench.wait();
    assert_eq!((bench.sender.cc.timeouts, bench.on_the_way.len()), (2, 12));
    bench
}

#[test]
fn of_several_timeouts_the_first_is_undone_and_what_was_lost_before_it_is_a_loss() {
    let mut bench = time_out_twice();
    bench.acknowledge(&[5]);
    assert_eq!((bench.sender.cc.undone, bench.sender.cc.congestions), (1, 1), "1 and 2 were lost, which is seen now");
    assert!(bench.sender.in_recovery);
    bench.check();
}

#[test]
fn what_was_sent_after_a_timeout_does_not_undo_it() {
    let mut bench = time_out_twice();
    assert_eq!(bench.on_the_way[10].number, 10);
    bench.acknowledge(&[10]);
    assert_eq!((bench.sender.stats.spurious, bench.sender.cc.undone), (1, 0));
    bench.check();
}

/// RFC 6298 (5.4), and in order afterwards.
#[test]
fn each_timeout_sends_the_earliest_data_again() {
    let mut bench = Bench::new(1_000_000, MSS, 10, 0);
    bench.sender.cc.cwnd = u64::from(MSS);
    for timeouts in 1..=3 {
        bench.wait();
        assert_eq!((bench.sender.cc.timeouts, bench.on_the_way.last().map(|t| t.segment)), (timeouts, Some(0)));
    }
    bench.on_the_way.drain(..12);
    bench.sender.cc.cwnd = 20 * u64::from(MSS);
    bench.acknowledge(&[0]);
    assert_eq!(bench.on_the_way.iter().map(|t| t.segment).collect::<Vec<_>>(), (1..=20).collect::<Vec<_>>());
}

#[test]
fn data_that_come_twice_count_once() {
    let mut bench = Bench::new(1_000_000, MSS, 10, 0);
    lose_first(&mut bench);
    // The first was only late; its copy comes as well. Nothing more is sent, so that the scoreboard remembers.
    bench.sender.cc.cwnd = 1;
    let copy = bench.on_the_way.iter().position(|t| t.segment == 0 && t.number > 0).expect("it was sent again");
    bench.acknowledge(&[copy]);
    let before = bench.sender.delivered();
    bench.acknowledge(&[0]);
    assert_eq!((bench.sender.stats.spurious, bench.sender.delivered()), (1, before));
    assert_eq!(before, bench.acked.len() as u64 * u64::from(MSS));
}

/// RFC 8985 §7.2 leaves probes out while a loss is repaired; a mark is no loss.
#[test]
fn a_tail_is_probed_after_a_mark_too() {
    let mut bench = Bench::new(5 * u64::from(MSS), MSS, 10, 0);
    bench.now = 10 * MILLISECOND;
    let mut batch = AckBatch::default();
    bench.on_the_way.drain(..4);
    (0..4).for_each(|number| bench.sender.ack_packet(bench.now, number, number == 3, &mut batch));
    bench.sender.finish_ack(bench.now, &batch);
    assert_eq!((bench.sender.cc.congestions, bench.sender.in_recovery), (1, true));
    assert_eq!(bench.sender.deadline(), bench.now + 20 * MILLISECOND);
    bench.wait();
    assert_eq!((bench.on_the_way.len(), bench.sender.cc.timeouts), (2, 0));
}

#[test]
fn a_timeout_is_not_undone_after_another_loss() {
    let mut bench = Bench::new(1_000_000, MSS, 10, 0);
    bench.wait();
    // On the way: 0 to 9, given up, and 10 to 19 with the same data. The 10th is lost as well: a reduction of its own.
    bench.sender.cc.cwnd = 1;
    bench.now += 10 * MILLISECOND;
    bench.acknowledge(&[11, 12, 13, 14]);
    assert_eq!((bench.sender.cc.timeouts, bench.sender.cc.congestions), (1, 1));
    bench.acknowledge(&[9]);
    assert_eq!((bench.sender.stats.spurious, bench.sender.cc.undone), (1, 0));
    bench.acknowledge(&[9]);
    assert_eq!((bench.sender.stats.spurious, bench.sender.cc.undone), (2, 1), "the 10th was only late");
}

#[test]
fn a_probe_carries_its_originals_data() {
    let mut bench = Bench::new(5 * u64::from(MSS), MSS, 10, 0);
    bench.now = 10 * MILLISECOND;
    bench.acknowledge(&[0, 1, 2, 3]);
    let original = bench.on_the_way.remove(0);
    bench.wait();
    assert_eq!(bench.on_the_way[0].segment, original.segment);
    assert_eq!((bench.sender.stats.lost, bench.sender.cc.timeouts), (0, 0));
    bench.now += 10 * MILLISECOND;
    bench.acknowledge(&[0]);
    assert_eq!((bench.sender.stats.lost, bench.sender.cc.congestions, bench.sender.cc.lost), (1, 1, u64::from(MSS)));
    assert!(bench.sender.is_idle() && !bench.sender.in_recovery);
    assert_eq!(bench.sender.stats.sent, 6, "nothing is sent a third time");
}

/// Of 40 packets 37 are lost, of which the first was only late: 20 in flight are wanted, and 2 are left.
#[test]
fn a_flight_grows_in_recovery_only_when_the_oldest_hole_is_filled() {
    let mut bench = Bench::new(1_000_000, MSS, 40, 0);
    (bench.sender.cc.cwnd, bench.sender.cc.proportional) = (20 * u64::from(MSS), true);
    bench.now = 10 * MILLISECOND;
    bench.on_the_way.drain(1..37);
    let mut in_flight = Vec::new();
    // Packet 39 shows it, 37 and 38 say nothing of the oldest hole: one packet leaves for each. The late one fills the hole.
    for (place, number) in [(3, 39), (1, 37), (1, 38), (0, 0)] {
        assert_eq!(bench.on_the_way[place].number, number);
        bench.acknowledge(&[place]);
        in_flight.push(bench.sender.in_flight() / u64::from(MSS));
    }
    assert_eq!((bench.sender.stats.lost, bench.sender.stats.spurious, bench.sender.in_recovery), (37, 1, true));
    assert_eq!(in_flight, [3, 3, 3, 5]);
}

/// Two round trips of 500 ms, but a timeout is 200 ms beyond one.
#[test]
fn a_probe_leaves_at_the_time_of_a_timeout_that_would_come_before() {
    let mut bench = Bench::new(30 * u64::from(MSS), MSS, 1, 0);
    for _ in 0..29 {
        bench.now += 500 * MILLISECOND;
        bench.acknowledge(&[0]);
    }
    let sent_at = bench.now;
    let original = bench.on_the_way.remove(0);
    bench.wait();
    assert_eq!((bench.now - sent_at, bench.on_the_way.len()), (700 * MILLISECOND, 1));
    assert_eq!(bench.on_the_way[0].segment, original.segment);
    assert_eq!(bench.sender.cc.timeouts, 0);
    // The timeout waits for the probe.
    bench.wait();
    assert_eq!((bench.now - sent_at, bench.sender.cc.timeouts), (1400 * MILLISECOND, 1));
}

/// What the network does next.
#[derive(Clone, Debug)]
enum Step {
    /// Some packets arrive and are acknowledged together: places on the way, as shares of its length.
    Arrive(Vec<f64>),
    /// A packet is lost.
    Lose(f64),
    /// Time passes.
    Pass(Nanos),
    /// A deadline comes.
    Wait,
    /// The controller wants another window, in packets.
    Window(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => prop::collection::vec(prop_oneof![3 => Just(0.0), 2 => 0.0..0.1_f64, 1 => 0.0..1.0_f64], 1..5).prop_map(Step::Arrive),
        2 => (0.0..1.0_f64).prop_map(Step::Lose),
        2 => (0..20 * MILLISECOND).prop_map(Step::Pass),
        2 => Just(Step::Wait),
        1 => (1_u64..60).prop_map(Step::Window),
    ];
    prop::collection::vec(step, 1..400)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever is lost, late or out of order, and although numbers outgrow 32 bits: the books balance, no data is
    /// forgotten, and it all arrives in the end.
    #[test]
    fn nothing_is_forgotten(steps in steps(), bytes in 1_u64..300_000, window in 1_u64..40) {
        let mut bench = Bench::new(bytes, MSS, window, (1 << 32) - 100);
        for step in steps {
            let count = bench.on_the_way.len();
            let place = |share: f64| (share * count as f64) as usize;
            match step {
                Step::Arrive(shares) if count > 0 => {
                    let places: BTreeSet<_> = shares.into_iter().map(place).collect();
                    bench.acknowledge(&places.into_iter().collect::<Vec<_>>());
                }
                Step::Lose(share) if count > 0 => {
                    bench.on_the_way.remove(place(share));
                }
                Step::Pass(time) => bench.pass(time),
                // Round trips made of timeouts, which grow with the round trip, would soon last for years.
                Step::Wait if bench.now < 1000 * SECOND => bench.wait(),
                Step::Window(packets) => bench.sender.cc.cwnd = packets * u64::from(MSS),
                Step::Arrive(_) | Step::Lose(_) | Step::Wait => {}
            }
            bench.check();
        }
        for _ in 0..3000 {
            if bench.on_the_way.is_empty() {
                bench.wait();
            } else {
                bench.pass(MILLISECOND);
                bench.acknowledge(&[0]);
            }
        }
        bench.check();
        prop_assert!(bench.sender.is_idle());
        prop_assert_eq!(bench.acked.len() as u64, bytes.div_ceil(u64::from(MSS)));
        prop_assert_eq!(bench.sender.delivered(), bytes, "data count once");
    }
}
