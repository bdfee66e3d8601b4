//! The choice of a discipline as data.

use super::{
    AnyQueue, Codel, CodelConfig, DropTail, FqCodel, FqCodelConfig, Limit, Packet, Pie, PieConfig, Red, RedConfig,
};
use serde::{Deserialize, Serialize};

/// A queue discipline and its parameters: `{"kind": "codel", "target_ns": 5000000}`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum QueueConfig {
    /// Drop-tail FIFO.
    Droptail {},
    /// RFC 8289.
    Codel(CodelConfig),
    /// RFC 8290.
    FqCodel(FqCodelConfig),
    /// RFC 8033.
    Pie(PieConfig),
    /// Floyd and Jacobson 1993.
    Red(RedConfig),
}

impl QueueConfig {
    /// Checks the parameters.
    ///
    /// # Errors
    ///
    /// One line that names the parameter and says what was expected.
    pub fn validate(&self) -> Result<(), String> {
        let checked = match self {
            Self::Droptail {} => Ok(()),
            Self::Codel(config) => config.validate(),
            Self::FqCodel(config) => config.validate(),
            Self::Pie(config) => config.validate(),
            Self::Red(config) => config.validate(),
        };
        checked.map_err(|problem| format!("queue: {problem}"))
    }

    /// An empty queue. The parameters must have been validated.
    pub fn build<P: Packet>(&self, limit: Limit) -> AnyQueue<P> {
        match *self {
            Self::Droptail {} => AnyQueue::DropTail(DropTail::new(limit)),
            Self::Codel(config) => AnyQueue::Codel(Codel::new(config, limit)),
            Self::FqCodel(config) => AnyQueue::FqCodel(FqCodel::new(config, limit)),
            Self::Pie(config) => AnyQueue::Pie(Pie::new(config, limit)),
            Self::Red(config) => AnyQueue::Red(Red::new(config, limit)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<QueueConfig, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn parameters_that_are_not_given_have_the_documented_defaults() {
        assert_eq!(read(r#"{"kind":"droptail"}"#), Ok(QueueConfig::Droptail {}));
        assert_eq!(read(r#"{"kind":"fq_codel"}"#), Ok(QueueConfig::FqCodel(FqCodelConfig::default())));
        let pie = PieConfig { alpha: 0.5, ecn: true, ..PieConfig::default() };
        assert_eq!(read(r#"{"kind":"pie","alpha":0.5,"ecn":true}"#), Ok(QueueConfig::Pie(pie)));
        let red = RedConfig { min_bytes: 1, max_bytes: 2, max_p: 0.1, weight: 0.002, gentle: true, ecn: false };
        assert_eq!(RedConfig::new(1, 2), red);
        assert_eq!(read(r#"{"kind":"red","min_bytes":1,"max_bytes":2}"#), Ok(QueueConfig::Red(red)));
    }

    #[test]
    fn every_kind_survives_a_round_trip() {
        let red = RedConfig { min_bytes: 1, max_bytes: 2, max_p: 0.3, weight: 0.5, gentle: false, ecn: true };
        for config in [
            QueueConfig::Droptail {},
            QueueConfig::Codel(CodelConfig { target_ns: 1, interval_ns: 2, ecn: true }),
            QueueConfig::FqCodel(FqCodelConfig { flows: 7, ..FqCodelConfig::default() }),
            QueueConfig::Pie(PieConfig { burst_ns: 9, ..PieConfig::default() }),
            QueueConfig::Red(red),
        ] {
            assert_eq!(read(&serde_json::to_string(&config).unwrap()), Ok(config));
        }
    }

    #[test]
    fn unknown_keys_and_kinds_are_refused() {
        for json in [
            r#"{"kind":"droptail","ecn":true}"#,
            r#"{"kind":"codel","target":5}"#,
            r#"{"kind":"red","min_bytes":1}"#,
            r#"{"kind":"sfq"}"#,
            "{}",
        ] {
            assert!(read(json).is_err(), "{json}");
        }
    }

    #[test]
    fn parameters_out_of_range_are_named() {
        for (json, expected) in [
            (
                r#"{"kind":"codel","target_ns":0}"#,
                "expected a target_ns and an interval_ns above 0, got 0 and 100000000",
            ),
            (r#"{"kind":"fq_codel","flows":0}"#, "expected flows between 1 and 65536, got 0"),
            (r#"{"kind":"fq_codel","quantum":0}"#, "expected a quantum of 1 byte or more, got 0"),
            (r#"{"kind":"pie","beta":-1}"#, "expected beta above 0, got -1"),
            (r#"{"kind":"red","min_bytes":5,"max_bytes":5}"#, "expected 0 < min_bytes < max_bytes, got 5 and 5"),
            (
                r#"{"kind":"red","min_bytes":1,"max_bytes":5,"max_p":1.5}"#,
                "expected max_p above 0 and at most 1, got 1.5",
            ),
        ] {
            assert_eq!(read(json).unwrap().validate(), Err(format!("queue: {expected}")));
        }
        assert!(Limit::Packets(0).validate().is_err());
        assert!(Limit::Bytes(1499).validate().is_err());
        assert!(Limit::Bytes(1500).validate().is_ok());
    }
}
