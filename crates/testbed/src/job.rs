//! What a trial is asked to do: the simulator's configuration, whose flows also name their schemes, and `decide`, an
//! inference service (`address`, and `key`, the file with the shared key), where that is to decide for the learned ones.

mod quic;

use astraea_cc::{MILLISECOND, MSS, Nanos};
use astraea_policy::Policy;
use astraea_sim::{AckConfig, Config, FlowConfig};
use serde_json::Value;

use crate::scheme::{self, Chosen};
use crate::service::Service;

/// Longest time that Linux holds an acknowledgement back for a second segment on paths faster than 40 ms
/// (`TCP_DELACK_MIN`).
const DELAYED_ACK: Nanos = 40 * MILLISECOND;

/// What carries the data of a trial.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Traffic {
    /// TCP connections of this kernel, under congestion controls of this kernel.
    #[default]
    Tcp,
    /// QUIC connections of this process, under any scheme.
    Quic,
}

/// The scheme of each flow.
#[derive(Clone, Debug)]
pub enum Schemes {
    /// For [`Traffic::Tcp`].
    Kernel(Vec<Chosen>),
    /// For [`Traffic::Quic`].
    Quic(Vec<astraea_quic::Scheme>),
}

/// Why a trial cannot be run. Displayed as one line: where, what, what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(String);

impl Refusal {
    fn flow(index: usize, problem: impl std::fmt::Display) -> Self {
        Self(format!("flows[{index}].{problem}"))
    }
}

/// A checked configuration with a scheme for each flow.
#[derive(Clone, Debug)]
pub struct Job {
    /// The configuration.
    pub config: Config,
    /// The scheme of each flow.
    pub schemes: Schemes,
    /// What decides for the learned schemes, if not they themselves.
    pub service: Option<Service>,
}

impl Job {
    /// Reads and checks a trial.
    ///
    /// # Errors
    /// What is inconsistent, or what that kind of traffic cannot do.
    pub fn parse(json: &str, traffic: Traffic) -> Result<Self, Refusal> {
        let plain = |error: &dyn std::fmt::Display| Refusal(error.to_string());
        let mut value: Value = serde_json::from_str(json).map_err(|error| plain(&error))?;
        let service = value.as_object_mut().and_then(|job| job.remove("decide"));
        let text = |key: &str| service.as_ref()?.get(key)?.as_str();
        let service = match text("address") {
            Some(_) if traffic == Traffic::Tcp => {
                return Err(Refusal("decide: flows of the kernel's TCP cannot ask a service; expected QUIC".into()));
            }
            Some(address) => {
                let connected = Service::connect(address, text("key"));
                Some(connected.map_err(|problem| Refusal(format!("decide: {problem}")))?)
            }
            None => None,
        };
        let flows = value.get_mut("flows").and_then(Value::as_array_mut);
        let flows = flows.ok_or_else(|| Refusal("flows: missing, expected a list".into()))?;
        let flows = flows.iter_mut().enumerate();
        let schemes = match traffic {
            Traffic::Tcp => {
                Schemes::Kernel(flows.map(|(index, flow)| kernel_scheme(index, flow)).collect::<Result<_, _>>()?)
            }
            Traffic::Quic => {
                let scheme = |(index, flow)| quic::scheme(index, flow, service.as_ref());
                Schemes::Quic(flows.map(scheme).collect::<Result<_, _>>()?)
            }
        };
        let config: Config = serde_json::from_value(value).map_err(|error| plain(&error))?;
        config.validate().map_err(|error| plain(&error))?;
        if config.slot_ns == 0 {
            return Err(Refusal("slot_ns: is 0, expected a positive time".into()));
        }
        for (index, flow) in config.flows.iter().enumerate() {
            let checked = match traffic {
                Traffic::Tcp => check_flow(flow),
                Traffic::Quic => quic::check_flow(flow),
            };
            checked.map_err(|problem| Refusal::flow(index, problem))?;
        }
        Ok(Self { config, schemes, service })
    }
}

/// Removes `scheme` from a flow, since the links know no schemes.
fn take_scheme(index: usize, flow: &mut Value) -> Result<Value, Refusal> {
    let taken = flow.as_object_mut().and_then(|flow| flow.remove("scheme"));
    taken.ok_or_else(|| Refusal::flow(index, "scheme: missing"))
}

