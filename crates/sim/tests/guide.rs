//! The page "A new controller" of the guide: its example is the one that is compiled here, and does what the page says.

#[path = "../examples/new_controller/main.rs"]
#[allow(dead_code, reason = "the function main")]
mod example;

const PAGE: &str = include_str!("../../../docs/new-controller.md");
const CONTROLLER: &str = include_str!("../examples/new_controller/delay_aimd.rs");

/// The first block of the page in this language.
fn block(language: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(&format!("\n```{language}\n")).expect("a block of this language");
    rest.split_once("```\n").expect("its end").0
}

#[test]
fn the_page_shows_the_file() {
    assert_eq!(block("rust"), CONTROLLER);
}

/// Within a tenth, so that the page need not follow every small change of the simulator.
#[test]
fn the_page_shows_what_the_example_prints() {
    let printed = example::PAIRS.map(example::describe).join("\n");
    let alike = |shown: &str, word: &str| match (shown.parse::<f64>(), word.parse::<f64>()) {
        (Ok(shown), Ok(number)) => (shown - number).abs() <= (0.1 * number).max(0.1),
        _ => shown == word,
    };
    let mut shown = block("text").split_whitespace();
    let same = printed.split_whitespace().all(|word| shown.next().is_some_and(|shown| alike(shown, word)));
    assert!(same && shown.next().is_none(), "the page should show\n{printed}");
}

/// The link carries 50 x 1448 / 1500 = 48.3 Mbit/s of payload.
#[test]
fn it_shares_with_itself_and_yields_to_cubic() {
    let ([first, second], queue) = example::share(["delay-aimd", "delay-aimd"]);
    assert!((first - second).abs() < 0.1 * first, "{first} and {second}");
    assert!(first + second > 0.95 * 48.3 && queue < 5.0, "{first} and {second}, queue {queue} ms");
    let ([delay, cubic], queue) = example::share(["delay-aimd", "cubic"]);
    assert!(delay < 0.1 * cubic && queue > 20.0, "{delay} against {cubic}, queue {queue} ms");
}
