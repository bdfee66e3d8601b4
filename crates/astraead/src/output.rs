//! What a command says on standard output.

use std::io::Write as _;

/// Prints a text and ends its last line. A reader that has gone is no failure.
pub(crate) fn print(text: &str) {
    let _ = writeln!(std::io::stdout(), "{}", text.trim_end());
}
