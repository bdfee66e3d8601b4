//! A flow: sender, receiver and the route between them.
//!
//! What a packet goes through when it is sent is inlined as a whole.

#![expect(
    clippy::inline_always,
    reason = "a packet written field by field and read back wider at once stalls the processor"
)]

use astraea_cc::{Controller, Nanos, Rtt};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::config::{AckConfig, Config};
use crate::event::Event;
use crate::link::Offer;
use crate::monitor::Interval;
use crate::network::Network;
use crate::packet::{Packet, time_stamp};
use crate::queue::Packet as _;
use crate::receiver::{AckState, Completion, Reassembly, is_before};
use crate::route::Route;
use crate::sender::{AckBatch, Blocked, NEVER, Sender, Transmission};
use crate::source::{Source, generator};

/// Counters of a flow over its life.
#[derive(Clone, Debug, Default)]
pub struct FlowStats {
    /// Data packets sent, retransmissions included.
    pub sent: u64,
    /// Retransmissions.
    pub retransmitted: u64,
    /// Packets that the sender declared lost (and has not taken back).
    pub declared_lost: u64,
    /// Packets that were declared lost and arrived.
    pub spurious: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Data packets that the network lost or dropped.
    pub dropped: u64,
    /// Data packets that left the last link of the path within the simulated time.
    pub departed: u64,
    /// Data packets that reached the receiver. Where it acknowledges each packet at once and no link is on the way back, a
    /// packet is counted when its acknowledgement reaches the sender, the way back later: it has no event before.
    pub arrived: u64,
    /// Those of them that had been overtaken by a later one.
    pub overtaken: u64,
    /// New payload bytes that left the last link of the path within the simulated time.
    pub delivered_bytes: u64,
    /// Payload bytes acknowledged.
    pub acked_bytes: u64,
    /// Sum of the round-trip samples in ns.
    pub rtt_sum: u64,
    /// Number of round-trip samples.
    pub rtt_count: u64,
    /// The smallest round-trip sample in ns, `None` without any.
    pub rtt_min: Option<Nanos>,
    /// Messages that the receiver has in full.
    pub completions: Vec<Completion>,
}

/// A flow under simulation, with the controller `C`.
pub struct Flow<C> {
    index: u32,
    pub(crate) sender: Sender<C>,
    source: Source,
    reassembly: Reassembly,
    acks: AckState,
    ack_config: AckConfig,
    ecn: bool,
    rng: Xoshiro256PlusPlus,
    route: Route,
    pub(crate) period: Nanos,
    active: bool,
    started_at: Option<Nanos>,
    ended_at: Option<Nanos>,
    duration: Nanos,
    departed: u64,
    arrived: u64,
    overtaken: u64,
    /// One more than the largest packet number that reached the receiver.
    arrived_end: u32,
    delivered_bytes: u64,
    completions: Vec<Completion>,
    pace_armed: Nanos,
    deadline_armed: Nanos,
    controller_armed: Nanos,
    ack_armed: Nanos,
}

impl<C: Controller> Flow<C> {
    pub(crate) fn new(index: u32, config: &Config, cc: C, network: &mut Network, seed: u64) -> Self {
        let flow = &config.flows[index as usize];
        Self {
            index,
            sender: Sender::new(cc, flow.mss, if flow.ack.every > 1 { flow.ack.timeout_ns } else { 0 }, flow.burst_ns),
            source: Source::new(flow.source.clone()),
            reassembly: Reassembly::default(),
            acks: AckState::default(),
            ack_config: flow.ack,
            ecn: flow.ecn,
            rng: generator(seed, index as usize),
            route: Route::new(flow, config, network),
            period: flow.period_ns,
            active: false,
            started_at: None,
            ended_at: None,
            duration: config.duration_ns,
            departed: 0,
            arrived: 0,
            overtaken: 0,
            arrived_end: 0,
            delivered_bytes: 0,
            completions: Vec::new(),
            pace_armed: NEVER,
            deadline_armed: NEVER,
            controller_armed: NEVER,
            ack_armed: NEVER,
        }
    }

    /// The controller.
    pub fn controller(&self) -> &C {
        &self.sender.cc
    }

    /// The controller, to set what it answers. Call [`Simulation::pump`](crate::Simulation::pump) afterwards if a
    /// larger window or rate is to take effect before the next acknowledgement.
    pub fn controller_mut(&mut self) -> &mut C {
        &mut self.sender.cc
    }

