//! Events by hand, against what the controller must be told.

use std::sync::{Arc, Mutex};

use super::*;

const MSS: u64 = 1000;

/// What a controller was told, in words.
type Log = Arc<Mutex<Vec<String>>>;

/// A fixed window that writes down what it is told.
struct Scribe {
    log: Log,
    cwnd: u64,
    rate: Option<f64>,
    proportional: bool,
    timer: Option<Nanos>,
}

impl Scribe {
    fn write(&self, line: String) {
        self.log.lock().unwrap().push(line);
    }
}

impl Controller for Scribe {
    fn on_ack(&mut self, ack: &Ack, rtt: &Rtt) {
        let flags = [("full", ack.cwnd_limited), ("recovery", ack.in_recovery), ("hole", ack.hole_open)];
        let flags: Vec<_> = flags.into_iter().filter_map(|(name, set)| set.then_some(name)).collect();
        let rtt = ack.rtt.map(|sample| (sample / MILLISECOND, rtt.latest() / MILLISECOND));
        let marked = ack.ce_marked;
        self.write(format!("ack {} left {} rtt {rtt:?} marked {marked} {}", ack.acked, ack.in_flight, flags.join(" ")));
    }
    fn on_packet_lost(&mut self, packet: &LostPacket) {
        self.write(format!("packet of {}, {} since, {} then", packet.bytes, packet.lost_since, packet.sent_in_flight));
    }
    fn on_loss(&mut self, loss: &Loss) {
        self.write(format!("lost {} left {}", loss.lost, loss.in_flight));
    }
    fn on_congestion(&mut self, event: &Congestion) {
        self.cwnd /= 2;
        self.write(format!("{:?} flight {}", event.signal, event.flight_size));
    }
    fn on_timeout(&mut self, _now: Nanos, flight_size: u64) {
        self.write(format!("timeout flight {flight_size}"));
    }
    fn on_idle_restart(&mut self, _now: Nanos, idle: Nanos) {
        self.write(format!("idle {}", idle / MILLISECOND));
    }
    fn next_timer(&self) -> Option<Nanos> {
        self.timer
    }
    fn on_timer(&mut self, now: Nanos) {
        self.timer = Some(now + 30 * MILLISECOND);
        self.write(format!("timer {}", now / MILLISECOND));
    }
    fn reduces_proportionally(&self) -> bool {
        self.proportional
    }
    fn cwnd(&self) -> u64 {
        self.cwnd
    }
    fn pacing_rate(&self) -> Option<f64> {
        self.rate
    }
}

struct Bench {
    driver: Driver,
    log: Log,
    stamps: Vec<Stamp>,
}

impl Bench {
    /// A window of that many packets, changed by `adjust`.
    fn new(packets: u64, adjust: impl FnOnce(&mut Scribe)) -> Self {
        let log = Log::default();
        let mut scribe = Scribe { log: log.clone(), cwnd: packets * MSS, rate: None, proportional: false, timer: None };
        adjust(&mut scribe);
        let driver = Driver::new(AnyController::Custom(Box::new(scribe)), MSS as u32);
        Self { driver, log, stamps: Vec::new() }
    }

    fn send(&mut self, ms: u64, packets: usize) {
        for _ in 0..packets {
            let stamp = self.driver.on_sent(ms * MILLISECOND, MSS, false);
            self.stamps.push(stamp);
        }
    }

    /// `packets` are acknowledged at once, the newest of which is that one.
    fn ack(&mut self, ms: u64, packets: u64, newest: usize) {
        let stamp = self.stamps[newest];
        self.driver.on_rtt(ms * MILLISECOND - stamp.send.sent_at);
        self.driver.on_ack(ms * MILLISECOND, packets * MSS, &stamp, 0, None);
    }

    fn lose(&mut self, ms: u64, packet: usize, persistent: bool) {
        let packet = self.stamps[packet].send;
        self.driver.on_lost(ms * MILLISECOND, MSS, &packet, persistent);
    }

    fn told(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log.lock().unwrap())
    }
}

#[test]
fn a_full_window_and_a_late_packet_are_seen() {
    let mut bench = Bench::new(4, |_| ());
    bench.send(0, 3);
    assert!(!bench.driver.is_full());
    bench.ack(10, 1, 0);
    bench.send(10, 2);
    assert!(bench.driver.is_full());
    // Packet 1 is late: 2 and 3 arrive before it.
    bench.ack(20, 2, 3);
    bench.ack(21, 1, 1);
    assert_eq!(
        bench.told(),
        [
            "ack 1000 left 2000 rtt Some((10, 10)) marked 0 ",
            "ack 2000 left 2000 rtt Some((10, 10)) marked 0 full hole",
            "ack 1000 left 1000 rtt Some((21, 21)) marked 0 ",
        ]
    );
}

#[test]
fn a_detection_is_reported_once_and_a_recovery_begins_once_a_round_trip() {
    let mut bench = Bench::new(10, |_| ());
    bench.send(0, 10);
    // An acknowledgement of packets 3 to 5 shows that 0 and 1 are lost.
    bench.lose(10, 0, false);
    bench.lose(10, 1, false);
    bench.ack(10, 3, 5);
    // The next one that 2 is lost too, of the same flight.
    bench.lose(11, 2, false);
    bench.ack(11, 1, 6);
    bench.send(11, 1);
    bench.ack(21, 4, 10);
    // A packet sent after the reduction is lost: another event.
    bench.send(22, 2);
    bench.lose(32, 11, false);
    bench.driver.settle();
    assert_eq!(
        bench.told(),
        [
            "packet of 1000, 1000 since, 1000 then",
            "packet of 1000, 2000 since, 2000 then",
            "lost 2000 left 5000",
            "Loss flight 10000",
            "ack 3000 left 5000 rtt Some((10, 10)) marked 0 full recovery hole",
            "packet of 1000, 3000 since, 3000 then",
            "lost 1000 left 3000",
            "ack 1000 left 3000 rtt Some((11, 11)) marked 0 full recovery",
            "ack 4000 left 0 rtt Some((10, 10)) marked 0 ",
            "packet of 1000, 1000 since, 1000 then",
            "lost 1000 left 1000",
            "Loss flight 2000",
        ]
    );
}

