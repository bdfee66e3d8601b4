//! What an emulation did, in the simulator's terms, and whether it can be believed.

use astraea_sim::mesh::{Mesh, Passage, PathStats};
use astraea_sim::{FlowSlot, Histogram, LinkSlot, LinkStats, Nanos};

use crate::config::Config;
use crate::engine::Engine;

/// An emulation that has been stopped.
pub struct Report {
    meshes: Vec<Mesh>,
    flows: usize,
    slots: usize,
    limit: Nanos,
    /// How long it ran, in ns.
    pub elapsed_ns: Nanos,
    /// How late packets were delivered, in ns after the time that the links demand.
    pub lateness: Histogram,
    /// Packets that the devices dropped before the emulator saw them.
    pub device_dropped: u64,
    /// Packets that the kernel did not take back.
    pub refused: u64,
    /// Names of the devices that were removed while it ran.
    pub gone: Vec<String>,
    /// Packets that belong to no route.
    pub unrouted: u64,
    /// What happened to packets since the last [`Running::take_log`](crate::Running::take_log).
    pub log: Vec<Passage>,
    /// Packets that were on their way at the end.
    pub on_the_way: usize,
    /// CPU time of the emulator's threads in ns, with the kernel's work on delivery.
    pub cpu_ns: Nanos,
    /// How often the threads woke up.
    pub wakeups: u64,
    /// Whether all threads had real-time priority.
    pub realtime: bool,
}

impl Report {
    pub(crate) fn new(config: &Config, elapsed_ns: Nanos, engines: Vec<Engine>) -> Self {
        let sum = |count: fn(&Engine) -> u64| engines.iter().map(count).sum();
        let mut lateness = Histogram::default();
        for engine in &engines {
            lateness.merge(&engine.tally.lateness);
        }
        Self {
            flows: config.routes.len(),
            slots: if config.slot_ns > 0 { config.duration_ns.div_ceil(config.slot_ns) as usize } else { 0 },
            limit: config.lateness_limit_ns,
            elapsed_ns,
            lateness,
            device_dropped: 0,
            refused: sum(|e| e.tally.refused),
            gone: engines.iter().flat_map(Engine::gone).map(str::to_owned).collect(),
            unrouted: sum(|e| e.tally.unrouted),
            on_the_way: engines.iter().map(Engine::on_the_way).sum(),
            cpu_ns: sum(|e| e.tally.cpu_ns),
            wakeups: sum(|e| e.tally.wakeups),
            realtime: engines.iter().all(|e| e.tally.realtime),
            log: Vec::new(),
            meshes: engines.into_iter().map(|engine| engine.mesh).collect(),
        }
    }

    /// Why the emulation is unfaithful, one line for each reason; empty if it can be believed.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let late = self.lateness.quantile(0.999).unwrap_or(0.0);
        if late > self.limit as f64 {
            let (late, limit) = (late / 1e6, self.limit as f64 / 1e6);
            let priority = if self.realtime { "" } else { " (no real-time priority: CAP_SYS_NICE is missing)" };
            problems
                .push(format!("one packet in a thousand was {late:.2} ms late or more, expected {limit} ms{priority}"));
        }
        problems.extend(self.gone.iter().map(|device| format!("device {device} has gone")));
        if self.device_dropped > 0 {
            problems.push(format!("the devices dropped {} packets before the emulator saw them", self.device_dropped));
        }
        if self.refused > 0 {
            problems.push(format!("the kernel did not take {} packets back", self.refused));
        }
        problems
    }

    /// The model in which packets crossed a link.
    fn mesh_of(&mut self, link: usize) -> &mut Mesh {
        let owner = self.meshes.iter_mut().position(|mesh| mesh.link_stats(link).offered > 0);
        &mut self.meshes[owner.unwrap_or(0)]
    }

    /// Counters of a link.
    ///
    /// # Panics
    /// If there is no such link, as the other methods that take one.
    pub fn link_stats(&mut self, link: usize) -> &LinkStats {
        self.mesh_of(link).link_stats(link)
    }

    /// Time series of a link, one entry for each slot; empty if none was recorded.
    pub fn link_series(&mut self, link: usize) -> Vec<LinkSlot> {
        let slots = self.slots;
        let Some(recorder) = self.mesh_of(link).recorder() else { return Vec::new() };
        let recorded = recorder.link(link);
        (0..slots).map(|slot| recorded.get(slot).copied().unwrap_or_default()).collect()
    }

    /// Wire bytes that a link could carry between two times after the start, in ns.
    pub fn capacity_bytes(&self, link: usize, from: Nanos, to: Nanos) -> f64 {
        self.meshes[0].capacity_bytes(link, from, to)
    }

    /// Counters of a flow's packets from sender to receiver.
    ///
    /// # Panics
    /// If there is no such flow.
    pub fn flow_stats(&self, flow: usize) -> PathStats {
        assert!(flow < self.flows, "there are {} flows", self.flows);
        self.meshes[0].path_stats(flow)
    }

    /// Time series of a flow, one entry for each slot, of which only `delivered` is used: payload bytes that left the
    /// last link towards the receiver, retransmissions included.
    ///
    /// # Panics
    /// If there is no such flow.
    pub fn flow_series(&mut self, flow: usize) -> Vec<FlowSlot> {
        assert!(flow < self.flows, "there are {} flows", self.flows);
        let slots = self.slots;
        let Some(recorder) = self.meshes[0].recorder() else { return Vec::new() };
        let recorded = recorder.flow(flow);
        (0..slots).map(|slot| recorded.get(slot).copied().unwrap_or_default()).collect()
    }
}
