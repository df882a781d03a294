//! The lines between the harness and the guest's program: `@TEXT*SUM`, as user/faults/line.h has them.

/// FNV-1a.
fn sum(text: &[u8]) -> u32 {
    text.iter().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// The line that carries `text`, with its newline.
pub fn pack(text: &str) -> String {
    format!("@{text}*{:08x}\n", sum(text.as_bytes()))
}

/// The text of an intact line, without its newline; None for anything else.
pub fn unpack(line: &[u8]) -> Option<&str> {
    let body = line.strip_prefix(b"@")?;
    let (text, rest) = body.split_at_checked(body.len().checked_sub(9)?)?;
    let told = std::str::from_utf8(rest.strip_prefix(b"*")?).ok()?;
    if u32::from_str_radix(told, 16).ok()? != sum(text) {
        return None;
    }
    std::str::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intact_lines_come_back_and_garbled_ones_do_not() {
        let line = pack("done 3");
        let line = line.trim_end().as_bytes();
        assert_eq!(unpack(line), Some("done 3"));
        for at in 0..line.len() {
            let mut garbled = line.to_vec();
            garbled[at] ^= 1;
            assert_eq!(unpack(&garbled), None, "byte {at}");
        }
        assert_eq!(unpack(&line[..5]), None);
    }
}