#[test]
fn marks_begin_a_recovery_and_persistent_congestion_is_a_timeout() {
    let mut bench = Bench::new(4, |_| ());
    bench.send(0, 4);
    let stamp = bench.stamps[1];
    bench.driver.on_ack(10 * MILLISECOND, 2 * MSS, &stamp, MSS, None);
    let stamp = bench.stamps[2];
    bench.driver.on_ack(11 * MILLISECOND, MSS, &stamp, MSS, None);
    bench.send(12, 1);
    bench.lose(2000, 3, true);
    bench.ack(2000, 1, 4);
    assert_eq!(
        bench.told(),
        [
            "Ecn flight 4000",
            "ack 2000 left 2000 rtt None marked 1000 full recovery",
            "ack 1000 left 1000 rtt None marked 1000 full recovery",
            "timeout flight 2000", // which takes it all to be lost: nothing is told of a loss besides
            "ack 1000 left 0 rtt Some((1988, 1988)) marked 0 full",
        ]
    );
}

#[test]
fn the_first_retransmission_leaves_although_the_window_is_full() {
    let mut bench = Bench::new(10, |_| ());
    bench.send(0, 10);
    bench.lose(10, 0, false);
    bench.ack(10, 1, 3);
    assert!(bench.driver.is_full() && bench.driver.wants_repair());
    bench.send(10, 1);
    assert!(bench.driver.is_full() && !bench.driver.wants_repair());
}

#[test]
fn a_window_goes_down_in_proportion_to_what_arrives() {
    let mut bench = Bench::new(20, |scribe| scribe.proportional = true);
    bench.send(0, 20);
    bench.lose(10, 0, false);
    bench.ack(10, 1, 3);
    let mut sent = 0;
    for packet in 4..20 {
        bench.ack(10 + packet as u64, 1, packet);
        while !bench.driver.is_full() {
            bench.send(10 + packet as u64, 1);
            sent += 1;
        }
    }
    // 17 of 20 arrived in all, and one leaves for two: the flight has come down to the new window of 10.
    assert_eq!((sent, bench.driver.in_flight()), (8, 10 * MSS));
}

#[test]
fn pacing_spaces_packets_and_catches_up_only_when_a_timer_was_late() {
    // 8 Mbit/s: a packet each millisecond.
    let mut bench = Bench::new(100, |scribe| scribe.rate = Some(8e6));
    let next = |bench: &mut Bench| bench.driver.next_departure().unwrap() / MILLISECOND;
    bench.send(5, 1);
    assert_eq!((next(&mut bench), bench.driver.must_pause()), (6, true));
    // A millisecond late: the packet after it is due at once.
    bench.send(7, 1);
    assert_eq!((next(&mut bench), bench.driver.must_pause()), (7, false));
    bench.send(7, 1);
    assert_eq!(next(&mut bench), 8);
    // Long after it was due, no more than two packets are made up for.
    bench.send(50, 1);
    assert_eq!(next(&mut bench), 49);
    // After a pause none is.
    bench.ack(60, 4, 3);
    bench.send(100, 1);
    assert_eq!(next(&mut bench), 101);
}

#[test]
fn an_unpaced_controller_never_waits() {
    let mut bench = Bench::new(3, |_| ());
    bench.send(0, 3);
    assert_eq!((bench.driver.next_departure(), bench.driver.must_pause()), (None, false));
}

#[test]
fn timers_are_made_up_for_with_the_times_they_asked_for() {
    let mut bench = Bench::new(10, |scribe| scribe.timer = Some(30 * MILLISECOND));
    bench.send(10, 1);
    bench.ack(70, 1, 0);
    assert_eq!(bench.told(), ["timer 30", "timer 60", "ack 1000 left 0 rtt Some((60, 60)) marked 0 "]);
}

#[test]
fn a_long_silence_is_an_idle_restart() {
    let mut bench = Bench::new(10, |_| ());
    bench.send(0, 1);
    bench.ack(10, 1, 0);
    bench.send(150, 1);
    bench.ack(160, 1, 1);
    bench.send(1000, 1);
    let told = bench.told();
    assert_eq!(told.iter().filter(|line| line.starts_with("idle")).collect::<Vec<_>>(), ["idle 850"]);
}

#[test]
fn the_delivery_rate_is_that_of_the_path() {
    // A packet a millisecond, acknowledged 10 ms later.
    let mut driver = Driver::new(astraea_policy::schemes::build("bbr", &[], 1000).unwrap(), 1000);
    let mut stamps = Vec::new();
    for ms in 0..200_u64 {
        if ms >= 10 {
            driver.on_rtt(10 * MILLISECOND);
            driver.on_ack(ms * MILLISECOND, MSS, &stamps[(ms - 10) as usize], 0, None);
        }
        stamps.push(driver.on_sent(ms * MILLISECOND, MSS, false));
    }
    // 8 Mbit/s; BBR paces at up to 2.885 times that, less 1 %.
    let rate = driver.pacing_rate().unwrap();
    assert!((0.7 * 8e6..2.9 * 8e6).contains(&rate), "{rate}");
}
