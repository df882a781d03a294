//! From the registers and the stack of a dead thread to the functions it was in.
//!
//! Functions of the language's own library may come without rules. Behind such a one the trace goes on with the next word on the stack that
//! could be a return address into a function with rules: a guess, and marked as such.

use abi::symbols::Symbols;

/// Most frames of a backtrace.
pub const MAX_FRAMES: usize = 32;
/// How far up the stack a guess looks, in words.
const MAX_SKIPPED: u64 = 64;

/// The words on a stack, from its top (lowest address) on.
#[derive(Clone, Copy, Debug)]
pub struct Stack<'a> {
    /// Address of the first byte.
    pub start: u64,
    /// What is there.
    pub bytes: &'a [u8],
}

impl Stack<'_> {
    fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.start)?).ok()?;
        Some(u64::from_le_bytes(self.bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
    }
}

/// A frame: where its registers say that it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Instruction pointer; for callers, the return address.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// `rbp`.
    pub bp: u64,
    /// It was guessed.
    pub is_guess: bool,
}

/// The frames from the innermost outwards, as far as rules and stack lead.
pub fn frames<'a>(
    symbols: &'a Symbols<'a>,
    stack: &'a Stack<'a>,
    innermost: Frame,
) -> impl Iterator<Item = Frame> + 'a {
    let mut is_innermost = true;
    core::iter::successors(Some(innermost), move |frame| {
        // A return address may lie behind the last instruction of its function, that of a call which does not return.
        let at = if core::mem::take(&mut is_innermost) { frame.ip } else { frame.ip.checked_sub(1)? };
        caller(symbols, stack, frame, at)
    })
    .take(MAX_FRAMES)
}

fn caller(symbols: &Symbols, stack: &Stack, frame: &Frame, at: u64) -> Option<Frame> {
    let Some(rule) = symbols.rule(at) else { return guess(symbols, stack, frame, at) };
    let base = if rule.from_rbp { frame.bp } else { frame.sp };
    let cfa = base.checked_add(rule.cfa_bytes).filter(|cfa| *cfa > frame.sp)?;
    let ip = stack.word(cfa.checked_sub(8)?).filter(|ip| *ip != 0)?;
    let bp = match rule.rbp_below {
        0 => frame.bp,
        below => stack.word(cfa.checked_sub(below)?)?,
    };
    Some(Frame { ip, sp: cfa, bp, is_guess: false })
}

