//! What is known of a file, without a file system.

use super::*;
use crate::files::{
    Shared,
    inode::Description,
    mount::{Mount, NewMount},
    stat::Summary,
};
use crate::peers::Service;
use alloc::vec::Vec;

const FIRST: Endpoint = Endpoint::new(40, 1);
const SECOND: Endpoint = Endpoint::new(40, 2);

/// A file of which the first incarnation of its file system has replied.
fn known() -> KnownStat {
    let file = KnownStat::default();
    learn(&file, file.version());
    assert!(is_known(&file));
    file
}

fn learn(file: &KnownStat, version: u64) {
    file.learn(&Stat::of_object(&Summary::default()), FIRST, version);
}

fn is_known(file: &KnownStat) -> bool {
    file.with(|_| ()).is_some()
}

#[test]
fn a_reply_is_kept_until_the_file_changes() {
    let file = known();
    file.forget();
    assert!(!is_known(&file));
}

#[test]
fn a_reply_that_a_change_has_overtaken_is_not_kept() {
    let file = KnownStat::default();
    let asked = file.version();
    file.forget();
    learn(&file, asked);
    assert!(!is_known(&file));
}

#[test]
fn nothing_is_kept_while_a_change_is_in_progress() {
    let file = KnownStat::default();
    file.changes.set(1);
    learn(&file, file.version());
    assert!(!is_known(&file));
}

#[test]
fn a_read_counts_as_a_change_when_it_was_one_or_may_have_been_one() {
    let same = |file: &KnownStat| file.unchanging();
    let older = |file: &KnownStat| file.unchanging().map(|version| version.wrapping_sub(1));
    let cases: [(Endpoint, u64, fn(&KnownStat) -> Option<u64>, bool); 5] = [
        (FIRST, u64::MAX, older, true),
        (FIRST, 7, same, true),
        (FIRST, 7, older, false),
        (FIRST, 7, |_| None, false),
        (SECOND, u64::MAX, same, false),
    ];
    for (source, accessed_ns, version, expected) in cases {
        let file = known();
        file.was_read(version(&file), source, accessed_ns);
        assert_eq!(is_known(&file), expected, "{accessed_ns} of {source:?}");
    }
}

/// A file in use of which the first incarnation of its file system has replied.
fn node() -> NodeRef {
    let new = NewMount {
        service: Service::at(FIRST.slot()),
        kind: "ext2".into(),
        source: "".into(),
        target: Vec::new(),
        flags: 0,
        volatile: false,
        fixed: false,
        in_memory: false,
        device: 0,
        namespace: 0,
        users: 0,
    };
    let mount = Mount::new(new, Rc::new(Shared::new(1)));
    let node = mount.adopt(Description { node: 2, mode: 0o100644 | 1 << 32, ..Description::default() });
    learn(node.known_stat(), node.known_stat().version());
    node
}

fn mode(node: &NodeRef) -> Option<u32> {
    node.known_stat().with(Stat::mode)
}

/// What is known after a change of the mode to 7, while which `meanwhile` happens.
fn after_change(source: Endpoint, meanwhile: impl FnOnce(&NodeRef)) -> Option<u32> {
    let node = node();
    let change = AttributeChange::of(&node);
    assert_eq!(mode(&node), None, "it is changing");
    meanwhile(&node);
    change.told(source, |stat| stat.set_mode(7));
    mode(&node)
}

#[test]
fn attributes_are_known_after_a_change_that_tells_them() {
    assert_eq!(after_change(FIRST, |_| {}), Some(7));
    assert_eq!(
        after_change(FIRST, |node| {
            node.known_stat().was_read(node.known_stat().unchanging(), FIRST, u64::MAX);
        }),
        Some(7)
    );
    let node = node();
    drop(AttributeChange::of(&node));
    assert_eq!(mode(&node), None, "nothing was told");
    AttributeChange::of(&node).told(FIRST, |stat| stat.set_mode(7));
    assert_eq!(mode(&node), None, "of the rest nothing is known");
}

#[test]
fn attributes_are_not_known_after_a_change_if_another_incarnation_or_change_has_come_between() {
    assert_eq!(after_change(SECOND, |_| {}), None);
    assert_eq!(
        after_change(FIRST, |node| {
            node.known_stat().was_read(node.known_stat().unchanging(), FIRST, 5);
        }),
        None
    );
    assert_eq!(after_change(FIRST, |node| drop(Change::of(node))), None);
    let later = |node: &NodeRef| AttributeChange::of(node).told(FIRST, |stat| stat.set_mode(8));
    assert_eq!(after_change(FIRST, later), None);
    let learns = |node: &NodeRef| learn(node.known_stat(), node.known_stat().version());
    assert_eq!(after_change(FIRST, learns), Some(7), "a reply is not kept during a change");
}

#[test]
fn nothing_is_known_while_another_change_is_in_progress() {
    let node = node();
    let (first, second) = (AttributeChange::of(&node), AttributeChange::of(&node));
    second.told(FIRST, |stat| stat.set_mode(8));
    assert_eq!(mode(&node), None);
    first.told(FIRST, |stat| stat.set_mode(7));
    assert_eq!(mode(&node), None, "the second change may have come before");
}

#[test]
fn a_reply_that_was_asked_for_during_a_change_is_not_kept() {
    let node = node();
    let change = AttributeChange::of(&node);
    let asked = node.known_stat().version();
    change.told(FIRST, |stat| stat.set_mode(7));
    learn(node.known_stat(), asked);
    assert_eq!(mode(&node), Some(7));
}

#[test]
fn the_time_of_last_access_is_known_from_the_read_that_has_set_it() {
    let file = known();
    assert!(file.was_read(file.unchanging(), FIRST, 3_000_000_005));
    let stat = file.with(|stat| *stat);
    let mut expected = Stat::of_object(&Summary::default());
    expected.set_accessed(3_000_000_005);
    assert_eq!(stat.map(|stat| stat.0), Some(expected.0));
}

#[test]
fn a_reply_that_a_read_has_overtaken_is_not_kept() {
    let file = KnownStat::default();
    let asked = file.version();
    file.was_read(None, FIRST, u64::MAX);
    learn(&file, asked);
    assert!(!is_known(&file));
}

#[test]
fn a_reply_from_before_the_time_of_last_access_was_set_is_not_kept() {
    let file = known();
    let asked = file.version();
    file.was_read(Some(asked), FIRST, 7);
    file.learn(&Stat::of_object(&Summary::default()), FIRST, asked);
    assert_eq!(file.with(|stat| stat.0[72]), Some(0));
    assert_eq!(file.with(|stat| stat.0[80]), Some(7));
}
