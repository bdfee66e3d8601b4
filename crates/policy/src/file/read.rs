//! Reading a policy file: strict, since a network that is run in another way than it was trained in does harm quietly.

use super::parts::{Parts, one_of};
use super::{ALPHA, Metadata, Policy, PolicyError};
use crate::{Activation, Form, Network};

/// Metadata that decides how a network is run.
pub(super) const KEYS: [&str; 7] = ["format", "form", "definition_hash", "activation", "shape", "alpha", "period_ms"];

/// The policy in these bytes.
pub(super) fn policy(bytes: &[u8]) -> Result<Policy, PolicyError> {
    let mut parts = Parts::read(bytes, &KEYS)?;
    let form = parts.take("form", &one_of(Form::ALL.map(Form::name)), Form::from_name)?;
    parts.check_definition(form.name(), form.definition_hash())?;
    let activations = one_of(Activation::ALL.map(Activation::name));
    let activation = parts.take("activation", &activations, Activation::from_name)?;
    let alpha = parts.number("alpha", &ALPHA)?;
    let period = super::take_period(&mut parts)?;
    let network = Network::new(parts.layers()?, activation)?;
    Policy::new(network, Metadata { form, alpha, period, notes: parts.notes() })
}
