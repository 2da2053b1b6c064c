//! What nicbench wrote into a directory: a file there names it before the first frame is made, so that a read knows
//! what to expect, and nothing else is ever removed.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nicbench_protocol::FramesContent;
use serde::{Deserialize, Serialize};

use crate::content::{BLOCK_BYTES, MARK};
use crate::names::{Pattern, is_plain};
use crate::profile::compressed_bytes;

/// The manifest's own name.
pub const NAME: &str = "nicbench-frames.json";
const FORMAT: &str = "nicbench-frames 1";
/// Longer manifests are not ours.
const LONGEST_BYTES: u64 = 1 << 20;
/// The greatest size and number: beyond it a manifest is a mistake, or of somebody who means harm.
const MOST: u64 = 1 << 40;

/// The manifest of a directory of frames.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: String,
    /// Of the content, and of sizes that vary.
    pub seed: u64,
    pub content: FramesContent,
    pub files: Files,
    /// Number of the first frame.
    pub first: u64,
    pub frames: u64,
    pub header_bytes: u64,
    pub picture: Picture,
    /// Frames are filled up to a multiple of this, as direct I/O wants it.
    pub rounded_to_bytes: u64,
}

/// Where frames are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Files {
    /// Each in a file of its own.
    Pattern(String),
    /// All in this one.
    Streamed(String),
}

/// Bytes of a frame after its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Picture {
    Bytes(u64),
    /// Compressed from so many, by seed and frame.
    CompressedFromBytes(u64),
}

impl Manifest {
    pub fn new(seed: u64, files: Files, first: u64, frames: u64, header_bytes: u64, picture: Picture) -> Self {
        let (format, content) = (FORMAT.into(), FramesContent::Unique);
        Self { format, seed, content, files, first, frames, header_bytes, picture, rounded_to_bytes: 1 }
    }

    /// The whole frame with this number.
    pub fn frame_bytes(&self, number: u64) -> u64 {
        let picture = match self.picture {
            Picture::Bytes(bytes) => bytes,
            Picture::CompressedFromBytes(bytes) => compressed_bytes(bytes, self.seed, number),
        };
        self.header_bytes.saturating_add(picture).next_multiple_of(self.rounded_to_bytes)
    }

    /// Refuses numbers that no frames have: whoever may write to the directory may write the manifest.
    pub fn check(&self) -> Result<(), String> {
        let (Picture::Bytes(picture) | Picture::CompressedFromBytes(picture)) = self.picture;
        let numbers = [
            ("first", self.first),
            ("frames", self.frames),
            ("header_bytes", self.header_bytes),
            ("picture", picture),
            ("rounded_to_bytes", self.rounded_to_bytes),
        ];
        match numbers.into_iter().find(|(_, number)| *number > MOST) {
            Some((name, number)) => Err(format!("{name} is {number}, and at most {MOST}")),
            None if self.rounded_to_bytes == 0 => Err("rounded_to_bytes is 0".into()),
            None => Ok(()),
        }
    }

    /// The files in `directory` that may have been written, however many the manifest says there are.
    fn files_in(&self, directory: &Path) -> Result<Vec<PathBuf>, String> {
        let pattern = match &self.files {
            Files::Streamed(name) if is_plain(name) => return Ok(vec![directory.join(name)]),
            Files::Streamed(name) => return Err(format!("{name:?} is not a plain file name")),
            Files::Pattern(pattern) => Pattern::parse(pattern)?,
        };
        let numbers = self.first..self.first.saturating_add(self.frames);
        let mut found = Vec::new();
        for entry in fs::read_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))? {
            let entry = entry.map_err(|error| format!("{}: {error}", directory.display()))?;
            let number = entry.file_name().to_str().and_then(|name| pattern.number(name));
            found.extend(number.filter(|number| numbers.contains(number)).map(|number| (number, entry.path())));
        }
        found.sort_unstable();
        Ok(found.into_iter().map(|(_, path)| path).collect())
    }

    /// Saves the manifest: it is written to a temporary name and renamed.
    pub fn save(&self, directory: &Path) -> io::Result<()> {
        let temporary = directory.join(format!(".{NAME}.{}", std::process::id()));
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).custom_flags(libc::O_NOFOLLOW).open(&temporary)?;
        let written =
            serde_json::to_writer(&mut file, self).map_err(io::Error::from).and_then(|()| file.write_all(b"\n"));
        let saved = written.and_then(|()| file.sync_all()).and_then(|()| fs::rename(&temporary, directory.join(NAME)));
        if saved.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        saved
    }

    /// Loads the manifest of a directory; `None` where there is none. An error says what is wrong.
    pub fn load(directory: &Path) -> Result<Option<Self>, String> {
        let path = directory.join(NAME);
        let file = match fs::OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        let mut text = String::new();
        let read = file.take(LONGEST_BYTES).read_to_string(&mut text).map_err(|error| error.to_string());
        let found: Result<Self, String> =
            read.and_then(|_| serde_json::from_str(&text).map_err(|error| error.to_string()));
        match found {
            Ok(manifest) if manifest.format == FORMAT => match manifest.check() {
                Ok(()) => Ok(Some(manifest)),
                Err(what) => Err(format!("{}: {what}", path.display())),
            },
            Ok(manifest) => Err(format!("{}: its format is {:?}, not {FORMAT:?}", path.display(), manifest.format)),
            Err(error) => Err(format!("{}: {error}", path.display())),
        }
    }
}

/// What `clean` did.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Cleaned {
    pub removed: u64,
    pub removed_bytes: u64,
    /// Listed, and not removed: what is in them is not what nicbench writes.
    pub kept: Vec<PathBuf>,
}

/// Removes the files that the directory's manifest lists and that hold what nicbench writes, then the manifest.
/// Whatever else bears a listed name is kept, and so is then the manifest.
pub fn clean(directory: &Path) -> Result<Cleaned, String> {
    let mut cleaned = Cleaned::default();
    let Some(manifest) = Manifest::load(directory)? else { return Ok(cleaned) };
    let in_words = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    for path in manifest.files_in(directory)? {
        match is_ours(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(in_words(&path, error)),
            Ok(None) => cleaned.kept.push(path),
            Ok(Some(bytes)) => {
                fs::remove_file(&path).map_err(|error| in_words(&path, error))?;
                cleaned.removed += 1;
                cleaned.removed_bytes += bytes;
            }
        }
    }
    if cleaned.kept.is_empty() {
        let path = directory.join(NAME);
        fs::remove_file(&path).map_err(|error| in_words(&path, error))?;
    }
    Ok(cleaned)
}

/// The size of a file that holds what we write; `None` where it does not. A frame whose first block was not yet written
/// when its writer was killed is empty there or holds zeros: then each of its blocks must be one of ours, or of zeros.
pub fn is_ours(path: &Path) -> io::Result<Option<u64>> {
    let details = fs::symlink_metadata(path)?;
    if !details.is_file() {
        return Ok(None);
    }
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let mut file: File = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let (mut block, mut is_first) = (Vec::with_capacity(BLOCK_BYTES), true);
    loop {
        block.clear();
        (&mut file).take(BLOCK_BYTES as u64).read_to_end(&mut block)?;
        let begin = &block[..block.len().min(MARK.len())];
        let is_stamped = !begin.is_empty() && MARK.starts_with(begin);
        if block.is_empty() || is_first && is_stamped {
            return Ok(Some(details.len()));
        }
        if !is_stamped && block.iter().any(|byte| *byte != 0) {
            return Ok(None);
        }
        is_first = false;
    }
}

#[cfg(test)]
mod tests;
