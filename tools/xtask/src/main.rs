//! Builds Skink's images, boots them in QEMU, and checks and tests the whole.
//!
//! Started by `./skink`, which has installed what is needed and holds the lock of the build folder.
//! `cli` reads the command line; each command has a module of its own name. What they share:
//! `workspace` (where things are), `programs` (cargo), `system` and `archive` (the boot archive),
//! `rootfs` (the disk), `machine` (QEMU), `guest` (running one command in it).
//!
//! Every error ends in one sentence on standard error and exit status 2. layers.toml lists the modules from bottom to top.

#![forbid(unsafe_code)]

mod archive;
mod bench;
mod bench_compare;
mod bench_io;
mod bench_m3ipc;
mod bench_rt;
mod bundle;
mod c_header;
mod c_programs;
mod c_services;
mod check;
mod cli;
mod debian;
mod debug;
mod doc;
mod exec;
mod explain;
mod ext2_times;
mod faults;
mod guest;
mod image;
mod keys;
mod linux;
mod linux_guest;
mod m3ipc_header;
mod m3ipc_module;
mod m3ipc_programs;
mod machine;
mod monitor;
mod monolith;
mod mutants;
mod new;
mod performance;
mod plugin;
mod power;
mod process;
mod profile;
mod programs;
mod progress;
mod rootfs;
mod run;
mod second_line;
mod shell;
mod stream;
mod svg;
mod symbols;
mod system;
mod test;
mod trace;
mod workspace;

use anyhow::Result;
use cli::Action;
use std::process::ExitCode;

/// Exit status for a wrong request, a failed build or a failed tool.
const EXIT_TROUBLE: u8 = 2;

fn main() -> ExitCode {
    match dispatch() {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("skink: {error:#}");
            ExitCode::from(EXIT_TROUBLE)
        }
    }
}

fn dispatch() -> Result<u8> {
    let action = cli::parse(lexopt::Parser::from_env())?;
    let workspace = workspace::Workspace::from_environment()?;
    match action {
        Action::Help => {
            print!("{}", cli::HELP);
            Ok(0)
        }
        Action::Run(options) => run::run(&workspace, &options),
        Action::Exec(options) => exec::exec(&workspace, &options),
        Action::Explain(options) => explain::explain(&workspace, &options),
        Action::Profile(options) => profile::profile(&workspace, &options),
        Action::New { kind, name } => new::new(&workspace, kind, &name),
        Action::Doc => doc::doc(&workspace),
        Action::Debug(options) => debug::debug(&workspace, &options),
        Action::Test { depth, name } => test::test(&workspace, depth, name.as_deref()),
        Action::Record { name } => test::record(&workspace, name.as_deref()),
        Action::Faults(options) => faults::faults(&workspace, &options),
        Action::Bench { name } => bench::bench(&workspace, name.as_deref()),
        Action::Image(options) => image::image(&workspace, &options),
        Action::Mutants { arguments } => mutants::mutants(&workspace, &arguments),
        Action::Check => check::check(&workspace),
    }
}
