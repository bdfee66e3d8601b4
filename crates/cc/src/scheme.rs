//! The schemes that a user can name, their parameters, and controllers built from them.

mod any;
mod error;
mod manual;
mod values;

pub use any::AnyController;
pub use error::SchemeError;
pub use manual::Manual;
pub use values::Values;

use crate::{
    Allegro, Bbr, Bbr3, C2tcp, C2tcpConfig, Compound, CompoundConfig, ConstantRate, ConstantWindow, Copa, Cubic,
    CubicConfig, Illinois, IllinoisConfig, Nanos, NewReno, Remy, SECOND, Vegas, VegasConfig, Vivace, VivaceConfig,
    Westwood,
};
use error::nearest;

/// Unit of a parameter that is either 0 or 1.
const SWITCH: &str = "0 or 1";

/// A number that a user can set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Name, in `snake_case`.
    pub name: &'static str,
    /// Value unless set.
    pub default: f64,
    /// Smallest value allowed.
    pub min: f64,
    /// Largest value allowed.
    pub max: f64,
    /// Unit, `"1"` for a plain number, `"0 or 1"` for a switch.
    pub unit: &'static str,
    /// One line on what it does.
    pub doc: &'static str,
}

impl Parameter {
    /// A parameter that is either 0 or 1.
    pub const fn switch(name: &'static str, default: f64, doc: &'static str) -> Self {
        Self { name, default, min: 0.0, max: 1.0, unit: SWITCH, doc }
    }

    /// A number of packets, up to a million.
    pub const fn packets(name: &'static str, default: f64, doc: &'static str) -> Self {
        Self { name, default, min: 0.0, max: 1e6, unit: "packets", doc }
    }

    /// Whether the parameter may have this value.
    pub fn accepts(&self, value: f64) -> bool {
        (self.min..=self.max).contains(&value) && (self.unit != SWITCH || value.fract() == 0.0)
    }
}

