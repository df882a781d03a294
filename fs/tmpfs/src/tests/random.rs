//! Random operations, compared with a model, and looked through by `check`.

use fs::file_system::FileSystem;

use super::run::Run;
use super::{amount, check::check, mount, resume, volume, words};
use crate::plan::Plan;

#[test]
fn a_volume_is_what_the_operations_made_it() {
    for seed in 1..=amount(4, 20) {
        let mut run = Run::new(seed, volume(4000));
        for count in 0..amount(1500, 8000) {
            run.step();
            if count % 4 == 0 {
                run.volume.clean_up().unwrap();
            }
            if count % 50 == 0 {
                check(&run.volume);
            }
        }
        check(&run.volume);
        let root = run.volume.root();
        run.model.compare(&mut run.volume, 0, root);
    }
}

#[test]
fn a_successor_finds_what_the_operations_made() {
    let plan = Plan::of_pages(4000);
    let words = words(plan);
    let mut run = Run::new(77, mount(words, plan));
    (0..400).for_each(|_| run.step());
    run.volume.begin();
    let (memo, root) = (run.volume.memo(), run.volume.root());
    let Run { volume, model, .. } = run;
    drop(volume);
    let mut successor = resume(words, memo);
    check(&successor);
    model.compare(&mut successor, 0, root);
}

/// Each operation happens twice, and is rolled back the first time: nothing of that is left.
#[test]
fn a_roll_back_leaves_what_was() {
    let plan = Plan::of_pages(1200);
    let words = words(plan);
    let mut run = Run::new(5, mount(words, plan));
    let (root, memo) = (run.volume.root(), run.volume.memo());
    for _ in 0..amount(1500, 10_000) {
        let (random, model) = (run.random.clone(), run.model.clone());
        let (nodes, xattrs) = (run.nodes.clone(), run.xattrs.clone());
        run.volume.begin();
        run.step();
        drop(run);
        let volume = resume(words, memo);
        check(&volume);
        run = Run { random, volume, model, nodes, xattrs };
        run.step();
    }
    run.model.compare(&mut run.volume, 0, root);
}
