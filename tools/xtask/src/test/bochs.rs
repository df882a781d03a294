//! Skink on a processor that keeps the translations of each address space apart (PCID), which QEMU does not emulate: the ISO image in Bochs, to the shell,
//! through many processes and the deaths of two services, and out.

use super::dialogue::{self, Step};
use super::{Setting, Test, Verdict, iso};
use crate::process::tail;
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// It takes 40 seconds on a quiet machine.
const LIMIT: Duration = Duration::from_secs(600);
const SHOWN_LINES: usize = 30;
/// Of CR4: translations are kept by the numbers in the lowest bits of CR3.
const PCIDE: u64 = 1 << 17;
const PCID: u64 = 0xfff;

/// The only test.
pub fn test<'a>(setting: &'a Setting) -> Test<'a> {
    Test::new("iso/pcid", || run(setting))
}

fn run(setting: &Setting) -> Result<Verdict> {
    let folder = setting.workspace.run_folder()?;
    let (settings, log) = (folder.join("bochsrc"), folder.join("log"));
    fs::write(&settings, machine(&iso::make(setting)?, &log))?;
    // Bochs begins in its debugger.
    fs::write(folder.join("commands"), "continue\n")?;
    // Its console is the terminal that `script` makes for our side.
    let mut command = Command::new("script");
    command.args(["-qec", "bochs -q -f bochsrc -rc commands >said 2>&1 </dev/null", "/dev/null"]);
    command.current_dir(folder.path()).env("TERM", "vt100");
    let talk = dialogue::converse(&mut command, &steps(), LIMIT)?;
    let failure = match talk.failure {
        Some(reason) => Some(reason),
        None => check_processor(&log)?,
    };
    Ok(failure.map_or_else(Verdict::passed, |reason| {
        Verdict::failed(format!("{reason}\nconsole:\n{}", tail(&talk.said, SHOWN_LINES)))
    }))
}

/// A processor with PCID, a drive with the image, and a console; nothing that needs a display or sound.
fn machine(iso: &Path, log: &Path) -> String {
    format!(
        "cpu: model=corei7_haswell_4770, count=1, ips=100000000, reset_on_triple_fault=0
memory: guest=512, host=512
romimage: file=/usr/share/seabios/bios.bin
vgaromimage: file=/usr/share/seabios/vgabios-stdvga.bin
ata0: enabled=1, ioaddr1=0x1f0, ioaddr2=0x3f0, irq=14
ata0-master: type=cdrom, path={}, status=inserted
boot: cdrom
com1: enabled=1, mode=term, dev=/dev/tty
display_library: term
sound: waveoutdrv=dummy, waveindrv=dummy, midioutdrv=dummy
log: {}
clock: sync=none
panic: action=fatal
",
        iso.display(),
        log.display()
    )
}

/// Each round runs three programs and compares what they say with what they said before.
fn steps() -> Vec<Step> {
    let list = "ls /bin /usr/bin | sort | md5sum";
    let rounds = format!("a=$({list}); i=0; while [ $i -lt 40 ] && [ \"$a\" = \"$({list})\" ]; do i=$((i+1)); done");
    let typed = format!("{rounds}; service kill vfs; service kill tty; echo all $i rounds\r");
    let text = |text: &str| text.as_bytes().to_vec();
    vec![
        Step::Expect(text("# ")),
        Step::Type(typed.into_bytes()),
        Step::Expect(text("all 40 rounds")),
        Step::Expect(text("# ")),
        Step::Type(text("poweroff\r")),
        Step::End,
    ]
}

/// Bochs tells the registers at the end. Returns what is wrong.
fn check_processor(log: &Path) -> Result<Option<String>> {
    let text = String::from_utf8_lossy(&fs::read(log)?).into_owned();
    let last = text.lines().rev().find(|line| line.contains("CR4=")).context("Bochs has told no registers")?;
    let register = |name: &str| {
        let (_, value) = last.split_once(name)?;
        u64::from_str_radix(value.split_whitespace().next()?.trim_start_matches("0x"), 16).ok()
    };
    let (cr3, cr4) = register("CR3=").zip(register("CR4=")).context("no registers")?;
    let keeps = cr4 & PCIDE != 0 && cr3 & PCID != 0;
    Ok((!keeps).then(|| format!("translations are not kept: {last}")))
}
