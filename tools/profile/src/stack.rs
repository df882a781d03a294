//! A call stack, followed by the calls and returns that are executed; the stack in memory is not read.

use crate::block::{Block, End};
use crate::recording::Frame;
use crate::tree::Tree;

/// Greatest depth. Deeper calls are attributed to the function at this depth.
const DEEPEST: usize = 96;

/// A call that has not returned.
struct Activation {
    function: Frame,
    /// Return address.
    returns_to: u64,
    context: u32,
}

/// The calls that have not returned, on top of a base context.
pub struct Stack {
    base: u32,
    calls: Vec<Activation>,
}

impl Stack {
    /// An empty stack on the context `base`.
    pub fn new(base: u32) -> Self {
        Stack { base, calls: Vec::new() }
    }

    /// The base context.
    pub fn base(&self) -> u32 {
        self.base
    }

    /// The context of the innermost call.
    pub fn context(&self) -> u32 {
        self.calls.last().map_or(self.base, |call| call.context)
    }

    /// Moves the stack to another base context.
    pub fn rebase(&mut self, tree: &mut Tree, base: u32) {
        if base == self.base {
            return;
        }
        self.base = base;
        let mut context = base;
        for call in &mut self.calls {
            context = tree.child(context, call.function);
            call.context = context;
        }
    }

    /// Follows control flow from the end of `last` to `next`.
    pub fn follow(&mut self, tree: &mut Tree, last: &Block, next: &Block) {
        match last.end {
            End::Call if self.calls.len() < DEEPEST => {
                let function = Frame::Function { page: next.page, address: next.address };
                let context = tree.child(self.context(), function);
                self.calls.push(Activation { function, returns_to: last.end_address(), context });
            }
            // After a jump out of functions (longjmp) the return is that of an outer call.
            End::Return => {
                if let Some(depth) = self.calls.iter().rposition(|call| call.returns_to == next.address) {
                    self.calls.truncate(depth);
                }
            }
            End::Call | End::Jump(_) | End::Other => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::ROOT;

    fn block(address: u64, end: End) -> Block {
        Block { address, page: 0, lengths: vec![4], end }
    }

    #[test]
    fn calls_nest_and_returns_end_them() {
        let mut tree = Tree::new();
        let mut stack = Stack::new(ROOT);
        stack.follow(&mut tree, &block(0, End::Call), &block(100, End::Call));
        let outer = stack.context();
        stack.follow(&mut tree, &block(100, End::Call), &block(200, End::Return));
        assert_ne!(stack.context(), outer);
        stack.follow(&mut tree, &block(200, End::Return), &block(104, End::Other));
        assert_eq!(stack.context(), outer);
        stack.follow(&mut tree, &block(104, End::Return), &block(4, End::Other));
        assert_eq!(stack.context(), ROOT);
    }

    #[test]
    fn a_return_further_down_ends_what_was_jumped_out_of() {
        let mut tree = Tree::new();
        let mut stack = Stack::new(ROOT);
        for (from, to) in [(0, 100), (100, 200), (200, 300)] {
            stack.follow(&mut tree, &block(from, End::Call), &block(to, End::Other));
        }
        stack.follow(&mut tree, &block(300, End::Return), &block(4, End::Other));
        assert_eq!(stack.context(), ROOT);
        // One that nobody was called from changes nothing.
        stack.follow(&mut tree, &block(4, End::Return), &block(900, End::Other));
        assert_eq!(stack.context(), ROOT);
    }

    #[test]
    fn calls_go_on_in_another_context() {
        let mut tree = Tree::new();
        let mut stack = Stack::new(ROOT);
        stack.follow(&mut tree, &block(0, End::Call), &block(100, End::Other));
        let function = Frame::Function { page: 0, address: 100 };
        let base = tree.child(ROOT, Frame::Actor(7));
        stack.rebase(&mut tree, base);
        assert_eq!(stack.context(), tree.child(base, function));
    }
}
