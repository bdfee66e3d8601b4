//! The tests of this folder in one program: each in a program of its own would compile and link the simulator's generic parts
//! once more.

use std::fs;
use std::path::Path;

mod corner_cases;
mod extremes;
mod guide;
mod invariants;
mod queue_properties;
mod rate_properties;
mod schemes_bbr;
mod schemes_bbr3;
mod schemes_c2tcp;
mod schemes_compound;
mod schemes_copa;
mod schemes_illinois;
mod schemes_pcc;
mod schemes_vegas;
mod schemes_westwood;
mod theory;
mod time_stamps;

#[test]
fn none_is_left_out() {
    let files = fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).unwrap();
    let paths = files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let stem = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    for name in paths.map(|path| stem(&path)).filter(|name| name != "all") {
        assert!(include_str!("all.rs").contains(&format!("\nmod {name};\n")), "no `mod {name};`");
    }
}