/// The frame behind a function without rules. Behind the very first function there is none.
fn guess(symbols: &Symbols, stack: &Stack, frame: &Frame, at: u64) -> Option<Frame> {
    symbols.function(at)?;
    (0..MAX_SKIPPED).find_map(|skipped| {
        let place = frame.sp.checked_add(8 * skipped)?;
        let ip = stack.word(place)?;
        symbols.rule(ip.checked_sub(1)?)?;
        Some(Frame { ip, sp: place + 8, bp: frame.bp, is_guess: true })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::symbols::MAGIC;

    /// `inner` at 0x1000: CFA rsp+16. `outer` at 0x2000: CFA rbp+16, rbp saved below it by 16. `start` at 0x3000: no rules.
    fn table() -> Vec<u8> {
        let rules = [0, 2 << 1, 0, 0, 2 << 1 | 1, 2];
        let mut bytes = Vec::from(MAGIC);
        bytes.extend(0u64.to_le_bytes());
        for number in [3u32, 6, 0x1000, 0, 0, 0x2000, 3, 6, 0x3000, 6, 12] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(rules);
        bytes.extend(b"inner\0outer\0start\0");
        bytes
    }

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn trace(words: &[u64]) -> Vec<u64> {
        let table = table();
        let symbols = Symbols::new(&table).expect("is a table");
        let content = bytes(words);
        let stack = Stack { start: 0x8000, bytes: &content };
        frames(&symbols, &stack, Frame { ip: 0x1004, sp: 0x8000, bp: 0x8020, is_guess: false })
            .map(|frame| frame.ip)
            .collect()
    }

    #[test]
    fn frames_are_followed_by_rsp_and_by_rbp_to_the_outermost() {
        // inner: one local, return into outer. outer: two locals, saved rbp, return into start.
        assert_eq!(trace(&[0, 0x2010, 1, 2, 0xdead, 0x3005]), [0x1004, 0x2010, 0x3005]);
    }

    #[test]
    fn behind_a_function_without_rules_the_next_return_address_is_guessed() {
        let table = table();
        let symbols = Symbols::new(&table).expect("is a table");
        // start, without rules, was called by inner, which was called by something unknown.
        let content = bytes(&[7, 0x4000, 0x1008, 0, 0x7777]);
        let stack = Stack { start: 0x8000, bytes: &content };
        let innermost = Frame { ip: 0x3004, sp: 0x8000, bp: 0, is_guess: false };
        let found: Vec<(u64, bool)> =
            frames(&symbols, &stack, innermost).map(|frame| (frame.ip, frame.is_guess)).collect();
        assert_eq!(found, [(0x3004, false), (0x1008, true), (0x7777, false)]);
    }

    #[test]
    fn a_garbled_stack_ends_the_trace() {
        assert_eq!(trace(&[0, 0x2010]), [0x1004, 0x2010]);
        assert_eq!(trace(&[0, 0]), [0x1004]);
        assert_eq!(trace(&[]), [0x1004]);
    }

    #[test]
    fn a_stack_that_leads_to_itself_ends() {
        let table = table();
        let symbols = Symbols::new(&table).expect("is a table");
        let content = bytes(&[0x2010; 4096]);
        let stack = Stack { start: 0x8000, bytes: &content };
        let innermost = Frame { ip: 0x1004, sp: 0x8000, bp: 0x8020, is_guess: false };
        assert!(frames(&symbols, &stack, innermost).count() <= MAX_FRAMES);
    }

    /// The frames of a thread with this content of its stack.
    fn trace_from(words: &[u64], ip: u64, sp: u64, bp: u64) -> Vec<Frame> {
        let table = table();
        let symbols = Symbols::new(&table).expect("is a table");
        let content = bytes(words);
        let stack = Stack { start: 0x8000, bytes: &content };
        frames(&symbols, &stack, Frame { ip, sp, bp, is_guess: false }).collect()
    }

    #[test]
    fn each_frame_has_the_stack_pointer_and_rbp_of_its_function() {
        // Two incarnations of outer: each has saved the rbp of its caller.
        let found = trace_from(&[0x8030, 0x2010, 0, 0, 0, 0, 0x77, 0x3005], 0x2004, 0x8000, 0x8000);
        let frame = |ip, sp, bp| Frame { ip, sp, bp, is_guess: false };
        assert_eq!(found, [frame(0x2004, 0x8000, 0x8000), frame(0x2010, 0x8010, 0x8030), frame(0x3005, 0x8040, 0x77)]);
        // inner leaves rbp alone.
        let found = trace_from(&[0, 0x2010], 0x1004, 0x8000, 0x8020);
        assert_eq!(found[1], frame(0x2010, 0x8010, 0x8020));
    }

    #[test]
    fn the_first_instruction_of_a_function_belongs_to_it() {
        // By the rule of inner the caller would be 0x3005.
        let found = trace_from(&[0, 0x3005, 0, 0x1004], 0x2000, 0x8000, 0x8010);
        assert_eq!(found[1].ip, 0x1004);
    }

    #[test]
    fn a_frame_lies_above_the_one_it_called() {
        for (bp, count) in [(0x8008, 1), (0x8010, 1), (0x8018, 2)] {
            let found = trace_from(&[0x4000; 6], 0x2004, 0x8020, bp);
            assert_eq!(found.len(), count, "rbp {bp:#x}");
        }
    }

    #[test]
    fn a_trace_has_at_most_as_many_frames_as_are_allowed() {
        assert_eq!(trace_from(&[0x1008; 4096], 0x1004, 0x8000, 0).len(), MAX_FRAMES);
    }

    #[test]
    fn a_guess_looks_at_a_limited_part_of_the_stack() {
        for (skipped, count) in [(0, 2), (63, 2), (64, 1)] {
            let mut words = [0; 66];
            words[skipped] = 0x1008;
            let found = trace_from(&words, 0x3004, 0x8000, 0x55);
            assert_eq!(found.len(), count, "{skipped} words skipped");
            let place = 0x8008 + 8 * skipped as u64;
            let guess = Frame { ip: 0x1008, sp: place, bp: 0x55, is_guess: true };
            assert!(found[1..].iter().all(|frame| *frame == guess), "{found:x?}");
        }
    }

    #[test]
    fn a_guess_is_a_return_address_behind_a_call() {
        for (word, count) in [(0x0fff, 1), (0x1000, 1), (0x1001, 2), (0x3000, 2), (0x3001, 1)] {
            assert_eq!(trace_from(&[word], 0x3004, 0x8000, 0x55).len(), count, "{word:#x}");
        }
    }
}
