//! Looks at Rust source as text: tells code from comments, strings and tests, without parsing it.

/// `text` with the inside of comments, strings and character literals replaced by spaces. Lines stay
/// lines, so line numbers agree.
pub fn code_only(text: &str) -> String {
    let mut scanner = Scanner { rest: text, code: String::with_capacity(text.len()) };
    while scanner.step() {}
    scanner.code
}

struct Scanner<'a> {
    rest: &'a str,
    code: String,
}

impl Scanner<'_> {
    /// Takes one comment, literal or character; false at the end.
    fn step(&mut self) -> bool {
        if self.rest.starts_with("//") {
            self.blank(self.rest.find('\n').unwrap_or(self.rest.len()));
        } else if self.rest.starts_with("/*") {
            self.blank(block_comment(self.rest));
        } else if let Some(length) = raw_string(self.rest).filter(|_| !self.is_inside_word()) {
            self.literal(length);
        } else if self.rest.starts_with('"') {
            self.literal(quoted(self.rest, '"'));
        } else if is_character(self.rest) {
            self.literal(quoted(self.rest, '\''));
        } else if let Some(character) = self.rest.chars().next() {
            self.code.push(character);
            self.rest = &self.rest[character.len_utf8()..];
        } else {
            return false;
        }
        true
    }

    fn is_inside_word(&self) -> bool {
        self.code.ends_with(|last: char| last.is_alphanumeric() || last == '_')
    }

    fn blank(&mut self, length: usize) {
        let (gone, rest) = self.rest.split_at(length);
        self.code.extend(gone.chars().map(|character| if character == '\n' { '\n' } else { ' ' }));
        self.rest = rest;
    }

    /// As `blank`, but something is left on the first line: a literal is code.
    fn literal(&mut self, length: usize) {
        self.code.push('"');
        self.rest = &self.rest[1..];
        self.blank(length - 1);
    }
}

/// Length of the block comment that `text` begins with; they nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// Length of the raw string that `text` begins with, if it does.
fn raw_string(text: &str) -> Option<usize> {
    let after = text.strip_prefix("br").or_else(|| text.strip_prefix("cr")).or_else(|| text.strip_prefix('r'))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let inside = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let length = inside.find(&end).map_or(inside.len(), |at| at + end.len());
    Some(text.len() - inside.len() + length)
}

/// Length of the literal that `text` begins with, up to and with the closing `quote`.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Whether `text` begins with a character literal, and not with a lifetime.
fn is_character(text: &str) -> bool {
    let mut characters = text.chars();
    if characters.next() != Some('\'') {
        return false;
    }
    match characters.next() {
        Some('\\') => true,
        Some(_) => characters.next() == Some('\''),
        None => false,
    }
}

/// Items that only tests have, in `code` as [`code_only`] returns it.
pub struct TestItems {
    /// `code` without those items.
    pub without: String,
    /// Names of modules in files of their own that only tests have.
    pub modules: Vec<String>,
}

/// Finds the items under `#[cfg(test)]`.
pub fn test_items(code: &str) -> TestItems {
    const MARK: &str = "#[cfg(test)]";
    let mut items = TestItems { without: String::new(), modules: Vec::new() };
    let mut rest = code;
    while let Some(at) = rest.find(MARK) {
        items.without.push_str(&rest[..at]);
        let item = &rest[at + MARK.len()..];
        let length = item_length(item);
        let words = item[..length].trim();
        if let Some(name) = words.strip_suffix(';').and_then(|words| words.rsplit_once("mod ")) {
            items.modules.push(name.1.trim().to_string());
        }
        rest = &item[length..];
    }
    items.without.push_str(rest);
    items
}

/// Length of the item that `text` begins with: to its semicolon or its closing brace.
fn item_length(text: &str) -> usize {
    let mut depth = 0;
    for (at, character) in text.char_indices() {
        match character {
            ';' if depth == 0 => return at + 1,
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                if depth <= 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blanked() {
        let text = "a /* x /* y */ z */ b // c\n\"d // e\" 'f' 'g g\n";
        let code = code_only(text);
        assert_eq!(code.lines().count(), 2);
        assert_eq!(code.split_whitespace().collect::<Vec<_>>(), ["a", "b", "\"", "\"", "'g", "g"]);
    }

    #[test]
    fn raw_strings_and_escapes_end_where_they_should() {
        assert_eq!(code_only("r#\"a \" b\"# c").trim_start_matches('"').trim(), "c");
        assert_eq!(code_only("\"a\\\"b\" c").trim_start_matches('"').trim(), "c");
        assert_eq!(code_only("'\\'' c").trim_start_matches('"').trim(), "c");
        assert_eq!(code_only("for\"x\" c").split_whitespace().collect::<Vec<_>>(), ["for\"", "c"]);
    }

    #[test]
    fn test_modules_are_taken_out() {
        let items =
            test_items("fn a() {}\n#[cfg(test)]\nmod tests { fn b() { } }\nfn c() {}\n#[cfg(test)] mod model;\n");
        assert!(items.without.contains("fn a") && items.without.contains("fn c"));
        assert!(!items.without.contains("fn b"));
        assert_eq!(items.modules, ["model"]);
    }
}
