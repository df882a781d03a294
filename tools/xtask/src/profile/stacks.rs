//! The stacks of a recording with names, each with its ticks: program, call, service, request, driver, function.

use super::code::{Origin, Programs};
use crate::trace;
use abi::linux;
use anyhow::Result;
use profile::recording::{Code, Frame, Recording};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;

/// The frame of the kernel at work.
const KERNEL: &str = "[kernel]";
const PAGE_FAULT: u8 = 14;
const LAST_EXCEPTION: u8 = 31;
const SYSCALL_VECTOR: u8 = 33;

/// What is less than this part of all ticks counts for its caller: the stacks of a long command are too many to look at.
const SMALLEST: u64 = 50_000;

/// The root of the tree of frames.
const ROOT: usize = 0;

/// One frame of stacks that have all frames before it in common.
struct Node {
    name: u32,
    parent: usize,
    /// Ticks of the frame itself.
    ticks: u64,
}

/// All stacks, as a tree: callers come before those that they call.
struct Tree {
    names: Vec<String>,
    known_names: HashMap<String, u32>,
    nodes: Vec<Node>,
    known: HashMap<(usize, u32), usize>,
}

impl Tree {
    fn new() -> Self {
        let nodes = vec![Node { name: 0, parent: ROOT, ticks: 0 }];
        Tree { names: vec![String::new()], known_names: HashMap::new(), nodes, known: HashMap::new() }
    }

    fn name(&mut self, name: &str) -> u32 {
        if let Some(number) = self.known_names.get(name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_string());
        self.known_names.insert(name.to_string(), number);
        number
    }

    /// The frame `name` called by `parent`. Functions of a program without symbols are one.
    fn child(&mut self, parent: usize, name: u32) -> usize {
        if self.nodes[parent].name == name && self.names[name as usize].starts_with('[') {
            return parent;
        }
        *self.known.entry((parent, name)).or_insert_with(|| {
            self.nodes.push(Node { name, parent, ticks: 0 });
            self.nodes.len() - 1
        })
    }

    /// Adds the ticks of what is too small to those of its caller.
    fn prune(&mut self) {
        let mut sums: Vec<u64> = self.nodes.iter().map(|node| node.ticks).collect();
        for at in (1..self.nodes.len()).rev() {
            sums[self.nodes[at].parent] += sums[at];
        }
        let least = sums[ROOT] / SMALLEST;
        for at in (1..self.nodes.len()).rev() {
            if sums[at] < least {
                let ticks = core::mem::take(&mut self.nodes[at].ticks);
                let parent = self.nodes[at].parent;
                self.nodes[parent].ticks += ticks;
            }
        }
    }

    fn frames(&self, mut at: usize) -> Vec<&str> {
        let mut frames = Vec::new();
        while at != ROOT {
            frames.push(self.names[self.nodes[at].name as usize].as_str());
            at = self.nodes[at].parent;
        }
        frames.reverse();
        frames
    }
}

/// Linux calls of one kind by one program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// Ticks, those of services included.
    pub ticks: u64,
    /// Entries into the kernel.
    pub entries: u64,
    /// Loads of an address space.
    pub switches: u64,
}

/// Ticks of a process or service itself, and of the kernel for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// In user mode.
    pub user: u64,
    /// In the kernel.
    pub kernel: u64,
}

/// Stacks with their ticks.
pub struct Stacks {
    tree: Tree,
    /// Names of the actors, by number.
    pub actors: Vec<String>,
    /// By program and call.
    pub calls: BTreeMap<(String, String), Calls>,
    /// By name.
    pub own: BTreeMap<String, Own>,
    /// Ticks of each function itself, by program and name.
    pub functions: HashMap<(String, String), u64>,
}

/// What is known of a context from its callers.
#[derive(Clone, Default)]
struct Place {
    /// Its frame.
    node: usize,
    /// The process or service.
    actor: Option<u32>,
    /// The program's call that it is in.
    call: Option<(String, String)>,
    is_kernel: bool,
    ends_in_function: bool,
}

impl Stacks {
    /// Names what was recorded.
    ///
    /// # Errors
    /// When a program's file cannot be read.
    pub fn of(recording: &Recording, programs: &Programs) -> Result<Self> {
        let origins: Vec<Option<Origin>> = recording.pages.iter().map(|page| programs.origin(page)).collect();
        let actors = actor_names(recording, programs, &origins);
        let mut stacks = Stacks {
            tree: Tree::new(),
            actors,
            calls: BTreeMap::new(),
            own: BTreeMap::new(),
            functions: HashMap::new(),
        };
        let mut named = Named { programs, origins, known: HashMap::new() };
        let places = stacks.places(recording, &mut named)?;
        for executed in &recording.executed {
            let code = &recording.code[executed.code as usize];
            let place = &places[executed.context as usize];
            stacks.add(place, &mut named, code, executed.instructions as usize, executed.times)?;
        }
        for events in &recording.events {
            if let Some(call) = &places[events.context as usize].call {
                let calls = stacks.calls.entry(call.clone()).or_default();
                calls.entries += events.entries;
                calls.switches += events.switches;
            }
        }
        stacks.tree.prune();
        Ok(stacks)
    }

    /// One line for each stack: its frames with `;` between, and its ticks; sorted.
    pub fn folded(&self) -> String {
        let mut lines: Vec<String> =
            self.with_names().map(|(frames, ticks)| format!("{} {ticks}", frames.join(";"))).collect();
        lines.sort();
        let mut text = String::new();
        for line in lines {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{line}");
        }
        text
    }

