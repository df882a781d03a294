//! Which instructions of the services run at all: mutations of others would tell nothing.
//!
//! QEMU logs every block of instructions when it translates it, with address and bytes. All services lie at the same addresses, so a
//! block is a service's whose text has these bytes there. What is found is kept beside the results, so that the same programs get the
//! same mutations again.

use super::plan::Target;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::BufRead;
use std::path::{Path, PathBuf};

/// The addresses of the instructions that ran, for each target.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    ran: Vec<BTreeSet<u64>>,
}

impl Coverage {
    /// Reads the code that ran from QEMU's log `in_asm`.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn read_log(log: impl BufRead, targets: &[Target]) -> Result<Self> {
        let mut coverage = Self { ran: vec![BTreeSet::new(); targets.len()] };
        let mut block = Vec::new();
        for line in log.lines() {
            match instruction(&line.context("cannot read QEMU's log")?) {
                Some(instruction) => block.push(instruction),
                None => coverage.add(&std::mem::take(&mut block), targets),
            }
        }
        coverage.add(&block, targets);
        Ok(coverage)
    }

    fn add(&mut self, block: &[(u64, Vec<u8>)], targets: &[Target]) {
        for (target, ran) in targets.iter().zip(&mut self.ran) {
            if block.iter().all(|(address, bytes)| target.text.at(*address).starts_with(bytes)) {
                ran.extend(block.iter().map(|(address, _)| address));
            }
        }
    }

    /// Whether the instruction at `address` of the target with this index ran.
    pub fn has(&self, target: usize, address: u64) -> bool {
        self.ran.get(target).is_some_and(|ran| ran.contains(&address))
    }

    /// Path of the stored coverage of these programs in `folder`.
    pub fn path(folder: &Path, targets: &[Target]) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        for target in targets {
            (&target.name, target.text.bytes()).hash(&mut hasher);
        }
        folder.join(format!("coverage-{:016x}", hasher.finish()))
    }

    /// Reads the file that `write` has written. `None`: it does not exist.
    pub fn read(path: &Path) -> Option<Self> {
        let text = fs::read_to_string(path).ok()?;
        let address = |word: &str| u64::from_str_radix(word, 16).ok();
        let ran = text.lines().map(|line| line.split_whitespace().map(address).collect());
        Some(Self { ran: ran.collect::<Option<_>>()? })
    }

    /// Keeps it: a line of addresses for each target.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut text = String::new();
        for ran in &self.ran {
            for address in ran {
                let _ = write!(text, "{address:x} ");
            }
            text.push('\n');
        }
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// Reads a line `0xADDRESS:  XX XX ...  words`; the bytes end at two blanks. A long instruction goes on in a line of its own.
fn instruction(line: &str) -> Option<(u64, Vec<u8>)> {
    let (address, rest) = line.strip_prefix("0x")?.split_once(":  ")?;
    let bytes = rest.split("  ").next()?.split_whitespace();
    let bytes: Vec<u8> = bytes.map_while(|byte| u8::from_str_radix(byte, 16).ok()).collect();
    Some((u64::from_str_radix(address, 16).ok()?, bytes))
}

#[cfg(test)]
mod tests {
    use super::super::mutate::Text;
    use super::*;

    fn target(code: &[u8]) -> Target {
        Target { name: "uart".to_string(), text: Text::new(0x40_1000, code.to_vec()), restartable: true }
    }

    #[test]
    fn a_block_belongs_to_the_services_that_have_its_bytes() {
        let log = "IN: \n0x00401000:  31 c0                    xorl     %eax, %eax\n0x00401002:  c3                       retq\n\nIN: \n\
                   0x00401002:  c3                       retq\n";
        let targets = [target(&[0x31, 0xc0, 0xc3]), target(&[0x31, 0xc9, 0xc3])];
        let coverage = Coverage::read_log(log.as_bytes(), &targets).expect("is read");
        assert!(coverage.has(0, 0x40_1000) && coverage.has(0, 0x40_1002));
        assert!(!coverage.has(1, 0x40_1000) && coverage.has(1, 0x40_1002));
    }
}
