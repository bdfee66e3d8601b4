//! The local state (Astraea §3.3): eight features of each of the last five monitoring periods.
//!
//! [`FEATURES`] is the one definition: names, meaning, scaling and order. Whatever shows a state to a policy encodes it
//! through this table, and the hash of its [`definition`] tells whether a policy was trained with the same one.

use crate::feature;
pub use crate::feature::{Feature, Scale, fnv1a};

/// Monitoring periods in a state (w, Astraea table 4).
pub const PERIODS: usize = 5;

/// The features of a period, in order. `thr_max` and `lat_min` are over the flow's life.
///
/// The two absolute ones span five decades each, the range of deployment: 100 kbit/s to 10 Gbit/s, 0.1 ms to 10 s.
pub const FEATURES: [Feature; 8] = [
    Feature::ratio("thr_ratio", "thr / thr_max", 1.0),
    Feature::log("thr_max", "thr_max in bit/s", 1e5, 1e10),
    Feature::ratio("lat_ratio", "lat / lat_min", 20.0),
    Feature::log("lat_min", "lat_min in s", 1e-4, 1e1),
    Feature::ratio("cwnd_ratio", "cwnd / (thr_max * lat_min)", 20.0),
    Feature::ratio("loss_ratio", "loss / thr_max", 1.0),
    Feature::ratio("inflight_ratio", "pkts_in_flight / cwnd", 2.0),
    Feature::ratio("pacing_ratio", "pacing_rate / thr_max", 20.0),
];

/// Length of a state: `PERIODS` times the features, period by period, oldest first.
pub const LENGTH: usize = PERIODS * FEATURES.len();

/// The definition as text: everything that a policy's weights depend on.
pub fn definition() -> String {
    feature::defined(format!("local state: {PERIODS} periods, oldest first, zeros before the first\n"), &FEATURES)
}

/// What a flow measured over one monitoring period, in SI units (payload bits and bytes).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Measurement {
    /// Delivered bit/s.
    pub throughput: f64,
    /// Mean round-trip time in s; `None` if the period brought no acknowledgement.
    pub latency: Option<f64>,
    /// Smallest round-trip time in s of the flow's life so far (ignored while `latency` is `None`).
    pub latency_min: f64,
    /// Bit/s declared lost.
    pub loss: f64,
    /// Bytes in flight at the end of the period.
    pub in_flight: f64,
    /// Window in bytes at the end of the period.
    pub cwnd: f64,
    /// Pacing rate in bit/s at the end of the period.
    pub pacing_rate: f64,
}

/// The state of one flow.
#[derive(Clone, Debug)]
pub struct LocalState {
    values: [f32; LENGTH],
    throughput: f64,
    throughput_max: f64,
    latency: f64,
    latency_min: f64,
}

impl Default for LocalState {
    fn default() -> Self {
        Self { values: [0.0; LENGTH], throughput: 0.0, throughput_max: 0.0, latency: 0.0, latency_min: f64::INFINITY }
    }
}

impl LocalState {
    /// Adds a period.
    ///
    /// One without an acknowledgement repeats throughput and latency of the last one that had some: zeros would look
    /// like an empty network. Before the first acknowledgement nothing is known and nothing is added.
    pub fn push(&mut self, period: &Measurement) {
        if let Some(latency) = period.latency {
            self.throughput = period.throughput;
            self.throughput_max = self.throughput_max.max(period.throughput);
            self.latency = latency;
            self.latency_min = self.latency_min.min(period.latency_min);
        } else if self.throughput_max == 0.0 {
            return;
        }
        let (peak, floor) = (self.throughput_max, self.latency_min);
        let raw = [
            self.throughput / peak,
            peak,
            self.latency / floor,
            floor,
            period.cwnd * 8.0 / (peak * floor),
            period.loss / peak,
            period.in_flight / period.cwnd,
            period.pacing_rate / peak,
        ];
        feature::push(&mut self.values, &FEATURES, &raw);
    }

    /// Adds a period of a flow that had reached this throughput (bit/s) by its end, part of which may have been before the
    /// first period that is known here.
    pub fn push_with_peak(&mut self, period: &Measurement, throughput_max: f64) {
        self.throughput_max = self.throughput_max.max(throughput_max);
        self.push(period);
    }

    /// The state, shape `PERIODS * FEATURES.len()`.
    pub fn values(&self) -> &[f32; LENGTH] {
        &self.values
    }

    /// Throughput in bit/s as the newest period shows it.
    pub fn throughput(&self) -> f64 {
        self.throughput
    }

