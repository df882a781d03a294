//! `./skink debug`: boots a system that waits for GDB before its first instruction.

use crate::bundle::Bundle;
use crate::cli::MachineOptions;
use crate::run;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::net::TcpListener;
use std::path::Path;

/// Starts the machine, says how to attach GDB, and returns when the machine is left.
///
/// # Errors
/// When the build fails or QEMU does not start.
pub fn debug(workspace: &Workspace, options: &MachineOptions) -> Result<u8> {
    let folder = workspace.run_folder()?;
    let (mut machine, bundle) = run::interactive(workspace, options, &folder)?;
    let port = free_port()?;
    machine.gdb_port = Some(port);
    workspace.release_lock();
    explain(&bundle, &folder.join("kernel"), port);
    run::attend(&machine)
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("there is no free TCP port for GDB")?;
    Ok(listener.local_addr()?.port())
}

fn explain(bundle: &Bundle, kernel: &Path, port: u16) {
    eprintln!("skink: the machine waits for GDB; in another terminal, for the kernel:");
    eprintln!("  gdb -ex 'file {}' -ex 'target remote 127.0.0.1:{port}'", kernel.display());
    eprintln!("and then, to step through a service or one of our programs, for example rs:");
    eprintln!("  (gdb) add-symbol-file {}", bundle.with_symbols("rs").display());
    eprintln!("Ctrl-A X here ends the machine.");
}
