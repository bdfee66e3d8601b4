//! What is emulated: the simulator's links, and the flows' ways through them.

use astraea_sim::mesh::{Mesh, Path};
use astraea_sim::{ConfigError, LinkConfig, Nanos, RateConfig};

/// Flows that addresses can tell apart.
pub const MOST_FLOWS: usize = 65_000;

/// Rate in bit/s up to which one thread serves both directions.
const ONE_THREAD: f64 = 300e6;

/// The way of a flow's packets, as in the simulator's [`FlowConfig`](astraea_sim::FlowConfig).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Indices of the links from sender to receiver, in order; may be empty.
    pub path: Vec<usize>,
    /// Indices of the links on the way back; empty for a pure delay equal to that of `path`.
    pub return_path: Vec<usize>,
    /// One-way delay in ns of this flow alone, on the way out and on the way back.
    pub extra_delay_ns: Nanos,
}

/// Which route a packet takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routing {
    /// By the last 16 bits of the sender's address; packets of unknown addresses are dropped and counted.
    #[default]
    ByAddress,
    /// All take the first.
    Single,
}

/// An emulation.
#[derive(Clone, Debug)]
pub struct Config {
    /// The links, as the simulator takes them. Rates count IP bytes.
    pub links: Vec<LinkConfig>,
    /// One route for each flow.
    pub routes: Vec<Route>,
    /// How packets find their route.
    pub routing: Routing,
    /// Length of a slot of the time series in ns; 0 records none.
    pub slot_ns: Nanos,
    /// How long the series are, in ns. The emulation runs until it is stopped.
    pub duration_ns: Nanos,
    /// Time in ns from the start until time 0 of the links; before that, packets find them idle and infinitely fast.
    pub lead_ns: Nanos,
    /// Seed of the links' random streams, as in the simulator.
    pub seed: u64,
    /// The emulation is unfaithful if one packet in a thousand is later than this, in ns.
    pub lateness_limit_ns: Nanos,
    /// Deliver every 50 µs under load, whatever that costs. Otherwise deliveries are further apart the longer the path is, in
    /// which bursts a scheme that measures rates finds more bandwidth than there is.
    pub prompt: bool,
    /// Keep a log of every packet for [`Running::take_log`](crate::Running::take_log).
    pub log: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            links: Vec::new(),
            routes: Vec::new(),
            routing: Routing::ByAddress,
            slot_ns: 0,
            duration_ns: 0,
            lead_ns: 0,
            seed: 1,
            lateness_limit_ns: 2_000_000,
            prompt: false,
            log: false,
        }
    }
}

impl Config {
    /// Checks everything, with models that are thrown away.
    pub(crate) fn validate(&self) -> Result<(), ConfigError> {
        self.meshes().map(|_| ())
    }

    /// The paths of all flows, on the way out and on the way back.
    fn paths(&self) -> [Vec<Path>; 2] {
        let out = |route: &Route| Path { links: route.path.clone(), delay_of: vec![], extra_ns: route.extra_delay_ns };
        let back = |route: &Route| Path {
            links: route.return_path.clone(),
            delay_of: if route.return_path.is_empty() { route.path.clone() } else { vec![] },
            extra_ns: route.extra_delay_ns,
        };
        [self.routes.iter().map(out).collect(), self.routes.iter().map(back).collect()]
    }

    /// A model for each thread: one for each direction, or one with the paths out followed by the paths back.
    pub(crate) fn meshes(&self) -> Result<Vec<Mesh>, ConfigError> {
        if self.routes.is_empty() || self.routes.len() > MOST_FLOWS {
            let problem = format!("there are {}, expected 1 to {MOST_FLOWS}", self.routes.len());
            return Err(ConfigError::new("routes", problem));
        }
        let [out, back] = self.paths();
        let parts = if self.wants_two_threads() { vec![out, back] } else { vec![[out, back].concat()] };
        let mesh = |paths: Vec<Path>| {
            let mut mesh = Mesh::new(&self.links, &paths, self.slot_ns, self.duration_ns, self.seed)?;
            if self.log {
                mesh.keep_log();
            }
            Ok(mesh)
        };
        parts.into_iter().map(mesh).collect()
    }

    /// Whether each direction has a thread of its own: when a link is fast. One thread for both wakes up half as often,
    /// and is all that can be done when a link is crossed in both directions.
    fn wants_two_threads(&self) -> bool {
        let fast = self.links.iter().any(|link| match &link.rate {
            RateConfig::Constant(rate) => *rate > ONE_THREAD,
            RateConfig::Schedule { pieces, .. } => pieces.iter().any(|piece| piece.1 > ONE_THREAD),
            RateConfig::Trace(_) => false,
        });
        fast && self.is_separable()
    }

    /// Whether no link is crossed in both directions.
    fn is_separable(&self) -> bool {
        let out: std::collections::BTreeSet<_> = self.routes.iter().flat_map(|route| &route.path).collect();
        !self.routes.iter().flat_map(|route| &route.return_path).any(|link| out.contains(link))
    }
}
