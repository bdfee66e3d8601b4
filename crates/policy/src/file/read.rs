//! Reading a policy file: strict, since a network that is run in another way than it was trained in does harm quietly.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use astraea_cc::MILLISECOND;
use safetensors::{Dtype, SafeTensorError, SafeTensors};

use super::{ALPHA, FORMAT, MAX_BYTES, Metadata, PERIOD_MS, Policy, PolicyError, error};
use crate::network::{MAX_LAYERS, MAX_WIDTH};
use crate::{Activation, Form, Layer, Network};

/// Metadata that decides how a network is run.
pub(super) const KEYS: [&str; 7] = ["format", "form", "definition_hash", "activation", "shape", "alpha", "period_ms"];

/// The bytes of a file, if there are not too many.
pub(super) fn file(path: &Path) -> Result<Vec<u8>, PolicyError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|problem| PolicyError::Read(error::plain(&problem)))?;
    if bytes.len() as u64 > MAX_BYTES { Err(PolicyError::TooLarge(bytes.len() as u64)) } else { Ok(bytes) }
}

/// The policy in these bytes.
pub(super) fn policy(bytes: &[u8]) -> Result<Policy, PolicyError> {
    let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| unreadable(&error, bytes))?;
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| unreadable(&error, bytes))?;
    let mut texts = header.metadata().clone().unwrap_or_default();
    let [format, form, definition, activation, shape, alpha, period] =
        KEYS.map(|key| texts.remove(key).ok_or(PolicyError::Missing(key)));
    named("format", &format?, "1", |text| (text == FORMAT).then_some(()))?;
    let form = named("form", &form?, &one_of(Form::ALL.map(Form::name)), Form::from_name)?;
    check_definition(form, &definition?)?;
    let activations = one_of(Activation::ALL.map(Activation::name));
    let activation = named("activation", &activation?, &activations, Activation::from_name)?;
    let expected = format!("the sizes of at most {MAX_LAYERS} layers from 1 to {MAX_WIDTH}, like 25-64-32-1");
    let sizes = named("shape", &shape?, &expected, sizes)?;
    let alpha = number("alpha", &alpha?)?;
    error::check("alpha", alpha, &ALPHA)?;
    let period_ms = number("period_ms", &period?)?;
    error::check("period_ms", period_ms, &PERIOD_MS)?;
    let network = Network::new(layers(&tensors, &sizes)?, activation)?;
    let period = (period_ms * MILLISECOND as f64).round() as u64;
    Policy::new(network, Metadata { form, alpha, period, notes: texts.into_iter().collect() })
}

fn unreadable(error: &SafeTensorError, bytes: &[u8]) -> PolicyError {
    match error {
        SafeTensorError::InvalidHeaderLength if bytes.get(8) == Some(&b'{') => PolicyError::ShortHeader,
        SafeTensorError::MetadataIncompleteBuffer => PolicyError::Length(bytes.len()),
        SafeTensorError::InvalidHeaderLength
        | SafeTensorError::HeaderTooSmall
        | SafeTensorError::HeaderTooLarge
        | SafeTensorError::InvalidHeader(_)
        | SafeTensorError::InvalidHeaderDeserialization(_) => PolicyError::NotSafetensors(error.to_string()),
        _ => PolicyError::Damaged(error.to_string()),
    }
}

fn one_of<const N: usize>(names: [&str; N]) -> String {
    format!("one of {}", names.join(", "))
}

fn named<T>(
    name: &'static str,
    text: &str,
    expected: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, PolicyError> {
    parse(text).ok_or_else(|| PolicyError::Value { name, found: short(text), expected: expected.to_owned() })
}

fn number(name: &'static str, text: &str) -> Result<f64, PolicyError> {
    named(name, text, "a number", |text| text.parse().ok())
}

/// A text that fits into a line, whatever was in the file.
fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

fn check_definition(form: Form, found: &str) -> Result<(), PolicyError> {
    let expected = format!("{:016x}", form.definition_hash());
    if found == expected {
        return Ok(());
    }
    Err(PolicyError::Definition { form: form.name(), found: short(found), expected })
}

fn sizes(text: &str) -> Option<Vec<usize>> {
    let sizes: Vec<usize> = text.split('-').map(|size| size.parse().ok()).collect::<Option<_>>()?;
    let fits = sizes.iter().all(|size| (1..=MAX_WIDTH).contains(size));
    (fits && (2..=MAX_LAYERS + 1).contains(&sizes.len())).then_some(sizes)
}

fn layers(tensors: &SafeTensors<'_>, sizes: &[usize]) -> Result<Vec<Layer>, PolicyError> {
    let mut left: HashMap<&str, _> = tensors.iter().collect();
    let mut take = |name: String, expected: &[usize]| -> Result<Vec<f32>, PolicyError> {
        let Some(tensor) = left.remove(name.as_str()) else { return Err(PolicyError::NoTensor(name)) };
        if tensor.dtype() != Dtype::F32 {
            return Err(PolicyError::Type { name, found: tensor.dtype().to_string() });
        }
        if tensor.shape() != expected {
            return Err(PolicyError::Shape { name, found: tensor.shape().to_vec(), expected: expected.to_vec() });
        }
        let values = tensor.data().chunks_exact(4);
        Ok(values.map(|value| f32::from_le_bytes(value.try_into().expect("four bytes"))).collect())
    };
    let layers = sizes.windows(2).enumerate().map(|(index, pair)| {
        let (inputs, outputs) = (pair[0], pair[1]);
        let weights = take(format!("layer.{index}.weight"), &[outputs, inputs])?;
        Ok(Layer { inputs, weights, bias: take(format!("layer.{index}.bias"), &[outputs])? })
    });
    let layers = layers.collect::<Result<Vec<_>, PolicyError>>()?;
    match left.keys().min() {
        Some(name) => Err(PolicyError::ExtraTensor { name: short(name), last: layers.len() - 1 }),
        None => Ok(layers),
    }
}
