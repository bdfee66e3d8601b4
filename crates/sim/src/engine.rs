//! The event loop.

use astraea_cc::{Controller, Nanos};

use crate::config::{Config, ConfigError};
use crate::event::Event;
use crate::flow::{Flow, FlowStats};
use crate::link::LinkStats;
use crate::monitor::Interval;
use crate::network::{Network, PipeEnd};
use crate::packet::Packet;
use crate::record::{Books, Recorder};

/// Why [`Simulation::run_until`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The time asked for has come.
    Time,
    /// A monitoring period of that flow has ended: read [`Simulation::take_interval`], set its controller, go on.
    Decision(usize),
}

/// A running simulation whose flows use controllers of type `C`.
pub struct Simulation<C> {
    network: Network,
    flows: Vec<Flow<C>>,
    duration: Nanos,
    aligned_periods: bool,
    events: u64,
}

impl<C: Controller> Simulation<C> {
    /// Sets up a simulation; `controller` is called once for each flow, in order.
    ///
    /// # Errors
    /// If the configuration is inconsistent or a trace cannot be read.
    pub fn new(config: &Config, seed: u64, mut controller: impl FnMut(usize) -> C) -> Result<Self, ConfigError> {
        config.validate()?;
        let mut network = Network::new(&config.links, seed, Books::new(config))?;
        let mut flows = Vec::with_capacity(config.flows.len());
        for (index, flow) in config.flows.iter().enumerate() {
            flows.push(Flow::new(index as u32, config, controller(index), &mut network, seed));
            network.events.push(flow.start_ns, Event::Start(index as u32));
            if let Some(stop) = flow.stop_ns {
                network.events.push(stop, Event::Stop(index as u32));
            }
        }
        network.check()?;
        Ok(Self { network, flows, duration: config.duration_ns, aligned_periods: config.aligned_periods, events: 0 })
    }

    /// Present time in ns.
    pub fn now(&self) -> Nanos {
        self.network.now
    }

    /// Simulated time that was asked for, in ns.
    pub fn duration(&self) -> Nanos {
        self.duration
    }

    /// Events handled so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The flows, in the order of the configuration.
    pub fn flows(&self) -> &[Flow<C>] {
        &self.flows
    }

    /// One flow.
    pub fn flow_mut(&mut self, flow: usize) -> &mut Flow<C> {
        &mut self.flows[flow]
    }

    /// Counters of a flow.
    pub fn flow_stats(&self, flow: usize) -> FlowStats {
        self.flows[flow].stats(self.network.books.gone[flow])
    }

    /// When the next event is, which [`run_until`](Self::run_until) would handle: `None` if there is none.
    pub fn next_event(&mut self) -> Option<Nanos> {
        self.network.events.peek().map(|(at, _)| at)
    }

    /// Lets a flow send what a change of its controller now allows.
    pub fn pump(&mut self, flow: usize) {
        self.flows[flow].pump(&mut self.network);
    }

    /// Counters of a link, brought up to the present.
    pub fn link_stats(&mut self, link: usize) -> &LinkStats {
        self.network.settle();
        &self.network.links[link].stats
    }

    /// Packets waiting at a link.
    pub fn queue_length(&mut self, link: usize) -> usize {
        self.network.settle();
        self.network.links[link].waiting()
    }

    /// Wire bytes that a link could carry between two times.
    pub fn capacity_bytes(&self, link: usize, from: Nanos, to: Nanos) -> f64 {
        self.network.links[link].capacity_bytes(from, to)
    }

    /// Data packets between senders and receivers, counted one by one (slow; for checks of conservation). Queues with
    /// active management must not hold acknowledgements.
    pub fn data_packets_in_network(&self) -> usize {
        self.network.data_packets()
    }

    /// The time series, if the configuration asks for them.
    pub fn recorder(&mut self) -> Option<&Recorder> {
        self.network.settle();
        self.network.books.recorder.as_ref()
    }

