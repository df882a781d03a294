//! A recording, as the plug-in writes it and xtask reads it.

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

/// The time of a call, of a request, or of its handling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Its process.
    pub actor: u32,
    /// The call or request; of handling, the request handled.
    pub what: Frame,
    /// Whether it is the handling of another's request.
    pub is_work: bool,
    /// Ticks since the recording began.
    pub begin: u64,
    /// Likewise; `u64::MAX`: it had not ended.
    pub end: u64,
    /// The span of the request handled.
    pub cause: Option<u32>,
}

/// A recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// Instructions between the marks.
    pub ticks: u64,
    /// All contexts; a caller comes before those that it calls. Number 0 is the root.
    pub contexts: Vec<Context>,
    /// Processes and services.
    pub actors: Vec<Actor>,
    /// Blocks.
    pub code: Vec<Code>,
    /// Pages.
    pub pages: Vec<Page>,
    /// Executions.
    pub executed: Vec<Executed>,
    /// Kernel entries and switches.
    pub events: Vec<Events>,
    /// Calls, requests and their handling.
    pub spans: Vec<Span>,
    /// Number of spans that were not kept.
    pub lost: u64,
}
