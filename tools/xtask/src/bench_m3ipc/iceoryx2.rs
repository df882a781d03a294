//! The rows of iceoryx2: a program from a package outside of the workspace, host/bench/iceoryx2, since nothing else needs what it brings. Cargo fetches that
//! the first time. Without a network, or where it does not run, the rows say so, and the others are measured.

use super::{ROUNDS, Unmeasured};
use crate::process;
use crate::workspace::Workspace;
use anyhow::{Error, Result};
use std::path::PathBuf;
use std::process::Command;

const PACKAGE: &str = "host/bench/iceoryx2";
/// Characters of a reason in the table.
const MAX_REASON: usize = 200;
/// As the program calls them.
const ROWS: [&str; 2] = ["iceoryx2, polling", "iceoryx2, events"];

/// The program and what it has printed so far, or what has failed first.
pub struct Iceoryx2 {
    state: Result<(PathBuf, Vec<u8>)>,
}

impl Iceoryx2 {
    /// Builds the program.
    pub fn build(workspace: &Workspace) -> Self {
        let target = workspace.build.join("iceoryx2");
        let mut cargo = Command::new("cargo");
        cargo.current_dir(workspace.root.join(PACKAGE)).args(["build", "--quiet", "--release", "--locked"]);
        let built = process::run(cargo.arg("--target-dir").arg(&target));
        Self { state: built.map(|()| (target.join("release/iceoryx2_rows"), Vec::new())) }
    }

    /// Measures each row once more.
    pub fn run(&mut self) {
        let Ok((program, output)) = &mut self.state else { return };
        match process::output(Command::new(program).arg(ROUNDS)) {
            Ok(more) => output.extend(more),
            Err(error) => self.state = Err(error),
        }
    }

    /// Appends the lines of all runs to `output`. Returns the rows that are missing there.
    pub fn append_to(self, output: &mut Vec<u8>) -> Vec<Unmeasured> {
        match self.state {
            Ok((_, lines)) => {
                output.extend(lines);
                Vec::new()
            }
            Err(error) => ROWS.map(|mechanism| Unmeasured { mechanism, reason: in_a_cell(&error) }).into(),
        }
    }
}

/// The error as a cell of a table has it: one line, the end of a long one left out.
fn in_a_cell(error: &Error) -> String {
    let text = format!("{error:#}").replace('|', "/");
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(MAX_REASON).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_does_not_run_has_rows_with_the_reason() {
        let mut rows =
            Iceoryx2 { state: Ok((PathBuf::from("/nonexistent/rows"), b"1 processor\tother\t3\n".to_vec())) };
        rows.run();
        let mut output = Vec::new();
        let unmeasured = rows.append_to(&mut output);
        assert_eq!(unmeasured.len(), ROWS.len());
        assert!(unmeasured[0].reason.starts_with("cannot start /nonexistent/rows"), "{}", unmeasured[0].reason);
        assert!(output.is_empty());
    }

    #[test]
    fn a_reason_is_one_cell() {
        assert_eq!(in_a_cell(&Error::msg("cargo failed:\n 12 | error\n")), "cargo failed: 12 / error");
        assert_eq!(in_a_cell(&Error::msg("long ".repeat(MAX_REASON))).len(), MAX_REASON);
    }
}