/// A congestion control scheme.
#[derive(Clone, Copy, Debug)]
pub struct Scheme {
    /// What a user types.
    pub name: &'static str,
    /// What a legend or table shows.
    pub title: &'static str,
    /// Family: `"classic"` (window follows losses), `"delay"` (the queueing delay), `"hybrid"` (losses, and delay or
    /// rate), `"model"` (an estimate of bandwidth and propagation delay), `"online-learning"` (trials of its own),
    /// `"table"` (rules that a program wrote), `"learned"` (a policy's answers), `"selector"` (one of others, which models
    /// choose) or `"constant"`.
    pub kind: &'static str,
    /// Year of the defining publication, 0 if there is none.
    pub year: u16,
    /// Defining publication.
    pub reference: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Makes a controller from checked parameters for segments of this many payload bytes (at least 1).
    pub build: fn(&Values<'_>, u32) -> AnyController,
}

/// Every scheme of this crate.
pub static SCHEMES: &[Scheme] = &[
    Scheme {
        name: "newreno",
        title: "NewReno",
        kind: "classic",
        year: 1999,
        reference: "RFC 5681, RFC 6582",
        parameters: &[],
        build: |_, mss| AnyController::NewReno(NewReno::new(mss)),
    },
    Scheme {
        name: "cubic",
        title: "CUBIC",
        kind: "classic",
        year: 2008,
        reference: "Ha, Rhee and Xu 2008; RFC 9438; Linux",
        parameters: &[
            Parameter::switch("hystart", 1.0, "leave slow start before the queue overflows"),
            Parameter::switch("linux", 1.0, "as Linux does it; off: RFC 9438 with HyStart++"),
            Parameter::switch("fast_convergence", 1.0, "give up more of the window when the path has shrunk"),
            Parameter {
                name: "beta",
                default: 0.7,
                min: 0.1,
                max: 0.95,
                unit: "1",
                doc: "part of the window kept after congestion",
            },
            Parameter {
                name: "c",
                default: 0.4,
                min: 0.001,
                max: 1000.0,
                unit: "packets/s^3",
                doc: "scale of the cubic window growth",
            },
        ],
        build: |values, mss| {
            let config = CubicConfig {
                c: values.get("c"),
                beta: values.get("beta"),
                fast_convergence: values.get("fast_convergence") != 0.0,
                hystart: values.get("hystart") != 0.0,
                linux: values.get("linux") != 0.0,
            };
            AnyController::Cubic(Cubic::new(config, mss))
        },
    },
    Scheme {
        name: "copa",
        title: "Copa",
        kind: "delay",
        year: 2018,
        reference: "Arun and Balakrishnan, NSDI 2018; genericCC",
        parameters: &[
            Parameter {
                name: "delta",
                default: 0.5,
                min: 0.001,
                max: 10.0,
                unit: "1/packets",
                doc: "inverse of the packets that a flow keeps in the queue",
            },
            Parameter::switch("competitive", 1.0, "smaller delta beside schemes that fill the buffer"),
            Parameter {
                name: "patience",
                default: 1.0,
                min: 1.0,
                max: 100.0,
                unit: "round trips",
                doc: "in one direction before the velocity doubles: 1 in genericCC, 3 in the paper",
            },
        ],
        build: |values, mss| {
            let (delta, competitive) = (values.get("delta"), values.get("competitive") != 0.0);
            AnyController::Copa(Copa::new(delta, competitive, values.get("patience") as u32, mss))
        },
    },
    Scheme {
        name: "vegas",
        title: "Vegas",
        kind: "delay",
        year: 1995,
        reference: "Brakmo and Peterson 1995",
        parameters: &[
            Parameter::packets("alpha", 2.0, "own packets in the queue below which the window grows"),
            Parameter::packets("beta", 4.0, "own packets in the queue above which the window shrinks"),
            Parameter::packets("gamma", 1.0, "own packets in the queue above which slow start ends"),
        ],
        build: |values, mss| {
            let config =
                VegasConfig { alpha: values.get("alpha"), beta: values.get("beta"), gamma: values.get("gamma") };
            AnyController::Vegas(Vegas::new(config, mss))
        },
    },
    Scheme {
        name: "compound",
        title: "Compound",
        kind: "hybrid",
        year: 2006,
        reference: "Tan, Song, Zhang and Sridharan 2006; draft-sridharan-tcpm-ctcp-02",
        parameters: &[
            Parameter::packets("gamma", 30.0, "own packets in the queue from which the delay-based part shrinks"),
            Parameter::switch("tuning", 0.0, "adapt gamma to the buffer, within 5 to 30 packets"),
        ],
        build: |values, mss| {
            let config = CompoundConfig { gamma: values.get("gamma"), tuning: values.get("tuning") != 0.0 };
            AnyController::Compound(Compound::new(config, mss))
        },
    },
    Scheme {
        name: "illinois",
        title: "Illinois",
        kind: "hybrid",
        year: 2008,
        reference: "Liu, Basar and Srikant 2008; Linux",
        parameters: &[
            Parameter::packets("win_thresh", 15.0, "window below which it is Reno"),
            Parameter {
                name: "theta",
                default: 5.0,
                min: 1.0,
                max: 100.0,
                unit: "round trips",
                doc: "without a queue before the window grows fastest again",
            },
        ],
        build: |values, mss| {
            let config = IllinoisConfig { win_thresh: values.get("win_thresh"), theta: values.get("theta") as u32 };
            AnyController::Illinois(Illinois::new(config, mss))
        },
    },
    Scheme {
        name: "westwood",
        title: "Westwood+",
        kind: "hybrid",
        year: 2004,
        reference: "Grieco and Mascolo 2004; Linux",
        parameters: &[],
        build: |_, mss| AnyController::Westwood(Westwood::new(mss)),
    },
    Scheme {
        name: "c2tcp",
        title: "C2TCP",
        kind: "hybrid",
        year: 2018,
        reference: "Abbasloo et al., IFIP Networking 2018; C2TCP-IFIP",
        parameters: &[
            Parameter {
                name: "target",
                default: 0.1,
                min: 0.001,
                max: 100.0,
                unit: "s",
                doc: "round-trip time that is acceptable",
            },
            Parameter {
                name: "interval",
                default: 0.1,
                min: 0.001,
                max: 100.0,
                unit: "s",
                doc: "above the target before the window falls to one packet",
            },
            Parameter::packets("alpha", 0.0, "counted with each acknowledgement, besides target / RTT"),
        ],
        build: |values, mss| {
            let time = |name| (values.get(name) * SECOND as f64).round() as Nanos;
            let config = C2tcpConfig { target: time("target"), interval: time("interval"), alpha: values.get("alpha") };
            AnyController::C2tcp(C2tcp::new(config, mss))
        },
    },
    Scheme {
        name: "bbr",
        title: "BBR",
        kind: "model",
        year: 2016,
        reference: "Cardwell et al. 2016; draft-cardwell-iccrg-bbr-congestion-control-00; Linux 6.1",
        parameters: &[],
        build: |_, mss| AnyController::Bbr(Bbr::new(0, mss)),
    },
    Scheme {
        name: "bbr3",
        title: "BBRv3",
        kind: "model",
        year: 2023,
        reference: "Cardwell, Swett and Beshay, draft-ietf-ccwg-bbr-06",
        parameters: &[],
        build: |_, mss| AnyController::Bbr3(Bbr3::new(0, mss)),
    },
    Scheme {
        name: "allegro",
        title: "PCC Allegro",
        kind: "online-learning",
        year: 2015,
        reference: "Dong et al., NSDI 2015; PCC-Uspace",
        parameters: &[],
        build: |_, mss| AnyController::Allegro(Allegro::new(0, mss)),
    },
    Scheme {
        name: "vivace",
        title: "PCC Vivace",
        kind: "online-learning",
        year: 2018,
        reference: "Dong et al., NSDI 2018; PCC-Uspace",
        parameters: &[
            Parameter {
                name: "factor",
                default: 1.0,
                min: 0.001,
                max: 1e6,
                unit: "1",
                doc: "initial conversion factor (theta_0): step for a gradient of the utility",
            },
            Parameter {
                name: "latency",
                default: 900.0,
                min: 0.0,
                max: 1e6,
                unit: "1",
                doc: "coefficient of the growth of the round-trip time, 0 for Vivace-Loss",
            },
            Parameter {
                name: "loss",
                default: 11.35,
                min: 0.0,
                max: 1e6,
                unit: "1",
                doc: "coefficient of the loss rate",
            },
        ],
        build: |values, mss| {
            let config =
                VivaceConfig { factor: values.get("factor"), latency: values.get("latency"), loss: values.get("loss") };
            AnyController::Vivace(Vivace::new(config, 0, mss))
        },
    },
    Scheme {
        name: "remy",
        title: "RemyCC",
        kind: "table",
        year: 2013,
        reference: "Winstein and Balakrishnan, SIGCOMM 2013",
        parameters: &[],
        build: |_, mss| AnyController::Remy(Remy::shipped(mss)),
    },
    Scheme {
        name: "constant-rate",
        title: "Constant rate",
        kind: "constant",
        year: 0,
        reference: "none",
        parameters: &[
            Parameter {
                name: "rate",
                default: 10e6,
                min: 1e3,
                max: 1e12,
                unit: "bit/s",
                doc: "pacing rate, payload bits",
            },
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
    },
    Scheme {
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
    },
];

/// Names are unique.
impl PartialEq for Scheme {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Scheme {
    /// The scheme called `name` among these.
    ///
    /// # Errors
    /// [`SchemeError::UnknownScheme`].
    pub fn find(name: &str, schemes: impl Iterator<Item = &'static Self>) -> Result<&'static Self, SchemeError> {
        let schemes: Vec<_> = schemes.collect();
        schemes.iter().find(|scheme| scheme.name == name).copied().ok_or_else(|| {
            let known: Vec<_> = schemes.iter().map(|scheme| scheme.name).collect();
            SchemeError::UnknownScheme { name: name.to_owned(), nearest: nearest(name, known.iter().copied()), known }
        })
    }

    /// Whether these parameters can be set to these values.
    ///
    /// # Errors
    /// The first parameter that is unknown, given twice or out of range.
    pub fn check(&'static self, params: &[(String, f64)]) -> Result<(), SchemeError> {
        for (index, (name, value)) in params.iter().enumerate() {
            let Some(parameter) = self.parameters.iter().find(|parameter| parameter.name == name) else {
                let nearest = nearest(name, self.parameters.iter().map(|parameter| parameter.name));
                return Err(SchemeError::UnknownParameter { scheme: self, name: name.clone(), nearest });
            };
            if params[..index].iter().any(|earlier| earlier.0 == *name) {
                return Err(SchemeError::Repeated { scheme: self, parameter });
            }
            if !parameter.accepts(*value) {
                return Err(SchemeError::OutOfRange { scheme: self, parameter, value: *value });
            }
        }
        Ok(())
    }

    /// A controller for segments of `mss` payload bytes (at least 1); parameters that are not given have their default.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn controller(&'static self, params: &[(String, f64)], mss: u32) -> Result<AnyController, SchemeError> {
        Ok((self.build)(&self.values(params)?, mss))
    }

    /// These values of its parameters, and the defaults of the others.
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn values<'a>(&'static self, params: &'a [(String, f64)]) -> Result<Values<'a>, SchemeError> {
        self.check(params)?;
        Ok(Values::new(self, params))
    }
}

/// A controller of the scheme of this crate that is called `name`, see [`Scheme::controller`].
///
/// # Errors
/// As [`Scheme::find`] and [`Scheme::check`].
pub fn build(name: &str, params: &[(String, f64)], mss: u32) -> Result<AnyController, SchemeError> {
    Scheme::find(name, SCHEMES.iter())?.controller(params, mss)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Controller, MSS};

    fn set(params: &[(&str, f64)]) -> Vec<(String, f64)> {
        params.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    fn error(name: &str, params: &[(&str, f64)]) -> String {
        build(name, &set(params), MSS).expect_err("a mistake").to_string()
    }

    #[test]
    fn the_registry_is_consistent() {
        for (index, scheme) in SCHEMES.iter().enumerate() {
            assert!(SCHEMES[..index].iter().all(|other| other.name != scheme.name), "{} twice", scheme.name);
            for parameter in scheme.parameters {
                assert!(parameter.accepts(parameter.default), "{} of {}", parameter.name, scheme.name);
            }
            assert!(build(scheme.name, &[], MSS).is_ok(), "{}", scheme.name);
        }
    }

    #[test]
    fn parameters_reach_the_controller() {
        let window = build("constant-window", &set(&[("window", 2.5)]), 1000).unwrap();
        assert_eq!((window.cwnd(), window.pacing_rate()), (2500, None));
        let rate = build("constant-rate", &set(&[("rate", 5e6), ("window", 20.0)]), 1000).unwrap();
        assert_eq!((rate.cwnd(), rate.pacing_rate()), (20_000, Some(5e6)));
    }

    #[test]
    fn each_mistake_has_one_clear_line() {
        assert_eq!(error("cubik", &[]), r#"unknown scheme "cubik", did you mean "cubic"?"#);
        assert_eq!(error("reno", &[]), r#"unknown scheme "reno", did you mean "newreno"?"#);
        assert_eq!(error("NewReno", &[]), r#"unknown scheme "NewReno", did you mean "newreno"?"#);
        assert_eq!(
            error("quic", &[]),
            r#"unknown scheme "quic", expected one of newreno, cubic, copa, vegas, compound, illinois, westwood, c2tcp, bbr, bbr3, allegro, vivace, remy, constant-rate, constant-window"#
        );
        assert_eq!(error("cubic", &[("bta", 0.5)]), r#"scheme "cubic" has no parameter "bta", did you mean "beta"?"#);
        assert_eq!(
            error("cubic", &[("window", 5.0)]),
            r#"scheme "cubic" has no parameter "window", expected one of hystart, linux, fast_convergence, beta, c"#
        );
        assert_eq!(error("newreno", &[("beta", 0.5)]), r#"scheme "newreno" has no parameter "beta", it takes none"#);
        assert_eq!(
            error("cubic", &[("beta", 1.5)]),
            r#"parameter "beta" of scheme "cubic" is 1.5, expected 0.1 to 0.95"#
        );
        assert_eq!(
            error("cubic", &[("hystart", 0.5)]),
            r#"parameter "hystart" of scheme "cubic" is 0.5, expected 0 or 1"#
        );
        assert_eq!(
            error("constant-window", &[("window", f64::NAN)]),
            r#"parameter "window" of scheme "constant-window" is NaN, expected 1 to 1000000 packets"#
        );
        assert_eq!(
            error("cubic", &[("beta", 0.5), ("beta", 0.6)]),
            r#"parameter "beta" of scheme "cubic" is given twice"#
        );
    }
}
