//! Programs that a chapter of docs/book/ quotes: every block of C in it stands in its program as it is.

use anyhow::{Context, Result};
use std::fs;
use std::path::Path;

/// Chapters and their programs.
const QUOTING: [(&str, &str); 1] = [("docs/book/real-time.md", "user/examples/control.c")];
const BEGIN: &str = "```c\n";
const END: &str = "```\n";

/// Blocks that are not in the program.
///
/// # Errors
/// When a file cannot be read.
pub fn problems(root: &Path) -> Result<Vec<String>> {
    let read = |path: &str| fs::read_to_string(root.join(path)).with_context(|| format!("cannot read {path}"));
    let mut problems = Vec::new();
    for (chapter, program) in QUOTING {
        let text = read(program)?;
        for block in blocks(&read(chapter)?).filter(|block| !text.contains(block)) {
            let first = block.lines().next().unwrap_or_default();
            problems.push(format!("{chapter}: the block that begins with '{first}' is not what {program} says"));
        }
    }
    Ok(problems)
}

fn blocks(chapter: &str) -> impl Iterator<Item = &str> {
    chapter.split(BEGIN).skip(1).map(|rest| rest.split_once(END).map_or(rest, |(block, _)| block))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_c_are_found_and_others_left_out() {
        let chapter = "a\n```c\nint x;\nint y;\n```\nb\n```sh\nls\n```\n```c\nint z;\n```\n";
        assert_eq!(blocks(chapter).collect::<Vec<_>>(), ["int x;\nint y;\n", "int z;\n"]);
    }
}