    /// Round-trip estimate of the sender.
    pub fn rtt(&self) -> &Rtt {
        &self.sender.rtt
    }

    /// Payload bytes in flight.
    pub fn in_flight(&self) -> u64 {
        self.sender.in_flight()
    }

    /// Sums since the present monitoring period began.
    pub fn interval(&self) -> &Interval {
        &self.sender.interval
    }

    /// Whether the flow has started and neither stopped nor completed.
    pub fn is_active(&self) -> bool {
        self.active
    }

    /// When it started, in ns.
    pub fn started_at(&self) -> Option<Nanos> {
        self.started_at
    }

    /// When it stopped or completed, in ns.
    pub fn ended_at(&self) -> Option<Nanos> {
        self.ended_at
    }

    /// New payload bytes that left the last link of the path.
    pub fn delivered_bytes(&self) -> u64 {
        self.delivered_bytes
    }

    /// All counters; the network knows how many packets were `dropped`.
    pub(crate) fn stats(&self, dropped: u64) -> FlowStats {
        let sender = &self.sender.stats;
        FlowStats {
            sent: sender.sent,
            retransmitted: sender.retransmitted,
            declared_lost: sender.lost,
            spurious: sender.spurious,
            timeouts: sender.timeouts,
            dropped,
            departed: self.departed,
            arrived: self.arrived,
            overtaken: self.overtaken,
            delivered_bytes: self.delivered_bytes,
            acked_bytes: self.sender.delivered(),
            rtt_sum: sender.rtt_sum,
            rtt_count: sender.rtt_count,
            rtt_min: self.sender.rtt.min(),
            completions: self.completions.clone(),
        }
    }

    pub(crate) fn start(&mut self, network: &mut Network) {
        self.active = true;
        self.started_at = Some(network.now);
        self.sender.interval.start = network.now;
        self.on_source(network);
    }

    pub(crate) fn stop(&mut self, now: Nanos) {
        if self.active {
            self.active = false;
            self.ended_at = Some(now);
        }
    }

    /// The application produces data or changes state.
    pub(crate) fn on_source(&mut self, network: &mut Network) {
        if !self.active {
            return;
        }
        if let Some(next) = self.source.advance(network.now, &mut self.rng) {
            network.events.push(next, Event::Source(self.index));
        }
        self.pump(network);
    }

    /// Sends what may be sent, and arms the timers.
    #[inline]
    pub(crate) fn pump(&mut self, network: &mut Network) {
        if !self.active {
            return;
        }
        if let Some(time) = self.send_all(network)
            && self.pace_armed != time
        {
            self.pace_armed = time;
            network.events.push(time, Event::Pace(self.index));
        }
        self.arm_deadline(network);
        self.arm_controller(network);
    }

    /// Sends what may be sent; returns when pacing allows the next packet, if it is pacing that holds it back.
    #[inline]
    fn send_all(&mut self, network: &mut Network) -> Option<Nanos> {
        self.sender.refresh();
        loop {
            match self.sender.next_packet(network.now, &mut self.source) {
                Ok(transmission) => self.send(network, transmission),
                Err(Blocked::Pacing(time)) => return Some(time),
                Err(Blocked::Window) => return None,
                Err(Blocked::Application) => {
                    if self.source.is_sized() && self.sender.is_idle() {
                        self.stop(network.now);
                    }
                    return None;
                }
            }
        }
    }

    #[inline]
    fn arm_deadline(&mut self, network: &mut Network) {
        let deadline = self.sender.deadline();
        if deadline < self.deadline_armed {
            self.deadline_armed = deadline;
            network.events.push(deadline, Event::Deadline(self.index));
        }
    }

    #[inline]
    fn arm_controller(&mut self, network: &mut Network) {
        if let Some(time) = self.sender.cc.next_timer()
            && time != self.controller_armed
        {
            self.controller_armed = time;
            network.events.push(time.max(network.now), Event::Controller(self.index));
        }
    }

    #[inline(always)]
    fn send(&mut self, network: &mut Network, transmission: Transmission) {
        let Transmission { number, segment, payload } = transmission;
        self.forward(network, Packet::data(self.index, number as u32, segment, payload, self.ecn));
    }

