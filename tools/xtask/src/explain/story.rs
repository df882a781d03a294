//! Makes a story of a trace: what the processes of one command asked, and what each answer took.
//!
//! A request belongs to the one that its sender was handling. So the story is a list of trees, one for each
//! call of a program. What services do meanwhile for others is left out.

use super::handlers::Key;
use crate::trace::{self, Decoder, Event};
use abi::call::KernelCall;
use abi::endpoint::{Endpoint, SERVICE_SLOTS};
use abi::message::{LINUX_LABELS, REPLY};
use abi::trace::event;
use abi::{Errno, Word, linux};
use std::collections::HashMap;

/// The argument of `umask` that marks the beginning and the end of a command; nobody else uses it.
pub const MARK: u64 = 0o765;

/// One step: a message, a kernel call or an interrupt.
pub struct Step {
    /// The process that acts.
    pub from: String,
    /// Whom it is sent to; None for what concerns nobody else.
    pub to: Option<String>,
    /// What, with its arguments.
    pub what: String,
    /// Its handler, if one was found.
    pub key: Option<Key>,
    /// The answer: a result and the reply's fields.
    pub answer: Option<String>,
    /// The steps that it caused, as indices.
    pub steps: Vec<usize>,
}

/// Steps, and which of them nobody asked for but the programs.
#[derive(Default)]
pub struct Story {
    /// All, in the order of their beginning.
    pub steps: Vec<Step>,
    /// The calls of the programs.
    pub roots: Vec<usize>,
}

impl Story {
    /// The story of the marked command in a trace.
    pub fn of(events: &[Event]) -> Self {
        let mut teller = Teller::default();
        for event in events {
            teller.decoder.learn(event);
            teller.take(event);
        }
        teller.story
    }

    /// A step and what it took, in words without numbers: equal for steps of the same way.
    pub fn shape(&self, at: usize) -> String {
        let step = &self.steps[at];
        let name = step.what.split(['(', ' ']).next().unwrap_or_default();
        let inner: Vec<String> = step.steps.iter().map(|&inner| self.shape(inner)).collect();
        format!("{}>{}:{name}[{}]", step.from, step.to.as_deref().unwrap_or_default(), inner.join(","))
    }
}

/// How far the trace is. A shell that sets a mask asks for the old one first, and so repeats it.
#[derive(Clone, Copy, Default, PartialEq)]
enum Phase {
    /// Before the mark.
    #[default]
    Before,
    /// The mark has come; the command begins when the shell sets another mask.
    Marked,
    /// The command runs.
    Command,
    /// The mark has come again.
    Over,
}

#[derive(Default)]
struct Teller {
    decoder: Decoder,
    story: Story,
    phase: Phase,
    /// The shell that made the mark, and the threads that come of it.
    programs: Vec<u32>,
    /// What each thread works on: the last request or notification it took and has not answered.
    work: HashMap<u32, usize>,
    /// Requests that are not answered yet: requester, asked, step.
    open: Vec<(u32, u32, usize)>,
}

impl Teller {
    fn take(&mut self, event: &Event) {
        let mask = (event.kind == event::MESSAGE && event.label == linux::nr::UMASK).then_some(event.words[0]);
        let is_shell = self.programs.first() == Some(&event.from);
        match (self.phase, mask) {
            (Phase::Before, Some(MARK)) => {
                self.programs.push(event.from);
                self.phase = Phase::Marked;
            }
            (Phase::Marked, Some(mask)) if is_shell && mask != MARK && mask != 0 => self.phase = Phase::Command,
            (Phase::Command, Some(MARK)) if is_shell => self.phase = Phase::Over,
            (Phase::Command, _) => self.tell(event),
            _ => {}
        }
    }

    fn tell(&mut self, event: &Event) {
        match event.kind {
            event::MESSAGE if event.label & REPLY != 0 => self.answer(event),
            event::MESSAGE => self.request(event),
            event::KERNEL_CALL => self.kernel_call(event),
            event::NOTIFY => self.notify(event),
            event::INTERRUPT => self.interrupt(event),
            _ => {}
        }
    }

