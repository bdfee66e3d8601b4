//! What a sender says of a monitoring period.

use astraea_cc::Nanos;
use astraea_policy::{Agent, Measurement, Signals};

/// Periods that a state is made of: no more are ever needed to tell it.
pub const HISTORY: usize = astraea_policy::state::PERIODS;

/// One flow's monitoring period, in SI units: whatever any form of policy sees is made of these. Bytes and bits are those
/// of the payload.
///
/// A period without an acknowledgement repeats `throughput` and `latency` of the last one that had some; before the first
/// one there is nothing to report.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Report {
    /// What the forms with a backlog state see.
    pub signals: Signals,
    /// Acknowledged in the period, in bit/s.
    pub throughput: f64,
    /// Largest `throughput` of the flow's life.
    pub throughput_max: f64,
    /// Mean round-trip time of the period in s.
    pub latency: f64,
    /// Smallest round-trip time of the flow's life in s.
    pub latency_min: f64,
    /// Declared lost in the period, in bit/s.
    pub loss: f64,
    /// Bytes in flight at the end of the period.
    pub in_flight: f64,
    /// Window in bytes at the end of the period.
    pub window: f64,
    /// Pacing rate in bit/s at the end of the period.
    pub pacing_rate: f64,
    /// Smoothed round-trip time in s.
    pub srtt: f64,
}

/// Numbers of a report.
pub(crate) const NUMBERS: usize = 15;

impl Report {
    /// The numbers in the order of the wire.
    pub(crate) fn numbers(&self) -> [f64; NUMBERS] {
        let Signals { rate, queue, ahead, loss, burst, spread } = self.signals;
        [
            rate,
            queue,
            ahead,
            loss,
            burst,
            spread,
            self.throughput,
            self.throughput_max,
            self.latency,
            self.latency_min,
            self.loss,
            self.in_flight,
            self.window,
            self.pacing_rate,
            self.srtt,
        ]
    }

    /// The report of these numbers, unless one of them is negative or not finite.
    pub(crate) fn from_numbers(numbers: &[f64; NUMBERS]) -> Option<Self> {
        if !numbers.iter().all(|number| (0.0..=f64::MAX).contains(number)) {
            return None;
        }
        let [rate, queue, ahead, loss, burst, spread, rest @ ..] = *numbers;
        let signals = Signals { rate, queue, ahead, loss, burst, spread };
        let [throughput, throughput_max, latency, latency_min, loss, in_flight, window, pacing_rate, srtt] = rest;
        Some(Self {
            signals,
            throughput,
            throughput_max,
            latency,
            latency_min,
            loss,
            in_flight,
            window,
            pacing_rate,
            srtt,
        })
    }

    /// What the form `paper` sees of it.
    pub fn measurement(&self) -> Measurement {
        Measurement {
            throughput: self.throughput,
            latency: Some(self.latency),
            latency_min: self.latency_min,
            loss: self.loss,
            in_flight: self.in_flight,
            cwnd: self.window,
            pacing_rate: self.pacing_rate,
        }
    }

    /// The smoothed round-trip time in ns.
    pub fn srtt_ns(&self) -> Nanos {
        (self.srtt * 1e9).round() as Nanos
    }
}

/// Makes the reports of a flow that an agent drives.
#[derive(Clone, Debug, Default)]
pub struct Reporter {
    last: Option<(f64, f64)>,
    throughput_max: f64,
}

impl Reporter {
    /// The report of the period that the agent has just closed; none before the first round trip.
    pub fn report(&mut self, agent: &Agent) -> Option<Report> {
        let measured = agent.measurement();
        if let Some(latency) = measured.latency {
            self.last = Some((measured.throughput, latency));
            self.throughput_max = self.throughput_max.max(measured.throughput);
        }
        let (throughput, latency) = self.last?;
        Some(Report {
            signals: *agent.signals(),
            throughput,
            throughput_max: self.throughput_max,
            latency,
            latency_min: measured.latency_min,
            loss: measured.loss,
            in_flight: measured.in_flight,
            window: measured.cwnd,
            pacing_rate: measured.pacing_rate,
            srtt: agent.srtt() as f64 / 1e9,
        })
    }
}
