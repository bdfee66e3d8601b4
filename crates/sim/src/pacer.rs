//! When pacing lets packets go: one by one, or in bursts as Linux makes them.
//!
//! Linux hands a paced flow's packets to the network in super-packets of about a millisecond of its pace
//! (`tcp_tso_autosize`), waits for the window to open by as much (`tcp_tso_should_defer`), and gives back part of the time
//! by which one was late (`tcp_update_skb_after_send`).

use astraea_cc::{MILLISECOND, Nanos, SECOND};

/// Packets of a burst, at least (`net.ipv4.tcp_min_tso_segs`).
const LEAST: u64 = 2;

/// Bytes of a burst, at most: what a super-packet holds.
const MOST_BYTES: u64 = 65_536;

/// A burst does not wait for more than this part of the window (`net.ipv4.tcp_tso_win_divisor`) …
const PART: u64 = 3;

/// … nor any longer than this after the pace would have let it go.
const PATIENCE: Nanos = MILLISECOND;

/// A higher rate shortens what is left of a wait if it is longer than this; shorter waits stand. Linux's `fq` lets no packet
/// wait for longer, because "socket rate can change later", but then does not keep low rates.
const LONG: Nanos = SECOND;

/// Why a packet has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The pace allows it at that time.
    Until(Nanos),
    /// There is no room for the whole burst yet.
    ForRoom,
}

/// The pace of one sender.
pub(crate) struct Pacer {
    /// A burst is as much as fills this time; 0 for packets one by one.
    burst: Nanos,
    /// When the next burst may go, and the rate in bit/s that said so.
    next: Nanos,
    rate: f64,
    /// The last one: when it went, how late it was, the bytes that may still go with it, and the time in ns that those which
    /// went take at the pace. Only they count, whatever was planned: the application may have had no more.
    began: Nanos,
    late: Nanos,
    left: u64,
    spent: f64,
}

impl Pacer {
    pub(crate) fn new(burst: Nanos) -> Self {
        Self { burst, next: 0, rate: 0.0, began: 0, late: 0, left: 0, spent: 0.0 }
    }

    /// Whether a packet may go now at `rate` bit/s; if so, it is taken to go. `room` is what the window of `cwnd` bytes has
    /// left.
    #[inline]
    pub(crate) fn take(&mut self, now: Nanos, rate: f64, size: u64, cwnd: u64, room: u64) -> Result<(), Wait> {
        if self.left > 0 && self.began == now {
            self.left = self.left.saturating_sub(size);
            self.spend(size as f64 * 8e9 / self.rate);
            return Ok(());
        }
        if now < self.next {
            if self.next - now > LONG {
                self.shorten(now, rate);
            }
            return Err(Wait::Until(self.next));
        }
        let gap = size as f64 * 8e9 / rate;
        self.rate = rate;
        if self.burst == 0 {
            self.next = now.saturating_add(gap as Nanos);
            return Ok(());
        }
        self.begin(now, gap, size, cwnd, room)
    }

    /// Forgets what the pace said: a packet may go now.
    pub(crate) fn release(&mut self, now: Nanos) {
        self.next = now;
    }

    /// Waits for the bits that are left to wait for only as long as they take at a higher rate.
    #[cold]
    #[inline(never)]
    fn shorten(&mut self, now: Nanos, rate: f64) {
        if rate <= self.rate {
            return;
        }
        let left = (self.next - now) as f64 * self.rate / rate;
        self.next = now.saturating_add(left as Nanos);
        self.rate = rate;
    }

    /// Begins a burst of packets of `size` bytes, `gap` ns apart at the pace.
    fn begin(&mut self, now: Nanos, gap: f64, size: u64, cwnd: u64, room: u64) -> Result<(), Wait> {
        let wanted = ((self.burst as f64 / gap) as u64).min(MOST_BYTES / size).max(LEAST);
        let packets = wanted.min(room / size).max(1);
        let late = now - self.next;
        if packets < wanted.min(cwnd / size / PART) && late <= PATIENCE {
            return Err(Wait::ForRoom);
        }
        (self.began, self.late, self.left, self.spent) = (now, late, (packets - 1) * size, 0.0);
        self.spend(gap);
        Ok(())
    }

