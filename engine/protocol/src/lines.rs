//! Requests line by line, by a thread that may wait for them.

use std::io::{BufRead, Read};

use crate::{ErrorKind, ErrorReport, Refusal};

/// Longer lines are not kept. Thousands of flows are one line, and the controller's own limit is the same.
const LONGEST_LINE_BYTES: u64 = 64 << 20;

/// The next line that is not empty; `None` at the end of the input.
pub fn next_line(input: &mut impl BufRead) -> Option<Result<String, Refusal>> {
    next_line_within(input, LONGEST_LINE_BYTES)
}

fn next_line_within(input: &mut impl BufRead, longest: u64) -> Option<Result<String, Refusal>> {
    loop {
        let mut bytes = Vec::new();
        let count = input.by_ref().take(longest).read_until(b'\n', &mut bytes).ok()?;
        if count == 0 {
            return None;
        }
        if count as u64 == longest && bytes.last() != Some(&b'\n') {
            skip_line(input, longest);
            return Some(Err(bad_line(&format!("the line is longer than {longest} bytes"))));
        }
        match String::from_utf8(bytes) {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) => return Some(Ok(line)),
            Err(_) => return Some(Err(bad_line("the line is not UTF-8"))),
        }
    }
}

fn skip_line(input: &mut impl BufRead, at_once: u64) {
    loop {
        let mut bytes = Vec::new();
        let count = input.by_ref().take(at_once).read_until(b'\n', &mut bytes);
        if !count.is_ok_and(|count| count > 0) || bytes.last() == Some(&b'\n') {
            return;
        }
    }
}

fn bad_line(message: &str) -> Refusal {
    let error = ErrorReport::new(ErrorKind::BadRequest, message, "send one JSON object a line, in UTF-8");
    Refusal { id: None, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_too_long_is_refused_and_the_next_one_is_read() {
        let mut text = vec![b'x'; 3 * 1024 + 5];
        text.extend(b"\nnext\n");
        let mut input = text.as_slice();
        assert!(next_line_within(&mut input, 1024).unwrap().is_err());
        assert_eq!(next_line_within(&mut input, 1024).unwrap().unwrap(), "next\n");
        assert!(next_line_within(&mut input, 1024).is_none());
    }

    #[test]
    fn empty_lines_are_nothing_and_other_encodings_are_refused() {
        let mut input = &b"\n  \n\xff\xfe\n{}"[..];
        assert!(next_line(&mut input).unwrap().is_err());
        assert_eq!(next_line(&mut input).unwrap().unwrap(), "{}");
    }
}
