//! The parts of a file that holds a policy, whatever it is: texts and tensors, taken strictly.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::marker::PhantomData;
use std::path::Path;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use super::{FORMAT, MAX_BYTES, PolicyError, error, write};
use crate::Layer;
use crate::feature::fnv1a;
use crate::network::{MAX_LAYERS, MAX_WIDTH};

/// The bytes of a file, if there are not too many.
pub(crate) fn file(path: &Path) -> Result<Vec<u8>, PolicyError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes));
    read.map_err(|problem| PolicyError::Read(error::plain(&problem)))?;
    if bytes.len() as u64 > MAX_BYTES { Err(PolicyError::TooLarge(bytes.len() as u64)) } else { Ok(bytes) }
}

/// A file's metadata and tensors.
pub(crate) struct Parts<'a> {
    texts: BTreeMap<String, String>,
    tensors: SafeTensors<'a>,
}

impl<'a> Parts<'a> {
    /// Those of a file that has all of these `keys` in its metadata, in this version of the layout.
    pub(crate) fn read(bytes: &'a [u8], keys: &[&'static str]) -> Result<Self, PolicyError> {
        let (length, header) = SafeTensors::read_metadata(bytes).map_err(|error| unreadable(&error, bytes))?;
        // Tensors, and the metadata, are objects of the one that the header is.
        serde_json::from_slice::<Distinct<Distinct<IgnoredAny>>>(&bytes[8..][..length])
            .map_err(|error| PolicyError::Damaged(error.to_string()))?;
        let tensors = SafeTensors::deserialize(bytes).map_err(|error| unreadable(&error, bytes))?;
        let texts: BTreeMap<_, _> = header.metadata().clone().unwrap_or_default().into_iter().collect();
        if let Some(missing) = keys.iter().find(|key| !texts.contains_key(**key)) {
            return Err(PolicyError::Missing(missing));
        }
        let mut parts = Self { texts, tensors };
        parts.expect("format", FORMAT)?;
        Ok(parts)
    }

    /// Those of a file with a policy of another paper's, of this form and with this definition. The form is looked at before
    /// what only it has.
    pub(crate) fn of(bytes: &'a [u8], form: &'static str, definition: &str) -> Result<Self, PolicyError> {
        let mut parts = Self::read(bytes, &["format", "form"])?;
        parts.expect("form", form)?;
        parts.check_definition(form, fnv1a(definition))?;
        Ok(parts)
    }

    /// What `parse` makes of a text, which is taken.
    pub(crate) fn take<T>(
        &mut self,
        name: &'static str,
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<T, PolicyError> {
        let text = self.texts.remove(name).ok_or(PolicyError::Missing(name))?;
        parse(&text).ok_or_else(|| PolicyError::Value { name, found: short(&text), expected: expected.to_owned() })
    }

    /// Takes a text that can only be this one.
    pub(crate) fn expect(&mut self, name: &'static str, value: &str) -> Result<(), PolicyError> {
        self.take(name, value, |text| (text == value).then_some(()))
    }

    /// A number in a range.
    pub(crate) fn number(
        &mut self,
        name: &'static str,
        range: &std::ops::RangeInclusive<f64>,
    ) -> Result<f64, PolicyError> {
        let value = self.take(name, "a number", |text| text.parse().ok())?;
        error::check(name, value, range)?;
        Ok(value)
    }

    /// Fails unless the policy was trained with the definition of this hash.
    pub(crate) fn check_definition(&mut self, form: &'static str, hash: u64) -> Result<(), PolicyError> {
        let found = self.take("definition_hash", "a hash", |text| Some(text.to_owned()))?;
        let expected = format!("{hash:016x}");
        if found == expected {
            return Ok(());
        }
        Err(PolicyError::Definition { form, found: short(&found), expected })
    }

    /// The layers, of the sizes that the file gives; there must be nothing else.
    pub(crate) fn layers(&mut self) -> Result<Vec<Layer>, PolicyError> {
        let sizes = self.shape()?;
        let mut tensors = self.tensors();
        let layers = tensors.layers(&sizes)?;
        tensors.end(&format!("those of layers 0 to {}", layers.len() - 1))?;
        Ok(layers)
    }

    /// The same where another layer, which has a name and as many units as it has biases, stands beside them.
    pub(crate) fn layers_beside(&mut self, name: &str, inputs: usize) -> Result<(Layer, Vec<Layer>), PolicyError> {
        let sizes = self.shape()?;
        let mut tensors = self.tensors();
        let outputs = tensors.rows(format!("{name}.bias"))?;
        let (other, layers) = (tensors.layer(name, inputs, outputs)?, tensors.layers(&sizes)?);
        tensors.end(&format!("those of {name} and of layers 0 to {}", layers.len() - 1))?;
        Ok((other, layers))
    }

    fn shape(&mut self) -> Result<Vec<usize>, PolicyError> {
        let expected = format!("the sizes of at most {MAX_LAYERS} layers from 1 to {MAX_WIDTH}, like 25-64-32-1");
        self.take("shape", &expected, sizes)
    }

    /// The tensors, all of them.
    pub(crate) fn tensors(&self) -> Tensors<'_> {
        Tensors { left: self.tensors.iter().collect() }
    }

    /// The texts that nothing has taken.
    pub(crate) fn notes(self) -> BTreeMap<String, String> {
        self.texts
    }
}

