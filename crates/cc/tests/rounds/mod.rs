//! A path reduced to rounds: each round acknowledges one window of packets, evenly over a round-trip time, and then
//! something may happen. Small enough to work out by hand what a controller must do on it.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses its own part")]

use astraea_cc::{
    Ack, Congestion, Controller, Loss, LostPacket, MILLISECOND, MSS, Nanos, RateSampler, Rtt, SECOND, SendStamp, Signal,
};

const PACKET: u64 = MSS as u64;

/// A bottleneck: packets beyond `bdp` queue and lengthen the round trip, packets beyond `bdp + buffer` are lost.
#[derive(Clone, Copy)]
pub struct Path {
    pub rtt: Nanos,
    /// Packets that fit into the empty path.
    pub bdp: u64,
    /// Packets that fit into the queue.
    pub buffer: u64,
}

impl Path {
    /// A path without limit.
    pub fn unlimited(rtt: Nanos) -> Self {
        Self { rtt, bdp: u64::MAX / 2, buffer: 0 }
    }

    fn capacity(&self) -> u64 {
        self.bdp + self.buffer
    }

    fn round_trip(&self, window: u64) -> Nanos {
        let window = window.min(self.capacity());
        if window <= self.bdp { self.rtt } else { (u128::from(self.rtt * window) / u128::from(self.bdp)) as u64 }
    }
}

/// What may happen in a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// At its end a packet is found lost.
    Loss,
    /// At its end a mark is echoed.
    Mark,
    /// At its end the last loss turns out to have been reordering.
    Spurious,
    /// Nothing is acknowledged, and the retransmission timer expires after a second.
    Timeout,
    /// The application sends half a window only.
    HalfUsed,
    /// Before it the connection is idle.
    Idle(Nanos),
}

/// What happened in a round.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// Packets that the controller allows in flight at its beginning.
    pub window: f64,
    /// Time of its beginning.
    pub start: Nanos,
    /// What happened in it, if anything.
    pub event: Option<Event>,
}

impl Round {
    pub fn lost(&self) -> bool {
        self.event == Some(Event::Loss)
    }
}

/// A controller on a path.
pub struct Rounds<C> {
    pub controller: C,
    pub path: Path,
    rtt: Rtt,
    sampler: RateSampler,
    now: Nanos,
    /// When the packets left that the next round acknowledges: first and last.
    sent: (Nanos, Nanos),
    /// The rate sampler at times of the last round: what packets were stamped with that the next one acknowledges.
    stamps: Vec<SendStamp>,
    /// How long the last round took.
    round_trip: Nanos,
    in_recovery: bool,
}

impl<C: Controller> Rounds<C> {
    pub fn new(controller: C, path: Path) -> Self {
        let (rtt, sampler) = (Rtt::default(), RateSampler::default());
        Self {
            controller,
            path,
            rtt,
            sampler,
            now: SECOND,
            sent: (SECOND, SECOND),
            stamps: Vec::new(),
            round_trip: path.rtt,
            in_recovery: false,
        }
    }

    /// Plays one round, in which `event` happens, or a loss when the window overflows the path.
    pub fn play(&mut self, event: Option<Event>) -> Round {
        if let Some(Event::Idle(idle)) = event {
            self.now += idle;
            self.controller.on_idle_restart(self.now, idle);
            self.sent = (self.now, self.now);
            (self.stamps, self.round_trip) = (Vec::new(), self.path.rtt);
        }
        let start = self.now;
        let window = self.window();
        let packets = (window as u64).max(1);
        let overflow = packets.saturating_sub(self.path.capacity());
        let mut event = event;
        if event == Some(Event::Timeout) {
            self.now += SECOND;
            self.in_recovery = false;
            self.controller.on_timeout(self.now, packets * PACKET);
            self.sent = (self.now, self.now);
            (self.stamps, self.round_trip) = (Vec::new(), self.path.rtt);
        } else {
            self.acknowledge(packets - overflow, event == Some(Event::HalfUsed));
            // What overflows while an earlier loss is repaired belongs to the same congestion.
            if overflow > 0 && !self.in_recovery {
                event = Some(Event::Loss);
            }
            self.in_recovery = false;
            self.congest(event, overflow.max(1));
        }
        Round { window, start, event }
    }

