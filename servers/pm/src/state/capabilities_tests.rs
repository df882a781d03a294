use super::*;

const KILL: Set = Set::of(&[Capability::Kill]);
const CHOWN: Set = Set::of(&[Capability::Chown]);
const BOTH: Set = KILL.union(CHOWN);

fn user() -> Capabilities {
    Capabilities::of_user(1000)
}

fn ids(real: u32, effective: u32) -> Ids {
    Ids { real, effective, saved: effective, file: effective }
}

fn exec(user: Ids) -> Exec {
    Exec { user, is_set_id: user.real != user.effective, file: None, gains_none: false }
}

fn file(permitted: Set, inheritable: Set, are_effective: bool) -> Option<FileCapabilities> {
    Some(FileCapabilities { permitted, inheritable, are_effective })
}

/// Effective, permitted and ambient set after an exec.
fn after(own: &Capabilities, exec: &Exec) -> [Set; 3] {
    let new = own.after_exec(exec).unwrap().capabilities;
    [new.effective, new.permitted, new.ambient]
}

#[test]
fn capset_takes_away_and_gives_nothing() {
    let mut own = Capabilities::default();
    assert_eq!(own.set(BOTH, KILL, Set::EMPTY), Err(Errno::EPERM), "effective without permitted");
    own.set(KILL, BOTH, CHOWN).unwrap();
    assert_eq!([own.effective(), own.permitted(), own.inheritable()], [KILL, BOTH, CHOWN]);
    assert_eq!(own.set(KILL, Set::ALL, CHOWN), Err(Errno::EPERM));
    own.set(BOTH, BOTH, CHOWN).expect("what is permitted may become effective again");
}

#[test]
fn inheritable_is_what_is_permitted_unless_the_right_to_set_any_is_there() {
    let mut own = Capabilities::default();
    own.set(CHOWN, CHOWN, Set::EMPTY).unwrap();
    assert_eq!(own.set(CHOWN, CHOWN, KILL), Err(Errno::EPERM));
    own.set(CHOWN, CHOWN, CHOWN).unwrap();

    let mut own = Capabilities::default();
    own.drop_bounding(Capability::Kill as u64).unwrap();
    assert_eq!(own.set(Set::ALL, Set::ALL, KILL), Err(Errno::EPERM), "outside the bounding set");
    own.set(Set::ALL, Set::ALL, CHOWN).unwrap();
}

#[test]
fn the_bounding_set_shrinks_with_a_right_only() {
    let mut own = Capabilities::default();
    assert_eq!(own.drop_bounding(41), Err(Errno::EINVAL));
    own.drop_bounding(40).unwrap();
    assert_eq!(own.bounding(), Set::ALL.without(Set::numbered(40).unwrap()));
    assert_eq!(own.effective(), Set::ALL, "until the next exec");
    assert_eq!(after(&own, &exec(ids(0, 0)))[1], own.bounding());
    own.set(KILL, KILL, Set::EMPTY).unwrap();
    assert_eq!(own.drop_bounding(40), Err(Errno::EPERM));
    assert_eq!(own.drop_bounding(41), Err(Errno::EPERM));
}

#[test]
fn becoming_a_user_loses_all_and_coming_back_gets_what_is_permitted() {
    let mut own = Capabilities::default();
    own.follow_user(&ids(0, 0), &Ids { real: 0, effective: 5, saved: 0, file: 5 });
    assert_eq!([own.effective(), own.permitted()], [Set::EMPTY, Set::ALL]);
    own.follow_user(&Ids { real: 0, effective: 5, saved: 0, file: 5 }, &ids(0, 0));
    assert_eq!(own.effective(), Set::ALL);
    own.follow_user(&ids(0, 0), &ids(5, 5));
    assert_eq!([own.effective(), own.permitted(), own.bounding()], [Set::EMPTY, Set::EMPTY, Set::ALL]);
}

#[test]
fn keepcaps_keeps_what_is_permitted_and_not_what_is_effective_or_ambient() {
    let mut own = Capabilities::default();
    own.set(Set::ALL, Set::ALL, KILL).unwrap();
    own.raise_ambient(KILL).unwrap();
    own.keep(true).unwrap();
    own.follow_user(&ids(0, 0), &ids(5, 5));
    assert_eq!([own.effective(), own.permitted(), own.ambient()], [Set::EMPTY, Set::ALL, Set::EMPTY]);
    assert!(!own.after_exec(&exec(ids(5, 5))).unwrap().capabilities.are_kept(), "an exec resets it");
}

#[test]
fn without_fixups_ids_change_no_capabilities() {
    let mut own = Capabilities::default();
    own.set_secure_bits(secure::NO_SETUID_FIXUP.into()).unwrap();
    own.follow_user(&ids(0, 0), &ids(5, 5));
    own.follow_file_user(0, 5);
    assert_eq!(own.effective(), Set::ALL);
}

#[test]
fn setfsuid_takes_the_rights_over_files_and_gives_them_back() {
    let mut own = Capabilities::default();
    own.follow_file_user(0, 5);
    assert_eq!(own.effective(), Set::ALL.without(Set::OF_FILES));
    own.follow_file_user(5, 6);
    own.follow_file_user(6, 0);
    assert_eq!(own.effective(), Set::ALL);
    own.set(KILL, BOTH, Set::EMPTY).unwrap();
    own.follow_file_user(5, 0);
    assert_eq!(own.effective(), BOTH, "those that are permitted");
}

