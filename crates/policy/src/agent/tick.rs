//! The time of day: hosts whose clocks agree drain the queue together, though nothing tells them to.
//!
//! A flow whose base round-trip time is too long believes that it sees it all the time, and never asks for a drain; and
//! drains that flows ask for one by one do not coincide where their round trips differ. So every clock strikes every few
//! seconds, and whoever hears it drains or, competing, tests; and all who have seen the queue rise drain at the next
//! half second. Clocks need not agree better than drains last, a tenth of a second; hosts that keep time by NTP usually
//! agree to milliseconds.

use astraea_cc::Nanos;

use super::AgentConfig;

/// The clock as a flow hears it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tick {
    /// Time of day less the controller's clock in ns, modulo an hour.
    ahead: Nanos,
    /// Time of day at which the last period began, if there was one before it, and at which it ended.
    began: Option<Nanos>,
    ended: Option<Nanos>,
}

impl Tick {
    /// For a clock that is so many ns ahead of the controller's.
    pub(super) fn new(ahead: Nanos) -> Self {
        Self { ahead: ahead % AgentConfig::HOUR, began: None, ended: None }
    }

    /// A period has ended.
    pub(super) fn end_period(&mut self, now: Nanos) {
        self.began = self.ended.replace(now + self.ahead);
    }

    /// How long ago a clock that strikes `every` so many ns last did so.
    pub(super) fn phase(&self, every: Nanos) -> Nanos {
        self.ended.unwrap_or(0) % every
    }

    /// Whether a clock that strikes `every` so many ns has struck in that period.
    pub(super) fn struck(&self, every: Nanos) -> bool {
        self.began.zip(self.ended).is_some_and(|(began, ended)| began / every != ended / every)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::ms;
    use super::*;

    #[test]
    fn it_strikes_every_five_seconds_of_the_day() {
        let strikes = |ahead: f64, times: &[f64]| -> Vec<bool> {
            let mut tick = Tick::new(ms(ahead));
            let strikes = |at: &f64| {
                tick.end_period(ms(*at));
                tick.struck(ms(5_000.0))
            };
            times.iter().map(strikes).collect()
        };
        assert_eq!(strikes(0.0, &[4_980.0, 5_010.0, 5_040.0, 9_999.0, 10_000.0]), [false, true, false, false, true]);
        assert_eq!(strikes(4_000.0, &[970.0, 1_000.0, 5_000.0, 6_000.0]), [false, true, false, true]);
        assert_eq!(strikes(0.0, &[20_000.0, 20_030.0]), [false, false], "a flow that begins hears none");
    }

    #[test]
    fn any_clock_is_a_time_of_the_hour() {
        let mut tick = Tick::new(Nanos::MAX / AgentConfig::HOUR * AgentConfig::HOUR + ms(4_000.0));
        tick.end_period(ms(970.0));
        assert!(!tick.struck(ms(5_000.0)));
        tick.end_period(ms(1_000.0));
        assert!(tick.struck(ms(5_000.0)) && tick.struck(ms(500.0)));
        tick.end_period(ms(1_500.0));
        assert!(!tick.struck(ms(5_000.0)) && tick.struck(ms(500.0)), "one clock for all");
    }
}
