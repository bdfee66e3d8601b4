//! A rate that changes at given times.

use std::sync::Arc;

use astraea_cc::Nanos;

use super::byte_time::ByteTime;
use super::{FAR, check_rate};
use crate::config::LONGEST;

/// A piece of constant rate.
#[derive(Clone, Debug)]
struct Piece {
    /// Start and end within the period, in ns.
    start: Nanos,
    end: Nanos,
    /// Bit/s.
    rate: f64,
    /// None if the rate is 0.
    time: Option<ByteTime>,
    /// Bits times 1e9 that the pieces before carry.
    carried: f64,
}

/// The transmitter: the pieces, and the one that the last packet left in.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    pieces: Arc<[Piece]>,
    /// Ns; none if the last piece lasts for ever.
    period: Option<Nanos>,
    /// When the present repetition began, in ns.
    cycle: Nanos,
    index: usize,
}

impl Schedule {
    pub(super) fn new(pieces: &[(Nanos, f64)], repeat_ns: Nanos) -> Result<Self, String> {
        validate(pieces, repeat_ns)?;
        let period = (repeat_ns > 0).then_some(repeat_ns);
        let ends = pieces.iter().skip(1).map(|&(start, _)| start).chain([period.unwrap_or(Nanos::MAX)]);
        let mut carried = 0.0;
        let pieces = pieces.iter().zip(ends).map(|(&(start, rate), end)| {
            let time = (rate > 0.0).then(|| ByteTime::new(rate));
            let piece = Piece { start, end, rate, time, carried };
            carried += rate * (end - start) as f64;
            piece
        });
        Ok(Self { pieces: pieces.collect(), period, cycle: 0, index: 0 })
    }

    fn piece(&self) -> &Piece {
        &self.pieces[self.index]
    }

    /// When the present piece ends.
    fn end(&self) -> Nanos {
        self.cycle.saturating_add(self.piece().end)
    }

    fn advance(&mut self) {
        self.index += 1;
        if self.index == self.pieces.len() {
            self.index = 0;
            self.cycle += self.period.unwrap_or(0);
        }
    }

    /// Makes the piece at `time` the present one.
    fn seek(&mut self, time: Nanos) {
        if time < self.end() {
            return;
        }
        if let Some(period) = self.period {
            let cycles = (time - self.cycle) / period;
            if cycles > 0 {
                self.cycle += cycles * period;
                self.index = 0;
            }
        }
        while self.end() <= time && self.end() != Nanos::MAX {
            self.advance();
        }
    }

    pub(super) fn begin(&mut self, ready: Nanos) -> Nanos {
        self.seek(ready);
        while self.piece().time.is_none() {
            self.advance();
        }
        ready.max(self.cycle + self.piece().start)
    }

    pub(super) fn finish(&mut self, start: Nanos, size: u32) -> Nanos {
        self.seek(start);
        if let Some(time) = self.piece().time {
            let finish = start + time.of(size);
            if finish <= self.end() {
                return finish;
            }
        }
        // Bits times 1e9, so that a rate in bit/s times a time in ns has the same unit.
        let mut remaining = f64::from(size) * 8e9;
        let mut now = start;
        if let Some(period) = self.period {
            let whole = (remaining / self.carried_in_period()).floor();
            remaining -= whole * self.carried_in_period();
            let skipped = (whole as Nanos).saturating_mul(period);
            if skipped > FAR.saturating_sub(now) {
                return FAR;
            }
            now += skipped;
            self.cycle += skipped;
        }
        loop {
            let (rate, end) = (self.piece().rate, self.end());
            let room = rate * (end - now) as f64;
            if remaining <= room {
                return now + (remaining / rate).ceil() as Nanos;
            }
            remaining -= room;
            now = end;
            self.advance();
        }
    }

    pub(super) fn capacity_bytes(&self, from: Nanos, to: Nanos) -> f64 {
        (self.carried_by(to) - self.carried_by(from)).max(0.0) / 8e9
    }

    /// Bits times 1e9 that can be carried in a whole period.
    fn carried_in_period(&self) -> f64 {
        let last = &self.pieces[self.pieces.len() - 1];
        last.carried + last.rate * (last.end - last.start) as f64
    }

    /// Bits times 1e9 that can be carried from time zero to `time`.
    fn carried_by(&self, time: Nanos) -> f64 {
        let (mut whole, mut within) = (0.0, time);
        if let Some(period) = self.period {
            whole = (time / period) as f64 * self.carried_in_period();
            within = time % period;
        }
        let piece = &self.pieces[self.pieces.partition_point(|piece| piece.start <= within) - 1];
        whole + piece.carried + piece.rate * (within - piece.start) as f64
    }
}

