//! The action block (Astraea §3.3, eq. 3; Aurora §3.1 has the same map for rates).

/// Default action scale: a full action changes the window by 2.5 % (Astraea table 4).
pub const ALPHA: f64 = 0.025;

/// Smallest window in packets.
pub const FLOOR: f64 = 2.0;

/// Changes a window or a rate by an action: `value * (1 + alpha a)` for `a >= 0`, else `value / (1 - alpha a)`.
///
/// An action and its negative cancel exactly in exact arithmetic. The result is a real number: rounding to packets
/// between actions would make one packet the smallest step, which costs small windows their fairness.
#[inline]
pub fn scaled(value: f64, action: f64, alpha: f64) -> f64 {
    if action >= 0.0 { value * (1.0 + alpha * action) } else { value / (1.0 - alpha * action) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equation_3() {
        let is = |value: f64, expected: f64| (value / expected - 1.0).abs() < 1e-15;
        assert!(is(scaled(100.0, 1.0, ALPHA), 102.5));
        assert!(is(scaled(102.5, -1.0, ALPHA), 100.0));
        assert!(is(scaled(100.0, 0.0, ALPHA), 100.0));
        assert!(is(scaled(104.0, -0.4, 0.1), 100.0));
        // Two packets and a small action: no step is lost to rounding.
        assert!(is(scaled(2.0, 0.1, ALPHA), 2.005));
    }

    proptest! {
        #[test]
        fn opposite_actions_cancel(value in 1e-3_f64..1e9, action in -1.0_f64..1.0, alpha in 1e-3_f64..0.5) {
            let back = scaled(scaled(value, action, alpha), -action, alpha);
            prop_assert!((back / value - 1.0).abs() < 1e-12);
        }
    }
}
