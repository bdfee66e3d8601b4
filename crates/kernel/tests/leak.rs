//! Attaching and detaching leaves nothing in the kernel. Alone in its file: other tests' maps would be counted too.

mod support;

use std::time::Duration;

use astraea_kernel::{Attachment, Decider};
use libbpf_rs::query::{LinkInfoIter, MapInfoIter, ProgInfoIter};

use support::{Own, cannot_run, shipped};

/// Maps, programs and links of the whole machine.
fn objects() -> (usize, usize, usize) {
    (MapInfoIter::default().count(), ProgInfoIter::default().count(), LinkInfoIter::default().count())
}

/// Cycles: `CYCLES=10000 cargo test -p astraea-kernel --test leak` for a long run.
fn cycles() -> u32 {
    std::env::var("CYCLES").ok().and_then(|text| text.parse().ok()).unwrap_or(20)
}

#[test]
fn attaching_again_and_again_leaks_nothing() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let policy = shipped("astraea");
    let before = objects();
    for _ in 0..cycles() {
        Attachment::attach(&own.place, &policy, Decider::Kernel).unwrap();
        Attachment::detach(&own.place).unwrap();
    }
    // The kernel frees what has no user a moment later. Others on this machine may come and go meanwhile.
    for _ in 0..200 {
        let now = objects();
        if now.0 <= before.0 && now.1 <= before.1 && now.2 <= before.2 {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("maps, programs and links before: {before:?}, after: {:?}", objects());
}
