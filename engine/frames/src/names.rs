//! File names of frames: a pattern with a number in it, and nothing that leads out of the directory.

/// `prefix`, a number of at least `digits` digits, `suffix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    prefix: String,
    digits: usize,
    suffix: String,
}

impl Pattern {
    /// From text as printf(3) has it: `shot_%06d.dpx`, `%d.exr`; `%%` is a percent sign. The error says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = [String::new(), String::new()];
        let (mut part, mut digits) = (0, 0);
        let mut rest = text.chars().peekable();
        while let Some(one) = rest.next() {
            if one != '%' {
                parts[part].push(one);
                continue;
            }
            if rest.next_if_eq(&'%').is_some() {
                parts[part].push('%');
                continue;
            }
            let mut width = String::new();
            while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                width.push(digit);
            }
            if rest.next() != Some('d') || part == 1 || (!width.is_empty() && !width.starts_with('0')) {
                return Err(format!("the pattern {text:?} must hold one %d or %06d, and no other %"));
            }
            digits = if width.is_empty() { 1 } else { width.parse().unwrap_or(usize::MAX) };
            part = 1;
        }
        if part == 0 || digits > 20 {
            return Err(format!("the pattern {text:?} must hold one %d or %06d (20 digits at most)"));
        }
        let [prefix, suffix] = parts;
        let pattern = Self { prefix, digits, suffix };
        if is_plain(&pattern.name(0)) {
            Ok(pattern)
        } else {
            Err(format!("the pattern {text:?} must be a plain file name"))
        }
    }

    /// Of the frame with this number.
    pub fn name(&self, number: u64) -> String {
        format!("{}{number:0digits$}{}", self.prefix, self.suffix, digits = self.digits)
    }

    /// The number in a name of this pattern.
    pub fn number(&self, name: &str) -> Option<u64> {
        let digits = name.strip_prefix(self.prefix.as_str())?.strip_suffix(self.suffix.as_str())?;
        let number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok()).flatten()?;
        (self.name(number) == name).then_some(number)
    }
}

/// Whether it names a file in the directory itself.
pub fn is_plain(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && name.len() <= 255 && !name.contains(['/', '\0'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_gives_names_and_finds_its_numbers_again() {
        let pattern = Pattern::parse("shot_%06d.dpx").unwrap();
        assert_eq!((pattern.name(7), pattern.name(1_234_567)), ("shot_000007.dpx".into(), "shot_1234567.dpx".into()));
        for number in [0, 7, 999_999, 1_234_567] {
            assert_eq!(pattern.number(&pattern.name(number)), Some(number));
        }
        for other in ["shot_7.dpx", "shot_000007.exr", "shot_.dpx", "shot_+00007.dpx", "shot_0000007.dpx", "x"] {
            assert_eq!(pattern.number(other), None, "{other}");
        }
        assert_eq!(Pattern::parse("100%%_%d").unwrap().name(5), "100%_5");
    }

    #[test]
    fn a_pattern_that_names_no_plain_file_or_has_no_number_is_refused() {
        for text in ["", "frame.dpx", "%d%d", "%s", "%6d", "a/%d", "../%d", "%", "%099d", "%d\0"] {
            assert!(Pattern::parse(text).is_err(), "{text:?}");
        }
    }
}
