//! `astraea detach`: the controller is unregistered; its flows go on under CUBIC.

use std::process::ExitCode;

use astraea_kernel::{Attachment, sysctl};
use clap::Args;

use crate::failure::Failure;
use crate::{attach, output};

/// Unregister the controller; flows that use it go on under CUBIC
#[derive(Args)]
pub(crate) struct Arguments {
    /// Name by which sockets choose the controller
    #[arg(long, default_value = "astraea", hide = true)]
    name: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let name = &arguments.name;
    Attachment::detach(&attach::place(name))?;
    output::print(&format!("{name} is detached"))?;
    if sysctl::is_default(name) {
        output::print(
            "new connections still have it by net.ipv4.tcp_congestion_control, and run CUBIC, until that is set again",
        )?;
    }
    Ok(ExitCode::SUCCESS)
}
