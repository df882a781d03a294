//! `./skink explain`: runs a command in the guest with tracing and tells what happened, message by message:
//! who asked whom for what, what that took, and which function of which file handled it.
//!
//! * `story`: from the trace to trees of steps;
//! * `handlers`: from a message to the function in the sources that handles it;
//! * this file: topics, the run, and how it is printed.

mod handlers;
mod story;

use crate::bundle::Bundle;
use crate::cli::{DEFAULT_SYSTEM, ExplainOptions};
use crate::debian::Set;
use crate::guest::{Guest, Job};
use crate::process::tail;
use crate::programs::Packages;
use crate::progress;
use crate::trace;
use crate::workspace::Workspace;
use abi::call::{KERNEL_CALL_DOCS, KERNEL_CALL_NAMES};
use anyhow::{Result, bail};
use handlers::{Handlers, Key, Place, first_sentence};
use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::time::Duration;
use story::{MARK, Story};

/// Topics with a name.
struct Topic {
    name: &'static str,
    about: &'static str,
    /// The command for the guest's shell.
    command: &'static str,
    /// Only these calls are told; all when it is empty.
    calls: &'static [&'static str],
}

const TOPICS: [Topic; 8] = [
    Topic {
        name: "open",
        about: "a path becomes a descriptor",
        command: "cat /etc/hostname >/dev/null",
        calls: &["open", "openat"],
    },
    Topic {
        name: "read",
        about: "bytes come from the disk, and from the cache the second time",
        command: "md5sum /etc/passwd /etc/passwd",
        calls: &["read"],
    },
    Topic {
        name: "write",
        about: "bytes go into a new file",
        command: "echo hello >/tmp/hello",
        calls: &["openat", "open", "write", "close"],
    },
    Topic {
        name: "fork",
        about: "one process becomes two",
        command: "(: )",
        calls: &["fork", "vfork", "clone", "exit_group", "wait4"],
    },
    Topic { name: "exec", about: "a program takes the place of another", command: "/bin/true", calls: &["execve"] },
    Topic {
        name: "kill",
        about: "a signal ends a process",
        command: "sleep 100 & kill $!; wait",
        calls: &["kill", "wait4"],
    },
    Topic {
        name: "pipe",
        about: "two programs at the ends of a pipe",
        command: "echo hi | cat >/dev/null",
        calls: &["pipe", "pipe2", "read", "write"],
    },
    Topic { name: "mmap", about: "memory for a program", command: "cat /dev/null", calls: &["mmap", "brk", "munmap"] },
];

/// How long the guest may take.
const LIMIT: Duration = Duration::from_secs(300);
/// Lines of the console that are shown of a failure.
const SHOWN_LINES: usize = 20;
/// Column of the functions.
const PLACE_COLUMN: usize = 66;

/// Runs the topic or command and prints its story.
///
/// # Errors
/// When the build fails, or the command does not end.
pub fn explain(workspace: &Workspace, options: &ExplainOptions) -> Result<u8> {
    let Some(asked) = &options.subject else {
        print!("{}", list());
        return Ok(0);
    };
    let topic = TOPICS.iter().find(|topic| topic.name == asked);
    let command = topic.map_or(asked.as_str(), |topic| topic.command);
    let system = options.machine.system.as_deref().unwrap_or(DEFAULT_SYSTEM);
    let bundle = Bundle::build_as(workspace, system, options.machine.profile)?;
    let packages = Set::get(&workspace.build, &options.machine.packages)?;
    // The masks around the command show in the trace where it begins and ends.
    let marked = format!("umask {MARK:o}; umask 022; {command}\numask {MARK:o}");
    let job = Job {
        trace: true,
        overlays: &options.machine.overlays,
        packages: packages.as_ref(),
        memory_mib: options.machine.memory_mib,
        limit: Some(LIMIT),
        ..Job::new(&marked)
    };
    let guest = Guest::prepare(workspace, &bundle, &job)?;
    workspace.release_lock();
    let step = progress::Step::begin("running it");
    let outcome = guest.run(|_| (), |_| ())?;
    drop(step);
    let Some(raw) = guest.trace().filter(|_| outcome.status.is_some()) else {
        bail!("the command did not end:\n{}", tail(&outcome.console, SHOWN_LINES));
    };
    let story = Story::of(&trace::events(raw)?);
    let binaries = bundle.services().iter().map(|service| (service.name.clone(), service.binary.clone())).collect();
    let handlers = Handlers::new(workspace, &Packages::read(workspace)?);
    let mut printer = Printer { story: &story, handlers, binaries, introduced: HashSet::new(), text: String::new() };
    printer.heading(command, topic);
    printer.roots(topic.map_or(&[], |topic| topic.calls));
    print!("{}", printer.text);
    Ok(0)
}

fn list() -> String {
    let mut text = String::from("./skink explain TOPIC, or any command of the guest's shell in quotes. Topics:\n\n");
    for topic in &TOPICS {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:8} {}\n           {}", topic.name, topic.about, topic.command);
    }
    text
}

struct Printer<'a> {
    story: &'a Story,
    handlers: Handlers,
    /// Service name to program.
    binaries: HashMap<String, String>,
    /// What has been said once what it is for.
    introduced: HashSet<Key>,
    text: String,
}

