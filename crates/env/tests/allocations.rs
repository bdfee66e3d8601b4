//! No scheme allocates memory for a packet.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use astraea_cc::{MSS, SECOND};
use astraea_policy::schemes;
use astraea_sim::{Config, Simulation};
use serde_json::json;

/// The system's allocator, counting.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call is handed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are those that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above, and `alloc` got the pointer from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The only test of this binary, since all threads count together. Queues and rings still grow now and then.
#[test]
fn no_scheme_allocates_per_packet() {
    let config: Config = serde_json::from_value(json!({
        "duration_ns": 40 * SECOND,
        "links": [{"name": "link", "rate": {"constant": 2e7}, "delay": {"constant": 20_000_000}, "limit": {"bytes": 100_000},
                   "loss": {"bernoulli": 0.001}}],
        "flows": [{"start_ns": 0, "path": [0]}, {"start_ns": SECOND, "path": [0]}]
    }))
    .expect("a configuration");
    for scheme in schemes::all() {
        let mut simulation =
            Simulation::new(&config, 1, |_| schemes::build(scheme.name, &[], MSS).expect("a scheme")).expect("valid");
        simulation.run_until(20 * SECOND);
        let before =
            (ALLOCATIONS.load(Ordering::Relaxed), simulation.flow_stats(0).sent + simulation.flow_stats(1).sent);
        simulation.run_until(40 * SECOND);
        let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before.0;
        let packets = simulation.flow_stats(0).sent + simulation.flow_stats(1).sent - before.1;
        assert!(allocations * 100 < packets, "{}: {allocations} allocations for {packets} packets", scheme.name);
    }
}