    /// Packets in flight that the window allows, and pacing over the round before: a queue that it built remains.
    fn window(&self) -> f64 {
        let cwnd = self.controller.cwnd() as f64 / PACKET as f64;
        let packets = |rate: f64| rate * self.round_trip as f64 / SECOND as f64 / 8.0 / PACKET as f64;
        self.controller.pacing_rate().map_or(cwnd, |rate| cwnd.min(packets(rate)))
    }

    /// Acknowledges `packets` in one round trip, in which nothing happens.
    pub fn grow(&mut self, packets: u64) {
        self.acknowledge(packets, false);
    }

    /// Finds a packet lost.
    pub fn lose(&mut self) {
        self.congest(Some(Event::Loss), 1);
    }

    fn acknowledge(&mut self, packets: u64, half_used: bool) {
        let round_trip = self.path.round_trip(packets);
        let packets = if half_used { (packets / 2).max(1) } else { packets };
        let start = self.now;
        let (first, last) = self.sent;
        let mut before = std::mem::take(&mut self.stamps);
        if before.is_empty() {
            before.push(self.sampler.on_sent(start, PACKET, 0));
        }
        if half_used {
            self.sampler.on_app_limited(packets * PACKET);
        }
        for packet in 1..=packets {
            self.now = start + round_trip * packet / packets;
            let sent_at = first + (last - first) * packet / packets;
            self.rtt.update(round_trip);
            let index = (packet - 1) * before.len() as u64 / packets;
            let stamp = SendStamp { sent_at, in_flight: packets * PACKET, ..before[index as usize] };
            self.sampler.on_delivered(self.now, PACKET);
            let ack = Ack {
                now: self.now,
                acked: PACKET,
                sent_at,
                rtt: Some(round_trip),
                rate: self.sampler.sample(&stamp, self.path.rtt),
                in_flight: packets.min(self.controller.cwnd() / PACKET) * PACKET,
                cwnd_limited: !half_used,
                in_recovery: self.in_recovery,
                ..Ack::default()
            };
            self.controller.on_ack(&ack, &self.rtt);
            self.controller.on_sent(self.now, PACKET, ack.in_flight);
            self.stamps.push(self.sampler.on_sent(self.now, PACKET, (packets - 1) * PACKET));
        }
        self.round_trip = round_trip;
        self.sent = (start, self.now);
    }

    fn congest(&mut self, event: Option<Event>, lost: u64) {
        let signal = match event {
            Some(Event::Loss) => Signal::Loss,
            Some(Event::Mark) => Signal::Ecn,
            Some(Event::Spurious) => return self.controller.on_spurious_congestion(self.now),
            _ => return,
        };
        let flight_size = self.controller.cwnd() / PACKET * PACKET;
        let lost = lost * PACKET;
        let sent_at = self.now - self.path.rtt.min(self.now);
        if signal == Signal::Loss {
            for packet in 1..=lost / PACKET {
                self.sampler.on_lost(PACKET);
                let lost_since = packet * PACKET;
                let (now, bytes, sent_in_flight, app_limited) = (self.now, PACKET, flight_size, false);
                let packet = LostPacket { now, bytes, sent_at, sent_in_flight, lost_since, app_limited };
                self.controller.on_packet_lost(&packet);
            }
            self.controller.on_loss(&Loss { now: self.now, lost, in_flight: flight_size.saturating_sub(lost) });
        }
        self.controller.on_congestion(&Congestion { now: self.now, signal, flight_size, sent_at });
        self.in_recovery = true;
    }
}

/// Milliseconds as [`Nanos`].
pub const fn ms(ms: u64) -> Nanos {
    ms * MILLISECOND
}
