//! Arithmetic without floating point against the real thing.

use astraea_kernel::probe::native;

const Q24: f64 = (1 << 24) as f64;
const Q30: f64 = (1 << 30) as f64;

/// Numbers spread over a range on a logarithmic scale.
fn spread(low: f64, high: f64, count: u32) -> impl Iterator<Item = f64> {
    (0..=count).map(move |i| low * (high / low).powf(f64::from(i) / f64::from(count)))
}

#[test]
fn logarithms() {
    for x in spread(1.0, 1e18, 100_000) {
        let x = x as u64;
        let found = native::ln(x, 20) as f64 / Q24;
        let expected = (x as f64 / f64::from(1 << 20)).ln();
        assert!((found - expected).abs() < 4e-7, "ln {x}: {found} is not {expected}");
    }
}

#[test]
fn exponentials() {
    for i in -32_000..=21_000 {
        let x = f64::from(i) / 1e3;
        let found = native::exp((x * Q30).round() as i64) as f64 / Q30;
        // Of numbers near the smallest there are only the first bits.
        let error = (found - x.exp()).abs();
        assert!(error < 3e-8 * x.exp() + 2.0 / Q30, "e^{x}: {found} is not {}", x.exp());
    }
}

#[test]
fn roots() {
    assert_eq!(native::root(0, 24), 0);
    for x in spread(1e-6, 1e6, 10_000) {
        let found = native::root((x * Q24) as u64, 24) as f64 / Q24;
        let exact = ((x * Q24).floor() / Q24).sqrt();
        assert!((found - exact).abs() < 5e-7 * exact + 2.0 / Q24, "root of {x}: {found} is not {exact}");
    }
}

#[test]
fn hyperbolic_tangents() {
    for i in -120_000..=120_000 {
        let x = f64::from(i) / 1e4;
        let found = native::tanh((x * Q24).round() as i64) as f64 / Q24;
        assert!((found - x.tanh()).abs() < 3e-7, "tanh {x}: {found} is not {}", x.tanh());
    }
}
