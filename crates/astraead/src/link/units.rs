//! Quantities as scenario files have them: "100Mbps", "15ms", "1bdp", "1%". The rules are those of
//! `python/astraea/scenario/units.py`.

use std::str::FromStr;

use astraea_sim::config::LONGEST;

/// Bytes of a full packet.
pub(super) const MTU: u64 = 1500;

/// Longest time in ns, the simulator's own bound; highest rate in bit/s and largest size in bytes.
const MOST_TIME: f64 = LONGEST as f64;
const MOST_RATE: f64 = 1e13;
const MOST_SIZE: f64 = 1e15;

const RATES: &[(&str, f64)] = &[("bps", 1.0), ("kbps", 1e3), ("mbps", 1e6), ("gbps", 1e9)];
const LONG_RATES: &[(&str, f64)] = &[("bit/s", 1.0), ("kbit/s", 1e3), ("mbit/s", 1e6), ("gbit/s", 1e9)];
const TIMES: &[(&str, f64)] =
    &[("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9), ("min", 6e10), ("h", 3.6e12)];
const SIZES: &[(&str, f64)] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

/// A rate in bit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rate(pub(super) f64);

/// A time in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Time(pub(super) u64);

/// A share from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ratio(pub(super) f64);

/// Room of a queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Buffer {
    Infinite,
    Bytes(u64),
    Packets(u64),
    /// Bandwidth-delay products.
    Bdp(f64),
    /// As much as the link carries in so many ns.
    Time(u64),
}

/// Number and unit of a quantity.
fn split<'a>(text: &'a str, example: &str) -> Result<(f64, &'a str), String> {
    let trimmed = text.trim();
    let begins_unit = |(at, letter): (usize, char)| {
        // An exponent belongs to the number: "1e6bps".
        let exponent = matches!(letter, 'e' | 'E')
            && trimmed[at + 1..].trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_digit());
        !(letter.is_ascii_digit() || matches!(letter, '.' | '+' | '-') || exponent)
    };
    let end = trimmed.char_indices().find(|&at| begins_unit(at)).map_or(trimmed.len(), |(at, _)| at);
    let (number, unit) = trimmed.split_at(end);
    match number.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok((number, unit.trim())),
        _ => Err(format!("cannot read \"{text}\"; expected e.g. {example}")),
    }
}

fn factor(units: &[(&str, f64)], unit: &str) -> Option<f64> {
    units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
}

fn unit_problem(unit: &str, text: &str, example: &str) -> String {
    match unit {
        "" => format!("missing unit in \"{text}\"; expected e.g. {example}"),
        _ => format!("unknown unit \"{unit}\" in \"{text}\"; expected e.g. {example}"),
    }
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = split(text, "100Mbps")?;
        let lower = unit.to_lowercase();
        // A capital B means bytes; guessing would be wrong by a factor of eight.
        let factor = factor(RATES, &lower).or(factor(LONG_RATES, &lower)).filter(|_| !unit.contains('B'));
        let rate = number * factor.ok_or_else(|| unit_problem(unit, text, "100Mbps"))?;
        if (1.0..=MOST_RATE).contains(&rate) {
            return Ok(Self(rate));
        }
        Err(format!("a rate must lie between 1bps and 10000Gbps, not \"{text}\""))
    }
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = split(text, "15ms")?;
        if unit.is_empty() && number == 0.0 {
            return Ok(Self(0));
        }
        let time = number * factor(TIMES, unit).ok_or_else(|| unit_problem(unit, text, "15ms"))?;
        if time < 0.0 {
            return Err(format!("a time must not be negative: \"{text}\""));
        }
        if time > MOST_TIME {
            return Err(format!("a time must be at most 10000000s (115 days), not \"{text}\""));
        }
        Ok(Self(time.round() as u64))
    }
}

impl FromStr for Ratio {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let example = "0.01 or 1%";
        let ratio = match split(text, example)? {
            (number, "") => number,
            (number, "%") => number / 100.0,
            (_, unit) => return Err(unit_problem(unit, text, example)),
        };
        if (0.0..=1.0).contains(&ratio) {
            return Ok(Self(ratio));
        }
        Err(format!("must lie between 0 and 1 (or 0% and 100%), not \"{text}\""))
    }
}

