//! Any bytes as what a server answers: read in one piece and in many, they come to the same.

use nicbench_connections::http::{Answer, Progress, Wrong};

/// Tries `input`: its first two bytes say what was asked for and how it comes, the others are the answer.
pub fn judge(input: &[u8]) {
    let &[asked, step, ref answer @ ..] = input else { return };
    let expected = (asked & 1 == 1).then_some(u64::from(asked >> 1));
    let whole = read(answer, expected, answer.len().max(1));
    let pieces = read(answer, expected, usize::from(step).max(1));
    // Of an answer that is wrong in two ways, either is told.
    assert_eq!(whole.ok(), pieces.ok(), "in pieces of {step}");
    if let Ok((Progress::Complete { .. }, body_bytes)) = whole {
        assert!(body_bytes <= answer.len() as u64);
        assert!(expected.is_none_or(|expected| expected == body_bytes), "{expected:?} of {body_bytes}");
    }
}

/// Reads an answer in pieces of `step` bytes; bytes behind its end are wrong.
fn read(answer: &[u8], expected: Option<u64>, step: usize) -> Result<(Progress, u64), Wrong> {
    let mut reader = Answer::new(expected);
    let mut progress = Progress::More;
    for piece in answer.chunks(step) {
        if progress != Progress::More {
            return Err(Wrong::Length);
        }
        progress = reader.take(piece)?;
    }
    Ok((progress, reader.body_bytes))
}
