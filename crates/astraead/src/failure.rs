//! How a command fails: one line, and an exit status.

use std::fmt::Display;
use std::process::ExitCode;

use crate::output;

/// Exit status for what the user can correct.
pub(crate) const USER_ERROR: u8 = 2;

/// Exit status after an interrupt, as shells have it.
pub(crate) const INTERRUPTED: u8 = 130;

/// What the user can correct: what is wrong, where, and what was expected.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    /// Prints the line and gives the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        let line: Vec<&str> = self.0.split_whitespace().collect();
        output::complain(&line.join(" "));
        ExitCode::from(USER_ERROR)
    }
}

impl<E: Display> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// Help and version go to standard output; a mistake in the arguments is one line without clap's usage below it.
pub(crate) fn of_arguments(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand, DisplayVersion};
    if matches!(error.kind(), DisplayHelp | DisplayVersion | DisplayHelpOnMissingArgumentOrSubcommand) {
        // A reader that has gone is no failure.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let text = error.to_string();
    let first = text.split("\n\n").next().unwrap_or_default();
    Failure::from(first.trim_start_matches("error: ")).report()
}
