//! Runs tests, three at a time, and prints one line for each as it ends.

use super::{Count, Test, Verdict};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

/// One more than the machines have processors that we are made for: guests sleep, and cargo and linkers wait for each other.
const JOBS: usize = 3;

/// Runs all tests and returns how many passed and failed.
pub fn run(tests: &[Test]) -> Count {
    let next = AtomicUsize::new(0);
    let sum = Mutex::new(Count::default());
    thread::scope(|scope| {
        for _ in 0..JOBS.min(tests.len()) {
            scope.spawn(|| {
                while let Some(test) = tests.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let started = Instant::now();
                    // A test that could not be run has failed.
                    let verdict = (test.run)().unwrap_or_else(|error| Verdict::failed(format!("{error:#}")));
                    // Held while printing, so that lines do not mix.
                    let mut sum = sum.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    sum.passed += verdict.count.passed;
                    sum.failed += verdict.count.failed;
                    print(&test.name, &verdict, started.elapsed().as_secs_f32());
                }
            });
        }
    });
    sum.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn print(name: &str, verdict: &Verdict, seconds: f32) {
    let word = if verdict.count.failed == 0 { "ok  " } else { "FAIL" };
    let many = match verdict.count {
        Count { passed: 0 | 1, failed: 0 | 1 } => String::new(),
        Count { passed, failed } => format!(" ({passed} passed, {failed} failed)"),
    };
    println!("{word} {name}{many} {seconds:.1} s");
    for line in verdict.details.lines() {
        println!("     | {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_test_runs_once_and_is_counted() {
        let ran = AtomicUsize::new(0);
        let tests: Vec<Test> = (0..7)
            .map(|number| {
                let ran = &ran;
                Test::new(format!("test {number}"), move || {
                    ran.fetch_add(1, Ordering::Relaxed);
                    match number {
                        0 => Ok(Verdict::failed("on purpose".to_string())),
                        1 => anyhow::bail!("could not be run"),
                        _ => Ok(Verdict::passed()),
                    }
                })
            })
            .collect();
        assert_eq!(run(&tests), Count { passed: 5, failed: 2 });
        assert_eq!(ran.load(Ordering::Relaxed), 7);
    }
}