    /// Puts a packet on the link of its present hop.
    #[inline(always)]
    pub(crate) fn forward(&mut self, network: &mut Network, packet: Packet) {
        let route = self.route.of(&packet);
        match network.offer(route[usize::from(packet.hop)].link, packet) {
            Offer::Departs(departure) => self.depart(network, packet, departure),
            Offer::Served(packet, departure) => self.depart_served(network, packet, departure),
            Offer::Queued | Offer::Gone => {}
        }
    }

    /// As [`depart`](Self::depart), out of the way of links without a managed queue.
    #[inline(never)]
    fn depart_served(&mut self, network: &mut Network, packet: Packet, departure: Nanos) {
        self.depart(network, packet, departure);
    }

    /// A packet will have left the transmitter of its present hop at `departure`.
    #[inline(always)]
    pub(crate) fn depart(&mut self, network: &mut Network, mut packet: Packet, departure: Nanos) {
        let route = self.route.of(&packet);
        let hop = usize::from(packet.hop);
        let step = route[hop];
        let last = hop + 1 == route.len();
        let link = &mut network.links[step.link as usize];
        let mut arrival = departure + link.delay(departure) + step.extra + link.jitter();
        let held_back = link.held_back();
        let delivered = last && !packet.is_ack();
        // An echo is on the delay line for the way back as well.
        let mut way_back = 0;
        if delivered && self.route.echo {
            way_back = self.route.ack.delay;
            packet.enqueued_at = 0;
            if !self.route.return_links.is_empty() {
                let varying = self.varying_return_delay(network, arrival - way_back);
                way_back += varying;
                arrival += varying;
                packet.enqueued_at = varying;
            }
        }
        packet.hop += 1;
        let arrival = match held_back {
            None => network.push(step.pipe, arrival, packet),
            Some(hold) => network.push_stray(step.pipe, arrival, hold, packet),
        };
        if delivered {
            self.deliver(network, step.link, &packet, departure, arrival - way_back);
        }
    }

    /// The part of the return delay that changes over time.
    #[inline]
    fn varying_return_delay(&self, network: &mut Network, at: Nanos) -> Nanos {
        self.route.return_links.iter().map(|link| network.links[*link as usize].delay(at)).sum()
    }

    /// A data packet leaves its last queue: nothing can stop it from reaching the receiver at `arrival`.
    #[inline(always)]
    fn deliver(&mut self, network: &mut Network, link: u32, packet: &Packet, departure: Nanos, arrival: Nanos) {
        let is_new = self.reassembly.accept(packet.segment, packet.payload, arrival);
        if departure >= self.duration {
            return;
        }
        self.departed += 1;
        if !is_new {
            return;
        }
        self.delivered_bytes += u64::from(packet.payload);
        if let Some(recorder) = &mut network.books.recorder {
            let cursor = &mut network.links[link as usize].departures;
            recorder.delivery(cursor, self.index, departure, u32::from(packet.payload));
        }
        let complete_at = self.reassembly.in_order_at();
        if complete_at <= self.duration {
            while let Some(completion) = self.source.completed(self.reassembly.in_order(), complete_at) {
                self.completions.push(completion);
            }
        }
    }

    #[inline]
    fn count_arrival(&mut self, number: u32) {
        self.arrived += 1;
        if is_before(number, self.arrived_end) {
            self.overtaken += 1;
        } else {
            self.arrived_end = number.wrapping_add(1);
        }
    }

    /// A data packet reached the receiver, which does not acknowledge every packet at once.
    pub(crate) fn receive(&mut self, network: &mut Network, packet: Packet) {
        self.count_arrival(packet.number);
        if self.acks.on_arrival(&packet, self.ack_config.every) {
            self.acknowledge(network);
        } else if self.acks.unacknowledged() == 1 {
            self.ack_armed = network.now + self.ack_config.timeout_ns;
            network.events.push(self.ack_armed, Event::DelayedAck(self.index));
        }
    }

    pub(crate) fn on_delayed_ack(&mut self, network: &mut Network) {
        if self.ack_armed == network.now && self.acks.unacknowledged() > 0 {
            self.acknowledge(network);
        }
    }

