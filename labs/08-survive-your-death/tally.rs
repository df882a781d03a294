//! A bank that may die at any store. `Tally` is yours to write.

use std::cell::{Cell, RefCell};

/// Accounts.
pub const ACCOUNTS: usize = 4;
/// Words of preserved memory.
pub const WORDS: usize = 16;

/// Preserved memory: what a successor finds. Each store of one word happens or does not.
#[derive(Default)]
pub struct Memory {
    words: RefCell<[u64; WORDS]>,
    /// Stores until the process dies; `None`: it does not.
    until_death: Cell<Option<u64>>,
}

impl Memory {
    /// The word at `place`.
    pub fn get(&self, place: usize) -> u64 {
        self.words.borrow()[place]
    }

    /// Stores a word, or dies before it.
    pub fn set(&self, place: usize, value: u64) {
        if let Some(left) = self.until_death.get() {
            assert!(left > 0, "died as planned");
            self.until_death.set(Some(left - 1));
        }
        self.words.borrow_mut()[place] = value;
    }
}

/// The server. (Yours to write: this one forgets which requests it has done.)
pub struct Tally<'a> {
    memory: &'a Memory,
}

impl<'a> Tally<'a> {
    /// Starts on what a predecessor may have left; all words are 0 the first time.
    pub fn start(memory: &'a Memory) -> Self {
        Tally { memory }
    }

    /// Adds `amount` to `account`, once for each tag. Returns the new balance.
    pub fn handle(&self, tag: u64, account: usize, amount: u64) -> u64 {
        let _ = tag;
        let balance = self.memory.get(account) + amount;
        self.memory.set(account, balance);
        balance
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    const REQUESTS: u64 = 12;

    /// Request number `tag` to a server on `memory` that dies after `stores` more stores, and again until it is answered.
    fn ask(memory: &Memory, tag: u64, deaths: &mut Vec<u64>) -> u64 {
        loop {
            memory.until_death.set(deaths.pop());
            let answer = catch_unwind(AssertUnwindSafe(|| {
                Tally::start(memory).handle(tag, tag as usize % ACCOUNTS, tag)
            }));
            memory.until_death.set(None);
            if let Ok(balance) = answer {
                // The answer may be lost too: the client asks again.
                let again = Tally::start(memory).handle(tag, tag as usize % ACCOUNTS, tag);
                assert_eq!(again, balance, "request {tag} was done twice, or its answer forgotten");
                return balance;
            }
        }
    }

    fn run(victim: u64, deaths: &[u64]) {
        let memory = Memory::default();
        let mut balances = [0; ACCOUNTS];
        for tag in 1..=REQUESTS {
            let mut plan = if tag == victim { deaths.to_vec() } else { Vec::new() };
            balances[tag as usize % ACCOUNTS] += tag;
            let balance = ask(&memory, tag, &mut plan);
            assert_eq!(balance, balances[tag as usize % ACCOUNTS], "request {tag}, deaths {deaths:?} at request {victim}");
        }
    }

    #[test]
    fn without_deaths_it_counts() {
        run(0, &[]);
    }

    #[test]
    fn a_death_at_any_store_changes_nothing() {
        std::panic::set_hook(Box::new(|_| {}));
        for victim in 1..=REQUESTS {
            for stores in 0..12 {
                run(victim, &[stores]);
            }
        }
    }

    #[test]
    fn nor_does_a_second_death_while_the_successor_recovers() {
        std::panic::set_hook(Box::new(|_| {}));
        for victim in 1..=REQUESTS {
            for first in 0..12 {
                for second in 0..12 {
                    run(victim, &[second, first]);
                }
            }
        }
    }
}
