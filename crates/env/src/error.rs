//! Settings that cannot be used.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Why settings cannot be used, in one line: which one, and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct EnvError(String);

impl EnvError {
    pub(crate) fn new(setting: &str, problem: impl std::fmt::Display) -> Self {
        Self(format!("{setting}: {problem}"))
    }

    /// An error unless `value` is finite and in `low..=high`.
    pub(crate) fn unless_within(setting: &str, value: f64, low: f64, high: f64) -> Result<(), Self> {
        if (low..=high).contains(&value) {
            return Ok(());
        }
        Err(Self::new(setting, format!("is {value}, expected {low} to {high}")))
    }
}

/// Reads settings from a JSON object; each missing key has a default. The keys `tables` hold tables of settings.
///
/// # Errors
/// If the text is not an object, or with the name of the first key that is unknown or has a value of the wrong kind.
pub(crate) fn parse<T: DeserializeOwned>(json: &str, tables: &[&str]) -> Result<T, EnvError> {
    let object: Map<String, Value> =
        serde_json::from_str(json).map_err(|e| EnvError::new("settings", format!("expected a JSON object: {e}")))?;
    // One key at a time, because serde does not say which key had the wrong value.
    for (key, value) in &object {
        // Serde would take the values of a list for those of the table, by their places.
        if tables.contains(&key.as_str()) && !value.is_object() {
            let problem = format!("expected a table of settings, not {}", kind(value));
            return Err(EnvError::new(key, problem));
        }
        let alone = Value::Object(Map::from_iter([(key.clone(), value.clone())]));
        serde_json::from_value::<T>(alone).map_err(|e| EnvError::new(key, e))?;
    }
    serde_json::from_value(Value::Object(object)).map_err(|e| EnvError::new("settings", e))
}

/// What kind of value it is, in words.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}
