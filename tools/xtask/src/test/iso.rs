//! The ISO image starts on BIOS and on UEFI machines: GRUB, multiboot2, to the shell.

use super::dialogue::{self, Step};
use super::{Setting, Test, Verdict};
use crate::cli::RAMDISK_SYSTEM;
use crate::image;
use crate::machine::{Boot, Machine, UEFI_VARIABLES};
use crate::process::tail;
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

/// UEFI firmware alone takes 5 seconds on a quiet machine.
const LIMIT: Duration = Duration::from_secs(180);
const SHOWN_LINES: usize = 30;

/// One test for each kind of firmware.
pub fn tests<'a>(setting: &'a Setting) -> [Test<'a>; 2] {
    [Test::new("iso/bios", || run(setting, Firmware::Bios)), Test::new("iso/uefi", || run(setting, Firmware::Uefi))]
}

#[derive(Clone, Copy)]
enum Firmware {
    Bios,
    Uefi,
}

fn run(setting: &Setting, firmware: Firmware) -> Result<Verdict> {
    let iso = make(setting)?;
    let folder = setting.workspace.run_folder()?;
    let boot = match firmware {
        Firmware::Bios => Boot::IsoBios(iso),
        Firmware::Uefi => {
            let variables = folder.join("variables.fd");
            fs::copy(UEFI_VARIABLES, &variables).context("cannot copy the UEFI firmware's variables")?;
            Boot::IsoUefi { iso, variables }
        }
    };
    let mut machine = Machine::new(boot);
    match dialogue::hold(&mut machine, &steps(), LIMIT)? {
        Ok(()) => Ok(Verdict::passed()),
        Err(failure) => {
            Ok(Verdict::failed(format!("{}\nconsole:\n{}", failure.reason, tail(&failure.console, SHOWN_LINES))))
        }
    }
}

/// To the prompt, a command, and out.
pub fn steps() -> Vec<Step> {
    let typed = |text: &str| Step::Type(text.as_bytes().to_vec());
    let expected = |text: &str| Step::Expect(text.as_bytes().to_vec());
    let command = "echo from $(whoami)\r";
    vec![expected("# "), typed(command), expected("from root"), expected("# "), typed("poweroff\r"), Step::End]
}

/// Both tests boot the same image; the first one makes it.
fn make(setting: &Setting) -> Result<PathBuf> {
    static MADE: Mutex<Option<PathBuf>> = Mutex::new(None);
    let mut made = MADE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(iso) = &*made {
        return Ok(iso.clone());
    }
    let iso = image::make(setting.workspace, setting.bundle(RAMDISK_SYSTEM)?, None, "")?;
    Ok(made.insert(iso).clone())
}
