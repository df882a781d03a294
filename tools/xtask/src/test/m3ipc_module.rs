//! M3-IPC's module of Linux: the programs of tests/m3ipc, the same binaries as on the other back ends, and what the module must bear
//! (tests/m3ipc_module), in Debian's kernel; in the long form in one with KASAN and lockdep. What the kernel complains of is a failure too.

use super::{Setting, Test, Verdict, m3ipc};
use crate::m3ipc_module::{Module, Run};
use crate::process;
use anyhow::Result;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The test's name.
pub const NAME: &str = "m3ipc_module";
/// Time limits of the guest, in seconds: hang detection.
const LIMIT_S: u32 = 900;
const DEEP_LIMIT_S: u32 = 7200;
/// What the script tells the kernel's complaints under.
const KERNEL: &str = "kernel";
/// Before the names of what prints "good".
const ATTACK: &str = "attack_";
/// How many of these there are.
const ATTACKS: usize = 15;
/// Programs for this test, beside those of tests/m3ipc: the folder and the name.
const PROGRAMS: [(&str, &str); 4] = [
    ("tests/m3ipc_module", "attack"),
    ("tests/m3ipc_module", "proc"),
    ("host/tests", "deaths"),
    ("host/tests", "steady"),
];

/// The test in Debian's kernel.
pub fn test<'a>(setting: &'a Setting) -> Test<'a> {
    Test::new(NAME, move || {
        let folder = setting.workspace.run_folder()?;
        let module = {
            let _alone = setting.workspace.fetch_alone();
            Module::for_debian(setting.workspace, folder.path())?
        };
        judge(setting, &module, &Form { head: "", append: "", limit_s: LIMIT_S })
    })
}

/// The test in a kernel that looks for mistakes, which is built once.
pub fn deep_test<'a>(setting: &'a Setting) -> Test<'a> {
    Test::new(NAME, move || {
        let folder = setting.workspace.run_folder()?;
        let module = Module::for_checked(setting.workspace, folder.path())?;
        // KASAN takes the addresses of five-level page tables for wild ones, and is silent after its first report unless it is told otherwise.
        let append = "no5lvl kasan_multi_shot";
        judge(setting, &module, &Form { head: "DEEP=1\n", append, limit_s: DEEP_LIMIT_S })
    })
}

/// Puts all programs into a folder.
fn gather(setting: &Setting, to: &Path) -> Result<()> {
    process::run(Command::new("cp").args(["-r", "-T"]).arg(m3ipc::built(setting)?.folder()).arg(to))?;
    let root = &setting.workspace.root;
    for (folder, name) in PROGRAMS {
        let mut cc = Command::new("cc");
        cc.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-s", "-static", "-I"])
            .arg(root.join("lib/m3ipc/include"));
        cc.arg(root.join(folder).join(format!("{name}.c"))).arg("-o").arg(to.join(name));
        cc.arg("-L").arg(setting.workspace.target.join("release")).arg("-lm3ipc");
        process::run(&mut cc)?;
    }
    Ok(())
}

/// What the short and the long form do not have in common.
struct Form {
    /// Before the script.
    head: &'static str,
    /// Words for the kernel.
    append: &'static str,
    limit_s: u32,
}

/// Runs everything in one guest, and compares.
fn judge(setting: &Setting, module: &Module, form: &Form) -> Result<Verdict> {
    let programs = setting.workspace.run_folder()?;
    gather(setting, programs.path())?;
    let script =
        form.head.to_string() + &fs::read_to_string(setting.workspace.root.join("tests/m3ipc_module/script.sh"))?;
    let run = Run {
        script: &script,
        programs: programs.path(),
        processors: 2,
        icount: false,
        append: form.append,
        limit_s: form.limit_s,
    };
    let printed = module.run(setting.workspace, &run)?;
    let outputs = m3ipc::by_program(&printed);
    let mut problems = Vec::new();
    for name in m3ipc::names(setting)? {
        let expected = fs::read_to_string(m3ipc::folder(setting).join(format!("{name}.expect")))?;
        let hash = m3ipc::hash(&programs.join(&name))?;
        problems.extend(problem(&outputs, &name, Some(&hash), &expected));
    }
    let attacks: Vec<&String> = outputs.keys().filter(|name| name.starts_with(ATTACK)).collect();
    problems.extend(attacks.iter().filter_map(|name| problem(&outputs, name, None, "good\n")));
    if attacks.len() != ATTACKS {
        problems.push(format!("expected {ATTACKS} attacks, not {attacks:?}"));
    }
    problems.extend(problem(&outputs, KERNEL, None, ""));
    if !problems.is_empty() {
        fs::write(setting.failure_folder(NAME)?.join("console"), &printed)?;
    }
    let all = m3ipc::names(setting)?.len() + ATTACKS + 1;
    let mut verdict = Verdict::failed(problems.join("\n"));
    (verdict.count.passed, verdict.count.failed) = (all.saturating_sub(problems.len()), problems.len());
    Ok(verdict)
}

/// What is wrong with what a program has printed.
fn problem(
    outputs: &BTreeMap<String, m3ipc::Printed>,
    name: &str,
    hash: Option<&str>,
    expected: &str,
) -> Option<String> {
    match outputs.get(name) {
        None => Some(format!("{name} did not run")),
        Some(ran) if hash.is_some_and(|hash| hash != ran.hash) => {
            Some(format!("{name}: another binary ran: {}", ran.hash))
        }
        Some(ran) if ran.text != expected => Some(format!(
            "{name}, binary {}: {}\n{}",
            ran.hash,
            m3ipc::difference(expected, &ran.text),
            process::tail(&ran.text, 40)
        )),
        Some(_) => None,
    }
}
