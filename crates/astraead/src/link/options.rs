//! The options of `astraea link`: each for both directions, or with `up-` or `down-` for one of them.

use std::path::PathBuf;

use astraea_sim::queue::{CodelConfig, FqCodelConfig, Limit, PieConfig, QueueConfig, RedConfig};
use astraea_sim::{DelayConfig, LinkConfig, LossConfig, RateConfig, ReorderConfig, Trace};
use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgMatches, Command, FromArgMatches};

use super::units::{Buffer, MTU, Rate, Ratio, Time};

/// What each direction's options are called, and what they say.
const SETTINGS: [(&str, &str, &str); 7] = [
    ("rate", "RATE", "Rate of the link, for example 100Mbps (default: without limit)"),
    ("trace", "FILE", "Rate from a trace of delivery opportunities in Mahimahi's format"),
    ("delay", "TIME", "One-way delay, for example 15ms (default: 0)"),
    (
        "buffer",
        "SIZE",
        "Room for waiting packets: 1bdp, 375kB, 250packets, 100ms or infinite (default: 1bdp, or 100ms without a delay)",
    ),
    ("queue", "KIND", "Queue discipline (default: droptail)"),
    ("loss", "SHARE", "Random loss, for example 1% (default: 0)"),
    ("jitter", "TIME", "Further delay of each packet, uniform from 0 to this; order is kept (default: 0)"),
];

const QUEUES: [&str; 5] = ["droptail", "codel", "fq_codel", "pie", "red"];

/// Rate of a link without one, in bit/s.
const UNLIMITED: f64 = 1e13;

/// Room in ns for waiting packets where there is no delay of which it could be a multiple.
const UNDELAYED: u64 = 100_000_000;

/// The two directions: up is away from the command.
pub(super) const DIRECTIONS: [&str; 2] = ["up", "down"];

/// What was asked of one direction.
#[derive(Clone, Debug, Default)]
struct Side {
    rate: Option<Rate>,
    trace: Option<PathBuf>,
    delay: Option<Time>,
    buffer: Option<Buffer>,
    queue: Option<String>,
    loss: Option<Ratio>,
    jitter: Option<Time>,
}

/// The settings of both directions.
#[derive(Clone, Debug)]
pub(super) struct Sides([Side; 2]);

