use proptest::prelude::*;

use super::*;
use crate::{Activation, Layer};

fn layer(inputs: usize, outputs: usize) -> Layer {
    let weights = (0..inputs * outputs).map(|i| (i % 7) as f32 / 8.0 - 0.25).collect();
    Layer { inputs, weights, bias: vec![0.125; outputs] }
}

fn policy() -> Policy {
    let network = Network::new(vec![layer(25, 4), layer(4, 1)], Activation::Split).unwrap();
    let notes = BTreeMap::from([("name".to_owned(), "example".to_owned()), ("seed".to_owned(), "7".to_owned())]);
    Policy::new(network, Metadata { form: Form::Pure, alpha: 0.1, period: 30 * MILLISECOND, notes }).unwrap()
}

/// The file of [`policy`] with another header.
fn changed(from: &str, to: &str) -> Vec<u8> {
    let bytes = policy().to_bytes();
    let length = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header = String::from_utf8(bytes[8..length].to_vec()).unwrap();
    assert!(header.contains(from), "{header}");
    let header = header.replace(from, to);
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &bytes[length..]].concat()
}

fn error(bytes: &[u8]) -> String {
    let text = Policy::from_bytes(bytes).expect_err("a mistake").to_string();
    assert!(!text.contains('\n'), "{text}");
    text
}

#[test]
fn what_is_written_is_read() {
    let (policy, read) = (policy(), Policy::from_bytes(&policy().to_bytes()).unwrap());
    assert_eq!(read.metadata(), policy.metadata());
    assert_eq!(read.network().layers(), policy.network().layers());
    assert_eq!(read.network().activation(), Activation::Split);
    assert_eq!(read.texts()["shape"], "25-4-1");
    assert_eq!(read.to_bytes(), policy.to_bytes(), "the same bytes each time");
}

#[test]
fn a_file_is_replaced_as_a_whole() {
    let directory = std::env::temp_dir().join(format!("astraea-policy-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("a.safetensors");
    std::fs::write(&path, "old").unwrap();
    policy().save(&path).unwrap();
    assert_eq!(Policy::load(&path).unwrap().to_bytes(), policy().to_bytes());
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 1, "nothing is left beside it");
    // A link stays, and its file is replaced; a pipe has nothing that could be.
    let (link, pipe) = (directory.join("link"), directory.join("pipe"));
    std::os::unix::fs::symlink("a.safetensors", &link).unwrap();
    std::fs::write(&path, "old").unwrap();
    policy().save(&link).unwrap();
    assert!(link.is_symlink() && Policy::load(&path).is_ok());
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read(pipe).unwrap()
    });
    policy().save(&pipe).unwrap();
    assert_eq!(reader.join().unwrap(), policy().to_bytes());
    std::fs::remove_file(&link).unwrap();
    std::fs::remove_file(&pipe).unwrap();
    // A directory cannot be replaced by a file: what was there stays, and nothing else appears.
    let blocked = directory.join("b");
    std::fs::create_dir(&blocked).unwrap();
    let message = policy().save(&blocked).unwrap_err().to_string();
    assert!(message.starts_with(&format!("{}: cannot be written: ", blocked.display())), "{message}");
    assert_eq!(std::fs::read_dir(&directory).unwrap().count(), 2);
    let message = Policy::load(&directory.join("none")).unwrap_err().to_string();
    assert!(message.starts_with(&format!("{}/none: cannot be read: ", directory.display())), "{message}");
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn what_is_no_policy_is_refused() {
    let bytes = policy().to_bytes();
    for text in [&b""[..], b"hello", b"<!DOCTYPE html><html>", b"PK\x03\x04\0\0\0\0archive"] {
        assert!(error(text).starts_with("not a safetensors file ("), "{}", error(text));
    }
    assert!(error(&changed("{\"__metadata__\"", "[\"__metadata__\"")).starts_with("not a safetensors file ("));
    assert_eq!(error(&bytes[..100]), "truncated: ends within its header");
    let length = bytes.len();
    assert_eq!(
        error(&bytes[..length - 1]),
        format!("truncated or overwritten: {} bytes are not what its header describes", length - 1)
    );
    assert!(error(&[&bytes[..], b"x"].concat()).starts_with("truncated or overwritten"));
    // A shape that would need more memory than there is.
    assert!(error(&changed("[4,25]", "[4000000000,4000000000]")).starts_with("damaged: "));
    assert_eq!(
        error(&changed("\"form\"", "\"farm\"")),
        "no \"form\" in its metadata, expected a policy written by astraea"
    );
    assert!(error(&changed("__metadata__", "layer.9.bias")).starts_with("not a safetensors file ("));
}

