//! What a client remembers of a flow, so that a service that knows less of it can be told.

use crate::{HISTORY, Report};

/// The latest periods of a flow.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    /// Number of the newest period.
    pub(super) period: u32,
    /// Number of the newest period that the service has answered, in this session.
    pub(super) confirmed: u32,
    reports: Vec<Report>,
}

impl History {
    pub(super) fn push(&mut self, report: Report) {
        if self.reports.len() == HISTORY {
            self.reports.remove(0);
        }
        self.reports.push(report);
        self.period += 1;
    }

    /// The newest report.
    pub(super) fn newest(&self) -> Report {
        self.reports.last().copied().unwrap_or_default()
    }

    /// What the service may not know, oldest first.
    pub(super) fn unconfirmed(&self) -> &[Report] {
        let count = (self.period - self.confirmed) as usize;
        &self.reports[self.reports.len().saturating_sub(count)..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_most_a_whole_history() {
        let mut history = History::default();
        for period in 1..=9_u32 {
            history.push(Report { srtt: f64::from(period), ..Report::default() });
            assert_eq!(history.unconfirmed().len(), HISTORY.min(period as usize));
        }
        assert_eq!(history.unconfirmed()[0].srtt, 5.0);
        history.confirmed = 7;
        let known: Vec<f64> = history.unconfirmed().iter().map(|report| report.srtt).collect();
        assert_eq!(known, [8.0, 9.0]);
        assert_eq!(history.newest().srtt, 9.0);
    }
}
