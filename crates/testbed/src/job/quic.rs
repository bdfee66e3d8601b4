//! What QUIC connections can do.

use astraea_cc::MSS;
use astraea_policy::{SchemeFile, schemes};
use astraea_quic::Scheme;
use astraea_sim::{AckConfig, FlowConfig};
use serde_json::{Map, Value};

use super::{Refusal, take_scheme};
use crate::service::Service;

/// Takes the scheme of a flow: `{"name", "params"}` as the simulator has it, or one of [`SchemeFile::KINDS`] with the path of a
/// file, for example `{"policy"}`, and `"params"` where it takes some. Where there is a service, it decides for policies.
pub(super) fn scheme(index: usize, flow: &mut Value, service: Option<&Service>) -> Result<Scheme, Refusal> {
    let wrong = |what: &dyn std::fmt::Display| Refusal::flow(index, format!("scheme: {what}"));
    let taken = take_scheme(index, flow)?;
    let text = |key: &str| taken.get(key).and_then(Value::as_str);
    let none = Map::new();
    let params = taken.get("params").and_then(Value::as_object).unwrap_or(&none);
    let number = |(key, value): (&String, &Value)| value.as_f64().map(|value| (key.clone(), value));
    let params: Option<Vec<_>> = params.iter().map(number).collect();
    let params = params.ok_or_else(|| wrong(&"params: expected numbers"))?;
    let given = SchemeFile::KINDS.into_iter().find_map(|kind| Some((kind, text(kind)?)));
    let (name, file) = match given {
        Some((kind, path)) => (path, Some(SchemeFile::load(kind, path.as_ref()).map_err(|error| wrong(&error))?)),
        None => (text("name").ok_or_else(|| wrong(&"name: missing, expected a string"))?, None),
    };
    let policy = file.as_ref().map_or_else(|| schemes::policy(name), |file| file.policy().cloned());
    match (service, policy, file) {
        (Some(service), Some(policy), _) if params.is_empty() => {
            service.scheme(name, &policy).map_err(|problem| wrong(&problem))
        }
        (_, _, Some(file)) => Scheme::file(name, file, &params).map_err(|error| wrong(&error)),
        (_, _, None) => Scheme::named(name, &params).map_err(|error| wrong(&error)),
    }
}

/// Says what the stack does not do for a single connection.
pub(super) fn check_flow(flow: &FlowConfig) -> Result<(), String> {
    let AckConfig { every, aggregate_ns, loss, .. } = flow.ack;
    if every > u32::from(u8::MAX) {
        return Err(format!("ack.every: is {every}, expected at most 255 for a QUIC receiver"));
    }
    if aggregate_ns > 0 {
        return Err("ack.aggregate: a QUIC receiver does not bunch acknowledgements; expected 0ms".into());
    }
    if loss > 0.0 {
        return Err("ack.loss: a QUIC receiver loses none; expected 0, and a return_path over a link with loss".into());
    }
    if flow.mss != MSS {
        return Err(format!("mss: is {}, expected {MSS}: packets of 1500 bytes", flow.mss));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::job::{Job, Schemes, Traffic};

    fn parse(flow: &str) -> Result<Job, String> {
        let json = format!(
            r#"{{"duration_ns": 1000000000, "slot_ns": 10000000,
                "links": [{{"name": "l", "rate": {{"constant": 1e7}}, "delay": {{"constant": 5000000}}, "limit": {{"bytes": 30000}}}}],
                "flows": [{{"start_ns": 0, "path": [0], {flow}}}]}}"#
        );
        Job::parse(&json, Traffic::Quic).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn every_scheme_may_be_named_with_its_parameters() {
        for scheme in astraea_policy::schemes::all() {
            let job = parse(&format!(r#""scheme": {{"name": "{}", "params": {{}}}}"#, scheme.name)).unwrap();
            assert!(matches!(job.schemes, Schemes::Quic(schemes) if schemes.len() == 1));
        }
        assert!(parse(r#""scheme": {"name": "copa", "params": {"delta": 0.1}}, "ack": {"every": 4}"#).is_ok());
    }

    #[test]
    fn a_policy_may_be_a_file() {
        let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/astraea/models/astraea.safetensors");
        assert!(parse(&format!(r#""scheme": {{"policy": "{shipped}"}}"#)).is_ok());
        let refusal = parse(r#""scheme": {"policy": "/nowhere.safetensors"}"#).unwrap_err();
        assert_eq!(refusal, "flows[0].scheme: /nowhere.safetensors: cannot be read: No such file or directory");
        let refusal = parse(&format!(r#""scheme": {{"policy": "{shipped}", "params": {{"alpha": 1}}}}"#)).unwrap_err();
        assert_eq!(refusal, format!("flows[0].scheme: file {shipped:?} takes no parameters"));
        let refusal = parse(&format!(r#""scheme": {{"table": "{shipped}"}}"#)).unwrap_err();
        assert!(refusal.contains("astraea.safetensors: "), "no policy is a table: {refusal}");
    }

    #[test]
    fn what_cannot_be_done_is_one_line() {
        let refusal = |flow: &str| parse(flow).unwrap_err();
        assert_eq!(
            refusal(r#""scheme": {"name": "cubik"}"#),
            r#"flows[0].scheme: unknown scheme "cubik", did you mean "cubic"?"#
        );
        assert_eq!(refusal(r#""scheme": {}"#), "flows[0].scheme: name: missing, expected a string");
        assert_eq!(
            refusal(r#""scheme": {"name": "cubic", "params": {"beta": "x"}}"#),
            "flows[0].scheme: params: expected numbers"
        );
        let cubic = |rest: &str| refusal(&format!(r#""scheme": {{"name": "cubic"}}, {rest}"#));
        assert!(cubic(r#""ack": {"every": 300}"#).starts_with("flows[0].ack.every: "));
        assert!(cubic(r#""ack": {"aggregate_ns": 5}"#).starts_with("flows[0].ack.aggregate: "));
        assert!(cubic(r#""ack": {"loss": 0.1}"#).starts_with("flows[0].ack.loss: "));
        assert!(cubic(r#""mss": 1000"#).starts_with("flows[0].mss: "));
    }
}
