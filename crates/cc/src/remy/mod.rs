//! `RemyCC`: a table of rules that a program wrote (Winstein and Balakrishnan, SIGCOMM 2013).

mod dna;
mod memory;
mod table;
mod wire;

use std::sync::{Arc, LazyLock};

use crate::{Ack, AnyController, Congestion, Controller, Nanos, Rtt, Scheme};
pub use dna::RemyTableError;
pub use memory::{RemyAxis, RemyMemory};
pub use table::{RemyDomain, RemyRule, RemyTable, RemyTree};

/// Largest window in packets (Remy).
const MAX_WINDOW: u64 = 1_000_000;

/// The table that comes with the crate; `examples/train_remy.rs` of `astraea-sim` made it.
static SHIPPED: LazyLock<Arc<RemyTable>> = LazyLock::new(|| {
    let table = RemyTable::from_dna(include_bytes!("shipped.dna"));
    Arc::new(table.expect("a test reads the shipped table"))
});

/// `RemyCC` with the table of this crate as a scheme.
pub(crate) const SCHEME: Scheme = Scheme {
    name: "remy",
    title: "RemyCC",
    kind: "table",
    year: 2013,
    reference: "Winstein and Balakrishnan, SIGCOMM 2013",
    parameters: &[],
    build: |_, mss| AnyController::Remy(Remy::shipped(mss)),
};

/// `RemyCC`: looks up in a table what each acknowledgement means for the window and for the gap between packets.
///
/// Pinned to `tcpexmachina/remy` (`rat.cc`, `memory.cc`, `whisker.cc`, commit 41364b8). Its memory is what a
/// [`RemyMemory`] says; a rule makes the window `int(window × multiple + increment)` packets, in 0 to 1 000 000, and
/// lets at least `intersend` ms pass between packets. Nothing else counts: no loss, no mark.
///
/// * At the beginning, and again after an idle time, the rule for an empty memory is applied to a window of 0.
/// * One rule is applied for each acknowledgement, however many packets it covers.
/// * A window of 0 is one packet here: Remy's sender then applies the rule for its memory once more.
/// * Where a table has no rule for a memory, the last one stays in force; Remy's sender gives up.
/// * Remy's networks never lose everything in flight. After a retransmission timeout the memory is that of a new
///   connection.
/// * The time of arrival is that of the acknowledgement, since the sender has no clock of the receiver. In Remy's
///   networks the way back takes no time, which is the same.
#[derive(Clone, Debug)]
pub struct Remy {
    table: Arc<RemyTable>,
    mss: u64,
    memory: RemyMemory,
    /// Index of the rule in force.
    rule: usize,
    /// Window in packets.
    window: u64,
    /// Time between packets in ms.
    intersend: f64,
}

impl Remy {
    /// A connection that begins, with segments of `mss` payload bytes (at least 1).
    pub fn new(table: Arc<RemyTable>, mss: u32) -> Self {
        let memory = RemyMemory::default();
        let mut remy = Self { table, mss: u64::from(mss.max(1)), memory, rule: 0, window: 0, intersend: 0.0 };
        remy.begin();
        remy
    }

    /// With the table of this crate.
    pub fn shipped(mss: u32) -> Self {
        Self::new(SHIPPED.clone(), mss)
    }

    /// What it remembers.
    pub fn memory(&self) -> &RemyMemory {
        &self.memory
    }

    /// Index of the rule in force.
    pub fn rule(&self) -> usize {
        self.rule
    }

    fn begin(&mut self) {
        self.memory = RemyMemory::default();
        self.window = 0;
        self.apply();
    }

    fn apply(&mut self) {
        let axes = self.memory.axes();
        if let Some(index) = self.table.find(&axes, self.rule) {
            self.rule = index;
        }
        let RemyRule { increment, multiple, intersend } = *self.table.rule(self.rule);
        // Truncated towards zero, as an integer in the source; a negative value becomes 0.
        self.window = ((self.window as f64 * multiple + f64::from(increment)) as u64).min(MAX_WINDOW);
        self.intersend = intersend;
    }
}

