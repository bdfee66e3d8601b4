//! One line on the terminal that says what the link does at the moment.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use astraea_emu::{LiveLink, Running};

use super::options::DIRECTIONS;

/// Time between two lines.
const EVERY: Duration = Duration::from_millis(500);

/// Figures of both directions, rewritten in place on standard error.
pub(super) struct Meter {
    last: Instant,
    before: [LiveLink; 2],
}

/// Whether a line in place would be seen and would not run into the command's own output.
pub(super) fn fits(has_command: bool) -> bool {
    has_command && io::stderr().is_terminal() && !io::stdout().is_terminal()
}

impl Meter {
    pub(super) fn new() -> Self {
        Self { last: Instant::now(), before: [LiveLink::default(); 2] }
    }

    /// Rewrites the line if it is time to.
    pub(super) fn show(&mut self, running: &Running) {
        let elapsed = self.last.elapsed();
        if elapsed < EVERY {
            return;
        }
        self.last = Instant::now();
        let now = [running.link(0), running.link(1)];
        let side = |side: usize| describe(DIRECTIONS[side], self.before[side], now[side], elapsed);
        let line = format!("\r{}   {}\x1b[K", side(0), side(1));
        self.before = now;
        // A terminal that has gone shows nothing.
        let _ = io::stderr().write_all(line.as_bytes());
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        let _ = io::stderr().write_all(b"\r\x1b[K");
    }
}

fn describe(name: &str, before: LiveLink, now: LiveLink, elapsed: Duration) -> String {
    let bits = 8.0 * (now.served_bytes - before.served_bytes) as f64;
    let rate = bits / elapsed.as_secs_f64() / 1e6;
    let gone = now.dropped + now.lost;
    format!("{name} {rate:8.2} Mbit/s, queue {:5}, dropped {gone:6}", now.queued)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_those_since_the_line_before() {
        let before = LiveLink { served_bytes: 1_000_000, dropped: 1, lost: 0, queued: 7 };
        let now = LiveLink { served_bytes: 2_000_000, dropped: 3, lost: 4, queued: 9 };
        let line = describe("up", before, now, Duration::from_millis(500));
        assert_eq!(line, "up    16.00 Mbit/s, queue     9, dropped      7");
    }
}
