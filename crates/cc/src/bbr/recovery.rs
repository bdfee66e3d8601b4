//! Since when, and until when, losses are repaired, and what that means for the window.
//!
//! The kernel's recovery ends when all that was in flight at its beginning has arrived, retransmissions included, and a
//! loss found by then prolongs it. The transport's ends a round trip after its beginning, and the next loss begins
//! another: with a few losses in each round trip, BBR would conserve packets for ever. So the end is reckoned here, by
//! how much has been delivered.

/// What the transport is repairing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Repair {
    #[default]
    Nothing,
    Losses,
    Timeout,
}

/// What an acknowledgement changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The repair of losses begins.
    Entered,
    /// All is repaired: the window before it holds again, in payload bytes.
    Left(u64),
    /// Nothing.
    None,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Recovery {
    repair: Repair,
    /// All is repaired when this much has been delivered over the connection, in payload bytes.
    end: u64,
    /// In the first round of recovery, one packet is sent for each that is delivered.
    conserving: bool,
    /// Window before the repair or before `PROBE_RTT`, in payload bytes.
    saved_cwnd: u64,
}

impl Recovery {
    /// Remembers the last window that was good: a present one that has been cut is not.
    pub(super) fn save(&mut self, cwnd: u64, cut: bool) {
        let cut = cut || self.repair != Repair::Nothing;
        self.saved_cwnd = if cut { self.saved_cwnd.max(cwnd) } else { cwnd };
    }

    pub(super) fn saved_cwnd(&self) -> u64 {
        self.saved_cwnd
    }

    /// A loss is found with `flight_size` bytes in flight, the lost ones included.
    pub(super) fn on_loss(&mut self, delivered: u64, flight_size: u64) {
        self.end = self.end.max(delivered + flight_size);
    }

    /// Everything in flight is taken to be lost.
    pub(super) fn on_timeout(&mut self, delivered: u64, flight_size: u64) {
        self.repair = Repair::Timeout;
        self.end = self.end.max(delivered + flight_size);
    }

    /// Nothing was lost: the next acknowledgement finds all repaired.
    pub(super) fn undo(&mut self) {
        self.end = 0;
    }

    /// A round has passed.
    #[inline]
    pub(super) fn end_conservation(&mut self) {
        self.conserving = false;
    }

    #[inline]
    pub(super) fn conserving(&self) -> bool {
        self.conserving
    }

    #[inline]
    pub(super) fn on_ack(&mut self, delivered: u64) -> Step {
        match (self.repair, delivered < self.end) {
            (Repair::Nothing, true) => {
                self.repair = Repair::Losses;
                self.conserving = true;
                Step::Entered
            }
            (Repair::Losses | Repair::Timeout, false) => {
                self.repair = Repair::Nothing;
                self.conserving = false;
                Step::Left(self.saved_cwnd)
            }
            _ => Step::None,
        }
    }
}
