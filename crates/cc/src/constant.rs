//! Senders that ignore the network: a fixed rate and a fixed window.
//!
//! They are no congestion control. They load a path in a known way, for tests, calibration and background traffic.

use crate::{Ack, AnyController, Congestion, Controller, Nanos, Parameter, Rtt, Scheme};

/// A fixed rate as a scheme.
pub(crate) const RATE: Scheme = Scheme {
    name: "constant-rate",
    title: "Constant rate",
    kind: "constant",
    year: 0,
    reference: "none",
    parameters: &[
        Parameter { name: "rate", default: 10e6, min: 1e3, max: 1e12, unit: "bit/s", doc: "pacing rate, payload bits" },
        Parameter {
            name: "window",
            default: 1e6,
            min: 1.0,
            max: 1e6,
            unit: "packets",
            doc: "most packets in flight, well above rate x RTT to have no effect",
        },
    ],
    build: |values, mss| {
        AnyController::ConstantRate(ConstantRate::new(values.get("rate"), values.bytes("window", mss)))
    },
};

/// A fixed window as a scheme.
pub(crate) const WINDOW: Scheme = Scheme {
    name: "constant-window",
    title: "Constant window",
    kind: "constant",
    year: 0,
    reference: "none",
    parameters: &[Parameter {
        name: "window",
        default: 100.0,
        min: 1.0,
        max: 1e6,
        unit: "packets",
        doc: "packets in flight",
    }],
    build: |values, mss| AnyController::ConstantWindow(ConstantWindow::new(values.bytes("window", mss))),
};

/// Sends at a fixed rate whatever happens.
#[derive(Clone, Debug)]
pub struct ConstantRate {
    rate: f64,
    cwnd: u64,
}

impl ConstantRate {
    /// `rate` in payload bit/s (above 0); `cwnd` in payload bytes is a safety net, to be chosen well above
    /// rate × RTT.
    pub fn new(rate: f64, cwnd: u64) -> Self {
        Self { rate, cwnd }
    }
}

impl Controller for ConstantRate {
    #[inline]
    fn on_ack(&mut self, _ack: &Ack, _rtt: &Rtt) {}

    fn on_congestion(&mut self, _event: &Congestion) {}

    fn on_timeout(&mut self, _now: Nanos, _flight_size: u64) {}

    #[inline]
    fn cwnd(&self) -> u64 {
        self.cwnd
    }

    #[inline]
    fn pacing_rate(&self) -> Option<f64> {
        Some(self.rate)
    }
}

/// Keeps a fixed amount of data in flight whatever happens.
#[derive(Clone, Debug)]
pub struct ConstantWindow {
    cwnd: u64,
}

impl ConstantWindow {
    /// `cwnd` in payload bytes.
    pub fn new(cwnd: u64) -> Self {
        Self { cwnd }
    }
}

impl Controller for ConstantWindow {
    #[inline]
    fn on_ack(&mut self, _ack: &Ack, _rtt: &Rtt) {}

    fn on_congestion(&mut self, _event: &Congestion) {}

    fn on_timeout(&mut self, _now: Nanos, _flight_size: u64) {}

    #[inline]
    fn cwnd(&self) -> u64 {
        self.cwnd
    }
}
