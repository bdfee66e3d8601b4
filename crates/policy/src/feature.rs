//! The numbers that policies and critics see: what each means, how it is scaled, and a text of them all, to take a hash of.

/// How a raw quantity becomes a number of order one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Clipped to `low..=high`.
    Linear,
    /// `ln(x / low) / ln(high / low)`, clipped to `0..=1`.
    Log,
}

/// One number that a policy or a critic sees.
#[derive(Clone, Copy, Debug)]
pub struct Feature {
    /// Name in tables and errors.
    pub name: &'static str,
    /// The raw quantity, with its unit if it has one.
    pub meaning: &'static str,
    /// Scaling.
    pub scale: Scale,
    /// Lower end of the raw quantity.
    pub low: f64,
    /// Upper end of the raw quantity.
    pub high: f64,
}

impl Feature {
    /// A ratio, clipped to `0..=high`.
    pub const fn ratio(name: &'static str, meaning: &'static str, high: f64) -> Self {
        Self { name, meaning, scale: Scale::Linear, low: 0.0, high }
    }

    /// A quantity of wide range on a logarithmic scale.
    pub const fn log(name: &'static str, meaning: &'static str, low: f64, high: f64) -> Self {
        Self { name, meaning, scale: Scale::Log, low, high }
    }

    /// The scaled and clipped value of a raw quantity; what is not a number counts as the lower end.
    pub fn encode(&self, raw: f64) -> f32 {
        let raw = if raw.is_nan() { self.low } else { raw };
        let scaled = match self.scale {
            Scale::Linear => raw.clamp(self.low, self.high),
            Scale::Log => {
                let raw = raw.clamp(self.low, self.high);
                (libm::log(raw / self.low) / libm::log(self.high / self.low)).clamp(0.0, 1.0)
            }
        };
        scaled as f32
    }

    /// Smallest and largest encoded value.
    pub const fn bounds(&self) -> (f32, f32) {
        match self.scale {
            Scale::Linear => (self.low as f32, self.high as f32),
            Scale::Log => (0.0, 1.0),
        }
    }
}

/// A definition that begins with `text`, and has a line for each feature.
pub(crate) fn defined(mut text: String, features: &[Feature]) -> String {
    use std::fmt::Write as _;
    for f in features {
        writeln!(text, "{}: {}, {:?} {:e}..{:e}", f.name, f.meaning, f.scale, f.low, f.high)
            .expect("writing to a string cannot fail");
    }
    text
}

/// FNV-1a, 64 bits (Fowler, Noll and Vo).
pub fn fnv1a(bytes: impl AsRef<[u8]>) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.as_ref().iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Moves `values` towards the start by as many as there are features, and puts those of the `raw` quantities at the end.
pub(crate) fn push<const N: usize>(values: &mut [f32], features: &[Feature; N], raw: &[f64; N]) {
    values.copy_within(N.., 0);
    let newest = values.len() - N;
    for ((value, feature), raw) in values[newest..].iter_mut().zip(features).zip(raw) {
        *value = feature.encode(*raw);
    }
}
