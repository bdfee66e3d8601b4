//! The flows that a service knows: what their policy has seen of them.

use std::collections::HashMap;

use astraea_policy::{Form, PolicyState};
use slab::Slab;

use crate::wire::Ask;
use crate::{HISTORY, Report};

/// One flow.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    /// Place of its session.
    pub(super) session: usize,
    /// The client's number for it.
    pub(super) name: u64,
    /// Number of its newest period.
    pub(super) period: u32,
    /// When it was last heard of, in s.
    seen: u32,
    state: PolicyState,
}

impl Flow {
    /// What the policy sees.
    pub(super) fn state(&self) -> &[f32] {
        self.state.values()
    }

    /// Adds a period.
    fn push(&mut self, report: &Report) {
        match &mut self.state {
            PolicyState::Paper(state) => state.push_with_peak(&report.measurement(), report.throughput_max),
            PolicyState::Backlog(state) => state.push(&report.signals),
        }
    }
}

/// The places of a session's flows, by name.
pub(super) type Names = HashMap<u64, u32>;

/// All flows, by place.
#[derive(Debug)]
pub(super) struct Flows {
    form: Form,
    most: usize,
    all: Slab<Flow>,
    cursor: usize,
}

impl Flows {
    pub(super) fn new(form: Form, most: usize) -> Self {
        Self { form, most, all: Slab::new(), cursor: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// The flow at a place, if it still is that one.
    pub(super) fn get(&self, place: u32, session: usize, name: u64) -> Option<&Flow> {
        self.all.get(place as usize).filter(|flow| flow.session == session && flow.name == name)
    }

    /// Begins a flow of the session at this place. Returns the flow's place; `None` if there is no room.
    pub(super) fn begin(&mut self, session: usize, name: u64, now: u32) -> Option<u32> {
        let room = self.all.len() < self.most;
        let flow = || Flow { session, name, period: 0, seen: now, state: PolicyState::new(self.form) };
        room.then(flow).map(|flow| self.all.insert(flow) as u32)
    }

    /// Takes the reports of a request of the flow at this place. False if its period is not newer than what is known.
    ///
    /// Reports that are known already are skipped. Where some are missing in between, and where a whole history comes,
    /// the flow is what the request says of it.
    pub(super) fn take(&mut self, place: u32, ask: &Ask<'_>, now: u32) -> bool {
        let flow = &mut self.all[place as usize];
        if ask.period <= flow.period {
            return false;
        }
        let count = ask.reports.len();
        let before = ask.period - count as u32;
        let known = flow.period.saturating_sub(before) as usize;
        let known = if before > flow.period || count == HISTORY {
            flow.state = PolicyState::new(self.form);
            0
        } else {
            known
        };
        for report in (known..count).filter_map(|index| ask.reports.get(index)) {
            flow.push(&report);
        }
        (flow.period, flow.seen) = (ask.period, now);
        true
    }

    /// Forgets a flow, which its session has forgotten.
    pub(super) fn end(&mut self, place: u32) {
        self.all.try_remove(place as usize);
    }

    /// Looks at the next `steps` flows and forgets those that have not been heard of since `oldest` (in s). Returns
    /// their sessions and names.
    pub(super) fn sweep(&mut self, steps: usize, oldest: u32) -> Vec<(usize, u64)> {
        let mut forgotten = Vec::new();
        for _ in 0..steps.min(self.all.capacity()) {
            self.cursor = (self.cursor + 1) % self.all.capacity();
            if let Some(flow) = self.all.get(self.cursor).filter(|flow| flow.seen < oldest) {
                forgotten.push((flow.session, flow.name));
                self.all.remove(self.cursor);
            }
        }
        forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Reports;

    fn report(rate: f64) -> Report {
        let mut report = Report { throughput: rate, throughput_max: 9.0, latency: 0.02, ..Report::default() };
        report.signals.rate = rate;
        report.latency_min = 0.01;
        report.window = 1.0;
        report
    }

    /// Room for one flow, and flow 7 in it.
    struct Case(Flows, u32);

    impl Case {
        fn new(form: Form) -> Self {
            let mut flows = Flows::new(form, 1);
            let place = flows.begin(0, 7, 0).unwrap();
            Self(flows, place)
        }

        fn take(&mut self, period: u32, rates: &[f64]) -> Option<Vec<f32>> {
            let reports: Vec<Report> = rates.iter().copied().map(report).collect();
            let ask = Ask { flow: 7, period, reports: Reports::Given(&reports) };
            self.0.take(self.1, &ask, 0).then(|| self.0.get(self.1, 0, 7).unwrap().state().to_vec())
        }
    }

    #[test]
    fn a_history_in_parts_is_that_in_one() {
        for form in Form::ALL {
            let rates = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
            let mut each = Case::new(form);
            let mut states = Vec::new();
            for (index, _) in rates.iter().enumerate() {
                states.push(each.take(index as u32 + 1, &rates[index..=index]).unwrap());
            }
            // An answer was lost: the sender repeats what may not have arrived.
            let mut repeated = Case::new(form);
            repeated.take(1, &rates[..1]).unwrap();
            assert_eq!(repeated.take(3, &rates[..3]).unwrap(), states[2], "{form:?}");
            // The service has forgotten everything.
            assert_eq!(Case::new(form).take(6, &rates[1..]).unwrap(), states[5], "{form:?}");
            // Short lives are told in full.
            assert_eq!(Case::new(form).take(3, &rates[..3]).unwrap(), states[2], "{form:?}");
            // A gap: only what has come counts.
            let mut gap = Case::new(form);
            gap.take(1, &rates[..1]).unwrap();
            let known = gap.take(6, &rates[4..]).unwrap();
            assert_eq!(known, Case::new(form).take(6, &rates[4..]).unwrap(), "{form:?}");
        }
    }

    #[test]
    fn old_periods_and_too_many_flows_are_refused() {
        let mut case = Case::new(Form::Pure);
        case.take(3, &[1.0]).unwrap();
        assert_eq!(case.take(3, &[1.0]), None);
        assert_eq!(case.take(2, &[1.0]), None);
        let Case(flows, place) = &mut case;
        assert_eq!(flows.begin(0, 8, 0), None);
        flows.end(*place);
        assert!(flows.begin(0, 8, 0).is_some());
    }

    #[test]
    fn silent_flows_are_forgotten() {
        let mut flows = Flows::new(Form::Pure, 100);
        for name in 0..50 {
            let place = flows.begin(3, name, 1).unwrap();
            let ask = Ask { flow: name, period: 1, reports: Reports::Given(&[report(1.0)]) };
            assert!(flows.take(place, &ask, if name < 20 { 1 } else { 9 }));
        }
        let mut gone: Vec<_> = (0..200).flat_map(|_| flows.sweep(1, 5)).collect();
        gone.sort_unstable();
        assert_eq!(gone, (0..20).map(|name| (3, name)).collect::<Vec<_>>());
        assert_eq!(flows.len(), 30);
    }
}