impl FromStr for Buffer {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let example = "1bdp, 375kB, 250packets, 100ms or infinite";
        if text.trim() == "infinite" {
            return Ok(Self::Infinite);
        }
        let (number, unit) = split(text, example)?;
        if number <= 0.0 {
            return Err(format!("a buffer must be above zero, not \"{text}\""));
        }
        let most = |limit: f64, buffer: Self| {
            let problem = || format!("\"{text}\" is too large for a buffer; expected e.g. {example}");
            (number <= limit).then_some(buffer).ok_or_else(problem)
        };
        if let Some(factor) = factor(TIMES, unit) {
            return most(MOST_TIME / factor, Self::Time((number * factor).round() as u64));
        }
        if let Some(factor) = factor(SIZES, unit) {
            return most(MOST_SIZE / factor, Self::Bytes((number * factor).round() as u64));
        }
        match unit {
            "packet" | "packets" if number.fract() == 0.0 => most(1e9, Self::Packets(number as u64)),
            "packet" | "packets" => Err(format!("expected a whole number of packets, not \"{text}\"")),
            _ if unit.eq_ignore_ascii_case("bdp") => most(1e9, Self::Bdp(number)),
            _ => Err(unit_problem(unit, text, example)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read() {
        for (text, rate) in
            [("100Mbps", 1e8), ("1.5 Gbit/s", 1.5e9), ("1e3kbps", 1e6), (".5mbps", 5e5), (" 12bps ", 12.0)]
        {
            assert_eq!(text.parse(), Ok(Rate(rate)), "{text}");
        }
        for (text, time) in [
            ("15ms", 15_000_000),
            ("0", 0),
            ("0s", 0),
            ("1.5us", 1500),
            ("2min", 120_000_000_000),
            ("1e7s", 10_000_000_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Time(time)), "{text}");
        }
        for (text, ratio) in [("1%", 0.01), ("0.25", 0.25), ("0", 0.0), ("100 %", 1.0)] {
            assert_eq!(text.parse(), Ok(Ratio(ratio)), "{text}");
        }
        for (text, buffer) in [
            ("1bdp", Buffer::Bdp(1.0)),
            ("0.5BDP", Buffer::Bdp(0.5)),
            ("375kB", Buffer::Bytes(375_000)),
            ("2MiB", Buffer::Bytes(2_097_152)),
            ("250packets", Buffer::Packets(250)),
            ("1 packet", Buffer::Packets(1)),
            ("100ms", Buffer::Time(100_000_000)),
            ("infinite", Buffer::Infinite),
        ] {
            assert_eq!(text.parse(), Ok(buffer), "{text}");
        }
    }

    #[test]
    fn nonsense_is_refused_in_one_line() {
        for (text, expected) in [
            ("100", "missing unit in \"100\"; expected e.g. 100Mbps"),
            ("100MBps", "unknown unit \"MBps\" in \"100MBps\"; expected e.g. 100Mbps"),
            ("fast", "cannot read \"fast\"; expected e.g. 100Mbps"),
            ("-1Mbps", "a rate must lie between 1bps and 10000Gbps, not \"-1Mbps\""),
            ("1e999Mbps", "cannot read \"1e999Mbps\"; expected e.g. 100Mbps"),
        ] {
            assert_eq!(text.parse::<Rate>(), Err(expected.to_owned()));
        }
        for (text, expected) in [
            ("15", "missing unit in \"15\"; expected e.g. 15ms"),
            ("15Ms", "unknown unit \"Ms\" in \"15Ms\"; expected e.g. 15ms"),
            ("-1ms", "a time must not be negative: \"-1ms\""),
            ("2778h", "a time must be at most 10000000s (115 days), not \"2778h\""),
        ] {
            assert_eq!(text.parse::<Time>(), Err(expected.to_owned()));
        }
        assert!("101%".parse::<Ratio>().unwrap_err().starts_with("must lie between 0 and 1"));
        for text in ["0bdp", "1.5packets", "12", "1e12bdp", "1e30GB", "2778h", "3apples", ""] {
            assert!(text.parse::<Buffer>().is_err(), "{text}");
        }
    }
}
