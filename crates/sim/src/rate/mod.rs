//! Link rates: constant, scheduled, or by a trace of delivery opportunities; and the transmitter that turns a rate into
//! times of departure.

mod byte_time;
mod opportunities;
mod schedule;

use std::path::PathBuf;

use astraea_cc::Nanos;
use serde::{Deserialize, Serialize};

use crate::trace::Trace;
use byte_time::ByteTime;
use opportunities::Opportunities;
use schedule::Schedule;

/// The end of time, in ns: what would leave later leaves then, so that no link is too slow for 64 bits.
pub(crate) const FAR: Nanos = 1 << 62;

/// Rates that a link may have in bit/s.
const RATE_RANGE: std::ops::RangeInclusive<f64> = 1.0..=1e13;

/// How fast a link is. As data `{"constant": 1e8}`, `{"schedule": [[0, 2e7], [5000000000, 4e7]], "repeat_ns": 0}` or
/// `{"trace": "FILE"}`; rates of 1 to 1e13 bit/s of wire bytes (in a schedule also 0, but not for ever), times in ns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Keys", into = "Keys")]
pub enum RateConfig {
    /// Bit/s.
    Constant(f64),
    /// Piecewise constant.
    Schedule {
        /// Start in ns and rate in bit/s of each piece; the first starts at 0.
        pieces: Vec<(Nanos, f64)>,
        /// Period in ns with which the schedule repeats; 0: the last piece lasts for ever.
        repeat_ns: Nanos,
    },
    /// A file in Mahimahi's format.
    Trace(PathBuf),
}

/// The keys as they are written.
#[derive(Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Keys {
    #[serde(skip_serializing_if = "Option::is_none")]
    constant: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<Vec<(Nanos, f64)>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeat_ns: Option<Nanos>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<PathBuf>,
}

impl TryFrom<Keys> for RateConfig {
    type Error = &'static str;

    fn try_from(keys: Keys) -> Result<Self, Self::Error> {
        match keys {
            Keys { constant: Some(rate), schedule: None, repeat_ns: None, trace: None } => Ok(Self::Constant(rate)),
            Keys { constant: None, schedule: Some(pieces), repeat_ns, trace: None } => {
                Ok(Self::Schedule { pieces, repeat_ns: repeat_ns.unwrap_or(0) })
            }
            Keys { constant: None, schedule: None, repeat_ns: None, trace: Some(path) } => Ok(Self::Trace(path)),
            _ => Err("expected one of constant, schedule (with or without repeat_ns) and trace"),
        }
    }
}

impl From<RateConfig> for Keys {
    fn from(config: RateConfig) -> Self {
        match config {
            RateConfig::Constant(rate) => Self { constant: Some(rate), ..Self::default() },
            RateConfig::Schedule { pieces, repeat_ns } => {
                Self { schedule: Some(pieces), repeat_ns: Some(repeat_ns), ..Self::default() }
            }
            RateConfig::Trace(path) => Self { trace: Some(path), ..Self::default() },
        }
    }
}

impl RateConfig {
    /// A transmitter that is free from time zero on. Reads the trace file, if any.
    ///
    /// # Errors
    ///
    /// One line that says what was expected.
    pub fn build(&self) -> Result<Server, String> {
        let server = match self {
            Self::Constant(rate) => Server::constant(*rate),
            Self::Schedule { pieces, repeat_ns } => {
                Schedule::new(pieces, *repeat_ns).map(|schedule| Server(Kind::Schedule(schedule)))
            }
            Self::Trace(path) => match Trace::read(path) {
                Ok(trace) => Ok(Server::trace(trace)),
                Err(error) => Err(format!("trace {}: {error}", path.display())),
            },
        };
        server.map_err(|problem| format!("rate: {problem}"))
    }
}

/// The transmitter of a link. It takes one packet at a time: [`Server::begin`] says when it can take the next one, the
/// owner then asks the queue for it, and [`Server::finish`] says when its last bit has left. Times must not run
/// backwards: each call of `begin` is for a time no earlier than the last packet's end.
#[derive(Clone, Debug)]
pub struct Server(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Constant(ByteTime),
    Schedule(Schedule),
    Trace(Opportunities),
}

impl Server {
    /// A transmitter of constant rate in bit/s.
    ///
    /// # Errors
    ///
    /// One line if the rate is not within 1 to 1e13.
    pub fn constant(rate: f64) -> Result<Self, String> {
        check_rate(rate)?;
        Ok(Self(Kind::Constant(ByteTime::new(rate))))
    }

    /// A transmitter that sends at the opportunities of a trace.
    pub fn trace(trace: Trace) -> Self {
        Self(Kind::Trace(Opportunities::new(trace)))
    }

