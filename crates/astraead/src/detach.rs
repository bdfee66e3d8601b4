//! `astraea detach`: the controller is unregistered; its flows go on under CUBIC.

use std::process::ExitCode;

use astraea_kernel::Attachment;
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
    Attachment::detach(&attach::place(&arguments.name))?;
    output::print(&format!("{} is detached", arguments.name))?;
    Ok(ExitCode::SUCCESS)
}
