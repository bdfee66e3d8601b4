//! Traces of delivery opportunities in Mahimahi's format: one whole number of milliseconds a line, not decreasing. Each
//! line is a chance to send 1500 bytes at that time; the trace repeats with the last entry as its period.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use astraea_cc::{MILLISECOND, Nanos};

use crate::config::LONGEST;

/// Bytes that an opportunity of a trace carries.
pub const OPPORTUNITY_BYTES: u32 = 1500;

/// Latest time that is accepted, in ms.
const LATEST_MS: u64 = LONGEST / MILLISECOND;

/// Why a trace was refused; the message is one line and does not name the file.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read, or is not text.
    #[error("cannot be read: {0}")]
    Read(#[from] std::io::Error),
    /// There are no lines.
    #[error("empty: expected one time in milliseconds a line")]
    Empty,
    /// A line is not a whole number.
    #[error("line {line}: expected a whole number of milliseconds, got {text:?}")]
    NotANumber {
        /// Line number from 1.
        line: usize,
        /// The beginning of what stands there.
        text: String,
    },
    /// A time is absurdly late.
    #[error("line {line}: expected a time of at most {LATEST_MS} ms, got {ms}")]
    TooLate {
        /// Line number from 1.
        line: usize,
        /// The time in ms.
        ms: u64,
    },
    /// A time is earlier than the one before.
    #[error("line {line}: expected a time of {previous} ms or later, got {ms}")]
    Backwards {
        /// Line number from 1.
        line: usize,
        /// The time in ms.
        ms: u64,
        /// The time on the line before, in ms.
        previous: u64,
    },
    /// The last time, which is the period, is zero.
    #[error("line {line}: expected a last time above 0 ms, as it is the period of the trace, got 0")]
    NoPeriod {
        /// The last line's number.
        line: usize,
    },
}

/// The delivery opportunities of a link. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Times within the period, in ns, not decreasing, the last one equal to the period.
    times: Arc<[Nanos]>,
}

/// The position of an opportunity in the endless repetition of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// When the repetition began, in ns.
    start: Nanos,
    index: usize,
}

impl Trace {
    /// Reads a trace from a file.
    ///
    /// # Errors
    ///
    /// [`TraceError`], without the name of the file.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, TraceError> {
        Self::parse(&std::fs::read_to_string(path)?)
    }

    /// Reads a trace from the text of a file.
    ///
    /// # Errors
    ///
    /// [`TraceError`]
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let mut milliseconds = Vec::new();
        // Editors may begin a file with a byte-order mark.
        for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let line = line.trim();
            let ms = line
                .parse()
                .map_err(|_| TraceError::NotANumber { line: index + 1, text: line.chars().take(20).collect() })?;
            milliseconds.push(ms);
        }
        Self::from_millis(milliseconds)
    }

    /// A trace from times in ms; errors count them as lines.
    ///
    /// # Errors
    ///
    /// [`TraceError`]
    pub fn from_millis(milliseconds: impl IntoIterator<Item = u64>) -> Result<Self, TraceError> {
        let (mut times, mut previous) = (Vec::new(), 0);
        for ms in milliseconds {
            let line = times.len() + 1;
            if ms > LATEST_MS {
                return Err(TraceError::TooLate { line, ms });
            }
            if ms < previous {
                return Err(TraceError::Backwards { line, ms, previous });
            }
            times.push(ms * MILLISECOND);
            previous = ms;
        }
        match times.last() {
            None => Err(TraceError::Empty),
            Some(0) => Err(TraceError::NoPeriod { line: times.len() }),
            Some(_) => Ok(Self { times: times.into() }),
        }
    }

    /// The opportunities of one period in ns.
    pub fn times(&self) -> &[Nanos] {
        &self.times
    }

    /// The period in ns: the last opportunity.
    pub fn period(&self) -> Nanos {
        self.times[self.times.len() - 1]
    }

    /// Mean rate in bit/s.
    pub fn mean_rate(&self) -> f64 {
        self.times.len() as f64 * f64::from(OPPORTUNITY_BYTES) * 8e9 / self.period() as f64
    }

    /// Opportunities in `[from, to)`.
    pub fn opportunities_between(&self, from: Nanos, to: Nanos) -> u64 {
        self.before(to).saturating_sub(self.before(from))
    }

    /// Opportunities before `time`.
    fn before(&self, time: Nanos) -> u64 {
        if time == 0 {
            return 0;
        }
        // A period is taken as (0, period], so that its last entry counts at its end.
        let cycles = (time - 1) / self.period();
        let within = time - cycles * self.period();
        cycles * self.times.len() as u64 + self.times.partition_point(|&at| at < within) as u64
    }

    /// The first opportunity at `time` or later.
    pub fn at_or_after(&self, time: Nanos) -> Position {
        let (before, length) = (self.before(time), self.times.len() as u64);
        Position { start: before / length * self.period(), index: (before % length) as usize }
    }

    /// When an opportunity comes, in ns.
    pub fn time(&self, position: Position) -> Nanos {
        position.start + self.times[position.index]
    }

    /// The opportunity after this one, possibly at the same time.
    pub fn next(&self, position: Position) -> Position {
        if position.index + 1 < self.times.len() {
            Position { index: position.index + 1, ..position }
        } else {
            Position { start: position.start + self.period(), index: 0 }
        }
    }
}