fn validate(pieces: &[(Nanos, f64)], repeat_ns: Nanos) -> Result<(), String> {
    let (Some(&(first, _)), Some(&(last, last_rate))) = (pieces.first(), pieces.last()) else {
        return Err("expected a schedule of one piece or more, got none".to_owned());
    };
    if first != 0 {
        return Err(format!("expected the schedule to start at 0, got {first}"));
    }
    for pair in pieces.windows(2) {
        if pair[1].0 <= pair[0].0 {
            return Err(format!("expected the schedule's times to increase, got {} after {}", pair[1].0, pair[0].0));
        }
    }
    if let Some(late) = [last, repeat_ns].into_iter().find(|time| *time > LONGEST) {
        return Err(format!("expected the schedule's times to be at most {LONGEST} ns, got {late}"));
    }
    for &(_, rate) in pieces.iter().filter(|(_, rate)| *rate != 0.0) {
        check_rate(rate)?;
    }
    if repeat_ns == 0 && last_rate == 0.0 {
        return Err("expected a last rate above 0 in a schedule without repetition, got 0".to_owned());
    }
    if repeat_ns > 0 && repeat_ns <= last {
        return Err(format!("expected repeat_ns to be 0 or later than the last piece's start {last}, got {repeat_ns}"));
    }
    if pieces.iter().all(|(_, rate)| *rate == 0.0) {
        return Err("expected a rate above 0 somewhere in the schedule".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = 1_000_000;

    /// 12 Mbit/s (1 ms a packet) for 10 ms, nothing for 5 ms, 24 Mbit/s after that.
    const PIECES: [(Nanos, f64); 3] = [(0, 12e6), (10 * MS, 0.0), (15 * MS, 24e6)];

    #[test]
    fn packets_span_changes_of_the_rate() {
        let mut link = Schedule::new(&PIECES, 0).unwrap();
        assert_eq!(link.begin(0), 0);
        assert_eq!(link.finish(0, 1500), MS);
        assert_eq!(link.begin(9 * MS), 9 * MS);
        assert_eq!(link.finish(9 * MS, 1500), 10 * MS);
        // Half a packet at 12 Mbit/s, the outage, the rest at 24 Mbit/s.
        let mut link = Schedule::new(&PIECES, 0).unwrap();
        let start = link.begin(9 * MS + MS / 2);
        assert_eq!(link.finish(start, 1500), 15 * MS + MS / 4);
        // Far into the last piece.
        let day = 86_400_000 * MS;
        assert_eq!(link.begin(day), day);
        assert_eq!(link.finish(day, 1500), day + MS / 2);
    }

    #[test]
    fn nothing_is_taken_in_an_outage() {
        let mut link = Schedule::new(&PIECES, 0).unwrap();
        assert_eq!(link.begin(10 * MS), 15 * MS);
        assert_eq!(link.begin(11 * MS), 15 * MS, "asking again does no harm");
    }

    #[test]
    fn repeats() {
        let mut link = Schedule::new(&PIECES, 20 * MS).unwrap();
        assert_eq!(link.begin(30 * MS), 35 * MS);
        // 24 Mbit/s until 40 ms, then 12 Mbit/s again.
        let start = link.begin(40 * MS - MS / 4);
        assert_eq!(link.finish(start, 1500), 40 * MS + MS / 2);
        let later = 1_000_000 * 20 * MS;
        assert_eq!(link.begin(later + 12 * MS), later + 15 * MS);
    }

    #[test]
    fn capacity_is_the_integral() {
        let once = Schedule::new(&PIECES, 0).unwrap();
        assert_eq!(once.capacity_bytes(0, 10 * MS), 15_000.0);
        assert_eq!(once.capacity_bytes(9 * MS, 16 * MS), 1500.0 + 3000.0);
        assert_eq!(once.capacity_bytes(10 * MS, 15 * MS), 0.0);
        assert_eq!(once.capacity_bytes(5, 5), 0.0);
        let repeated = Schedule::new(&PIECES, 20 * MS).unwrap();
        assert_eq!(repeated.capacity_bytes(0, 60 * MS), 3.0 * 30_000.0);
        assert_eq!(repeated.capacity_bytes(18 * MS, 22 * MS), 6000.0 + 3000.0);
    }
}
