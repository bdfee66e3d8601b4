//! Packets in flight per round that every scheme allows on three paths, kept as text under `snapshots/`.
//!
//! After a wanted change: `INSTA_UPDATE=always cargo test -p astraea-cc --test behaviour`, and read the difference.

mod rounds;

use std::fmt::Write;

use astraea_cc::{AnyController, MSS, SCHEMES, build};
use rounds::{Event, Path, Rounds, ms};

const ROUNDS: usize = 110;

struct Setting {
    title: &'static str,
    path: Path,
    events: fn(usize) -> Option<Event>,
}

/// A queue that overflows: slow start, its end, and the sawtooth.
const BOTTLENECK: Setting =
    Setting { title: "bottleneck", path: Path { rtt: ms(40), bdp: 30, buffer: 60 }, events: |_| None };

/// Single losses on a long path: at 160 packets, well after the window is back, and before it is back.
const LONG_PATH: Setting = Setting {
    title: "long path",
    path: Path { rtt: ms(100), bdp: 10_000, buffer: 0 },
    events: |round| matches!(round, 3 | 73 | 95).then_some(Event::Loss),
};

/// Everything else that a transport reports.
const INTERRUPTIONS: Setting = Setting {
    title: "interruptions",
    path: Path { rtt: ms(50), bdp: 10_000, buffer: 0 },
    events: |round| match round {
        1 | 3 => Some(Event::Loss),
        2 => Some(Event::Spurious),
        20 | 21 => Some(Event::Timeout),
        40..50 => Some(Event::HalfUsed),
        60 => Some(Event::Idle(ms(150))),
        70 => Some(Event::Idle(ms(2000))),
        85 | 95 => Some(Event::Mark),
        _ => None,
    },
};

fn table(controller: impl Fn() -> AnyController) -> String {
    let columns = [BOTTLENECK, LONG_PATH, INTERRUPTIONS].map(|setting| {
        let mut rounds = Rounds::new(controller(), setting.path);
        let cells = (0..ROUNDS).map(|round| {
            let played = rounds.play((setting.events)(round));
            let event = played.event.map_or_else(String::new, |event| match event {
                Event::Idle(idle) => format!("idle {} ms", idle / ms(1)),
                Event::HalfUsed => "half used".to_owned(),
                event => format!("{event:?}").to_lowercase(),
            });
            format!("{:9.1} {event:12}", played.window)
        });
        std::iter::once(format!("{:^22}", setting.title)).chain(cells).collect::<Vec<_>>()
    });
    let mut text = String::new();
    for line in 0..=ROUNDS {
        let label = if line == 0 { "round".to_owned() } else { format!("{:5}", line - 1) };
        let row = columns.iter().map(|column| column[line].as_str()).collect::<String>();
        writeln!(text, "{}", format!("{label}{row}").trim_end()).expect("writing to a string");
    }
    text
}

fn scheme(name: &str, params: &[(&str, f64)]) -> String {
    let params: Vec<_> = params.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    table(|| build(name, &params, MSS).expect("a known scheme"))
}

#[test]
fn every_scheme_with_its_defaults() {
    for known in SCHEMES {
        insta::assert_snapshot!(known.name, scheme(known.name, &[]));
    }
}

#[test]
fn cubic_as_in_the_rfc() {
    insta::assert_snapshot!("cubic-rfc-9438", scheme("cubic", &[("linux", 0.0)]));
}

#[test]
fn cubic_without_hystart() {
    insta::assert_snapshot!("cubic-without-hystart", scheme("cubic", &[("hystart", 0.0)]));
}