    /// When the next packet can be taken if one waits from `ready` on, in ns. Asking again, for the same time or a
    /// later one, does no harm.
    #[inline]
    pub fn begin(&mut self, ready: Nanos) -> Nanos {
        match &mut self.0 {
            Kind::Constant(_) => ready,
            Kind::Schedule(schedule) => schedule.begin(ready),
            Kind::Trace(opportunities) => opportunities.begin(ready),
        }
    }

    /// Takes a packet of `size` wire bytes at `start`, which came from [`Server::begin`]; the time in ns at which its
    /// last bit leaves, at most 2^62 (146 years).
    #[inline]
    pub fn finish(&mut self, start: Nanos, size: u32) -> Nanos {
        let finish = match &mut self.0 {
            Kind::Constant(time) => start + time.of(size),
            Kind::Schedule(schedule) => schedule.finish(start, size),
            Kind::Trace(opportunities) => opportunities.finish(start, size),
        };
        finish.min(FAR)
    }

    /// Wire bytes that the link can carry in `[from, to)`.
    pub fn capacity_bytes(&self, from: Nanos, to: Nanos) -> f64 {
        match &self.0 {
            Kind::Constant(time) => to.saturating_sub(from) as f64 * time.rate() / 8e9,
            Kind::Schedule(schedule) => schedule.capacity_bytes(from, to),
            Kind::Trace(opportunities) => opportunities.capacity_bytes(from, to),
        }
    }
}

fn check_rate(rate: f64) -> Result<(), String> {
    if RATE_RANGE.contains(&rate) {
        return Ok(());
    }
    Err(format!("expected a rate of {} to {:e} bit/s, got {rate}", RATE_RANGE.start(), RATE_RANGE.end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<RateConfig, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn configuration_is_read_and_written() {
        let pieces = vec![(0, 2e7), (5_000_000_000, 4e7)];
        for (json, config) in [
            (r#"{"constant":100000000.0}"#, RateConfig::Constant(1e8)),
            (
                r#"{"schedule":[[0,20000000.0],[5000000000,40000000.0]],"repeat_ns":0}"#,
                RateConfig::Schedule { pieces, repeat_ns: 0 },
            ),
            (r#"{"trace":"a.down"}"#, RateConfig::Trace("a.down".into())),
        ] {
            assert_eq!(read(json), Ok(config.clone()));
            assert_eq!(serde_json::to_string(&config).unwrap(), json);
        }
        assert_eq!(read(r#"{"constant":5}"#), Ok(RateConfig::Constant(5.0)));
        for json in ["{}", r#"{"constant":1,"trace":"x"}"#, r#"{"constant":1,"repeat_ns":3}"#] {
            let error = read(json).unwrap_err();
            assert!(error.starts_with("expected one of constant, schedule"), "{error}");
        }
        assert!(read(r#"{"rate":1}"#).is_err());
    }

    #[test]
    fn bad_rates_are_refused_in_one_line() {
        let error = |config: RateConfig| {
            let error = config.build().unwrap_err();
            error.strip_prefix("rate: ").expect("the key is named").to_owned()
        };
        assert_eq!(error(RateConfig::Constant(0.0)), "expected a rate of 1 to 1e13 bit/s, got 0");
        assert_eq!(error(RateConfig::Constant(f64::NAN)), "expected a rate of 1 to 1e13 bit/s, got NaN");
        assert!(error(RateConfig::Trace("/no/such".into())).starts_with("trace /no/such: cannot be read: "));
        let schedule = |pieces: &[_], repeat_ns| error(RateConfig::Schedule { pieces: pieces.to_vec(), repeat_ns });
        assert_eq!(schedule(&[], 0), "expected a schedule of one piece or more, got none");
        assert_eq!(schedule(&[(5, 1e6)], 0), "expected the schedule to start at 0, got 5");
        assert_eq!(
            schedule(&[(0, 1e6), (7, 2e6), (7, 3e6)], 0),
            "expected the schedule's times to increase, got 7 after 7"
        );
        assert_eq!(schedule(&[(0, -1.0)], 0), "expected a rate of 1 to 1e13 bit/s, got -1");
        assert_eq!(
            schedule(&[(0, 1e6), (7, 0.0)], 0),
            "expected a last rate above 0 in a schedule without repetition, got 0"
        );
        assert_eq!(schedule(&[(0, 0.0)], 9), "expected a rate above 0 somewhere in the schedule");
        assert_eq!(
            schedule(&[(0, 1e6), (7, 2e6)], 7),
            "expected repeat_ns to be 0 or later than the last piece's start 7, got 7"
        );
    }
}