impl clap::Args for Sides {
    fn augment_args(command: Command) -> Command {
        let prefixes =
            [("", "Link, in both directions"), ("up-", "Away from the command"), ("down-", "To the command")];
        let mut command = command;
        for (prefix, heading) in prefixes {
            for (name, value, help) in SETTINGS {
                let id = format!("{prefix}{name}");
                let mut arg =
                    Arg::new(id.clone()).long(id).value_name(value).help_heading(heading).allow_hyphen_values(true);
                arg = match help.rsplit_once(" (default: ") {
                    Some((help, _)) if !prefix.is_empty() => arg.help(help),
                    _ => arg.help(help),
                };
                arg = arg.hide_short_help(!prefix.is_empty());
                command = command.arg(match name {
                    "rate" => arg.value_parser(str::parse::<Rate>),
                    "delay" | "jitter" => arg.value_parser(str::parse::<Time>),
                    "buffer" => arg.value_parser(str::parse::<Buffer>),
                    "loss" => arg.value_parser(str::parse::<Ratio>),
                    "queue" => arg.value_parser(PossibleValuesParser::new(QUEUES)),
                    _ => arg.value_parser(clap::value_parser!(PathBuf)),
                });
            }
        }
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Sides {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(DIRECTIONS.map(|direction| {
            // A rate and a trace exclude each other: what is said of one direction alone goes first.
            let own = |name: &str| matches.contains_id(&format!("{direction}-{name}"));
            let (own_rate, own_trace) = (own("rate"), own("trace"));
            Side {
                rate: pick(matches, direction, "rate").filter(|_| own_rate || !own_trace),
                trace: pick(matches, direction, "trace").filter(|_| own_trace || !own_rate),
                delay: pick(matches, direction, "delay"),
                buffer: pick(matches, direction, "buffer"),
                queue: pick(matches, direction, "queue"),
                loss: pick(matches, direction, "loss"),
                jitter: pick(matches, direction, "jitter"),
            }
        })))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The direction's own value of an option, or else that of both.
fn pick<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, direction: &str, name: &str) -> Option<T> {
    let own: Option<&T> = matches.get_one(&format!("{direction}-{name}"));
    own.or_else(|| matches.get_one(name)).cloned()
}

impl Sides {
    /// The links of both directions.
    pub(super) fn links(&self) -> Result<[LinkConfig; 2], String> {
        let delays = self.0.each_ref().map(|side| side.delay.map_or(0, |delay| delay.0));
        let [up, down] = &self.0;
        Ok([up.link(DIRECTIONS[0], delays.iter().sum())?, down.link(DIRECTIONS[1], delays.iter().sum())?])
    }
}

/// Thresholds at a sixth and a half of the buffer, as Floyd's recommendation of a factor of three between them.
fn red(limit: Limit) -> Option<RedConfig> {
    let bytes = match limit {
        Limit::Bytes(bytes) => bytes,
        Limit::Packets(packets) => packets * MTU,
        Limit::Infinite => return None,
    };
    Some(RedConfig { ecn: true, ..RedConfig::new((bytes / 6).max(1), (bytes / 2).max(2)) })
}

impl Side {
    fn link(&self, name: &str, round_trip: u64) -> Result<LinkConfig, String> {
        let (rate, mean) = match (&self.rate, &self.trace) {
            (Some(_), Some(_)) => return Err(format!("{name}link: expected a rate or a trace, got both")),
            (Some(rate), None) => (RateConfig::Constant(rate.0), Some(rate.0)),
            (None, Some(path)) => {
                let trace = Trace::read(path).map_err(|error| format!("trace {}: {error}", path.display()))?;
                (RateConfig::Trace(path.clone()), Some(trace.mean_rate()))
            }
            (None, None) => (RateConfig::Constant(UNLIMITED), None),
        };
        let bytes = |ns: f64| match mean {
            // At least one packet, as in scenarios.
            Some(rate) => Limit::Bytes(((rate / 8e9 * ns).round() as u64).clamp(MTU, 1 << 62)),
            None => Limit::Infinite,
        };
        // Without a delay the product is nothing: whoever leaves that to another link wants some room all the same.
        let usual = if round_trip == 0 { Buffer::Time(UNDELAYED) } else { Buffer::Bdp(1.0) };
        let limit = match self.buffer.unwrap_or(usual) {
            Buffer::Infinite => Limit::Infinite,
            Buffer::Bytes(size) => Limit::Bytes(size.max(MTU)),
            Buffer::Packets(packets) => Limit::Packets(packets),
            Buffer::Bdp(products) => bytes(products * round_trip as f64),
            Buffer::Time(ns) => bytes(ns as f64),
        };
        let queue = match self.queue.as_deref() {
            Some("codel") => QueueConfig::Codel(CodelConfig { ecn: true, ..CodelConfig::default() }),
            Some("fq_codel") => QueueConfig::FqCodel(FqCodelConfig { ecn: true, ..FqCodelConfig::default() }),
            Some("pie") => QueueConfig::Pie(PieConfig { ecn: true, ..PieConfig::default() }),
            Some("red") => QueueConfig::Red(red(limit).ok_or_else(|| format!("{name}link: red needs a --buffer"))?),
            _ => QueueConfig::Droptail {},
        };
        let loss = match self.loss {
            Some(Ratio(1.0)) => return Err(format!("{name}link: a loss of 100% would let nothing through")),
            Some(Ratio(share)) if share > 0.0 => LossConfig::Bernoulli(share),
            _ => LossConfig::None,
        };
        Ok(LinkConfig {
            name: format!("{name}link"),
            rate,
            delay: DelayConfig::Constant(self.delay.map_or(0, |delay| delay.0)),
            limit,
            queue,
            loss,
            jitter_ns: self.jitter.map_or(0, |jitter| jitter.0),
            reorder: ReorderConfig::default(),
        })
    }
}
