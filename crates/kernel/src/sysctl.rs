//! The congestion controller that connections of this network namespace have by default, unless they choose one.
//!
//! The kernel keeps the controller itself there, not its name: after `detach` and `attach` it still has the one that was
//! detached, whose connections run CUBIC, although the name is the same.

use std::fs;
use std::io;

/// Where it is read and written.
pub const PATH: &str = "/proc/sys/net/ipv4/tcp_congestion_control";

/// Whether the default has this name.
pub fn is_default(name: &str) -> bool {
    fs::read_to_string(PATH).is_ok_and(|default| default.trim_end() == name)
}

/// Makes the default the one that has this name now, if it has this name.
///
/// # Errors
/// No right to write it.
pub fn renew_default(name: &str) -> io::Result<()> {
    if is_default(name) { fs::write(PATH, name) } else { Ok(()) }
}