    /// What the flow measured since its last call or its start; a new monitoring period begins and ends at `until`
    /// (`None`: after its configured length).
    pub fn take_interval(&mut self, flow: usize, until: Option<Nanos>) -> Interval {
        let now = self.network.now;
        let end = until.unwrap_or_else(|| self.period_end(flow));
        let flow_ref = &mut self.flows[flow];
        let mut interval = std::mem::replace(&mut flow_ref.sender.interval, Interval::new(now, end));
        interval.end = now;
        if end > now {
            self.network.events.push(end, Event::Period(flow as u32));
        }
        interval
    }

    fn period_end(&self, flow: usize) -> Nanos {
        let (now, period) = (self.network.now, self.flows[flow].period);
        if self.aligned_periods && period > 0 { (now / period + 1) * period } else { now + period }
    }

    /// Runs until `time`, or until a flow has to decide if that comes first.
    pub fn run_until(&mut self, time: Nanos) -> Stop {
        while let Some((at, event)) = self.network.events.peek() {
            if at > time {
                break;
            }
            self.network.now = at;
            self.events += 1;
            if let Event::Pipe(pipe) = event {
                let (end, packet) = self.network.arrive(pipe);
                self.on_arrival(end, packet);
            } else if let Event::Pace(flow) = event {
                self.flows[flow as usize].on_pace(&mut self.network);
            } else if let Some(flow) = self.on_event(event) {
                return Stop::Decision(flow);
            }
        }
        self.network.now = self.network.now.max(time);
        Stop::Time
    }

    #[inline]
    fn on_arrival(&mut self, end: PipeEnd, packet: Packet) {
        let flow = &mut self.flows[packet.flow as usize];
        match end {
            PipeEnd::Echo => flow.on_echo(&mut self.network, packet),
            PipeEnd::Link => flow.forward(&mut self.network, packet),
            PipeEnd::Receiver => flow.receive(&mut self.network, packet),
            PipeEnd::Sender => flow.on_ack(&mut self.network, &packet),
        }
    }

    /// Handles a rarer event; returns the flow that has to decide, if one has.
    fn on_event(&mut self, event: Event) -> Option<usize> {
        if event == Event::Stray {
            let (end, packet) = self.network.arrive_stray();
            self.on_arrival(end, packet);
            return None;
        }
        if let Event::Deadline(flow) = event
            && let Some(later) = self.flows[flow as usize].later_deadline(self.network.now)
        {
            self.network.events.postpone(later, event);
            return None;
        }
        self.network.events.pop();
        let network = &mut self.network;
        match event {
            Event::Deadline(flow) => self.flows[flow as usize].on_deadline(network),
            Event::Controller(flow) => self.flows[flow as usize].on_controller_timer(network),
            Event::Source(flow) => self.flows[flow as usize].on_source(network),
            Event::DelayedAck(flow) => self.flows[flow as usize].on_delayed_ack(network),
            Event::Service(link) => self.serve(link),
            Event::Stop(flow) => self.flows[flow as usize].stop(network.now),
            Event::Start(flow) => {
                if self.flows[flow as usize].period > 0 {
                    self.take_interval(flow as usize, None);
                }
                self.flows[flow as usize].start(&mut self.network);
            }
            Event::Period(index) => {
                let flow = &self.flows[index as usize];
                if flow.is_active() && flow.interval().end == self.network.now {
                    return Some(index as usize);
                }
            }
            Event::Pipe(_) | Event::Pace(_) | Event::Stray => unreachable!("handled above"),
        }
        None
    }

    fn serve(&mut self, link: u32) {
        let network = &mut self.network;
        if let Some((packet, departure)) = network.links[link as usize].serve(network.now, &mut network.books) {
            self.flows[packet.flow as usize].depart(network, packet, departure);
        }
        network.schedule_service(link);
    }
}
