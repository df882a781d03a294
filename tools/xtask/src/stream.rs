//! Takes the guest's two output lines apart: what the command printed, and what the system said.
//!
//! /etc/rc in the guest marks both with words that begin with a zero byte: on the console before the
//! command starts, so that what follows is the command's standard error, and on the third line
//! after its output, with its exit status.

/// Written on the console just before the command runs.
const BEGIN: &[u8] = b"\0skink-begin\n";
/// Written on the third line after the command's output; the status and a newline follow.
const EXIT: &[u8] = b"\0skink-exit ";
/// The longest form of the last line: [`EXIT`], three digits and a newline.
const LONGEST_TRAILER: usize = EXIT.len() + 4;

/// The command's standard output, as it arrives, without the trailer.
#[derive(Default)]
pub struct Output {
    // The end of what arrived, which may turn out to be the trailer.
    held: Vec<u8>,
}

impl Output {
    /// Takes what arrived and returns what can be passed on.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        let ready = self.held.len().saturating_sub(LONGEST_TRAILER);
        self.held.drain(..ready).collect()
    }

    /// Whether the trailer has come, as far as can be told before the end.
    pub fn has_ended(&self) -> bool {
        let trailer = self.held.windows(EXIT.len()).rposition(|window| window == EXIT);
        trailer.is_some() && self.held.ends_with(b"\n")
    }

    /// At the end: the rest of the output, and the exit status if the trailer came.
    pub fn finish(self) -> (Vec<u8>, Option<u8>) {
        let mut rest = self.held;
        let Some(at) = rest.windows(EXIT.len()).rposition(|window| window == EXIT) else {
            return (rest, None);
        };
        let status = std::str::from_utf8(&rest[at + EXIT.len()..]).ok();
        let status = status.and_then(|text| text.strip_suffix('\n')).and_then(|text| text.parse().ok());
        if status.is_some() {
            rest.truncate(at);
        }
        (rest, status)
    }
}

/// The console, split at the mark into the system's log and the command's standard error.
#[derive(Default)]
pub struct Console {
    log: Vec<u8>,
    begun: bool,
    // A carriage return that arrived last: with a newline after it, it is the terminal's doing.
    pending_return: bool,
}

impl Console {
    /// Takes what arrived and returns the part that is the command's standard error.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        let plain = self.without_returns(bytes);
        let at = self.log.len();
        self.log.extend_from_slice(&plain);
        if self.begun {
            return plain;
        }
        // The mark may have begun in what arrived before.
        let from = at.saturating_sub(BEGIN.len());
        let Some(found) = self.log[from..].windows(BEGIN.len()).position(|window| window == BEGIN) else {
            return Vec::new();
        };
        self.begun = true;
        let mark = from + found;
        self.log.drain(mark..mark + BEGIN.len());
        self.log[mark..].to_vec()
    }

    /// Everything that came over the console, without the mark, as text.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&self.log).into_owned()
    }

    fn without_returns(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut plain = Vec::with_capacity(bytes.len());
        for &byte in bytes {
            if self.pending_return && byte != b'\n' {
                plain.push(b'\r');
            }
            self.pending_return = byte == b'\r';
            if !self.pending_return {
                plain.push(byte);
            }
        }
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output_of(chunks: &[&[u8]]) -> (Vec<u8>, Option<u8>) {
        let mut output = Output::default();
        let mut all: Vec<u8> = chunks.iter().flat_map(|chunk| output.take(chunk)).collect();
        let (rest, status) = output.finish();
        all.extend(rest);
        (all, status)
    }

    #[test]
    fn the_trailer_is_taken_off_wherever_it_is_cut() {
        let whole = b"line\nno newline\0skink-exit 127\n";
        for cut in 0..whole.len() {
            let (out, status) = output_of(&[&whole[..cut], &whole[cut..]]);
            assert_eq!(out, b"line\nno newline");
            assert_eq!(status, Some(127));
        }
    }

    #[test]
    fn only_the_last_trailer_counts() {
        let (out, status) = output_of(&[b"\0skink-exit 3\n\0skink-exit 0\n"]);
        assert_eq!(out, b"\0skink-exit 3\n");
        assert_eq!(status, Some(0));
    }

    #[test]
    fn without_trailer_everything_is_output() {
        assert_eq!(output_of(&[b"cut of"]), (b"cut of".to_vec(), None));
        assert_eq!(output_of(&[b"\0skink-exit 4"]), (b"\0skink-exit 4".to_vec(), None));
    }

    #[test]
    fn the_console_before_the_mark_is_not_the_commands() {
        let whole = b"boot\r\n\0skink-begin\r\noops\r\nbar\rfoo\r\n";
        for cut in 0..whole.len() {
            let mut console = Console::default();
            let mut errors = console.take(&whole[..cut]);
            errors.extend(console.take(&whole[cut..]));
            assert_eq!(errors, b"oops\nbar\rfoo\n");
            assert_eq!(console.log(), "boot\noops\nbar\rfoo\n");
        }
    }
}
