//! `./skink bench m3ipc_ticks`: the same binary on three back ends in the same emulator, Skink, Debian's Linux with a broker, and Debian's Linux with the
//! module. What it prints are rows of ticks (host/bench/rows.c). In Skink, those of messages without the library (user/trials/register_rows.c), too.

use crate::bundle::Bundle;
use crate::c_programs::{self, CProgram};
use crate::cli::RAMDISK_SYSTEM;
use crate::guest::{Guest, Job};
use crate::m3ipc_module::{Module, Run};
use crate::m3ipc_programs;
use crate::performance::{self, grouped};
use crate::process::{self, tail};
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The name of this experiment.
pub const NAME: &str = "m3ipc_ticks";

/// The program.
const ROWS: &str = "rows";
/// Time limit of Linux, in seconds.
const LIMIT_S: u32 = 900;
/// Where Linux looks for the broker's libraries.
const LIBRARIES: [&str; 2] = ["/lib64", "/lib/x86_64-linux-gnu"];
/// Before the rows of each back end.
const MODULE: &str = "== module";
const SHARED: &str = "== shared";
/// What Linux runs: with the module, and then with a broker, though the module is there.
const SCRIPT: &str = "mkdir -p /lib64 /lib/x86_64-linux-gnu
cp libraries/* /lib64
cp libraries/* /lib/x86_64-linux-gnu
echo '== module'
./rows
./end_node
export M3IPC_SOCKET=/tmp/socket
./m3ipcd &
until [ -S /tmp/socket ]; do sleep 0.01; done
echo '== shared'
./rows
echo '== end'
";
const END: &str = "== end";
/// The rows of the table, as the program calls them, and what they are.
const TABLE: [(&str, &str); 15] = [
    ("ipc1", "send and receive on both sides, there and back (IPC1)"),
    ("ipc2", "`sendrec`, answered by receive and send (IPC2)"),
    ("ipc3", "notify and receive on both sides (IPC3)"),
    ("pairs_2", "IPC2, two pairs"),
    ("pairs_4", "IPC2, four pairs"),
    ("copy1_36", "`vcopy` from the caller, 36 bytes (COPY1)"),
    ("copy1_4096", "4 KiB"),
    ("copy1_65536", "64 KiB"),
    ("copy1_1048576", "1 MiB"),
    ("copy2_4096", "`vcopy` between two others, 4 KiB (COPY2)"),
    ("copy2_1048576", "1 MiB"),
    ("copy2_4194304", "4 MiB"),
    ("death_send", "from the `kill` of a peer to the end of `send`"),
    ("death_receive", "of `receive`"),
    ("death_sendrec", "of `sendrec`"),
];
/// The program with the rows that only Skink has.
const REGISTER_ROWS: &str = "register_rows";
const SKINK_TABLE: [(&str, &str); 3] = [
    (
        "registers_replyrec",
        "without the library, by registers: `sendrec`, answered by `replyrec`, one call that answers and receives",
    ),
    ("registers", "without the library, by registers: `sendrec`, answered by receive and send"),
    ("memory", "without the library, by vector 33: `sendrec`, answered by receive and send"),
];

type Rows = BTreeMap<String, f64>;

/// Measures, and writes docs/performance.md.
///
/// # Errors
/// When something cannot be built, does not run, or cannot be written.
pub fn bench(workspace: &Workspace) -> Result<()> {
    let library = m3ipc_programs::build_library(workspace)?;
    let folder = workspace.run_folder()?;
    let program = folder.join(ROWS);
    m3ipc_programs::compile(workspace, &library, &workspace.root.join("host/bench/rows.c"), &program)?;
    let mut skink = in_skink(workspace, CProgram { name: ROWS.to_string(), path: program.clone() })?;
    let registers = c_programs::compile(workspace, &["trials"])?.into_iter().find(|made| made.name == REGISTER_ROWS);
    skink.extend(in_skink(workspace, registers.context("user/trials/register_rows.c is missing")?)?);
    let printed = in_linux(workspace, &library, &program)?;
    let (_, printed) = printed.split_once(MODULE).context("Linux has printed no rows")?;
    let (module, shared) = printed.split_once(SHARED).context("Linux has printed no rows of the broker's")?;
    let text = laid_out(&[skink, read(shared), read(module)]);
    print!("{text}");
    performance::write(&workspace.root, NAME, &text)
}

fn in_skink(workspace: &Workspace, program: CProgram) -> Result<Rows> {
    let bundle = Bundle::build(workspace, RAMDISK_SYSTEM)?;
    let programs = [program];
    let job = Job { icount: true, c_programs: &programs, ..Job::new(&programs[0].name) };
    let guest = Guest::prepare(workspace, &bundle, &job)?;
    let mut output = Vec::new();
    let outcome = guest.run(|bytes| output.extend_from_slice(bytes), |_| ())?;
    if outcome.status != Some(0) {
        bail!("the rows of Skink failed:\n{}", tail(&outcome.console, 20));
    }
    Ok(read(&String::from_utf8_lossy(&output)))
}

fn in_linux(workspace: &Workspace, library: &Path, program: &Path) -> Result<String> {
    let folder = workspace.run_folder()?;
    let programs = folder.join("programs");
    let libraries = programs.join("libraries");
    fs::create_dir_all(&libraries)?;
    fs::copy(program, programs.join(ROWS))?;
    let end_node = workspace.root.join("tests/m3ipc/end_node.c");
    m3ipc_programs::compile(workspace, library, &end_node, &programs.join("end_node"))?;
    fs::copy(library.join("m3ipcd"), programs.join("m3ipcd"))?;
    let needed = process::output(Command::new("ldd").arg(library.join("m3ipcd")))?;
    for word in String::from_utf8_lossy(&needed).split_whitespace() {
        if let Some(name) = Path::new(word).file_name().filter(|_| LIBRARIES.iter().any(|from| word.starts_with(from)))
        {
            fs::copy(word, libraries.join(name)).with_context(|| format!("cannot copy {word}"))?;
        }
    }
    let module = Module::for_debian(workspace, folder.path())?;
    let run = Run { script: SCRIPT, programs: &programs, processors: 1, icount: true, append: "", limit_s: LIMIT_S };
    let printed = module.run(workspace, &run)?;
    if !printed.contains(END) {
        bail!("the rows of Linux failed:\n{}", tail(&printed, 20));
    }
    Ok(printed)
}

/// Reads lines of a name and a number.
fn read(printed: &str) -> Rows {
    let row = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_string(), value.trim().parse().ok()?))
    };
    printed.lines().filter_map(row).collect()
}

fn laid_out(columns: &[Rows; 3]) -> String {
    let mut text = String::from("| ticks | Skink | Linux, shared memory | Linux, module |\n|---|---|---|---|\n");
    for (name, what) in TABLE {
        let cell = |rows: &Rows| rows.get(name).map_or("not measured".to_string(), |value| grouped(*value as u64));
        let [skink, shared, module] = columns.each_ref().map(cell);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {what} | {skink} | {shared} | {module} |");
    }
    for (name, what) in SKINK_TABLE {
        let value = columns[0].get(name).map_or("not measured".to_string(), |value| grouped(*value as u64));
        let _ = writeln!(text, "| {what} | {value} | – | – |");
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_has_a_cell_for_each_back_end() {
        let rows = [read("ipc2   987\n"), read("hello world\nipc2  12345\n"), read("")];
        let text = laid_out(&rows);
        assert!(text.contains("(IPC2) | 987 | 12,345 | not measured |"), "{text}");
        let text = laid_out(&[read("registers   958\n"), read(""), read("")]);
        assert!(text.contains("answered by receive and send | 958 | – | – |"), "{text}");
    }
}