    /// Mean round-trip time in s as the newest period shows it; 0 before the first acknowledgement.
    pub fn latency(&self) -> f64 {
        self.latency
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FIRST: Measurement = Measurement {
        throughput: 1e7,
        latency: Some(0.05),
        latency_min: 0.04,
        loss: 1e5,
        in_flight: 45_000.0,
        cwnd: 60_000.0,
        pacing_rate: 9.6e6,
    };

    fn newest(state: &LocalState) -> [f32; 8] {
        state.values()[32..].try_into().unwrap()
    }

    #[test]
    fn a_period_by_hand() {
        let mut state = LocalState::default();
        state.push(&FIRST);
        assert!(state.values()[..32].iter().all(|v| *v == 0.0), "zeros before the first");
        // thr_max: two of five decades above 1e5. lat_min: log10(400) of five. cwnd: 480 kbit of 400 kbit.
        let expected = [1.0, 0.4, 1.25, 0.520_412, 1.2, 0.01, 0.75, 0.96];
        for (value, expected) in newest(&state).iter().zip(expected) {
            assert!((value - expected).abs() < 1e-6, "{value} is not {expected}");
        }
        // Half the throughput, a larger RTT: the extremes stay.
        state.push(&Measurement { throughput: 5e6, latency: Some(0.08), latency_min: 0.06, ..FIRST });
        assert_eq!(newest(&state)[0], 0.5);
        assert_eq!(newest(&state)[2], 2.0);
        assert_eq!(newest(&state)[1], 0.4);
        assert_eq!(state.values()[24], 1.0, "the first period has moved on by eight values");
    }

    #[test]
    fn a_period_without_acknowledgement_repeats_the_last() {
        let mut state = LocalState::default();
        let silent = Measurement { throughput: 0.0, latency: None, loss: 2e6, ..FIRST };
        state.push(&silent);
        assert_eq!(state.values(), LocalState::default().values(), "nothing is known yet");
        state.push(&FIRST);
        let before = newest(&state);
        state.push(&silent);
        let after = newest(&state);
        assert_eq!(before[..5], after[..5]);
        assert_eq!(after[5], 0.2, "what the sender knows by itself is not repeated");
    }

    #[test]
    fn the_sixth_period_pushes_the_first_out() {
        let mut state = LocalState::default();
        for i in 1..=6 {
            state.push(&Measurement { throughput: f64::from(i) * 1e6, ..FIRST });
        }
        let throughputs: Vec<f32> = state.values().iter().step_by(8).copied().collect();
        assert_eq!(throughputs, [1.0; 5], "each period was the best so far");
        assert!(state.values()[1] < state.values()[9], "oldest first");
    }

    /// A change of this text changes what every trained policy sees: it must be on purpose.
    #[test]
    fn definition_is_pinned() {
        assert_eq!(
            definition(),
            "local state: 5 periods, oldest first, zeros before the first\n\
             thr_ratio: thr / thr_max, Linear 0e0..1e0\n\
             thr_max: thr_max in bit/s, Log 1e5..1e10\n\
             lat_ratio: lat / lat_min, Linear 0e0..2e1\n\
             lat_min: lat_min in s, Log 1e-4..1e1\n\
             cwnd_ratio: cwnd / (thr_max * lat_min), Linear 0e0..2e1\n\
             loss_ratio: loss / thr_max, Linear 0e0..1e0\n\
             inflight_ratio: pkts_in_flight / cwnd, Linear 0e0..2e0\n\
             pacing_ratio: pacing_rate / thr_max, Linear 0e0..2e1\n"
        );
        assert_eq!(format!("{:016x}", fnv1a(definition())), "1d5c00d08050a063");
    }

    proptest! {
        /// From 1 bit/s to 10 Gbit/s and beyond, with total loss or none, every value stays within its bounds.
        #[test]
        fn values_are_finite_and_bounded(
            periods in prop::collection::vec(
                (0.0_f64..1e12, prop::option::of(1e-9_f64..1e3), 0.0_f64..1e12, 0.0_f64..1e12, 0.0_f64..1e13), 1..12)
        ) {
            let mut state = LocalState::default();
            for (throughput, latency, loss, cwnd, pacing_rate) in periods {
                state.push(&Measurement {
                    throughput, latency, latency_min: latency.unwrap_or(0.0), loss, in_flight: loss, cwnd, pacing_rate,
                });
                for (value, feature) in state.values().iter().zip(FEATURES.iter().cycle()) {
                    let (low, high) = feature.bounds();
                    prop_assert!((low..=high).contains(value), "{} = {value}", feature.name);
                }
            }
        }
    }
}