    fn request(&mut self, event: &Event) {
        let is_program = self.programs.contains(&event.from);
        let cause = if is_program { None } else { self.work.get(&event.from).copied() };
        if !is_program && cause.is_none() || event.label == linux::nr::UMASK {
            // It is taken all the same, so that what it causes is not ascribed to what was before.
            self.work.remove(&event.to);
            return;
        }
        let key = key_of(event.label);
        let what = trace::message(event.label, &event.words);
        let at = self.add(cause, event.from, Some(event.to), what, key);
        self.work.insert(event.to, at);
        self.open.push((event.from, event.to, at));
    }

    fn answer(&mut self, event: &Event) {
        let of_this = |&(requester, asked, _): &(u32, u32, usize)| requester == event.to && asked == event.from;
        let Some(index) = self.open.iter().position(of_this) else { return };
        let (requester, asked, at) = self.open.remove(index);
        let words = trace::message(self.decoder.label(event), &event.words);
        let (_, answer) = words.split_once(" = ").unwrap_or(("", &words));
        self.story.steps[at].answer = Some(answer.to_string());
        if self.work.get(&asked) == Some(&at) {
            self.work.remove(&asked);
        }
        match self.cause_of(at) {
            Some(cause) => self.work.insert(requester, cause),
            None => self.work.remove(&requester),
        };
    }

    fn kernel_call(&mut self, event: &Event) {
        let Some(&cause) = self.work.get(&event.from) else { return };
        let name = trace::call_name(u64::from(event.label));
        let result = Result::<u64, Errno>::from_word(event.words[6]);
        if name == call_name(KernelCall::Fork) && self.programs.contains(&(event.words[0] as u32)) {
            // The child's calls belong to the story.
            self.programs.extend(result.ok().map(|child| child as u32));
        }
        let at = self.add(Some(cause), event.from, None, format!("kernel call {name}"), Some(Key::Kernel(name)));
        self.story.steps[at].answer =
            Some(result.map_or_else(|error| error.to_string(), |value| format!("{value:#x}")));
    }

    fn notify(&mut self, event: &Event) {
        let Some(&cause) = self.work.get(&event.from) else { return };
        let at = self.add(Some(cause), event.from, Some(event.to), "notify".to_string(), None);
        self.work.entry(event.to).or_insert(at);
    }

    fn interrupt(&mut self, event: &Event) {
        let Some(&cause) = self.work.get(&event.to) else { return };
        let what = format!("interrupt {}", event.label);
        self.add(Some(cause), Endpoint::HARDWARE.0, Some(event.to), what, None);
    }

    fn add(&mut self, cause: Option<usize>, from: u32, to: Option<u32>, what: String, key: Option<Key>) -> usize {
        let at = self.story.steps.len();
        let step =
            Step { from: self.name(from), to: to.map(|to| self.name(to)), what, key, answer: None, steps: Vec::new() };
        self.story.steps.push(step);
        match cause {
            Some(cause) => self.story.steps[cause].steps.push(at),
            None => self.story.roots.push(at),
        }
        at
    }

    fn cause_of(&self, at: usize) -> Option<usize> {
        // Causes come before what they cause.
        (0..at).rev().find(|&before| self.story.steps[before].steps.contains(&at))
    }

    fn name(&self, endpoint: u32) -> String {
        match self.programs.iter().position(|&program| program == endpoint) {
            Some(0) => "shell".to_string(),
            Some(number) => format!("child {number}"),
            None if Endpoint(endpoint).slot() >= SERVICE_SLOTS => "another program".to_string(),
            None => self.decoder.who(endpoint),
        }
    }
}

fn call_name(call: KernelCall) -> String {
    trace::call_name(call.number())
}

