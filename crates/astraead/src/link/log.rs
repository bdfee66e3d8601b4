//! Logs in Mahimahi's format, one file for each direction.
//!
//! A line is `TIME + SIZE` for an arrival, `TIME - SIZE DELAY` for a departure and `TIME # 1500` for an opportunity to send,
//! in milliseconds and bytes. A loss or drop is `# TIME d 1 SIZE`: a comment, because the plotting scripts stop at the
//! `TIME d PACKETS SIZE` that Mahimahi itself writes.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use astraea_sim::mesh::{Incident, Passage};
use astraea_sim::{LinkConfig, MILLISECOND, Nanos, OPPORTUNITY_BYTES, RateConfig, Server};

use super::options::DIRECTIONS;

/// Rate in bit/s above which opportunities say nothing and are left out.
const FASTEST: f64 = 1e11;

/// How long lines are held back in ns, so that they come in order: threads hand them over some time after the event.
const HOLD_BACK: Nanos = 200 * MILLISECOND;

/// The log of one direction. It stops where it cannot be written; the command's work is not to be lost to that.
pub(super) struct Log {
    file: BufWriter<File>,
    /// Why it has stopped.
    stopped: Option<io::Error>,
    path: PathBuf,
    /// Lines whose time has not come, by time and order.
    waiting: BinaryHeap<Reverse<(Nanos, u64, String)>>,
    order: u64,
    server: Option<Server>,
    /// Opportunities written, and the millisecond up to which.
    opportunities: u64,
    until: Nanos,
}

impl Log {
    /// Starts the file `base.up` or `base.down`.
    pub(super) fn create(base: &Path, direction: usize, link: &LinkConfig) -> Result<Self, String> {
        let name = DIRECTIONS[direction];
        let mut path = base.as_os_str().to_owned();
        path.push(format!(".{name}"));
        let path = PathBuf::from(path);
        let problem = |error: io::Error| format!("log {}: {error}", path.display());
        let mut file = BufWriter::new(File::create(&path).map_err(problem)?);
        let command: Vec<String> = std::env::args().map(|word| word.replace(['\n', '\r'], " ")).collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis());
        let header = format!(
            "# astraea link ({name}link)\n# command line: {}\n# queue: {:?} {:?}\n# init timestamp: {now}\n# base timestamp: 0\n",
            command.join(" "),
            link.queue,
            link.limit
        );
        file.write_all(header.as_bytes()).map_err(problem)?;
        let limited = !matches!(link.rate, RateConfig::Constant(rate) if rate > FASTEST);
        let server = limited.then(|| link.rate.build()).transpose()?;
        Ok(Self { file, stopped: None, path, waiting: BinaryHeap::new(), order: 0, server, opportunities: 0, until: 0 })
    }

    /// Takes what happened to a packet.
    pub(super) fn add(&mut self, passage: &Passage) {
        if self.stopped.is_some() {
            return;
        }
        let (ms, size) = (passage.at / MILLISECOND, passage.size);
        let line = match passage.incident {
            Incident::Arrival => format!("{ms} + {size}"),
            Incident::Gone => format!("# {ms} d 1 {size}"),
            // Both ends are rounded down alike, so that no packet seems to have arrived before the start.
            Incident::Departure(delay) => {
                format!("{ms} - {size} {}", ms - passage.at.saturating_sub(delay) / MILLISECOND)
            }
        };
        self.order += 1;
        self.waiting.push(Reverse((passage.at, self.order, line)));
    }

    /// Writes everything up to `now`, in order.
    pub(super) fn write_until(&mut self, now: Nanos) {
        self.write_or_stop(now.saturating_sub(HOLD_BACK) / MILLISECOND * MILLISECOND);
    }

    /// Writes the rest; what would happen after `end` did not. Says why the log is incomplete if it is.
    pub(super) fn finish(mut self, end: Nanos) -> Result<(), String> {
        self.write_or_stop(end);
        let written = self.stopped.map_or_else(|| self.file.flush(), Err);
        written.map_err(|error| format!("log {}: incomplete: {error}", self.path.display()))
    }

    fn write_or_stop(&mut self, now: Nanos) {
        if self.stopped.is_none()
            && let Err(error) = self.write(now)
        {
            self.stopped = Some(error);
            self.waiting = BinaryHeap::new();
        }
    }

    fn write(&mut self, now: Nanos) -> io::Result<()> {
        while self.until < now {
            let ms = self.until / MILLISECOND;
            self.until += MILLISECOND;
            let carried = self.server.as_ref().map_or(0.0, |server| server.capacity_bytes(0, self.until));
            while ((self.opportunities + 1) as f64) * f64::from(OPPORTUNITY_BYTES) <= carried + 1e-6 {
                self.opportunities += 1;
                writeln!(self.file, "{ms} # {OPPORTUNITY_BYTES}")?;
            }
            while let Some(Reverse(line)) = self.waiting.peek()
                && line.0 < self.until
            {
                writeln!(self.file, "{}", line.2)?;
                self.waiting.pop();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link() -> LinkConfig {
        let json =
            r#"{"name": "uplink", "rate": {"constant": 12000000}, "delay": {"constant": 0}, "limit": {"bytes": 3000}}"#;
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn lines_are_those_of_mahimahi_in_order() {
        let link = link();
        let base = std::env::temp_dir().join(format!("astraea-log-{}", std::process::id()));
        let mut log = Log::create(&base, 0, &link).unwrap();
        let passage = |at, incident| Passage { at, link: 0, size: 1400, incident };
        log.add(&passage(1_200_000, Incident::Arrival));
        log.add(&passage(3_100_000, Incident::Departure(1_900_000)));
        log.add(&passage(2_000_000, Incident::Gone));
        log.add(&passage(9_000_000, Incident::Arrival));
        log.write_until(203_500_000);
        log.finish(4_000_000).unwrap();
        let path = base.with_extension("up");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with("# ") || line.contains(" d ")).collect();
        let expected = ["0 # 1500", "1 # 1500", "1 + 1400", "2 # 1500", "# 2 d 1 1400", "3 # 1500", "3 - 1400 2"];
        assert_eq!(lines, expected);
        assert!(text.contains("\n# base timestamp: 0\n"));
    }

    #[test]
    fn a_log_on_a_full_disk_stops_and_says_so_at_the_end() {
        let base = std::env::temp_dir().join(format!("astraea-full-{}", std::process::id()));
        let path = base.with_extension("up");
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let mut log = Log::create(&base, 0, &link()).unwrap();
        log.write_until(10_000_000_000);
        log.add(&Passage { at: 10_000_000_000, link: 0, size: 1400, incident: Incident::Arrival });
        assert!(log.waiting.is_empty(), "nothing is kept for a log that has stopped");
        let problem = log.finish(20_000_000_000).unwrap_err();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(problem, format!("log {}: incomplete: No space left on device (os error 28)", path.display()));
    }

    #[test]
    fn a_file_that_cannot_be_made_is_named() {
        let link = link();
        let error = Log::create(Path::new("/no/such/folder/log"), 1, &link).err().unwrap();
        assert!(error.starts_with("log /no/such/folder/log.down: "), "{error}");
    }
}
