//! Reading the kernel's text files without memory of its own: lines, fields, numbers. Whatever is not there is `None`.

/// Digits and nothing else.
pub fn number(bytes: &[u8]) -> Option<u64> {
    number_in_base(bytes, 10)
}

/// Hexadecimal digits and nothing else, with `0x` or without.
pub fn hexadecimal(bytes: &[u8]) -> Option<u64> {
    number_in_base(bytes.strip_prefix(b"0x").unwrap_or(bytes), 16)
}

fn number_in_base(bytes: &[u8], base: u32) -> Option<u64> {
    if bytes.is_empty() {
        return None;
    }
    bytes.iter().try_fold(0u64, |value, byte| {
        let digit = char::from(*byte).to_digit(base)?;
        value.checked_mul(base.into())?.checked_add(digit.into())
    })
}

/// A number that may be below 0.
pub fn signed_number(bytes: &[u8]) -> Option<i64> {
    match bytes.strip_prefix(b"-") {
        Some(digits) => i64::try_from(number(digits)?).ok().map(|value| -value),
        None => i64::try_from(number(bytes)?).ok(),
    }
}

/// The only number of a small file.
pub fn only(bytes: &[u8]) -> Option<u64> {
    number(bytes.trim_ascii())
}

/// The lines that are not empty.
pub fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty())
}

/// What spaces separate.
pub fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty())
}

/// A name as text: what is not UTF-8 is replaced, control characters too, and it is cut at 64 characters.
pub fn name(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().map(|one| if one.is_control() { '?' } else { one }).take(64).collect()
}

/// CPUs or nodes as the kernel lists them, as in `0-3,8`; at most 4096 of them.
pub fn list(bytes: &[u8]) -> Vec<u32> {
    let mut found = Vec::new();
    for part in bytes.trim_ascii().split(|byte| *byte == b',') {
        let mut ends =
            part.splitn(2, |byte| *byte == b'-').map(|end| number(end).and_then(|end| u32::try_from(end).ok()));
        let Some(Some(first)) = ends.next() else { continue };
        let Some(last) = ends.next().unwrap_or(Some(first)) else { continue };
        found.extend((first..=last).take(4096 - found.len().min(4096)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_digits_and_nothing_else() {
        assert_eq!((number(b"18446744073709551615"), number(b"18446744073709551616")), (Some(u64::MAX), None));
        assert_eq!((number(b""), number(b"-1"), number(b"1x"), number(b"+1")), (None, None, None, None));
        assert_eq!(
            (hexadecimal(b"0fc2ff60"), hexadecimal(b"0x38"), hexadecimal(b"0x")),
            (Some(0x0fc2_ff60), Some(56), None)
        );
        assert_eq!(
            (signed_number(b"-40000"), signed_number(b"7"), signed_number(b"-")),
            (Some(-40_000), Some(7), None)
        );
        assert_eq!((only(b" 12\n"), only(b"12 13")), (Some(12), None));
    }

    #[test]
    fn fields_and_lines_leave_out_what_is_empty() {
        assert_eq!(fields(b"  a \t b\n").collect::<Vec<_>>(), [b"a", b"b"]);
        assert_eq!(lines(b"\n a\n \nb").count(), 2);
    }

    #[test]
    fn a_list_has_ranges_and_an_end() {
        assert_eq!(list(b"0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(list(b"x,3-,5-4,-"), Vec::<u32>::new());
        assert_eq!(list(b"0-4294967295").len(), 4096);
    }

    #[test]
    fn names_are_harmless() {
        assert_eq!(name(b"a\x1b[2Jb\xff"), "a?[2Jb\u{fffd}");
        assert_eq!(name(&[b'x'; 999]).len(), 64);
    }
}
