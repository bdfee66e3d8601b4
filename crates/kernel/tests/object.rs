//! The object that is checked in: it is what its source says, and it does not cost the verifier too much.
//!
//! With `ASTRAEA_REQUIRE_CLANG=1` it is a failure that there is no compiler to tell the former with.

mod support;

use std::path::Path;
use std::process::Command;

use astraea_kernel::OBJECT;
use astraea_kernel::probe::Prober;

use support::{cannot_run, shipped};

/// Instructions that the verifier may look at, for each program; the kernel's own bound is a million.
const MOST: u32 = 35_000;

/// The same for the program that is loaded for tests only, into which each event has its own copy of the rest.
const MOST_PROBE: u32 = 100_000;

#[test]
fn the_object_is_its_source() {
    let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
    if !has("clang-14") || !has("llvm-strip-14") {
        let missing = "no clang-14 or llvm-strip-14 to compile the BPF program with";
        assert!(std::env::var_os("ASTRAEA_REQUIRE_CLANG").is_none_or(|value| value != "1"), "{missing}");
        eprintln!("skipped: {missing}");
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = std::env::temp_dir().join(format!("astraea-{}.bpf.o", std::process::id()));
    let status = Command::new(root.join("tools/bpf-object.sh")).arg(&file).status().unwrap();
    let compiled = std::fs::read(&file);
    let _ = std::fs::remove_file(&file);
    assert!(status.success());
    assert!(compiled.unwrap() == OBJECT, "src/bpf has changed: run tools/bpf-object.sh");
}

#[test]
fn the_verifier_has_little_to_do() {
    if cannot_run() {
        return;
    }
    let costs = Prober::new(&shipped("astraea")).unwrap().costs().unwrap();
    for cost in &costs {
        eprintln!("{}: {} instructions, {} verified", cost.name, cost.size, cost.verified);
        assert!(cost.verified < if cost.name == "probe" { MOST_PROBE } else { MOST }, "{cost:?}");
    }
    assert!(costs.iter().any(|cost| cost.verified > 10_000), "the programs are there");
}
