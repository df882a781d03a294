//! Every state that three processes can reach by the primitives, death and succession: the kernel agrees with the model
//! in each, and so no wake-up is lost, no message reaches a later generation, no deadlock goes undetected, order is
//! kept, and every message arrives once.
//!
//! Over the states of the model; the kernel is set back by snapshots. Several searches, each with some of the actions,
//! keep the number of states within reach: the largest sees 1.6 million. That takes minutes and gigabytes, so it is done
//! when `SKINK_DEEP` is set (`./skink test deep`); otherwise each search ends after a sample with a fixed seed.

use std::collections::HashSet;

use kernel_core::snapshot::Snapshot;

use crate::{
    model::{Call, Filter, Id, Key, Target},
    pair::{Action, Pair, Side, slot},
    random::Random,
    world::RS,
};

const PROCESSES: usize = 3;
/// States of the sample.
const SAMPLE: usize = 10_000;
/// A process has at most this many lives.
const LIVES: u32 = 2;

/// Which actions a search considers.
struct Scope {
    restarts: bool,
    notifications: bool,
    refused_sends: bool,
    specific_waits: bool,
}

fn slots() -> [usize; PROCESSES + 1] {
    [RS, slot(0), slot(1), slot(2)]
}

fn actions(side: &Side, scope: &Scope) -> Vec<Action> {
    let mut actions = Vec::new();
    for id in 0..PROCESSES {
        if side.model.is_ready(id) {
            calls(side, scope, id, &mut actions);
        }
        if scope.restarts && side.model.is_alive(id) {
            actions.push(Action::Destroy(id, false));
            actions.push(Action::Destroy(id, true));
        } else if scope.restarts && side.model.generation(id) < LIVES {
            actions.push(Action::Create(id));
        }
    }
    actions
}

fn calls(side: &Side, scope: &Scope, id: Id, actions: &mut Vec<Action>) {
    let mut push = |call| actions.push(Action::Call(id, call));
    push(Call::Receive(Filter::Any));
    for other in (0..PROCESSES).filter(|&other| other != id) {
        let exact = Target { id: other, generation: Some(side.model.generation(other)) };
        let current = Target { id: other, generation: None };
        push(Call::Send(exact));
        push(Call::SendRec(exact));
        push(Call::SendRec(current));
        push(Call::SendWait(exact, Filter::Any));
        push(Call::ReplyRec(exact, Filter::Any));
        if scope.specific_waits {
            push(Call::Receive(Filter::From(exact)));
            push(Call::SendWait(exact, Filter::From(exact)));
        }
        if scope.notifications {
            push(Call::Notify(exact));
        }
        if scope.refused_sends {
            push(Call::SendNb(current));
            push(Call::AskRec(current, Filter::Any));
        }
        if scope.restarts && side.model.generation(other) > 1 {
            push(Call::Send(Target { id: other, generation: Some(1) }));
        }
    }
}

/// Visits every state, or a sample of them; returns their number.
fn search(scope: &Scope, is_deep: bool) -> usize {
    let mut random = Random(0);
    let mut pair = Pair::new(PROCESSES);
    let mut seen: HashSet<Key> = HashSet::new();
    seen.insert(pair.state.model.key());
    let mut open: Vec<(Snapshot<4>, Side)> = vec![(pair.world.node.snapshot(slots()), pair.state.clone())];
    while !open.is_empty() && (is_deep || seen.len() < SAMPLE) {
        // Depth-first keeps the full search small, a random order spreads the sample over all depths.
        let next = if is_deep { open.len() - 1 } else { random.below(open.len()) };
        let (snapshot, side) = open.swap_remove(next);
        for action in actions(&side, scope) {
            pair.world.node.restore(&snapshot);
            pair.state.clone_from(&side);
            pair.act(action);
            if seen.insert(pair.state.model.key()) {
                open.push((pair.world.node.snapshot(slots()), pair.state.clone()));
            }
        }
    }
    seen.len()
}

/// One search; `at_least`: fewer states would mean that the search has missed something.
fn check(scope: &Scope, at_least: usize) {
    let is_deep = std::env::var_os("SKINK_DEEP").is_some();
    let states = search(scope, is_deep);
    println!("{states} states");
    let at_least = if is_deep { at_least } else { at_least.min(SAMPLE) };
    assert!(states >= at_least, "only {states} states");
}

#[test]
fn every_interleaving_of_messages_and_restarts_agrees_with_the_model() {
    check(&Scope { restarts: true, notifications: false, refused_sends: false, specific_waits: true }, 9_000);
}

#[test]
fn every_interleaving_of_messages_and_notifications_agrees_with_the_model() {
    check(&Scope { restarts: false, notifications: true, refused_sends: false, specific_waits: true }, 43_000);
}

#[test]
fn every_interleaving_of_messages_and_refused_sends_agrees_with_the_model() {
    check(&Scope { restarts: false, notifications: false, refused_sends: true, specific_waits: false }, 650_000);
}

#[test]
fn every_interleaving_of_messages_restarts_and_notifications_agrees_with_the_model() {
    check(&Scope { restarts: true, notifications: true, refused_sends: false, specific_waits: true }, 350_000);
}

#[test]
fn every_interleaving_of_messages_notifications_and_refused_sends_agrees_with_the_model() {
    check(&Scope { restarts: false, notifications: true, refused_sends: true, specific_waits: false }, 1_600_000);
}
