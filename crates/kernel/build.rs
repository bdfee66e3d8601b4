//! Writes the shared structures of `src/bpf/{intf,flow}.h` for Rust, and compiles the decision core for this processor.

use std::fmt::Write as _;
use std::{env, fs, path::PathBuf};

/// Headers that are read, in the order of their inclusion.
const HEADERS: [&str; 2] = ["src/bpf/intf.h", "src/bpf/flow.h"];

fn main() {
    println!("cargo:rerun-if-changed=src/bpf");
    let mut text = String::new();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for header in HEADERS {
        let source = fs::read_to_string(header).unwrap_or_else(|error| panic!("{header}: {error}"));
        translate(&without_comments(&source), &mut text);
        if header == HEADERS[0] {
            for byte in source.bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
            }
        }
    }
    writeln!(text, "pub const INTERFACE: u64 = {hash};").unwrap();
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("intf.rs"), text).expect("OUT_DIR can be written");
    cc::Build::new().file("src/bpf/native.c").flag("-fno-strict-aliasing").warnings(true).compile("astraea_native");
}

fn without_comments(source: &str) -> String {
    let mut text = String::new();
    let mut rest = source;
    while let Some(start) = rest.find("/*") {
        text.push_str(&rest[..start]);
        rest = &rest[start..];
        rest = &rest[rest.find("*/").expect("a comment ends") + 2..];
    }
    text + rest
}

/// Constants, enums and structs of integers, in the subset of C that intf.h describes.
fn translate(source: &str, out: &mut String) {
    for line in source.lines().filter_map(|line| line.strip_prefix("#define ")) {
        let mut words = line.split_whitespace();
        if let (Some(name), Some(value)) = (words.next(), words.next()) {
            writeln!(out, "pub const {name}: usize = {value};").unwrap();
        }
    }
    let code: Vec<&str> = source.lines().filter(|line| !line.starts_with('#')).collect();
    for item in code.join("\n").split("};") {
        let Some((head, body)) = item.split_once('{') else { continue };
        let mut head = head.split_whitespace();
        match (head.next(), head.next()) {
            (Some("enum"), Some(_)) => {
                let names = body.split(',').map(str::trim).filter(|name| !name.is_empty());
                for (value, name) in names.enumerate() {
                    writeln!(out, "pub const {name}: u32 = {value};").unwrap();
                }
            }
            (Some("struct"), Some(name)) => structure(name, body, out),
            _ => panic!("neither an enum nor a struct: {item}"),
        }
    }
}

fn structure(name: &str, body: &str, out: &mut String) {
    writeln!(out, "#[repr(C)]\n#[derive(Clone, Copy, Debug)]\npub struct {} {{", camel(name)).unwrap();
    for field in body.split(';').map(str::trim).filter(|field| !field.is_empty()) {
        let words: Vec<&str> = field.split_whitespace().collect();
        let (field, kind) = match words[..] {
            ["struct", kind, field] => (field, camel(kind)),
            [kind, field] => (field, integer(kind)),
            _ => panic!("struct {name}: {field:?} is not one integer, array or struct"),
        };
        match field.split_once('[') {
            Some((field, length)) => {
                writeln!(out, "    pub {field}: [{kind}; {} as usize],", length.trim_end_matches(']'))
            }
            None => writeln!(out, "    pub {field}: {kind},"),
        }
        .unwrap();
    }
    writeln!(out, "}}\n// SAFETY: integers only.\nunsafe impl Plain for {} {{}}", camel(name)).unwrap();
}

fn integer(kind: &str) -> String {
    match kind {
        "__u8" => "u8",
        "__u32" => "u32",
        "__s32" => "i32",
        "__u64" => "u64",
        "__s64" => "i64",
        _ => panic!("{kind} is no integer that is shared"),
    }
    .to_owned()
}

fn camel(name: &str) -> String {
    let capitalised = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('_').map(capitalised).collect()
}
