//! The window: bandwidth-delay products, and what is added to them.

use super::recovery::Step;
use super::{Bbr, BbrMode};
use crate::{Ack, INITIAL_WINDOW};

/// Least packets in flight, if all goes well: two acknowledgements of two packets each (`bbr_cwnd_min_target`).
pub(super) const MINIMUM: u64 = 4;

/// A burst is what the pacing rate sends in this part of a second (`sk_pacing_shift` 10), …
const BURSTS_A_SECOND: f64 = 1024.0;

/// … in bytes at most one segmentation-offload buffer (`GSO_LEGACY_MAX_SIZE` less headers), …
const LARGEST_BURST: f64 = 65_215.0;

/// … in packets at most this many, …
const LARGEST_BURST_PACKETS: u64 = 127;

/// … and at least two packets from this rate in bit/s on (`bbr_min_tso_rate`).
const PAIR_RATE: f64 = 1.2e6;

/// Bursts that the ends may hold: in the sender's queue, in its segmentation, in the receiver's reassembly.
const BURSTS: u64 = 3;

impl Bbr {
    /// Remembers the window for after the repair or `PROBE_RTT`.
    pub(super) fn save_cwnd(&mut self) {
        self.recovery.save(self.cwnd, self.mode == BbrMode::ProbeRtt);
    }

    /// Payload bytes in flight that `gain` bandwidth-delay products and the bursts of the ends come to.
    pub(super) fn inflight(&self, gain: f64) -> u64 {
        self.with_bursts(self.bdp(self.max_bandwidth(), gain)) * self.mss
    }

    /// `gain` bandwidth-delay products in packets, rounded up.
    fn bdp(&self, bandwidth: f64, gain: f64) -> u64 {
        let Some(rtt) = self.min_rtt.get() else { return u64::from(INITIAL_WINDOW) };
        (bandwidth * gain * rtt as f64 / (8e9 * self.mss as f64)).ceil() as u64
    }

    fn with_bursts(&self, packets: u64) -> u64 {
        let least = if self.pacing_rate < PAIR_RATE { 1 } else { 2 };
        let bytes = (self.pacing_rate / 8.0 / BURSTS_A_SECOND).min(LARGEST_BURST) as u64;
        let burst = (bytes / self.mss).max(least).min(LARGEST_BURST_PACKETS);
        // Even, for receivers that acknowledge every other packet.
        let even = (packets + BURSTS * burst).next_multiple_of(2);
        // On a very short path 1.25 products would otherwise be no more than one.
        if self.mode == BbrMode::ProbeBw && self.cycle.probes() { even + 2 } else { even }
    }

    #[inline]
    pub(super) fn set_cwnd(&mut self, ack: &Ack, lost: u64) {
        if ack.acked > 0 {
            self.cwnd = self.next_cwnd(ack, lost);
        }
        if self.mode == BbrMode::ProbeRtt {
            self.cwnd = self.cwnd.min(MINIMUM * self.mss);
        }
    }

    #[inline]
    fn next_cwnd(&mut self, ack: &Ack, lost: u64) -> u64 {
        let conserved = ack.in_flight + ack.acked;
        let mut cwnd = self.cwnd.saturating_sub(lost).max(self.mss);
        match self.recovery.on_ack(self.delivered) {
            Step::Entered => {
                self.rounds.restart(self.delivered);
                cwnd = conserved;
            }
            Step::Left(saved) => cwnd = cwnd.max(saved),
            Step::None => {}
        }
        if self.recovery.conserving() {
            return cwnd.max(conserved);
        }
        let bandwidth = self.bandwidth();
        let mut packets = self.bdp(bandwidth, self.cwnd_gain);
        let full = self.full_pipe.reached();
        if full {
            packets += self.aggregation.room(bandwidth) / self.mss;
        }
        let target = self.with_bursts(packets) * self.mss;
        if full {
            cwnd = (cwnd + ack.acked).min(target);
        } else if cwnd < target || self.delivered < u64::from(INITIAL_WINDOW) * self.mss {
            cwnd += ack.acked;
        }
        cwnd.max(MINIMUM * self.mss)
    }
}