    fn acknowledge(&mut self, network: &mut Network) {
        self.ack_armed = NEVER;
        let covers = self.acks.acknowledge();
        if self.ack_config.loss > 0.0 && self.rng.random::<f64>() < self.ack_config.loss {
            return;
        }
        let bunch = self.ack_config.aggregate_ns;
        let leaves = if bunch > 0 { network.now.div_ceil(bunch) * bunch } else { network.now };
        let delay = self.route.ack.delay + self.varying_return_delay(network, leaves);
        network.push(self.route.ack.pipe, leaves + delay, Packet::ack(self.index, covers, network.now));
    }

    /// An acknowledgement reached the sender.
    pub(crate) fn on_ack(&mut self, network: &mut Network, ack: &Packet) {
        let mut batch = AckBatch::stamped(ack.stamped());
        while let Some(arrival) = self.acks.consume(ack.number) {
            self.sender.ack_packet(network.now, arrival.number, arrival.marked, &mut batch);
        }
        self.finish_ack(network, &batch);
    }

    /// The echo of a data packet reached the sender.
    #[inline]
    pub(crate) fn on_echo(&mut self, network: &mut Network, packet: Packet) {
        self.count_arrival(packet.number);
        let left = network.now.saturating_sub(self.route.ack.delay + packet.enqueued_at);
        let mut batch = AckBatch::stamped(time_stamp(left));
        self.sender.ack_packet(network.now, packet.number, packet.is_marked(), &mut batch);
        self.finish_ack(network, &batch);
    }

    #[inline]
    fn finish_ack(&mut self, network: &mut Network, batch: &AckBatch) {
        if !self.active || batch.is_empty() {
            return;
        }
        let lost_before = self.sender.stats.lost;
        self.sender.finish_ack(network.now, batch);
        self.pump(network);
        self.record(network, lost_before, true);
    }

    #[inline]
    fn record(&mut self, network: &mut Network, lost_before: u64, with_rtt: bool) {
        let Some(recorder) = &mut network.books.recorder else { return };
        let slot = recorder.flow_now(self.index, network.now);
        if with_rtt {
            slot.rtt_sum += self.sender.rtt.latest();
            slot.rtt_count += 1;
        }
        slot.lost += self.sender.stats.lost.saturating_sub(lost_before) as u32;
        let (cwnd, pacing) = self.sender.allowance();
        slot.cwnd = cwnd as f32;
        slot.pacing = pacing.unwrap_or(0.0) as f32;
        slot.in_flight = self.sender.in_flight() as f32;
    }

    /// Pacing lets the flow send again, unless the event is stale; it is the present one, and taken off the queue.
    #[inline]
    pub(crate) fn on_pace(&mut self, network: &mut Network) {
        if self.pace_armed != network.now || !self.active {
            network.events.pop();
            return;
        }
        let was_idle = self.sender.in_flight() == 0;
        self.pace_armed = self.send_all(network).unwrap_or(NEVER);
        if self.pace_armed == NEVER {
            network.events.pop();
        } else {
            network.events.postpone(self.pace_armed, Event::Pace(self.index));
        }
        // A deadline that is armed sending only puts off.
        if was_idle {
            self.arm_deadline(network);
        }
        self.arm_controller(network);
    }

    /// The armed deadline has come, but what has happened since has put it off: the new one, now armed.
    #[inline]
    pub(crate) fn later_deadline(&mut self, now: Nanos) -> Option<Nanos> {
        let deadline = self.sender.deadline();
        let put_off = self.active && self.deadline_armed == now && deadline > now && deadline < NEVER;
        put_off.then(|| {
            self.deadline_armed = deadline;
            deadline
        })
    }

    pub(crate) fn on_deadline(&mut self, network: &mut Network) {
        if self.deadline_armed != network.now {
            return;
        }
        self.deadline_armed = NEVER;
        if !self.active || self.sender.deadline() > network.now {
            return;
        }
        let lost_before = self.sender.stats.lost;
        if let Some(probe) = self.sender.on_deadline(network.now) {
            self.send(network, probe);
        }
        self.record(network, lost_before, false);
        self.pump(network);
    }

    pub(crate) fn on_controller_timer(&mut self, network: &mut Network) {
        if self.active && self.controller_armed <= network.now {
            self.controller_armed = NEVER;
            // It may have changed its mind.
            if self.sender.cc.next_timer().is_some_and(|time| time <= network.now) {
                self.sender.cc.on_timer(network.now);
            }
            self.pump(network);
        }
    }
}
