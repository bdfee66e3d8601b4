//! The JSON that describes a run: a [`Config`] whose flows also name their schemes; `clocks_ns`, the time of day on each
//! flow's host when the run begins, modulo an hour, 0 where it is not given; and `decide`, an inference service (`address`,
//! and `key`, the file with the shared key), where that is to decide for the learned ones.

use std::collections::HashMap;

use astraea_cc::{AnyController, Nanos};
use astraea_policy::{SchemeFile, schemes};
use astraea_sim::Config;
use pyo3::PyErr;
use pyo3::exceptions::PyValueError;
use serde_json::Value;

use crate::service::Service;

/// A congestion-control scheme with its parameters in SI units.
struct Scheme {
    name: String,
    params: Vec<(String, f64)>,
}

/// Contents of files that stand for schemes, by name.
pub(crate) type Policies = HashMap<String, SchemeFile>;

/// A checked configuration with a scheme for each flow.
pub(crate) struct Job {
    pub(crate) config: Config,
    schemes: Vec<Scheme>,
    clocks: Vec<Nanos>,
    policies: Policies,
    service: Option<Service>,
}

#[expect(clippy::needless_pass_by_value, reason = "used as an argument of map_err")]
pub(crate) fn value_error(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

impl Job {
    /// Reads and checks a run; errors are one line each.
    pub(crate) fn parse(json: &str, policies: Policies) -> Result<Self, PyErr> {
        let mut value: Value = serde_json::from_str(json).map_err(value_error)?;
        let flows = value.get_mut("flows").and_then(Value::as_array_mut);
        let flows = flows.ok_or_else(|| value_error("flows: missing, expected a list"))?;
        let schemes = flows.iter_mut().enumerate().map(|(i, flow)| take_scheme(i, flow)).collect::<Result<_, _>>()?;
        let mut take = |key: &str| value.as_object_mut().and_then(|job| job.remove(key));
        let (clocks, service) = (take("clocks_ns"), take("decide"));
        let text = |key: &str| service.as_ref()?.get(key)?.as_str();
        let service = text("address").map(|address| Service::connect(address, text("key"))).transpose()?;
        let config: Config = serde_json::from_value(value).map_err(value_error)?;
        config.validate().map_err(value_error)?;
        let clocks = clocks.map_or(Ok(vec![0; config.flows.len()]), serde_json::from_value::<Vec<_>>);
        let clocks = clocks.map_err(|error| value_error(format!("clocks_ns: {error}")))?;
        if clocks.len() != config.flows.len() {
            return Err(value_error(format!("clocks_ns: expected one for each of {} flows", config.flows.len())));
        }
        let job = Self { config, schemes, clocks, policies, service };
        for flow in 0..job.schemes.len() {
            job.controller(flow)?;
        }
        Ok(job)
    }

    /// A fresh controller for a flow.
    pub(crate) fn controller(&self, flow: usize) -> Result<AnyController, PyErr> {
        let Scheme { name, params } = &self.schemes[flow];
        let (clock, mss) = (self.clocks[flow], self.config.flows[flow].mss);
        let file = self.policies.get(name);
        let policy = file.map_or_else(|| schemes::policy(name), |file| file.policy().cloned());
        match (file, policy, &self.service) {
            (_, Some(policy), Some(service)) if params.is_empty() => service.controller(name, &policy, clock, mss),
            (Some(file), ..) => file.controller(name, params, clock, mss).map_err(value_error),
            (None, Some(policy), None) if params.is_empty() => Ok(schemes::learned(policy, clock, mss)),
            (None, ..) => schemes::build(name, params, mss).map_err(value_error),
        }
    }

    /// Fails if the run was not what it should be.
    pub(crate) fn check(&self) -> Result<(), PyErr> {
        self.service.as_ref().map_or(Ok(()), Service::check)
    }
}

/// Removes `scheme` from a flow, since the simulator itself knows no schemes.
fn take_scheme(index: usize, flow: &mut Value) -> Result<Scheme, PyErr> {
    let wrong = |what: &str| value_error(format!("flows[{index}].scheme: {what}"));
    let scheme = flow.as_object_mut().and_then(|f| f.remove("scheme")).ok_or_else(|| wrong("missing"))?;
    let name = scheme.get("name").and_then(Value::as_str).ok_or_else(|| wrong("name: missing, expected a string"))?;
    let params = match scheme.get("params") {
        None => Vec::new(),
        Some(params) => params
            .as_object()
            .ok_or_else(|| wrong("params: expected a table of numbers"))?
            .iter()
            .map(|(key, value)| {
                let number = value.as_f64().ok_or_else(|| wrong(&format!("params.{key}: expected a number")))?;
                Ok((key.clone(), number))
            })
            .collect::<Result<_, PyErr>>()?,
    };
    Ok(Scheme { name: name.to_owned(), params })
}
