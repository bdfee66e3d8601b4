//! Writing a policy file.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use safetensors::Dtype;
use safetensors::tensor::TensorInfo;
use serde::Serialize;

use crate::Layer;

/// An entry of the header. The library writes metadata in the random order of a hash map, and the same policy would
/// not give the same bytes.
#[derive(Serialize)]
#[serde(untagged)]
enum Entry {
    Metadata(BTreeMap<String, String>),
    Tensor(TensorInfo),
}

/// A tensor of float32: name, shape, numbers row by row.
pub(crate) type Tensor<'a> = (String, Vec<usize>, &'a [f32]);

/// The tensors of a network.
pub(crate) fn layers(layers: &[Layer]) -> impl Iterator<Item = Tensor<'_>> {
    layers.iter().enumerate().flat_map(|(index, layer)| self::layer(&layer_name(index), layer))
}

/// What the tensors of a network's layer are called.
pub(crate) fn layer_name(index: usize) -> String {
    format!("layer.{index}")
}

/// The tensors of a layer of that name.
pub(crate) fn layer<'a>(name: &str, layer: &'a Layer) -> [Tensor<'a>; 2] {
    let (outputs, bias, weights) = (layer.outputs(), layer.bias.as_slice(), layer.weights.as_slice());
    [(format!("{name}.bias"), vec![outputs], bias), (format!("{name}.weight"), vec![outputs, layer.inputs], weights)]
}

/// The bytes of a policy file: length of the header (u64, little endian), header (JSON), values.
pub(crate) fn bytes<'a>(texts: BTreeMap<String, String>, tensors: impl Iterator<Item = Tensor<'a>>) -> Vec<u8> {
    let mut header = BTreeMap::from([("__metadata__".to_owned(), Entry::Metadata(texts))]);
    let mut values = Vec::new();
    for (name, shape, numbers) in tensors {
        let start = values.len();
        values.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        let info = TensorInfo { dtype: Dtype::F32, shape, data_offsets: (start, values.len()) };
        header.insert(name, Entry::Tensor(info));
    }
    let mut header = serde_json::to_vec(&header).expect("text and integers have a JSON form");
    header.resize(header.len().next_multiple_of(8), b' ');
    [&(header.len() as u64).to_le_bytes(), header.as_slice(), &values].concat()
}

/// Writes a file beside `path` and gives it that name once it is complete on the disk. A link stays, and what it leads to is
/// replaced; what is no file, as a device, is written to.
pub(crate) fn whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let name = path.file_name().ok_or_else(|| io::Error::other("not the name of a file"))?;
    let temporary = path.with_file_name(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
    let written = File::create(&temporary)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}
