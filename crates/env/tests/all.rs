//! The tests of this folder in one program: each in a program of its own would compile and link the simulator's generic parts
//! once more.

use std::fs;
use std::path::Path;

mod guided;
mod multi_flow;
mod orca;
mod path_is_the_simulator;
mod rollout;
mod schemes;
mod selector;
mod vector;

#[test]
fn none_is_left_out() {
    let files = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).unwrap();
    let paths = files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let stem = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    for name in paths.map(|path| stem(&path)).filter(|name| !["all", "allocations"].contains(&name.as_str())) {
        assert!(include_str!("all.rs").contains(&format!("\nmod {name};\n")), "no `mod {name};`");
    }
}