fn key_of(label: u32) -> Option<Key> {
    match abi::describe(label) {
        Some((protocol, message)) => Some(Key::Message(protocol.name.to_string(), message.name.to_string())),
        None if label < LINUX_LABELS => Some(Key::Linux(linux::name(label)?.to_string())),
        None => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::slice;

    const SHELL: u32 = 200;
    const VFS: u32 = 8;
    const EXT2: u32 = 16;

    fn event(kind: u32, label: u32, from: u32, to: u32, words: &[u64]) -> Event {
        let mut all = [0; 7];
        all[..words.len()].copy_from_slice(words);
        Event { tsc: 0, kind, label, from, to, words: all }
    }

    fn message(label: u32, from: u32, to: u32, words: &[u64]) -> Event {
        event(event::MESSAGE, label, from, to, words)
    }

    fn mask(mask: u64) -> Event {
        message(linux::nr::UMASK, SHELL, VFS, &[mask])
    }

    /// A command that does these events, between the marks as a shell makes them.
    fn story_of(events: &[Event]) -> Story {
        let before = [MARK, 0, MARK, 0o22].map(mask);
        let after = [0, 0o22, MARK].map(mask);
        Story::of(&[&before, events, &after].concat())
    }

    #[test]
    fn what_a_service_asks_belongs_to_what_it_was_asked() {
        let read = abi::fs::Read::LABEL;
        let story = story_of(&[
            message(REPLY, VFS, SHELL, &[0]),
            message(linux::nr::READ, SHELL, VFS, &[3]),
            message(read, VFS, EXT2, &[7]),
            event(event::KERNEL_CALL, KernelCall::SafeCopyTo.number() as u32, EXT2, 0, &[]),
            message(read | REPLY, EXT2, VFS, &[5]),
            message(REPLY, VFS, SHELL, &[5]),
        ]);
        assert_eq!(story.roots.len(), 1);
        let root = &story.steps[story.roots[0]];
        assert!(root.what.starts_with("read(0x3,"), "{}", root.what);
        assert_eq!((root.from.as_str(), root.answer.as_deref()), ("shell", Some("0x5")));
        let inner = &story.steps[root.steps[0]];
        assert!(inner.what.starts_with("fs::Read "), "{}", inner.what);
        assert_eq!(inner.answer.as_deref(), Some("0x5 accessed_ns=0x0"));
        assert_eq!(story.steps[inner.steps[0]].what, "kernel call SafeCopyTo");
    }

    #[test]
    fn what_is_before_and_after_the_marks_is_left_out() {
        let write = message(linux::nr::WRITE, SHELL, VFS, &[]);
        let marks = |events: &[Event]| [slice::from_ref(&write), events, slice::from_ref(&write)].concat();
        assert!(Story::of(&marks(&[MARK, 0, MARK, 0o22, 0, 0o22, MARK].map(mask))).roots.is_empty());
    }

    #[test]
    fn what_services_do_for_others_is_left_out() {
        let story = story_of(&[
            message(abi::fs::Sync::LABEL, VFS, EXT2, &[]),
            message(linux::nr::READ, 201, VFS, &[]),
            message(abi::fs::Read::LABEL, VFS, EXT2, &[]),
        ]);
        assert!(story.roots.is_empty());
    }

    #[test]
    fn a_child_belongs_to_the_story() {
        let fork = KernelCall::Fork.number() as u32;
        let story = story_of(&[
            message(linux::nr::CLONE, SHELL, 7, &[]),
            event(event::KERNEL_CALL, fork, 7, 0, &[u64::from(SHELL), 0, 0, 0, 0, 0, 201]),
            message(linux::nr::GETPID, 201, 7, &[]),
        ]);
        let names: Vec<&str> = story.roots.iter().map(|&root| story.steps[root].from.as_str()).collect();
        assert_eq!(names, ["shell", "child 1"]);
        assert_eq!(story.shape(story.roots[1]), "child 1>7.0:getpid[]");
    }
}
