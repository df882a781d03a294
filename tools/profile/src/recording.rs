//! What was recorded, as it lies in a file.

use serde::{Deserialize, Serialize};

/// One frame of a stack that goes through processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Frame {
    /// A process, by its number among the actors.
    Actor(u32),
    /// A Linux call with this number.
    Call(u32),
    /// A kernel call with this number.
    KernelCall(u32),
    /// A request with this label.
    Message(u32),
    /// An exception or interrupt with this vector.
    Trap(u8),
    /// The kernel at work.
    Kernel,
    /// The function that begins at this address in this page.
    Function {
        /// Number of the page.
        page: u32,
        /// Its address.
        address: u64,
    },
}

/// A context: its caller's, and one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Context {
    /// The caller's number; that of the root is its own.
    pub parent: u32,
    /// The frame. The root's means nothing.
    pub frame: Frame,
}

/// A process or a service, under one program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// The slot of its thread.
    pub slot: u32,
    /// What it was executed as; a service has no name here.
    pub name: Option<String>,
}

/// Instructions at one address after the other.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    /// Address of the first.
    pub address: u64,
    /// The page that it lies in.
    pub page: u32,
    /// Bytes of each.
    pub lengths: Vec<u8>,
}

/// A page of instructions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// Its address in the space where it was executed first.
    pub address: u64,
    /// Its content then.
    pub bytes: Vec<u8>,
}

/// How often a block was executed in a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Executed {
    /// The context.
    pub context: u32,
    /// The block.
    pub code: u32,
    /// How many of its instructions, from the first.
    pub instructions: u32,
    /// How often.
    pub times: u64,
}

/// What happened in a context, besides instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Events {
    /// The context.
    pub context: u32,
    /// Entries into the kernel.
    pub entries: u64,
    /// Loads of another address space.
    pub switches: u64,
}

/// Something that took time: a call, a request, or the work on one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Who.
    pub actor: u32,
    /// A call or a request; of work, the request that it is for.
    pub what: Frame,
    /// Whether it is work for somebody else.
    pub is_work: bool,
    /// Ticks since the recording began.
    pub begin: u64,
    /// The same; `u64::MAX`: it had not ended.
    pub end: u64,
    /// The span that it is work for.
    pub cause: Option<u32>,
}

/// What was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// Instructions between the marks.
    pub ticks: u64,
    /// All contexts; a caller comes before those that it calls. Number 0 is the root.
    pub contexts: Vec<Context>,
    /// Processes and services.
    pub actors: Vec<Actor>,
    /// What was executed.
    pub code: Vec<Code>,
    /// Where that lies.
    pub pages: Vec<Page>,
    /// How often.
    pub executed: Vec<Executed>,
    /// What else happened.
    pub events: Vec<Events>,
    /// What took time.
    pub spans: Vec<Span>,
    /// Spans for which there was no room.
    pub lost: u64,
}