#[test]
fn secure_bits_are_locked_for_good() {
    let mut own = Capabilities::default();
    assert_eq!(own.set_secure_bits(1 << 8), Err(Errno::EPERM), "there is no such bit");
    own.set_secure_bits((secure::NO_ROOT | secure::NO_ROOT << 1).into()).unwrap();
    for refused in [0, secure::NO_ROOT, secure::NO_ROOT << 1] {
        assert_eq!(own.set_secure_bits(refused.into()), Err(Errno::EPERM), "{refused:#x}");
    }
    let more = secure::NO_ROOT | secure::NO_ROOT << 1 | secure::KEEP << 1;
    own.set_secure_bits(more.into()).unwrap();
    assert_eq!(own.keep(true), Err(Errno::EPERM));
    own.set(KILL, KILL, Set::EMPTY).unwrap();
    assert_eq!(own.set_secure_bits(more.into()), Err(Errno::EPERM), "it needs a capability");
}

#[test]
fn ambient_is_what_is_permitted_and_inheritable() {
    let mut own = Capabilities::default();
    assert_eq!(own.raise_ambient(KILL), Err(Errno::EPERM));
    own.set(Set::ALL, Set::ALL, BOTH).unwrap();
    own.raise_ambient(KILL).unwrap();
    own.raise_ambient(CHOWN).unwrap();
    own.lower_ambient(CHOWN);
    assert_eq!(own.ambient(), KILL);
    own.set(BOTH, BOTH, CHOWN).unwrap();
    assert_eq!(own.ambient(), Set::EMPTY);
    own.set_secure_bits(secure::NO_AMBIENT_RAISE.into()).unwrap_err();
    let mut own = Capabilities::default();
    own.set(Set::ALL, Set::ALL, KILL).unwrap();
    own.set_secure_bits(secure::NO_AMBIENT_RAISE.into()).unwrap();
    assert_eq!(own.raise_ambient(KILL), Err(Errno::EPERM));
}

#[test]
fn access_is_judged_by_what_the_real_user_may() {
    let mut own = Capabilities::default();
    own.set(Set::EMPTY, KILL, Set::EMPTY).unwrap();
    assert_eq!([own.of_real_user(0), own.of_real_user(5)], [KILL, Set::EMPTY]);
}

#[test]
fn root_executes_with_all_that_is_bounded_and_users_with_nothing() {
    let mut own = Capabilities::default();
    own.drop_bounding(Capability::Kill as u64).unwrap();
    own.set(KILL, KILL, Set::EMPTY).unwrap();
    let rest = Set::ALL.without(KILL);
    assert_eq!(after(&own, &exec(ids(0, 0))), [rest, rest, Set::EMPTY]);
    assert_eq!(
        after(&own, &exec(ids(0, 5))),
        [Set::EMPTY, rest, Set::EMPTY],
        "only the effective id makes them effective"
    );
    assert_eq!(after(&own, &exec(ids(5, 5))), [Set::EMPTY; 3]);
    assert_eq!(after(&user(), &exec(ids(5, 0))), [Set::ALL, Set::ALL, Set::EMPTY], "a set-user-id program of root's");
    let mut own = Capabilities::default();
    own.set_secure_bits(secure::NO_ROOT.into()).unwrap();
    assert_eq!(after(&own, &exec(ids(0, 0))), [Set::EMPTY; 3]);
}

#[test]
fn ambient_capabilities_stay_unless_the_file_gives_something() {
    let mut own = Capabilities::default();
    own.set(KILL, KILL, KILL).unwrap();
    own.raise_ambient(KILL).unwrap();
    let plain = exec(ids(5, 5));
    assert_eq!(after(&own, &plain), [KILL; 3]);
    assert!(!own.after_exec(&plain).unwrap().is_secure);
    assert_eq!(after(&own, &exec(ids(5, 6))), [Set::EMPTY; 3]);
    assert_eq!(after(&own, &Exec { file: file(CHOWN, Set::EMPTY, false), ..plain }), [Set::EMPTY, CHOWN, Set::EMPTY]);
}

#[test]
fn a_file_gives_its_capabilities_within_the_bounding_set() {
    let plain = exec(ids(5, 5));
    let given = Exec { file: file(KILL, Set::EMPTY, true), ..plain };
    assert_eq!(after(&user(), &given), [KILL, KILL, Set::EMPTY]);
    assert!(user().after_exec(&given).unwrap().is_secure);

    let mut own = Capabilities { inheritable: CHOWN, ..user() };
    assert_eq!(after(&own, &Exec { file: file(KILL, BOTH, false), ..plain }), [Set::EMPTY, BOTH, Set::EMPTY]);
    own.bounding = Set::ALL.without(KILL);
    assert_eq!(own.after_exec(&given), Err(Errno::EPERM), "it could not work without");
    assert_eq!(after(&own, &Exec { file: file(KILL, Set::EMPTY, false), ..plain })[1], Set::EMPTY);

    let set_user_id = Exec { file: file(KILL, Set::EMPTY, true), ..exec(ids(5, 0)) };
    assert_eq!(after(&user(), &set_user_id), [KILL, KILL, Set::EMPTY], "its own instead of root's");
}

#[test]
fn who_may_gain_nothing_keeps_at_most_what_it_had() {
    let own = Capabilities { permitted: CHOWN, ..user() };
    let given = Exec { file: file(BOTH, Set::EMPTY, true), gains_none: true, ..exec(ids(5, 5)) };
    let result = own.after_exec(&given).unwrap();
    assert!(result.is_reduced);
    assert_eq!([result.capabilities.effective, result.capabilities.permitted], [CHOWN; 2]);
    assert!(!own.after_exec(&Exec { gains_none: true, ..exec(ids(5, 5)) }).unwrap().is_reduced);
    assert!(own.after_exec(&Exec { gains_none: true, ..exec(ids(5, 0)) }).unwrap().is_reduced);
}
