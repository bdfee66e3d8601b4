//! The examples deliver what they send.

#[path = "../../../examples/quic_quinn.rs"]
mod quinn_endpoint;
#[path = "../../../examples/quic_s2n.rs"]
mod s2n_endpoint;

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(work)
}

fn data() -> Vec<u8> {
    (0..3_000_000_u32).map(|index| (u64::from(index).pow(2) >> 8) as u8).collect()
}

#[test]
fn over_quinn() {
    assert!(run(quinn_endpoint::transfer(&data())).expect("a transfer over loopback") == data());
}

#[test]
fn over_s2n_quic() {
    assert!(run(s2n_endpoint::transfer(&data())).expect("a transfer over loopback") == data());
}
