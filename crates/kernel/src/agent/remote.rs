//! An agent that asks an inference service (`astraea-serve`) for the flows of this kernel.

use std::cell::RefCell;
use std::collections::HashMap;
use std::os::fd::{AsRawFd as _, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use astraea_policy::{Policy, Signals};
use astraea_serve::{Client, Origin, Report};

use super::{Actions, Local, WAIT, unreadable};
use crate::attachment::Attachment;
use crate::error::Result;
use crate::intf::Record;
use crate::layout::ONE;

/// Longest wait while requests are open, in which a late one may stay unnoticed.
const WATCH: Duration = Duration::from_millis(2);

/// A flow that has sent no record for so long has ended.
const EXPIRY: Duration = Duration::from_secs(10);

/// Answers the records of all flows with what a service says, until `ending`. A record that it has not answered within the
/// client's timeout (half a monitoring period is best) is answered by the policy's network in this process.
///
/// # Errors
/// Those of the kernel. That the service goes away is no error.
pub fn ask(attached: &Attachment, policy: &Policy, client: &mut Client, ending: &AtomicBool) -> Result<()> {
    let actions = Actions::map(attached)?;
    let mut network = Local::new(policy);
    let records = RefCell::new(Vec::new());
    let ring = super::records(attached, |record| records.borrow_mut().push(record))?;
    let mut flows: HashMap<u64, Flow> = HashMap::new();
    let mut open = 0_usize;
    let mut decisions = Vec::new();
    let mut swept = Instant::now();
    while !ending.load(Ordering::Relaxed) && attached.is_there() {
        let socket = client.socket().map(|socket| socket.as_raw_fd());
        wait(ring.epoll_fd(), socket, if open > 0 { WATCH } else { WAIT });
        ring.consume().map_err(|error| unreadable(&error))?;
        let now = Instant::now();
        for record in records.borrow_mut().drain(..) {
            let flow = flows.entry(record.flow).or_insert_with(|| Flow::new(now));
            flow.seen = now;
            let report = flow.reporter.report(&record, policy.metadata().period);
            open -= usize::from(flow.open.take().is_some());
            match report {
                Some(report) if record.ask != 0 => {
                    client.ask(record.flow, &report);
                    flow.open = Some(record);
                    open += 1;
                    continue;
                }
                Some(report) => client.note(record.flow, &report),
                None => {}
            }
            // It tells the kernel that somebody is there.
            actions.write(&record, &network.answer(&record));
        }
        client.poll(Duration::ZERO, &mut decisions);
        for decision in decisions.drain(..) {
            let Some(record) = flows.get_mut(&decision.flow).and_then(|flow| flow.open.take()) else { continue };
            open -= 1;
            let answer = match decision.origin {
                Origin::Service(_) => super::Answer::Action(decision.action),
                Origin::Rule => network.answer(&record),
            };
            actions.write(&record, &answer);
        }
        if now - swept > EXPIRY {
            swept = now;
            flows.retain(|name, flow| {
                let lives = now - flow.seen <= EXPIRY;
                if !lives {
                    open -= usize::from(flow.open.is_some());
                    client.end(*name);
                }
                lives
            });
        }
    }
    Ok(())
}

/// Waits until one of them has something to read, or the time has passed.
fn wait(ring: RawFd, socket: Option<RawFd>, time: Duration) {
    let event = |descriptor| libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 };
    // Negative ones are ignored.
    let mut events = [event(ring), event(socket.unwrap_or(-1))];
    // SAFETY: the array lives longer. That a signal ends the wait early does no harm.
    unsafe { libc::poll(events.as_mut_ptr(), events.len() as libc::nfds_t, time.as_millis() as libc::c_int) };
}

/// What the agent knows of a flow.
struct Flow {
    reporter: Reporter,
    /// The record that the service has been asked about.
    open: Option<Record>,
    seen: Instant,
}

impl Flow {
    fn new(seen: Instant) -> Self {
        Self { reporter: Reporter::default(), open: None, seen }
    }
}

/// Makes the reports of a flow of its records.
#[derive(Default)]
struct Reporter {
    /// Of the last record: its number, when it was sent, and its counts.
    period: u64,
    sent: u64,
    acked: u64,
    lost: u64,
    throughput: f64,
    throughput_max: f64,
    latency_min: f64,
}