/// `{"name"}` of a scheme that the kernel has or `{"policy"}` with the path of a file.
fn kernel_scheme(index: usize, flow: &mut Value) -> Result<Chosen, Refusal> {
    let wrong = |what: &str| Refusal::flow(index, format!("scheme: {what}"));
    let taken = take_scheme(index, flow)?;
    if let Some(path) = taken.get("policy").and_then(Value::as_str) {
        let policy = Policy::load(path.as_ref()).map_err(|error| wrong(&error.to_string()))?;
        return Ok(Chosen::file(path, policy));
    }
    let name = taken.get("name").and_then(Value::as_str).ok_or_else(|| wrong("name: missing, expected a string"))?;
    let known = scheme::find(name).ok_or_else(|| {
        let names: Vec<_> = scheme::SCHEMES.iter().map(|scheme| scheme.name).collect();
        wrong(&format!(
            "the kernel backend has no {name}; expected one of {}, or the backend sim or quic",
            names.join(", ")
        ))
    })?;
    if taken.get("params").and_then(Value::as_object).is_some_and(|params| !params.is_empty()) {
        return Err(wrong(&format!(
            "the kernel's {name} takes no parameters; expected {name} alone, or the backend sim"
        )));
    }
    Ok(known.into())
}

/// Says what Linux does not do for a single connection.
fn check_flow(flow: &FlowConfig) -> Result<(), String> {
    let AckConfig { every, timeout_ns, aggregate_ns, loss } = flow.ack;
    if every > 2 {
        return Err(format!("ack.every: the kernel cannot acknowledge every {every}th packet; expected 1 or 2"));
    }
    if every == 2 && timeout_ns != DELAYED_ACK {
        return Err("ack.timeout: the kernel holds acknowledgements back for its own time; expected 40ms".into());
    }
    if aggregate_ns > 0 {
        return Err("ack.aggregate: the kernel does not bunch acknowledgements; expected 0ms".into());
    }
    if loss > 0.0 {
        return Err("ack.loss: the kernel loses none; expected 0, and a return_path over a link with loss".into());
    }
    if flow.mss != MSS {
        return Err(format!("mss: is {}, expected {MSS}", flow.mss));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(flow: &str) -> String {
        format!(
            r#"{{"duration_ns": 1000000000, "slot_ns": 10000000,
                "links": [{{"name": "l", "rate": {{"constant": 1e7}}, "delay": {{"constant": 5000000}}, "limit": {{"bytes": 30000}}}}],
                "flows": [{{"start_ns": 0, "path": [0], {flow}}}]}}"#
        )
    }

    fn refusal(flow: &str) -> String {
        Job::parse(&json(flow), Traffic::Tcp).unwrap_err().to_string()
    }

    #[test]
    fn a_trial_is_read_with_its_schemes() {
        let flow = json(r#""scheme": {"name": "newreno", "params": {}}, "ack": {"every": 2}"#);
        let job = Job::parse(&flow, Traffic::Tcp).unwrap();
        assert!(matches!(job.schemes, Schemes::Kernel(schemes) if schemes[0].kernel == "reno"));
        assert_eq!(job.config.flows.len(), 1);
    }

    #[test]
    fn what_the_kernel_cannot_do_is_one_line() {
        assert_eq!(
            refusal(r#""scheme": {"name": "vegas"}"#),
            "flows[0].scheme: the kernel backend has no vegas; expected one of cubic, newreno, bbr, astraea, \
             astraea-pure, astraea-paper, or the backend sim or quic"
        );
        let missing = refusal(r#""scheme": {"policy": "/nowhere.safetensors"}"#);
        assert!(missing.starts_with("flows[0].scheme: /nowhere.safetensors: "), "{missing}");
        assert!(refusal(r#""scheme": {"name": "cubic", "params": {"hystart": 0}}"#).contains("takes no parameters"));
        let cubic = |rest: &str| refusal(&format!(r#""scheme": {{"name": "cubic"}}, {rest}"#));
        assert!(cubic(r#""ack": {"every": 3}"#).starts_with("flows[0].ack.every: the kernel cannot"));
        assert!(cubic(r#""ack": {"every": 2, "timeout_ns": 1}"#).starts_with("flows[0].ack.timeout: "));
        assert!(cubic(r#""ack": {"aggregate_ns": 5}"#).starts_with("flows[0].ack.aggregate: "));
        assert!(cubic(r#""ack": {"loss": 0.1}"#).starts_with("flows[0].ack.loss: "));
        assert_eq!(cubic(r#""mss": 1000"#), "flows[0].mss: is 1000, expected 1448");
        assert!(cubic(r#""unknown": 1"#).contains("unknown field"));
        assert!(Job::parse("{", Traffic::Tcp).is_err());
        assert_eq!(refusal(r#""ecn": true"#), "flows[0].scheme: missing");
    }
}
