//! Plans a campaign: draws all its trials from one seed.
//!
//! A trial depends on the seed, its number, the programs in the boot archive and on what of them ran (`coverage`, which is kept); so one
//! can be repeated alone.

use super::mutate::Text;
use super::trial::{Fault, Mutation, Part, Trial};
use anyhow::{Context, Result};
use elf::Program;
use fastrand::Rng;
use std::fs;
use std::path::Path;

/// How many mutations there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutations {
    /// Each service gets each kind once.
    EachKindOnce,
    /// So many of all services together.
    Exactly(u32),
}

impl Mutations {
    fn count(self, targets: usize) -> usize {
        match self {
            Mutations::EachKindOnce => targets * Mutation::ALL.len(),
            Mutations::Exactly(count) => count as usize,
        }
    }
}

/// How large a campaign is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Services are killed after every k-th message up to [`MAX_MESSAGES`] (1), or after some of them.
    pub every_kill: bool,
    /// How many mutations.
    pub mutations: Mutations,
    /// System calls of each service that are stuck at or left out.
    pub silences: usize,
}

impl Size {
    /// The campaign that continuous integration runs.
    pub const SMALL: Size = Size { every_kill: false, mutations: Mutations::EachKindOnce, silences: 1 };
    /// The whole.
    pub const ALL: Size = Size { every_kill: true, mutations: Mutations::Exactly(10_000), silences: 8 };
}

/// The largest k.
const MAX_MESSAGES: u32 = 200;
/// The k of a small campaign: dense where a service has just begun, and the largest.
const SOME_MESSAGES: [u32; 5] = [1, 2, 7, 31, 200];
/// The instruction `syscall`.
const SYSCALL: [u8; 2] = [0x0f, 0x05];

/// A service under test.
pub struct Target {
    /// Its name.
    pub name: String,
    /// Its code.
    pub text: Text,
    /// rs starts it again when it dies.
    pub restartable: bool,
}

impl Target {
    /// The service `name`, which runs `program`; rs restarts it if it is `restartable`.
    ///
    /// # Errors
    /// When the program cannot be read or has no text.
    pub fn read(name: &str, program: &Path, restartable: bool) -> Result<Self> {
        let bytes = fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
        let text = text_of(&bytes).with_context(|| format!("{} has no text", program.display()))?;
        Ok(Self { name: name.to_string(), text, restartable })
    }
}

/// The executable segment of an ELF file.
fn text_of(file: &[u8]) -> Option<Text> {
    let head = &file[..file.len().min(elf::HEAD_BYTES)];
    let program = Program::parse(head, file.len() as u64).ok()?;
    let segment = program.segments().iter().find(|segment| segment.execute)?;
    let start = usize::try_from(segment.file.offset).ok()?;
    let bytes = file.get(start..start + usize::try_from(segment.file.bytes).ok()?)?;
    Some(Text::new(segment.address, bytes.to_vec()))
}

/// All trials of a campaign, numbered from 1. Mutations hit instructions that `ran`: index of the target, address.
///
/// # Errors
/// When a program is too small for some mutation.
pub fn trials(targets: &[Target], ran: impl Fn(usize, u64) -> bool, size: Size, seed: u64) -> Result<Vec<Trial>> {
    let mut trials = Vec::new();
    let mut add = |part, target: &Target, fault| {
        let Target { name, restartable, .. } = target;
        let number = trials.len() as u32 + 1;
        trials.push(Trial { number, part, service: name.clone(), fault, restartable: *restartable });
    };
    let kills: Vec<u32> = if size.every_kill { (1..=MAX_MESSAGES).collect() } else { SOME_MESSAGES.to_vec() };
    for messages in kills {
        for target in targets {
            add(Part::Kills, target, Fault::KillAfter(messages));
        }
    }
    for number in 0..size.mutations.count(targets.len()) {
        // Each service gets each kind equally often.
        let (round, at) = (number / targets.len(), number % targets.len());
        let kind = Mutation::ALL[round % Mutation::ALL.len()];
        let mut random = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number as u64);
        let patch = targets[at]
            .text
            .mutate(kind, &mut random, |address| ran(at, address))
            .with_context(|| targets[at].name.clone())?;
        add(Part::Mutations, &targets[at], Fault::Poke(patch));
    }
    for target in targets {
        add(Part::Silence, target, Fault::Silence);
        for fault in silences(target, size.silences, seed)? {
            add(Part::Silence, target, fault);
        }
    }
    Ok(trials)
}

/// System calls of a service that it does not come back from, or that it never makes: so replies are swallowed.
fn silences(target: &Target, count: usize, seed: u64) -> Result<Vec<Fault>> {
    let mut random = Rng::with_seed(seed);
    let mut calls: Vec<u64> =
        target.text.addresses().filter(|address| target.text.at(*address).starts_with(&SYSCALL)).collect();
    random.shuffle(&mut calls);
    let mut faults = Vec::new();
    for call in calls.into_iter().take(count) {
        for kind in [Mutation::StuckLoop, Mutation::Dropped] {
            faults.push(Fault::Poke(target.text.mutate_at(call, kind, &mut random)?));
        }
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// xor eax, eax; mov rbx, [rcx + 8]; cmp eax, 0x100; je; mov rbx, rcx; syscall; ret
    const CODE: [u8; 19] =
        [0x31, 0xc0, 0x48, 0x8b, 0x59, 0x08, 0x3d, 0, 1, 0, 0, 0x74, 0x10, 0x48, 0x89, 0xcb, 0x0f, 0x05, 0xc3];

    fn targets() -> Vec<Target> {
        let target = |name: &str| Target {
            name: name.to_string(),
            text: Text::new(0x40_1000, CODE.to_vec()),
            restartable: true,
        };
        vec![target("uart"), target("vfs")]
    }

    #[test]
    fn a_whole_campaign_kills_after_every_message_and_mutates_ten_thousand_times() {
        let trials = trials(&targets(), |_, _| true, Size::ALL, 1).expect("is planned");
        let count = |part| trials.iter().filter(|trial| trial.part == part).count();
        assert_eq!((count(Part::Kills), count(Part::Mutations)), (400, 10_000));
        // One silence, and the only system call stuck and dropped.
        assert_eq!(count(Part::Silence), 2 * 3);
        assert!(trials.iter().enumerate().all(|(at, trial)| trial.number as usize == at + 1));
    }

    #[test]
    fn every_service_gets_every_kind_of_mutation() {
        let trials = trials(&targets(), |_, _| true, Size::SMALL, 1).expect("is planned");
        let mut kinds: BTreeMap<(&str, Mutation), u32> = BTreeMap::new();
        for trial in trials.iter().filter(|trial| trial.part == Part::Mutations) {
            if let Fault::Poke(patch) = &trial.fault {
                *kinds.entry((&trial.service, patch.kind)).or_default() += 1;
            }
        }
        assert_eq!(kinds.len(), 2 * Mutation::ALL.len());
        assert!(kinds.values().all(|count| *count == 1));
    }

    #[test]
    fn another_seed_makes_other_mutations() {
        let make = |seed| trials(&targets(), |_, _| true, Size::SMALL, seed).expect("is planned");
        assert_eq!(make(1), make(1));
        assert_ne!(make(1), make(2));
    }
}
