//! The policy file: a network and what one must know to use it, as safetensors.
//!
//! Tensors `layer.0.weight` (outputs, inputs) and `layer.0.bias` (outputs), `layer.1.weight` … in float32, and metadata,
//! all of it text: `format`, `form`, `definition_hash`, `activation`, `shape`, `alpha` and `period_ms` decide how the
//! network is run; whatever else there is (name, domain, seed, metrics, recipe …) is carried along for people.

pub(crate) mod error;
pub(crate) mod parts;
mod read;
pub(crate) mod write;

use std::collections::BTreeMap;
use std::path::Path;

use astraea_cc::{MILLISECOND, Nanos};

pub use error::PolicyError;

use crate::feature::fnv1a;
use crate::{Form, Network};

/// Version of the file's layout.
const FORMAT: &str = "1";

/// Largest file that is read, far above that of the largest network there can be.
const MAX_BYTES: u64 = 64 << 20;

/// Range of the action scale.
const ALPHA: std::ops::RangeInclusive<f64> = 1e-4..=1.0;

/// Range of the monitoring period in ms.
pub(crate) const PERIOD_MS: std::ops::RangeInclusive<f64> = 1.0..=1000.0;

/// What one must know to use a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Metadata {
    /// How the network is embedded in a controller.
    pub form: Form,
    /// Action scale.
    pub alpha: f64,
    /// Monitoring period in ns.
    pub period: Nanos,
    /// Everything else, by name: where the policy comes from and what it is good for.
    pub notes: BTreeMap<String, String>,
}

/// A policy: a network that fits its form.
#[derive(Clone, Debug)]
pub struct Policy {
    network: Network,
    metadata: Metadata,
}

impl Policy {
    /// A policy of this network.
    ///
    /// # Errors
    /// A network with another number of inputs than the form has, an action scale or a period out of range, a note with
    /// a name that the file needs itself.
    pub fn new(network: Network, metadata: Metadata) -> Result<Self, PolicyError> {
        let Metadata { form, alpha, period, notes } = &metadata;
        if network.inputs() != form.inputs() {
            let (found, expected) = (network.inputs(), form.inputs());
            return Err(PolicyError::Inputs { form: form.name(), found, expected });
        }
        error::check("alpha", *alpha, &ALPHA)?;
        error::check("period_ms", period_ms(*period), &PERIOD_MS)?;
        check_notes(&read::KEYS, notes)?;
        Ok(Self { network, metadata })
    }

    /// Reads a policy file.
    ///
    /// # Errors
    /// Whatever is wrong with it, in one line that begins with the path.
    pub fn load(path: &Path) -> Result<Self, PolicyError> {
        load(path, Self::from_bytes)
    }

    /// Reads the content of a policy file.
    ///
    /// # Errors
    /// Whatever is wrong with it, in one line.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PolicyError> {
        read::policy(bytes)
    }

    /// The content of a policy file; the same policy gives the same bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        write::bytes(self.texts(), write::layers(self.network.layers()))
    }

    /// Writes a policy file: at any time the path holds what it held before, or all of it.
    ///
    /// # Errors
    /// Those of the file system, in one line that begins with the path.
    pub fn save(&self, path: &Path) -> Result<(), PolicyError> {
        save(path, &self.to_bytes())
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// How to use it.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// All metadata as the file has it: names and texts, in the order of the names.
    pub fn texts(&self) -> BTreeMap<String, String> {
        let Metadata { form, alpha, period, notes } = &self.metadata;
        let own = [
            ("activation", self.network.activation().name().to_owned()),
            ("shape", self.network.shape()),
            ("alpha", alpha.to_string()),
            ("period_ms", period_ms(*period).to_string()),
        ];
        self::texts(form.name(), &form.definition(), own, notes)
    }
}

/// What `read` makes of the content of a file; errors begin with the path.
pub(crate) fn load<T>(path: &Path, read: impl Fn(&[u8]) -> Result<T, PolicyError>) -> Result<T, PolicyError> {
    at(path, parts::file(path).and_then(|bytes| read(&bytes)))
}

/// Writes a file: at any time the path holds what it held before, or all of it. Errors begin with the path.
pub(crate) fn save(path: &Path, bytes: &[u8]) -> Result<(), PolicyError> {
    at(path, write::whole(path, bytes).map_err(|problem| PolicyError::Write(error::plain(&problem))))
}

/// The same, with the path in front of what is wrong.
fn at<T>(path: &Path, result: Result<T, PolicyError>) -> Result<T, PolicyError> {
    result.map_err(|reason| PolicyError::At { path: path.display().to_string(), reason: Box::new(reason) })
}

/// Fails if a note is called like one of the `keys` that the file has itself.
pub(crate) fn check_notes(keys: &[&'static str], notes: &BTreeMap<String, String>) -> Result<(), PolicyError> {
    match keys.iter().find(|key| notes.contains_key(**key)) {
        Some(name) => Err(PolicyError::Reserved(name)),
        None => Ok(()),
    }
}

/// A file's metadata, names and texts: what all files have, what is this one's `own`, and notes.
pub(crate) fn texts<const N: usize>(
    form: &str,
    definition: &str,
    own: [(&str, String); N],
    notes: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let all = [
        ("format", FORMAT.to_owned()),
        ("form", form.to_owned()),
        ("definition_hash", format!("{:016x}", fnv1a(definition))),
    ];
    let named = all.into_iter().chain(own).map(|(name, text)| (name.to_owned(), text));
    notes.clone().into_iter().chain(named).collect()
}

/// A period as files have it.
pub(crate) fn period_ms(period: Nanos) -> f64 {
    period as f64 / MILLISECOND as f64
}

/// Takes a period from a file.
pub(crate) fn take_period(parts: &mut parts::Parts<'_>) -> Result<Nanos, PolicyError> {
    Ok((parts.number("period_ms", &PERIOD_MS)? * MILLISECOND as f64).round() as Nanos)
}

#[cfg(test)]
mod tests;