impl Controller for Remy {
    #[inline]
    fn on_ack(&mut self, ack: &Ack, _rtt: &Rtt) {
        if let Some(rtt) = ack.rtt
            && self.memory.on_ack(ack.now, ack.sent_at, rtt, ack.acked.div_ceil(self.mss))
        {
            self.apply();
        }
    }

    fn on_congestion(&mut self, _event: &Congestion) {}

    fn on_timeout(&mut self, _now: Nanos, _flight_size: u64) {
        self.begin();
    }

    fn on_idle_restart(&mut self, _now: Nanos, _idle: Nanos) {
        self.begin();
    }

    #[inline]
    fn cwnd(&self) -> u64 {
        self.window.max(1) * self.mss
    }

    #[inline]
    fn pacing_rate(&self) -> Option<f64> {
        (self.intersend > 0.0).then(|| self.mss as f64 * 8e3 / self.intersend)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MILLISECOND;

    const MSS: u32 = 1000;

    /// Two rules: 0.5 w + 3 packets, 2 ms apart, while the round-trip time is less than twice the smallest, else 0 and
    /// 8 ms.
    fn table() -> Arc<RemyTable> {
        let domain = |lower: f64, upper: f64| RemyDomain::of(&[(RemyAxis::RttRatio, lower, upper)]);
        let open = RemyRule { increment: 3, multiple: 0.5, intersend: 2.0 };
        let shut = RemyRule { increment: -7, multiple: 0.5, intersend: 8.0 };
        let tree = RemyTree::Node(
            domain(0.0, 1e5),
            vec![RemyTree::Leaf(domain(0.0, 2.0), open), RemyTree::Leaf(domain(2.0, 1e3), shut)],
        );
        Arc::new(RemyTable::new(&tree))
    }

    fn ack(remy: &mut Remy, ms: Nanos, rtt_ms: Nanos) {
        let now = ms * MILLISECOND;
        let rtt = rtt_ms * MILLISECOND;
        let ack = Ack {
            now,
            acked: u64::from(MSS),
            sent_at: now - rtt,
            rtt: Some(rtt),
            cwnd_limited: true,
            ..Ack::default()
        };
        remy.on_ack(&ack, &Rtt::default());
    }

    #[test]
    fn rules_make_window_and_gap() {
        let mut remy = Remy::new(table(), MSS);
        // The first rule on a window of 0: 3 packets; one in 2 ms are 4 Mbit/s.
        assert_eq!((remy.cwnd(), remy.pacing_rate()), (3000, Some(4e6)));
        ack(&mut remy, 100, 50);
        assert_eq!(remy.cwnd(), 4000, "int(1.5 + 3)");
        ack(&mut remy, 102, 50);
        assert_eq!(remy.cwnd(), 5000);
        // A ratio of 2 is outside of the first rule: int(2.5 - 7) is negative, and one packet is allowed.
        ack(&mut remy, 152, 100);
        assert_eq!((remy.rule(), remy.window, remy.cwnd(), remy.pacing_rate()), (1, 0, 1000, Some(1e6)));
        // No rule for a ratio of 1000 and more: the last one stays.
        ack(&mut remy, 60_000, 50_000);
        assert_eq!((remy.rule(), remy.cwnd()), (1, 1000));
        remy.on_timeout(0, 0);
        assert_eq!((remy.rule(), remy.cwnd()), (0, 3000));
    }

    #[test]
    fn the_shipped_table_has_a_rule_for_every_memory() {
        let remy = Remy::shipped(MSS);
        assert!(remy.cwnd() >= u64::from(MSS));
        for send in [0.0, 0.1, 1.0, 100.0] {
            for ratio in [0.0, 1.0, 1.5, 10.0] {
                let axes = [send, send, ratio, send, 0.0, 0.0];
                assert!(remy.table.find(&axes, 0).is_some(), "{axes:?}");
            }
        }
    }
}
