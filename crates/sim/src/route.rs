//! The way of a flow's packets through links and delay lines, and back.

use astraea_cc::Nanos;

use crate::config::{Config, DelayConfig, FlowConfig};
use crate::network::{Network, Origin, PipeEnd};
use crate::packet::Packet;

/// One link of a route and the delay line behind it.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) link: u32,
    pub(crate) pipe: u32,
    /// Delay beyond the link's own.
    pub(crate) extra: Nanos,
}

/// Where acknowledgements go when they do not travel with the echo.
#[derive(Clone, Copy)]
pub(crate) struct AckRoute {
    pub(crate) pipe: u32,
    pub(crate) delay: Nanos,
}

/// Links and delay lines of a flow.
pub(crate) struct Route {
    forward: Vec<Step>,
    backward: Vec<Step>,
    pub(crate) ack: AckRoute,
    /// Links whose delay an acknowledgement has again on its way back, if any of them changes over time.
    pub(crate) return_links: Vec<u32>,
    /// Whether data and its acknowledgement share the last delay line.
    pub(crate) echo: bool,
}

impl Route {
    /// Finds or makes the delay lines that `flow` needs.
    pub(crate) fn new(flow: &FlowConfig, config: &Config, network: &mut Network) -> Self {
        let echo = flow.ack.is_immediate() && flow.return_path.is_empty();
        let fixed = |link: &usize| match config.links[*link].delay {
            DelayConfig::Constant(delay) => Some(delay),
            DelayConfig::Schedule(_) => None,
        };
        let path_delay: Option<Nanos> = flow.path.iter().map(fixed).sum();
        let mirrored = flow.return_path.is_empty();
        let return_links = if path_delay.is_none() && mirrored { flow.path.clone() } else { vec![] };
        let out = flow.extra_delay_ns;
        let back = out + if mirrored { path_delay.unwrap_or(0) } else { 0 };

        let mut steps = |path: &[usize], end: PipeEnd, extra: Nanos| -> Vec<Step> {
            let last = path.len().saturating_sub(1);
            path.iter()
                .enumerate()
                .map(|(hop, link)| {
                    let from = Origin::Link(*link);
                    let key = if hop < last {
                        (PipeEnd::Link, from, 0, vec![])
                    } else {
                        (end, from, extra, return_links.clone())
                    };
                    Step { link: *link as u32, extra: key.2, pipe: network.pipe(key) }
                })
                .collect()
        };
        let (end, extra) = if echo { (PipeEnd::Echo, out + back) } else { (PipeEnd::Receiver, out) };
        let forward = steps(&flow.path, end, extra);
        let backward = steps(&flow.return_path, PipeEnd::Sender, 0);

        let ack_end = if mirrored { PipeEnd::Sender } else { PipeEnd::Link };
        let origin = Origin::Receiver { aggregate: flow.ack.aggregate_ns };
        let pipe = network.pipe((ack_end, origin, back, return_links.clone()));
        let return_links = return_links.iter().map(|link| *link as u32).collect();
        Self { forward, backward, ack: AckRoute { pipe, delay: back }, return_links, echo }
    }

    /// The steps of a packet's direction.
    #[inline]
    pub(crate) fn of(&self, packet: &Packet) -> &[Step] {
        if packet.is_ack() { &self.backward } else { &self.forward }
    }
}
