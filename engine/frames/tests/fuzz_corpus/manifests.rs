//! Any bytes as the manifest of a directory that others may write to, and as a request: nothing is removed but what
//! nicbench wrote, and nobody's number takes all memory.

use std::fs;
use std::path::{Path, PathBuf};

use nicbench_frames::content::MARK;
use nicbench_frames::job::Job;
use nicbench_frames::manifest::{Manifest, NAME, clean};
use nicbench_protocol::{FramesConfigure, FramesEngine};

/// Between the manifest and the request.
const BETWEEN: u8 = 0x1E;
const OURS: [&str; 3] = ["f005", "f006", "stream"];
const FOREIGN: [&str; 3] = ["f007", "notes", "f05"];
const FOREIGN_CONTENT: &[u8] = b"somebody else's";

/// Tries `input`: a manifest and, behind a separator, the fields of `configure`.
pub fn judge(input: &[u8]) {
    let folder = folder();
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("a folder in memory");
    let (manifest, request) = input.split_at(input.iter().position(|byte| *byte == BETWEEN).unwrap_or(input.len()));
    OURS.iter().for_each(|name| put(&folder, name, &MARK));
    FOREIGN.iter().for_each(|name| put(&folder, name, FOREIGN_CONTENT));
    put(&folder, NAME, manifest);
    if let Ok(Some(manifest)) = Manifest::load(&folder) {
        for number in [manifest.first, manifest.first.saturating_add(manifest.frames)] {
            manifest.frame_bytes(number);
        }
    }
    match serde_json::from_slice::<FramesConfigure>(request.get(1..).unwrap_or_default()) {
        Ok(mut asked) => {
            asked.directory = folder.display().to_string();
            (asked.samples, asked.csv, asked.engine) = (None, None, FramesEngine::Sync);
            if let Err(error) = Job::new(asked) {
                assert!(!error.message.is_empty() && !error.next.is_empty(), "{error:?}");
            }
        }
        Err(_) => {
            if let Ok(cleaned) = clean(&folder) {
                let left = OURS.iter().filter(|name| folder.join(name).exists()).count();
                assert_eq!(cleaned.removed, (OURS.len() - left) as u64);
            }
        }
    }
    for name in FOREIGN {
        assert_eq!(fs::read(folder.join(name)).expect("it is still there"), FOREIGN_CONTENT, "{name}");
    }
    let _ = fs::remove_dir_all(&folder);
}

fn put(folder: &Path, name: &str, content: &[u8]) {
    fs::write(folder.join(name), content).expect("a file in memory");
}

/// One for this process, in memory where that can be.
fn folder() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let parent = if memory.is_dir() { memory } else { std::env::temp_dir() };
    parent.join(format!("nicbench-fuzz-frames-{}", std::process::id()))
}
