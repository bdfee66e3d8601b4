//! The program in the kernel does what the native code does, bit for bit.
use astraea_kernel::layout;
use astraea_kernel::probe::Prober;
use astraea_policy::Policy;

#[test]
fn costs() {
    let path = format!("{}/../../python/astraea/models/astraea.safetensors", env!("CARGO_MANIFEST_DIR"));
    let policy = layout::policy(&Policy::load(path.as_ref()).unwrap(), 1).unwrap();
    let prober = Prober::new(&policy).unwrap();
    for cost in prober.costs().unwrap() {
        println!("{cost:?}");
    }
}