#[test]
fn each_mistake_in_the_metadata_has_one_clear_line() {
    let metadata = |name: &str, from: &str, to: &str| {
        error(&changed(&format!("\"{name}\":\"{from}\""), &format!("\"{name}\":\"{to}\"")))
    };
    assert_eq!(metadata("format", "1", "2"), r#"format is "2", expected 1"#);
    assert_eq!(metadata("form", "pure", "poor"), r#"form is "poor", expected one of paper, pure, guided"#);
    assert_eq!(metadata("activation", "split", "gelu"), r#"activation is "gelu", expected one of relu, split"#);
    assert_eq!(
        metadata("definition_hash", &format!("{:016x}", Form::Pure.definition_hash()), "0123456789abcdef"),
        format!(
            "was trained with another state definition (0123456789abcdef), expected {:016x} for the form \"pure\"",
            Form::Pure.definition_hash()
        )
    );
    assert_eq!(metadata("alpha", "0.1", "fast"), r#"alpha is "fast", expected a number"#);
    for alpha in ["0", "-0.1", "1.5", "NaN", "inf"] {
        assert_eq!(metadata("alpha", "0.1", alpha), format!("alpha is {alpha:?}, expected 0.0001 to 1"));
    }
    assert_eq!(metadata("period_ms", "30", "0"), r#"period_ms is "0", expected 1 to 1000"#);
    for shape in ["25", "25-4-1-", "25-0-1", "25-9999-1", "1-1-1-1-1-1-1-1-1-1"] {
        assert_eq!(
            metadata("shape", "25-4-1", shape),
            format!("shape is {shape:?}, expected the sizes of at most 8 layers from 1 to 1024, like 25-64-32-1")
        );
    }
}

#[test]
fn no_name_is_there_twice() {
    for (from, to, name) in [
        ("\"alpha\":", "\"alpha\":\"0.5\",\"alpha\":", "alpha"),
        ("\"name\":", "\"n\\u0061me\":\"another\",\"name\":", "name"),
        (
            "\"layer.0.bias\":",
            "\"layer.0.bias\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},\"layer.0.bias\":",
            "layer.0.bias",
        ),
    ] {
        let said = error(&changed(from, to));
        assert!(said.starts_with(&format!("damaged: its header has {name:?} twice, at line 1 ")), "{said}");
    }
}

#[test]
fn each_mistake_in_the_tensors_has_one_clear_line() {
    let shape = |to: &str| error(&changed("\"shape\":\"25-4-1\"", &format!("\"shape\":\"{to}\"")));
    assert_eq!(shape("25-4-1-1"), "tensor layer.2.weight is missing");
    assert_eq!(shape("25-4"), "unexpected tensor \"layer.1.bias\", expected only those of layers 0 to 0");
    assert_eq!(shape("25-5-1"), "tensor layer.0.weight has shape [4, 25], expected [5, 25]");
    assert_eq!(error(&changed("layer.1.bias", "layer.1.bios")), "tensor layer.1.bias is missing");
    assert_eq!(error(&changed("[4,25]", "[25,4]")), "tensor layer.0.weight has shape [25, 4], expected [4, 25]");
    assert_eq!(
        error(&changed("\"F32\",\"shape\":[4]", "\"I32\",\"shape\":[4]")),
        "tensor layer.0.bias is I32, expected F32"
    );
    let mut bytes = policy().to_bytes();
    let last = bytes.len() - 4;
    bytes[last..].copy_from_slice(&f32::NAN.to_le_bytes());
    assert_eq!(error(&bytes), "layer 1 has a weight that is NaN, expected a finite number");
    let network = Network::new(vec![layer(24, 1)], Activation::Relu).unwrap();
    let metadata = policy().metadata().clone();
    assert_eq!(
        Policy::new(network, metadata).unwrap_err().to_string(),
        r#"24 inputs, expected 25 for the form "pure""#
    );
}

#[test]
fn metadata_must_make_sense_before_it_is_written() {
    let with = |change: fn(&mut Metadata)| {
        let mut metadata = policy().metadata().clone();
        change(&mut metadata);
        Policy::new(policy().network().clone(), metadata).unwrap_err().to_string()
    };
    assert_eq!(with(|metadata| metadata.alpha = 2.0), r#"alpha is "2", expected 0.0001 to 1"#);
    assert_eq!(with(|metadata| metadata.period = 0), r#"period_ms is "0", expected 1 to 1000"#);
    assert_eq!(
        with(|metadata| drop(metadata.notes.insert("shape".to_owned(), String::new()))),
        r#"metadata "shape" is set by the policy itself"#
    );
}

proptest! {
    /// Whatever was done to the bytes, there is either a policy that they can hold or one line.
    #[test]
    fn damage_is_found_or_harmless(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = policy().to_bytes();
        for (index, byte) in changes {
            let index = index.index(bytes.len());
            bytes[index] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        match Policy::from_bytes(&bytes) {
            Ok(policy) => {
                let weights: usize = policy.network().layers().iter().map(|layer| layer.weights.len()).sum();
                prop_assert!(4 * weights < bytes.len());
            }
            Err(error) => prop_assert!(!error.to_string().contains('\n'), "{}", error),
        }
    }

    #[test]
    fn noise_is_no_policy(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Policy::from_bytes(&bytes).is_err());
    }
}
