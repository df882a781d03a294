//! Long random traces of five processes, in the order of the kernel's own scheduler and in arbitrary order, against the
//! model. Seeds are fixed.

use kernel_core::Next;

use crate::{
    model::{Call, Filter, Id, Target},
    pair::{Action, Pair},
    world::{A, RS},
};

const PROCESSES: usize = 5;
const STEPS: usize = 20_000;

/// A linear congruential generator (Knuth's MMIX): the same numbers everywhere.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

fn target(pair: &Pair, random: &mut Random) -> Target {
    let id = random.below(PROCESSES);
    let now = pair.state.model.generation(id);
    let generation = match random.below(8) {
        0..4 => Some(now),
        4..7 => None,
        _ => Some(now.saturating_sub(1).max(1)),
    };
    Target { id, generation }
}

fn filter(pair: &Pair, random: &mut Random) -> Filter {
    match random.below(4) {
        0 => Filter::From(target(pair, random)),
        _ => Filter::Any,
    }
}

fn call(pair: &Pair, random: &mut Random) -> Call {
    let to = target(pair, random);
    match random.below(10) {
        0 => Call::Send(to),
        1 | 2 => Call::SendRec(to),
        3 => Call::SendWait(to, filter(pair, random)),
        4 => Call::SendNb(to),
        5 | 6 => Call::ReplyRec(to, filter(pair, random)),
        7 => Call::Receive(filter(pair, random)),
        8 => Call::AskRec(to, filter(pair, random)),
        _ => Call::Notify(to),
    }
}

/// A restart now and then, and always when nobody can move.
fn life_and_death(pair: &Pair, random: &mut Random) -> Action {
    let id = random.below(PROCESSES);
    match pair.state.model.is_alive(id) {
        true => Action::Destroy(id, random.below(2) == 0),
        false => Action::Create(id),
    }
}

fn trace(seed: u64) -> usize {
    let mut random = Random(seed);
    let mut pair = Pair::new(PROCESSES);
    let mut calls = 0;
    for _ in 0..STEPS {
        let ready: Vec<Id> = (0..PROCESSES).filter(|&id| pair.state.model.is_ready(id)).collect();
        let action = if ready.is_empty() || random.below(12) == 0 {
            life_and_death(&pair, &mut random)
        } else {
            calls += 1;
            Action::Call(ready[random.below(ready.len())], call(&pair, &mut random))
        };
        pair.act(action);
    }
    calls
}

/// The kernel says who runs: processes by themselves, rs when all of them wait. This is how messages take the short
/// way.
fn trace_in_order(seed: u64) -> usize {
    let mut random = Random(seed);
    let mut pair = Pair::in_queue(PROCESSES, 3);
    let mut calls = 0;
    let mut next = pair.world.next();
    for _ in 0..STEPS {
        next = match next {
            Next::Run(RS) => {
                let action = life_and_death(&pair, &mut random);
                pair.act(action);
                pair.world.next()
            }
            Next::Run(slot) => {
                calls += 1;
                let call = call(&pair, &mut random);
                let next = pair.call(slot - A, call);
                pair.compare(call);
                next
            }
            other => panic!("rs is always ready: {other:?}"),
        };
    }
    calls
}

#[test]
fn random_traces_in_the_schedulers_order_agree_with_the_model() {
    for seed in 0..10 {
        assert!(trace_in_order(seed) > STEPS / 4);
    }
}

#[test]
fn random_traces_agree_with_the_model() {
    for seed in 0..10 {
        assert!(trace(seed) > STEPS / 2);
    }
}
