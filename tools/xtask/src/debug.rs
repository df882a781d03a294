//! `./skink debug`: boots a system that waits for GDB before its first instruction.
//!
//! build/gdbinit tells GDB the rest: the kernel's symbols, those of each service, and the commands of
//! tools/gdb/skink.py.

use crate::bundle::Bundle;
use crate::cli::MachineOptions;
use crate::run;
use crate::workspace::Workspace;
use anyhow::{Context, Result};
use std::fmt::Write;
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

/// Starts the machine, says how to attach GDB, and returns when the machine is left.
///
/// # Errors
/// When the build fails or QEMU does not start.
pub fn debug(workspace: &Workspace, options: &MachineOptions) -> Result<u8> {
    let folder = workspace.run_folder()?;
    let (mut machine, bundle) = run::interactive(workspace, options, &folder)?;
    let port = free_port()?;
    machine.gdb_port = Some(port);
    let script = workspace.build.join("gdbinit");
    let text = gdbinit(&workspace.root, bundle.kernel(), &programs(&bundle), port);
    fs::write(&script, text).with_context(|| format!("cannot write {}", script.display()))?;
    workspace.release_lock();
    explain(&script);
    run::attend(&machine)
}

fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("there is no free TCP port for GDB")?;
    Ok(listener.local_addr()?.port())
}

/// Each service with its file that has symbols.
fn programs(bundle: &Bundle) -> Vec<(String, PathBuf)> {
    bundle.services().iter().map(|service| (service.name.clone(), bundle.with_symbols(&service.binary))).collect()
}

fn gdbinit(root: &Path, kernel: &Path, programs: &[(String, PathBuf)], port: u16) -> String {
    let mut text = String::from("# Written by ./skink debug for the machine that it has started.\n");
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "set pagination off\nset confirm off\nset print pretty on\nset language rust\nset max-value-size unlimited"
    );
    let _ = writeln!(text, "file {}\nsource {}", kernel.display(), root.join("tools/gdb/skink.py").display());
    for (name, path) in programs {
        let _ = writeln!(text, "python PROGRAMS[{name:?}] = {:?}", path.display().to_string());
    }
    let _ = writeln!(text, "target remote 127.0.0.1:{port}");
    text
}

fn explain(script: &Path) {
    eprintln!("skink: the machine waits for GDB; in another terminal:");
    eprintln!("  gdb -x {}", script.display());
    eprintln!("and there, for example:");
    eprintln!("  (gdb) skink break vfs vfs::main");
    eprintln!("  (gdb) continue");
    eprintln!("  (gdb) skink threads");
    eprintln!("Ctrl-A X here ends the machine.");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_names_the_kernel_the_programs_and_the_port() {
        let programs = [("vfs".to_string(), PathBuf::from("/t/vfs"))];
        let text = gdbinit(Path::new("/root"), Path::new("/t/kernel"), &programs, 1234);
        assert!(text.contains("\nfile /t/kernel\nsource /root/tools/gdb/skink.py\n"), "{text}");
        assert!(text.contains("python PROGRAMS[\"vfs\"] = \"/t/vfs\"\ntarget remote 127.0.0.1:1234\n"), "{text}");
    }
}
