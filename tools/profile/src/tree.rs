//! The tree of contexts.

use crate::recording::{Context, Frame};
use std::collections::HashMap;

/// The root's number.
pub const ROOT: u32 = 0;

/// All contexts that there have been.
pub struct Tree {
    contexts: Vec<Context>,
    known: HashMap<Context, u32>,
}

impl Tree {
    /// The root alone.
    pub fn new() -> Self {
        Tree { contexts: vec![Context { parent: ROOT, frame: Frame::Kernel }], known: HashMap::new() }
    }

    /// The context of `frame` within `parent`.
    pub fn child(&mut self, parent: u32, frame: Frame) -> u32 {
        let context = Context { parent, frame };
        *self.known.entry(context).or_insert_with(|| {
            self.contexts.push(context);
            self.contexts.len() as u32 - 1
        })
    }

    /// All, by number.
    pub fn into_contexts(self) -> Vec<Context> {
        self.contexts
    }
}
