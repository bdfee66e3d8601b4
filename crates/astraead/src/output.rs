//! What a command says on standard output and error.

use std::io::{ErrorKind, Write as _};

use nix::errno::Errno;

use crate::failure::Failure;

/// Prints a line on standard error. Where that cannot be written nobody can be told.
pub(crate) fn complain(line: &str) {
    let _ = writeln!(std::io::stderr(), "astraea: {line}");
}

/// Prints a text and ends its last line. A reader that has gone is no failure, a full disk is one.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            let reason =
                error.raw_os_error().map_or_else(|| error.to_string(), |code| Errno::from_raw(code).desc().into());
            Err(format!("output: {reason}").into())
        }
        _ => Ok(()),
    }
}