impl Reporter {
    /// The report of a record; none before the first round trip. `period` in ns stands in for a length of 0.
    fn report(&mut self, record: &Record, period: u64) -> Option<Report> {
        let seconds = |ns: u64| ns as f64 / 1e9;
        // Records can be lost where their ring is full; the next one's counts are then those of all the time since.
        let length = if self.period > 0 && record.period > self.period + 1 {
            record.now.saturating_sub(self.sent)
        } else {
            record.length
        };
        let length = seconds(if length > 0 { length } else { period });
        // The counts are those since the flow began; of an agent that comes later the first is not a period's.
        let known = self.acked > 0;
        let bits = |packets: u64| packets as f64 * f64::from(record.mss) * 8.0 / length;
        let (acked, lost) = (record.acked.saturating_sub(self.acked), record.lost.saturating_sub(self.lost));
        (self.period, self.sent) = (record.period, record.now);
        (self.acked, self.lost) = (record.acked, record.lost);
        if record.srtt == 0 || record.rtt_min == 0 {
            return None;
        }
        if known && acked > 0 {
            self.throughput = bits(acked);
            self.throughput_max = self.throughput_max.max(self.throughput);
        }
        let low = seconds(if record.base > 0 { record.base } else { record.rtt_min });
        self.latency_min = if self.latency_min > 0.0 { self.latency_min.min(low) } else { low };
        let signals = &record.signals;
        Some(Report {
            signals: Signals {
                rate: signals.rate as f64 / 65536.0,
                queue: seconds(signals.queue),
                ahead: seconds(signals.ahead),
                loss: signals.loss.max(0) as f64 / ONE,
                burst: signals.burst.max(0) as f64 / ONE,
                spread: seconds(signals.spread),
            },
            throughput: self.throughput,
            throughput_max: self.throughput_max,
            latency: seconds(record.rtt_mean),
            latency_min: self.latency_min,
            loss: if known { bits(lost) } else { 0.0 },
            in_flight: f64::from(record.in_flight) * f64::from(record.mss),
            window: record.window as f64 / f64::from(1 << 20) * f64::from(record.mss),
            pacing_rate: if record.pacing == u64::MAX { 0.0 } else { record.pacing as f64 * 8.0 },
            srtt: seconds(record.srtt),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intf;

    #[test]
    fn a_record_in_si_units() {
        let mut record = *intf::zeroed::<Record>();
        let mut reporter = Reporter::default();
        assert_eq!(reporter.report(&record, 30_000_000), None, "nothing is known");
        record.acked = 10;
        (record.length, record.mss, record.srtt, record.rtt_min) = (30_000_000, 1000, 45_000_000, 41_000_000);
        (record.rtt_mean, record.base, record.window) = (43_000_000, 40_000_000, 15 << 19);
        (record.in_flight, record.pacing) = (5, 1_000_000);
        record.signals.rate = 1000 << 16;
        (record.signals.queue, record.signals.loss) = (1_000_000, 1 << 23);
        reporter.report(&record, 30_000_000).unwrap();
        (record.acked, record.lost) = (40, 3);
        let report = reporter.report(&record, 30_000_000).unwrap();
        let signals = Signals { rate: 1000.0, queue: 0.001, loss: 0.5, ..Signals::default() };
        let expected = Report {
            signals,
            throughput: 8e6,
            throughput_max: 8e6,
            latency: 0.043,
            latency_min: 0.04,
            loss: 8e5,
            in_flight: 5000.0,
            window: 7500.0,
            pacing_rate: 8e6,
            srtt: 0.045,
        };
        assert_eq!(report, expected);
    }

    #[test]
    fn records_that_were_lost_inflate_nothing() {
        let mut record = *intf::zeroed::<Record>();
        let mut reporter = Reporter::default();
        (record.length, record.mss, record.srtt, record.rtt_min) = (30_000_000, 1000, 45_000_000, 41_000_000);
        let mut next = |period: u64| {
            record.period = period;
            record.now = period * 30_000_000;
            (record.acked, record.lost) = (30 * period, 3 * period);
            let report = reporter.report(&record, 30_000_000).unwrap();
            (report.throughput, report.throughput_max, report.loss)
        };
        next(1);
        assert_eq!(next(2), (8e6, 8e6, 8e5));
        assert_eq!(next(6), (8e6, 8e6, 8e5), "three records were lost");
        assert_eq!(next(7), (8e6, 8e6, 8e5));
    }
}