/// Names to choose from, for an error.
pub(crate) fn one_of<const N: usize>(names: [&str; N]) -> String {
    format!("one of {}", names.join(", "))
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

/// A text that fits into a line, whatever was in the file.
fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

fn sizes(text: &str) -> Option<Vec<usize>> {
    let sizes: Vec<usize> = text.split('-').map(|size| size.parse().ok()).collect::<Option<_>>()?;
    let fits = sizes.iter().all(|size| (1..=MAX_WIDTH).contains(size));
    (fits && (2..=MAX_LAYERS + 1).contains(&sizes.len())).then_some(sizes)
}

/// A JSON object whose names are all different. Other readers take what a name is given last, or first: two could run two
/// policies from one file.
struct Distinct<V>(PhantomData<V>);

impl<'de, V: Deserialize<'de>> Deserialize<'de> for Distinct<V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Self(PhantomData))
    }
}

impl<'de, V: Deserialize<'de>> Visitor<'de> for Distinct<V> {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self, A::Error> {
        let mut names = BTreeSet::new();
        while let Some((name, _)) = map.next_entry::<String, V>()? {
            if let Some(twice) = names.replace(name) {
                return Err(A::Error::custom(format!("its header has {:?} twice,", short(&twice))));
            }
        }
        Ok(self)
    }
}

/// The tensors of a file that nothing has taken yet.
pub(crate) struct Tensors<'a> {
    left: HashMap<&'a str, TensorView<'a>>,
}

impl Tensors<'_> {
    /// The numbers of a tensor of this shape, row by row.
    pub(crate) fn take(&mut self, name: String, expected: &[usize]) -> Result<Vec<f32>, PolicyError> {
        let Some(tensor) = self.left.remove(name.as_str()) else { return Err(PolicyError::NoTensor(name)) };
        if tensor.dtype() != Dtype::F32 {
            return Err(PolicyError::Type { name, found: tensor.dtype().to_string() });
        }
        if tensor.shape() != expected {
            return Err(PolicyError::Shape { name, found: tensor.shape().to_vec(), expected: expected.to_vec() });
        }
        let values = tensor.data().chunks_exact(4);
        Ok(values.map(|value| f32::from_le_bytes(value.try_into().expect("four bytes"))).collect())
    }

    /// How many rows a tensor has.
    fn rows(&self, name: String) -> Result<usize, PolicyError> {
        let shape = self.left.get(name.as_str()).map(|tensor| tensor.shape().first().copied().unwrap_or(0));
        shape.ok_or(PolicyError::NoTensor(name))
    }

    /// A layer of that name.
    fn layer(&mut self, name: &str, inputs: usize, outputs: usize) -> Result<Layer, PolicyError> {
        let weights = self.take(format!("{name}.weight"), &[outputs, inputs])?;
        Ok(Layer { inputs, weights, bias: self.take(format!("{name}.bias"), &[outputs])? })
    }

    /// Layers of these sizes, from input to output.
    fn layers(&mut self, sizes: &[usize]) -> Result<Vec<Layer>, PolicyError> {
        let pairs = sizes.windows(2).enumerate();
        pairs.map(|(index, pair)| self.layer(&write::layer_name(index), pair[0], pair[1])).collect()
    }

    /// Fails if there is one more; `expected` says which there are.
    pub(crate) fn end(self, expected: &str) -> Result<(), PolicyError> {
        match self.left.keys().min() {
            Some(name) => Err(PolicyError::ExtraTensor { name: short(name), expected: expected.to_owned() }),
            None => Ok(()),
        }
    }
}
