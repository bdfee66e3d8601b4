//! `astraead`: what Astraea does on a host, in one file that can be copied to a server.
//!
//! One module per subcommand. Whatever the user can correct is one line on standard error and exit status 2, as in the
//! Python command `astraea`, which hands its host-side subcommands over to this program.

mod attach;
mod bench_quic;
mod bench_serve;
mod detach;
mod doctor;
mod failure;
mod link;
mod metrics;
mod output;
mod running;
mod serve;
mod status;
mod trial;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use failure::Failure;

#[derive(Parser)]
#[command(name = "astraead", version, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Say what this machine allows, and what each missing thing disables
    Doctor(doctor::Arguments),
    /// Run one trial of a scenario on real traffic
    #[command(hide = true)]
    Trial(trial::Arguments),
    Link(Box<link::Arguments>),
    /// Wait for the end of the link around it, and end what that leaves behind
    #[command(hide = true)]
    Guard(link::guard::Arguments),
    Attach(attach::Arguments),
    Detach(detach::Arguments),
    Status(status::Arguments),
    Serve(serve::Arguments),
    BenchServe(bench_serve::Arguments),
    /// Measure how much a QUIC connection under a scheme carries over this machine's loopback device
    BenchQuic(bench_quic::Arguments),
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return failure::of_arguments(&error),
    };
    match run(arguments.command) {
        Ok(code) => code,
        Err(failure) => failure.report(),
    }
}

fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Trial(arguments) => trial::run(&arguments),
        Command::Link(arguments) => link::run(&arguments),
        Command::Guard(arguments) => link::guard::run(&arguments),
        Command::Attach(arguments) => attach::run(&arguments),
        Command::Detach(arguments) => detach::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
        Command::Serve(arguments) => serve::run(arguments),
        Command::BenchServe(arguments) => bench_serve::run(&arguments),
        Command::BenchQuic(arguments) => bench_quic::run(&arguments),
    }
}