    /// Each stack with its ticks, the outermost frame first.
    pub fn with_names(&self) -> impl Iterator<Item = (Vec<&str>, u64)> {
        let nodes = self.tree.nodes.iter().enumerate().filter(|(_, node)| node.ticks > 0);
        nodes.map(|(at, node)| (self.tree.frames(at), node.ticks))
    }

    fn places(&mut self, recording: &Recording, named: &mut Named) -> Result<Vec<Place>> {
        let mut places: Vec<Place> = vec![Place::default()];
        for context in &recording.contexts[1..] {
            let mut place = places[context.parent as usize].clone();
            place.ends_in_function = false;
            let name = match context.frame {
                Frame::Actor(actor) => {
                    (place.actor, place.is_kernel) = (Some(actor), false);
                    self.actors[actor as usize].clone()
                }
                Frame::Kernel => {
                    place.is_kernel = true;
                    KERNEL.to_string()
                }
                Frame::Function { page, address } => {
                    place.ends_in_function = true;
                    named.functions(page, address)?.first().cloned().unwrap_or_default()
                }
                frame => frame_name(frame),
            };
            if let (Frame::Call(_), None, Some(actor)) = (context.frame, &place.call, place.actor) {
                place.call = Some((self.actors[actor as usize].clone(), name.clone()));
            }
            let name = self.tree.name(&name);
            place.node = self.tree.child(place.node, name);
            places.push(place);
        }
        Ok(places)
    }

    /// Counts the first instructions of a block.
    fn add(&mut self, place: &Place, named: &mut Named, code: &Code, instructions: usize, times: u64) -> Result<()> {
        let ticks = times * instructions as u64;
        let actor = place.actor.map_or("nobody", |actor| self.actors[actor as usize].as_str());
        let own = self.own.entry(actor.to_string()).or_default();
        if place.is_kernel {
            own.kernel += ticks;
        } else {
            own.user += ticks;
        }
        if let Some(call) = &place.call {
            self.calls.entry(call.clone()).or_default().ticks += ticks;
        }
        let whose = if place.is_kernel { KERNEL } else { actor }.to_string();
        let mut address = code.address;
        for length in code.lengths.iter().take(instructions) {
            let functions = named.functions(code.page, address)?;
            let mut node = place.node;
            for (depth, function) in functions.iter().enumerate() {
                let name = self.tree.name(function);
                if depth > 0 || !place.ends_in_function || self.tree.nodes[node].name != name {
                    node = self.tree.child(node, name);
                }
            }
            self.tree.nodes[node].ticks += times;
            if let Some(function) = functions.last() {
                *self.functions.entry((whose.clone(), function.clone())).or_default() += times;
            }
            address += u64::from(*length);
        }
        Ok(())
    }
}

/// Functions by page and address, looked up once.
struct Named<'a> {
    programs: &'a Programs,
    origins: Vec<Option<Origin>>,
    known: HashMap<(u32, u64), Vec<String>>,
}

impl Named<'_> {
    fn functions(&mut self, page: u32, address: u64) -> Result<&[String]> {
        if !self.known.contains_key(&(page, address)) {
            let functions = match self.origins[page as usize] {
                Some(origin) => self.programs.functions(origin, address)?,
                None => vec!["[unknown]".to_string()],
            };
            self.known.insert((page, address), functions);
        }
        Ok(&self.known[&(page, address)])
    }
}

/// Programs have the name that they were executed by; services that of the file in which they spend most of their time.
fn actor_names(recording: &Recording, programs: &Programs, origins: &[Option<Origin>]) -> Vec<String> {
    let mut within: Vec<(Option<u32>, bool)> = vec![(None, false)];
    for context in &recording.contexts[1..] {
        let (actor, is_kernel) = within[context.parent as usize];
        within.push(match context.frame {
            Frame::Actor(actor) => (Some(actor), false),
            Frame::Kernel => (actor, true),
            _ => (actor, is_kernel),
        });
    }
    let mut votes: HashMap<u32, HashMap<usize, u64>> = HashMap::new();
    for executed in &recording.executed {
        let page = recording.code[executed.code as usize].page;
        if let ((Some(actor), false), Some(origin)) = (within[executed.context as usize], origins[page as usize]) {
            *votes.entry(actor).or_default().entry(origin.program).or_default() += executed.times;
        }
    }
    let voted = |number: u32| votes.get(&number)?.iter().max_by_key(|(program, times)| (**times, **program));
    let name = |(number, actor): (usize, &profile::recording::Actor)| match &actor.name {
        Some(name) => name.replace([';', ' '], "_"),
        None => voted(number as u32)
            .map_or(format!("slot {}", actor.slot), |(program, _)| programs.name(*program).to_string()),
    };
    recording.actors.iter().enumerate().map(name).collect()
}

/// The name of a call, a request or a trap.
pub fn frame_name(frame: Frame) -> String {
    match frame {
        Frame::Call(number) => linux::name(number).map_or(format!("call {number}"), |name| format!("{name}()")),
        Frame::KernelCall(number) => trace::call_name(u64::from(number)),
        Frame::Message(label) => match (abi::describe(label), linux::name(label)) {
            (Some((protocol, message)), _) => format!("{}::{}", protocol.name, message.name),
            (None, Some(name)) => format!("{name}()"),
            (None, None) => format!("{label:#x}"),
        },
        Frame::Trap(PAGE_FAULT) => "page fault".to_string(),
        Frame::Trap(SYSCALL_VECTOR) => "vector 33".to_string(),
        Frame::Trap(vector @ ..=LAST_EXCEPTION) => format!("exception {vector}"),
        Frame::Trap(vector) => format!("interrupt {vector}"),
        Frame::Kernel => KERNEL.to_string(),
        Frame::Actor(_) | Frame::Function { .. } => String::new(),
    }
}
