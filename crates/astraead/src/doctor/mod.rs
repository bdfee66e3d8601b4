//! `astraead doctor`: what this machine allows, what each missing thing disables, and the command that would fix it.

mod host;
mod links;
mod text;

use std::io::{self, IsTerminal as _};
use std::process::ExitCode;

use astraea_testbed::scheme::{self, KernelScheme};
use serde::Serialize;

use crate::failure::Failure;
use crate::output;

/// Options of `astraead doctor`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What commands need of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Feature {
    /// Emulated links.
    #[serde(rename = "astraea link")]
    Link,
    /// Scenarios on the kernel's TCP.
    #[serde(rename = "astraea run --backend kernel")]
    Kernel,
    /// The controller in the kernel.
    #[serde(rename = "astraea attach")]
    Attach,
}

impl Feature {
    const ALL: [Self; 3] = [Self::Link, Self::Kernel, Self::Attach];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Link => "astraea link",
            Self::Kernel => "astraea run --backend kernel",
            Self::Attach => "astraea attach",
        }
    }
}

/// How something was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Status {
    /// As it should be.
    Ok,
    /// Usable, with a limitation.
    Limited,
    /// Not there.
    Missing,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub(super) struct Check {
    /// What was looked at.
    pub(super) name: &'static str,
    pub(super) status: Status,
    /// What was found, in a few words.
    pub(super) found: String,
    /// Commands that do not work without it.
    pub(super) disables: Vec<Feature>,
    /// What is worse, if it is only limited.
    pub(super) limits: Option<String>,
    /// What would help.
    pub(super) fix: Option<String>,
}

impl Check {
    pub(super) fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, status: Status::Ok, found: found.into(), disables: vec![], limits: None, fix: None }
    }

    pub(super) fn limited(name: &'static str, found: impl Into<String>, limits: &str, fix: &str) -> Self {
        Self { status: Status::Limited, limits: Some(limits.into()), fix: Some(fix.into()), ..Self::ok(name, found) }
    }

    pub(super) fn missing(name: &'static str, found: impl Into<String>, disables: &[Feature], fix: &str) -> Self {
        Self { status: Status::Missing, disables: disables.to_vec(), fix: Some(fix.into()), ..Self::ok(name, found) }
    }
}

/// Whether a command works.
#[derive(Debug, Serialize)]
pub(super) struct Ability {
    pub(super) feature: Feature,
    pub(super) works: bool,
    /// Names of the checks that stand in the way.
    pub(super) missing: Vec<&'static str>,
}

/// Whether the kernel has a scheme.
#[derive(Debug, Serialize)]
pub(super) struct SchemeEntry {
    /// In `--cc`.
    pub(super) name: &'static str,
    /// In the kernel.
    pub(super) kernel: &'static str,
    pub(super) available: bool,
    /// What would bring it.
    pub(super) fix: &'static str,
}

/// Everything that was found.
#[derive(Debug, Serialize)]
pub(super) struct Findings {
    pub(super) schema: u32,
    pub(super) version: &'static str,
    pub(super) kernel: String,
    pub(super) machine: String,
    pub(super) cores: usize,
    pub(super) checks: Vec<Check>,
    pub(super) abilities: Vec<Ability>,
    pub(super) schemes: Vec<SchemeEntry>,
}

/// Looks at the machine and says what it found.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let findings = examine()?;
    let colours = io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    output::print(&if arguments.json {
        serde_json::to_string_pretty(&findings)?
    } else {
        text::render(&findings, colours)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn examine() -> Result<Findings, Failure> {
    let system = nix::sys::utsname::uname()?;
    let text = |text: &std::ffi::OsStr| text.to_string_lossy().into_owned();
    let available = scheme::available();
    let schemes: Vec<_> = scheme::SCHEMES
        .iter()
        .map(|scheme| entry(scheme, (!scheme.learned && available.contains(scheme.kernel)) || can_be_brought(scheme)))
        .collect();
    let mut checks = host::checks().map_err(|error| format!("doctor: starting a thread: {error}"))?;
    checks.extend(links::checks());
    checks.push(links::schemes(&schemes));
    let abilities = Feature::ALL.map(|feature| {
        let missing: Vec<_> = checks.iter().filter(|c| c.disables.contains(&feature)).map(|c| c.name).collect();
        Ability { feature, works: missing.is_empty(), missing }
    });
    Ok(Findings {
        schema: 1,
        version: env!("CARGO_PKG_VERSION"),
        kernel: text(system.release()),
        machine: text(system.machine()),
        cores: host::cores(),
        checks,
        abilities: abilities.into(),
        schemes,
    })
}

/// A trial registers policies for itself.
fn can_be_brought(scheme: &KernelScheme) -> bool {
    scheme.learned && astraea_kernel::system::check().is_ok()
}

fn entry(scheme: &KernelScheme, available: bool) -> SchemeEntry {
    SchemeEntry { name: scheme.name, kernel: scheme.kernel, available, fix: scheme.fix }
}