    /// A packet of the burst goes that takes so many ns at the pace.
    fn spend(&mut self, gap: f64) {
        self.spent += gap;
        let length = self.spent as Nanos;
        self.next = self.began.saturating_add(length - self.late.min(length / 2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: u64 = 1448;

    /// Times in µs at which packets go in the first `length` at `rate` bit/s and an open window.
    fn sent(burst: Nanos, rate: f64, length: Nanos) -> Vec<Nanos> {
        let (mut pacer, mut now, mut times) = (Pacer::new(burst), 0, Vec::new());
        while now < length {
            match pacer.take(now, rate, SIZE, u64::MAX, u64::MAX) {
                Ok(()) => times.push(now / 1000),
                Err(Wait::Until(time)) => now = time,
                Err(Wait::ForRoom) => unreachable!("the window is open"),
            }
        }
        times
    }

    #[test]
    fn without_bursts_every_packet_has_its_time() {
        // 1448 bytes at 11.584 Mbit/s take a millisecond.
        assert_eq!(sent(0, 11.584e6, 4 * MILLISECOND), [0, 1000, 2000, 3000]);
    }

    #[test]
    fn a_burst_is_what_fills_its_time_and_between_two_packets_and_a_super_packet() {
        assert_eq!(sent(MILLISECOND, 57.92e6, 2 * MILLISECOND), [0, 0, 0, 0, 0, 1000, 1000, 1000, 1000, 1000]);
        assert_eq!(sent(MILLISECOND, 5.792e6, 8 * MILLISECOND), [0, 0, 4000, 4000]);
        assert_eq!(sent(MILLISECOND, 1e9, MILLISECOND / 2).len(), 45);
    }

    #[test]
    fn the_pace_is_kept_whatever_the_bursts() {
        for burst in [0, MILLISECOND / 4, MILLISECOND, 5 * MILLISECOND] {
            let packets = sent(burst, 57.92e6, 1000 * MILLISECOND).len();
            assert!((5000..5026).contains(&packets), "{burst}: {packets}");
        }
    }

    #[test]
    fn a_burst_waits_for_room_but_not_for_more_than_a_third_of_the_window_or_for_long() {
        // Five packets fill a millisecond.
        let take = |now, cwnd: u64, room: u64| {
            let mut pacer = Pacer { next: MILLISECOND, ..Pacer::new(MILLISECOND) };
            pacer.take(now, 57.92e6, SIZE, cwnd * SIZE, room * SIZE)
        };
        assert_eq!(take(MILLISECOND, 30, 4), Err(Wait::ForRoom));
        assert_eq!(take(MILLISECOND, 30, 5), Ok(()));
        assert_eq!(take(MILLISECOND, 12, 4), Ok(()));
        assert_eq!(take(2 * MILLISECOND + 1, 30, 1), Ok(()));
    }

    #[test]
    fn a_higher_rate_shortens_what_is_left_of_a_long_wait() {
        // 1448 bytes take 11.584 s at 1 kbit/s, and a burst is of two packets.
        for (burst, packets) in [(0, 1), (MILLISECOND, 2)] {
            let mut pacer = Pacer::new(burst);
            let mut take = |now, rate| pacer.take(now, rate, SIZE, u64::MAX, u64::MAX);
            (0..packets).for_each(|_| assert_eq!(take(0, 1e3), Ok(())));
            let end = packets * 11_584 * MILLISECOND;
            let halfway = end / 2;
            for rate in [1e3, 0.5e3] {
                assert_eq!(take(halfway, rate), Err(Wait::Until(end)), "no higher rate changes nothing");
            }
            assert_eq!(take(halfway, 1e6), Err(Wait::Until(halfway + halfway / 1000)));
            assert_eq!(take(halfway + 1, 1e9), Err(Wait::Until(halfway + halfway / 1000)), "a short wait stands");
            assert_eq!(take(halfway + halfway / 1000, 1e6), Ok(()));
        }
    }

    #[test]
    fn a_burst_takes_the_time_of_what_it_carries() {
        // Five packets fill a millisecond, but the application has one.
        let mut pacer = Pacer::new(MILLISECOND);
        let mut take = |now, size| pacer.take(now, 57.92e6, size, u64::MAX, u64::MAX);
        assert_eq!(take(0, SIZE), Ok(()));
        assert_eq!(take(100_000, SIZE), Err(Wait::Until(200_000)));
        // A short packet goes first: what goes with it fills no more than its own burst would.
        assert_eq!(take(200_000, 100), Ok(()));
        let with_it = (0..100).take_while(|_| take(200_000, SIZE).is_ok()).count();
        assert_eq!(with_it, 5);
    }

    #[test]
    fn what_a_burst_was_late_is_given_back_up_to_half_its_length() {
        let next = |late: Nanos| {
            let mut pacer = Pacer { next: MILLISECOND, ..Pacer::new(MILLISECOND) };
            for _ in 0..5 {
                pacer.take(MILLISECOND + late, 57.92e6, SIZE, u64::MAX, u64::MAX).expect("it may go");
            }
            pacer.next
        };
        assert_eq!(next(0), 2 * MILLISECOND);
        assert_eq!(next(300_000), 2 * MILLISECOND);
        assert_eq!(next(5 * MILLISECOND), 6 * MILLISECOND + MILLISECOND / 2);
    }
}
