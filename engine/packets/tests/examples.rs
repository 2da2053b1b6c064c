//! Replays every conversation of `protocol/examples` against the binary; the README there says how lines are compared.

mod conversation;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use conversation::Engine;
use serde_json::Value;

/// Where `actual` differs from `expected`, if it does.
fn difference(place: &str, expected: &Value, actual: &Value) -> Option<String> {
    match (expected, actual) {
        (Value::String(any), _) if any == "*" => None,
        (Value::Object(expected), Value::Object(actual)) => expected.iter().find_map(|(name, expected)| {
            let place = format!("{place}.{name}");
            match actual.get(name) {
                Some(actual) => difference(&place, expected, actual),
                None => Some(format!("{place} is missing")),
            }
        }),
        (Value::Array(expected), Value::Array(actual)) if expected.len() == actual.len() => {
            let mut pairs = expected.iter().zip(actual).enumerate();
            pairs.find_map(|(index, (expected, actual))| difference(&format!("{place}[{index}]"), expected, actual))
        }
        (Value::Number(expected), Value::Number(actual)) if expected.as_f64() == actual.as_f64() => None,
        _ if expected == actual => None,
        _ => Some(format!("{place}: expected {expected}, got {actual}")),
    }
}

/// The lines of a file that the conversation tells of; of a binary one its length, "*" where it holds anything.
fn lines_of(file: &Path) -> Vec<Value> {
    let content = std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let lines = std::str::from_utf8(&content).ok().map(|text| text.lines().map(serde_json::from_str).collect());
    lines.and_then(|lines: Result<_, _>| lines.ok()).unwrap_or_else(|| vec![content.len().into()])
}

fn replay(path: &Path) {
    let folder = Folder::new(path);
    let mut files: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut engine = Engine::start_in(&folder.0);
    for (number, line) in std::fs::read_to_string(path).unwrap().lines().enumerate() {
        if let Some(request) = line.strip_prefix("> ") {
            engine.write(request);
        } else if let Some(expected) = line.strip_prefix("< ") {
            let expected: Value = serde_json::from_str(expected).unwrap();
            let difference = difference("", &expected, &engine.read());
            assert_eq!(difference, None, "{}:{}", path.display(), number + 1);
        } else if let Some((name, expected)) = line.strip_prefix("= ").and_then(|rest| rest.split_once(' ')) {
            files.entry(name.into()).or_default().push(serde_json::from_str(expected).unwrap());
        }
    }
    for (name, expected) in files {
        let difference = difference(&name, &expected.into(), &lines_of(&folder.0.join(&name)).into());
        assert_eq!(difference, None, "{}", path.display());
    }
    assert_eq!(engine.finish(), Some(0), "{}", path.display());
}

/// An empty folder, gone when the conversation is over.
struct Folder(PathBuf);

impl Folder {
    fn new(example: &Path) -> Self {
        let name = example.file_stem().unwrap().to_string_lossy().into_owned();
        let folder = std::env::temp_dir().join(format!("nicbench-example-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_example_conversation_goes_as_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../protocol/examples");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "ndjson"));
    assert!(paths.len() >= 5, "{paths:?}");
    paths.iter().for_each(|path| replay(path));
}

#[test]
fn the_comparison_sees_what_differs_and_only_that() {
    let expected = serde_json::json!({"id": 1, "list": [1.0, "*"]});
    let differs = |actual: Value| difference("", &expected, &actual).is_some();
    assert!(!differs(serde_json::json!({"id": 1, "list": [1, null], "new": true})));
    assert!(differs(serde_json::json!({"id": 1})));
    assert!(differs(serde_json::json!({"id": 1, "list": [1]})));
    assert!(differs(serde_json::json!({"id": 1, "list": [2, 0]})));
}
