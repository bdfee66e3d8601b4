//! The terminal that a shell behind the link takes over, and that whoever started the link wants back.

use std::io::{IsTerminal, Stdin, stdin};

use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use nix::unistd::{getpgrp, tcgetpgrp, tcsetpgrp};

/// The terminal as it was found.
pub(super) struct Terminal {
    stdin: Stdin,
    settings: Termios,
}

impl Terminal {
    /// Remembers the terminal on standard input, if there is one and it is ours at present.
    pub(super) fn remember() -> Option<Self> {
        let stdin = stdin();
        if !stdin.is_terminal() || tcgetpgrp(&stdin) != Ok(getpgrp()) {
            return None;
        }
        let settings = tcgetattr(&stdin).ok()?;
        Some(Self { stdin, settings })
    }

    /// Takes it back, when the command has ended: a shell that was killed has left its own job in the foreground, and
    /// perhaps a terminal that does not echo. The settings are left as they are after a command that ended by itself,
    /// which may have been `stty`. The caller must have blocked or ignored `SIGTTOU`.
    pub(super) fn take_back(&self, killed: bool) {
        // It may have been hung up meanwhile.
        let _ = tcsetpgrp(&self.stdin, getpgrp());
        if killed {
            let _ = tcsetattr(&self.stdin, SetArg::TCSADRAIN, &self.settings);
        }
    }
}