impl Printer<'_> {
    fn line(&mut self, line: &str) {
        self.text.push_str(line.trim_end());
        self.text.push('\n');
    }

    fn heading(&mut self, command: &str, topic: Option<&Topic>) {
        self.line(&format!("$ {command}"));
        if let Some(topic) = topic {
            self.line(&format!("{}. Only these calls are shown: {}.", topic.about, topic.calls.join(", ")));
        }
        self.line("A -> B: A asks B; what B does for it is indented; \"=\" is the answer.\n");
    }

    /// Prints the calls of these names, or all; those that go the same way as the last one are counted.
    fn roots(&mut self, calls: &[&str]) {
        let told = |&&root: &&usize| match &self.story.steps[root].key {
            Some(Key::Linux(name)) => calls.is_empty() || calls.contains(&name.as_str()),
            _ => calls.is_empty(),
        };
        let roots: Vec<usize> = self.story.roots.iter().filter(told).copied().collect();
        let mut rest = roots.as_slice();
        while let [first, ..] = rest {
            let shape = self.story.shape(*first);
            let same = rest.iter().take_while(|&&next| self.story.shape(next) == shape).count();
            self.step(*first, 0);
            if same > 1 {
                self.line(&format!("  ({} more that go the same way)", same - 1));
            }
            self.line("");
            rest = &rest[same..];
        }
        if roots.is_empty() {
            self.line("The command made none of these calls.");
        }
    }

    fn step(&mut self, at: usize, depth: usize) {
        let step = &self.story.steps[at];
        let indent = "  ".repeat(depth);
        let who = match &step.to {
            Some(to) => format!("{} -> {to}", step.from),
            None => step.from.clone(),
        };
        let result = if step.steps.is_empty() { step.answer.as_ref() } else { None };
        let result = result.map(|result| format!(" = {result}")).unwrap_or_default();
        let left = format!("{indent}{who}  {}{result}", short(&step.what));
        let place = self.place(at);
        match &place {
            Some(place) if left.chars().count() < PLACE_COLUMN => {
                self.line(&format!("{left:PLACE_COLUMN$}{}  {}", place.file, place.function));
            }
            Some(place) => {
                self.line(&left);
                self.line(&format!("{:PLACE_COLUMN$}{}  {}", "", place.file, place.function));
            }
            None => self.line(&left),
        }
        if let Some(key) = step.key.clone()
            && self.introduced.insert(key.clone())
        {
            let purpose = purpose(&key, place.as_ref());
            if !purpose.is_empty() {
                self.line(&format!("{indent}  # {purpose}"));
            }
        }
        for &inner in &step.steps {
            self.step(inner, depth + 1);
        }
        if !step.steps.is_empty() {
            match &step.answer {
                Some(answer) => self.line(&format!("{indent}= {answer}")),
                None => self.line(&format!("{indent}(no answer)")),
            }
        }
    }

    fn place(&mut self, at: usize) -> Option<Place> {
        let step = &self.story.steps[at];
        let key = step.key.clone()?;
        let service = step.to.as_deref().unwrap_or("kernel");
        let binary = self.binaries.get(service).map_or(service, String::as_str);
        self.handlers.of(binary, &key)
    }
}

/// Without the arguments behind the last that is not zero.
fn short(what: &str) -> String {
    let mut text = what.to_string();
    while let Some(shorter) = text.strip_suffix(", 0x0)") {
        text = format!("{shorter})");
    }
    text
}

/// Describes a request in one sentence: from the protocol, the kernel's calls, or the function.
fn purpose(key: &Key, place: Option<&Place>) -> String {
    let own = match key {
        Key::Message(protocol, name) => {
            let protocol = abi::PROTOCOLS.iter().find(|known| known.name == protocol);
            let message = protocol.and_then(|known| known.messages.iter().find(|message| message.name == name));
            message.map(|message| joined(message.doc)).unwrap_or_default()
        }
        Key::Kernel(name) => {
            let at = KERNEL_CALL_NAMES.iter().position(|(known, _)| known == name);
            at.map(|at| joined(KERNEL_CALL_DOCS[at])).unwrap_or_default()
        }
        Key::Linux(_) => String::new(),
    };
    match (own.is_empty(), place) {
        (true, Some(place)) => place.purpose.clone(),
        _ => first_sentence(&own),
    }
}

fn joined(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_name_calls_that_exist() {
        for topic in &TOPICS {
            for call in topic.calls {
                assert!(abi::linux::number(call).is_some(), "{}: {call}", topic.name);
            }
            assert!(list().contains(topic.name));
        }
    }

    #[test]
    fn what_is_asked_is_said_in_the_words_of_the_abi() {
        let fork = purpose(&Key::Kernel("Fork".to_string()), None);
        assert!(fork.contains("a new thread"), "{fork}");
        let read = purpose(&Key::Message("fs".to_string(), "Read".to_string()), None);
        assert!(!read.is_empty());
    }

    #[test]
    fn empty_arguments_at_the_end_are_left_out() {
        assert_eq!(short("read(0x3, 0x0, 0x5, 0x0, 0x0, 0x0)"), "read(0x3, 0x0, 0x5)");
        assert_eq!(short("getpid(0x0, 0x0, 0x0, 0x0, 0x0, 0x0)"), "getpid(0x0)");
    }
}
