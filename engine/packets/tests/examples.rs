//! Replays every conversation of `protocol/examples` against the binary; the README there says how lines are compared.

mod conversation;

use std::path::Path;

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

fn replay(path: &Path) {
    let mut engine = Engine::start();
    for (number, line) in std::fs::read_to_string(path).unwrap().lines().enumerate() {
        if let Some(request) = line.strip_prefix("> ") {
            engine.write(request);
        } else if let Some(expected) = line.strip_prefix("< ") {
            let expected: Value = serde_json::from_str(expected).unwrap();
            let difference = difference("", &expected, &engine.read());
            assert_eq!(difference, None, "{}:{}", path.display(), number + 1);
        }
    }
    assert_eq!(engine.finish(), Some(0), "{}", path.display());
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