/// Mahimahi's format, as [`Trace::parse`] reads it.
impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.times.iter().try_for_each(|time| writeln!(f, "{}", time / MILLISECOND))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use proptest::prelude::*;

    const MS: Nanos = MILLISECOND;

    #[test]
    fn reads_opportunities_and_the_period() {
        let trace = Trace::parse("0\n0\n3\r\n 7 \n10").unwrap();
        assert_eq!(trace.times(), [0, 0, 3 * MS, 7 * MS, 10 * MS]);
        assert_eq!(trace.period(), 10 * MS);
        assert_eq!(trace.mean_rate(), 6e6);
    }

    #[test]
    fn bad_traces_are_refused_with_the_line() {
        for (text, expected) in [
            ("", "empty: expected one time in milliseconds a line"),
            ("1\n2\nx7\n", r#"line 3: expected a whole number of milliseconds, got "x7""#),
            ("1\n\n2\n", r#"line 2: expected a whole number of milliseconds, got """#),
            ("1\n1.5\n", r#"line 2: expected a whole number of milliseconds, got "1.5""#),
            ("-1\n", r#"line 1: expected a whole number of milliseconds, got "-1""#),
            ("1\n5\n4\n", "line 3: expected a time of 5 ms or later, got 4"),
            ("0\n0\n", "line 2: expected a last time above 0 ms, as it is the period of the trace, got 0"),
            ("10000000001\n", "line 1: expected a time of at most 10000000000 ms, got 10000000001"),
        ] {
            assert_eq!(Trace::parse(text).unwrap_err().to_string(), expected);
        }
        assert!(matches!(Trace::read("/no/such/trace"), Err(TraceError::Read(_))));
    }

    #[test]
    fn repeats_with_the_last_entry_as_period() {
        let trace = Trace::parse("0\n4\n10\n").unwrap();
        let mut position = trace.at_or_after(0);
        let mut times = Vec::new();
        for _ in 0..8 {
            times.push(trace.time(position) / MS);
            position = trace.next(position);
        }
        // The entry at 10 and the next repetition's entry at 0 are two opportunities.
        assert_eq!(times, [0, 4, 10, 10, 14, 20, 20, 24]);
        assert_eq!(trace.opportunities_between(0, 10 * MS), 2);
        assert_eq!(trace.opportunities_between(10 * MS, 10 * MS + 1), 2);
        assert_eq!(trace.opportunities_between(0, 30 * MS + 1), 10);
        assert_eq!(trace.opportunities_between(5, 5), 0);
    }

    #[test]
    fn the_recorded_traces_are_read() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
        if !folder.is_dir() {
            // Straight to the terminal: the test runner keeps to itself what a test prints that passes.
            let mut output = std::io::stderr();
            writeln!(output, "skipped the_recorded_traces_are_read: no recorded traces in {}", folder.display())
                .unwrap();
            return;
        }
        for name in ["ATT-LTE-driving-2016.down", "TMobile-LTE-short.up", "Verizon-LTE-short.down"] {
            let (path, lines) = (folder.join(name), std::fs::read_to_string(folder.join(name)).unwrap());
            let trace = Trace::read(path).unwrap();
            assert_eq!(trace.times().len(), lines.lines().count());
            assert_eq!(trace.to_string(), lines);
        }
    }

    fn traces() -> impl Strategy<Value = Trace> {
        prop::collection::vec(0_u64..5, 1..20).prop_map(|gaps| {
            let mut at = 0;
            let times = gaps.into_iter().map(|gap| {
                at += gap;
                at
            });
            let mut times: Vec<_> = times.collect();
            times.push(times[times.len() - 1].max(1));
            Trace::from_millis(times).unwrap()
        })
    }

    proptest! {
        #[test]
        fn survives_a_round_trip(trace in traces()) {
            prop_assert_eq!(Trace::parse(&trace.to_string()).unwrap(), trace);
        }

        /// Against the definition: every entry of every repetition, listed.
        #[test]
        fn counts_and_positions_agree_with_the_definition(trace in traces(), half_ms in 0_u64..300, length in 0_u64..300) {
            let (from, to) = (half_ms * MS / 2, (half_ms + length) * MS / 2);
            let (period, cycles) = (trace.period(), to / trace.period() + 2);
            let all: Vec<_> = (0..cycles).flat_map(|k| trace.times().iter().map(move |t| k * period + t)).collect();
            let between = all.iter().filter(|&&at| at >= from && at < to).count() as u64;
            prop_assert_eq!(trace.opportunities_between(from, to), between);

            let mut position = trace.at_or_after(from);
            for &expected in all.iter().filter(|&&at| at >= from) {
                prop_assert_eq!(trace.time(position), expected);
                position = trace.next(position);
            }
        }
    }
}
