//! The frames of a job: their number, files and sizes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::manifest::{Files, Manifest, NAME, Picture};
use crate::names::Pattern;

/// Frames whose sizes or places can be listed one by one: at 24 a second they last for a month.
const MOST_LISTED: u64 = 1 << 26;

/// The place of one frame in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameLocation {
    /// Its number, which its content depends on.
    pub number: u64,
    pub path: PathBuf,
    /// The first byte of the frame in the file.
    pub offset: u64,
    pub bytes: u64,
}

/// The frames of a job.
#[derive(Debug, Clone)]
pub enum Frames {
    /// One file for each.
    Files { directory: PathBuf, pattern: Pattern, first: u64, bytes: Sizes },
    /// All in one file, one after another.
    Streamed { path: PathBuf, first: u64, ends: Vec<u64> },
    /// Files that nicbench did not write.
    Found { directory: PathBuf, files: Vec<(String, u64)> },
}

/// The sizes of a number of frames.
#[derive(Debug, Clone)]
pub enum Sizes {
    Equal { bytes: u64, count: u64 },
    Each(Vec<u64>),
}

impl Frames {
    /// The first `limit` frames that a manifest lists.
    pub fn from_manifest(directory: &Path, manifest: &Manifest, limit: Option<u64>) -> Result<Self, String> {
        let count = manifest.frames.min(limit.unwrap_or(u64::MAX));
        let (directory, first) = (directory.to_owned(), manifest.first);
        let is_listed =
            matches!(manifest.files, Files::Streamed(_)) || matches!(manifest.picture, Picture::CompressedFromBytes(_));
        if is_listed && count > MOST_LISTED {
            return Err(format!("{count} frames are more than {MOST_LISTED}, streamed or of varying size"));
        }
        let sizes = || (0..count).map(|index| manifest.frame_bytes(first + index));
        Ok(match &manifest.files {
            Files::Streamed(name) => {
                let ends = sizes().scan(0u64, |end, bytes| {
                    *end = end.saturating_add(bytes);
                    Some(*end)
                });
                Self::Streamed { path: directory.join(name), first, ends: ends.collect() }
            }
            Files::Pattern(pattern) => {
                let bytes = match manifest.picture {
                    Picture::Bytes(_) => Sizes::Equal { bytes: manifest.frame_bytes(first), count },
                    Picture::CompressedFromBytes(_) => Sizes::Each(sizes().collect()),
                };
                Self::Files { directory, pattern: Pattern::parse(pattern)?, first, bytes }
            }
        })
    }

    /// Existing files: those of a pattern, by number from `first` on, or all of them, by name.
    pub fn from_directory(
        directory: &Path,
        pattern: Option<&Pattern>,
        first: u64,
        limit: Option<u64>,
    ) -> Result<Self, String> {
        let in_words = |error: std::io::Error| format!("{}: {error}", directory.display());
        let mut files = Vec::new();
        for entry in fs::read_dir(directory).map_err(in_words)? {
            let entry = entry.map_err(in_words)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let number = match pattern {
                Some(pattern) => pattern.number(&name).filter(|number| *number >= first),
                None => (name != NAME && !name.starts_with('.')).then_some(0),
            };
            let Some(number) = number else { continue };
            let details = entry.metadata().map_err(in_words)?;
            if details.is_file() {
                files.push((number, name, details.len()));
            }
        }
        files.sort_unstable();
        files.truncate(limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX));
        let files = files.into_iter().map(|(_, name, bytes)| (name, bytes)).collect();
        Ok(Self::Found { directory: directory.to_owned(), files })
    }

    /// One existing file, cut into frames of equal size.
    pub fn from_stream(path: PathBuf, frame_bytes: u64, limit: Option<u64>) -> Result<Self, String> {
        let bytes = fs::metadata(&path).map_err(|error| format!("{}: {error}", path.display()))?.len();
        let count = (bytes / frame_bytes.max(1)).min(limit.unwrap_or(u64::MAX)).min(u64::from(u32::MAX));
        Ok(Self::Streamed { path, first: 0, ends: (1..=count).map(|index| index * frame_bytes).collect() })
    }

    pub fn count(&self) -> u64 {
        match self {
            Self::Files { bytes: Sizes::Equal { count, .. }, .. } => *count,
            Self::Files { bytes: Sizes::Each(each), .. } => each.len() as u64,
            Self::Streamed { ends, .. } => ends.len() as u64,
            Self::Found { files, .. } => files.len() as u64,
        }
    }

    /// The frame at this index, of `count`.
    pub fn location(&self, index: u64) -> FrameLocation {
        let at = index as usize;
        match self {
            Self::Files { directory, pattern, first, bytes } => FrameLocation {
                number: first + index,
                path: directory.join(pattern.name(first + index)),
                offset: 0,
                bytes: match bytes {
                    Sizes::Equal { bytes, .. } => *bytes,
                    Sizes::Each(each) => each[at],
                },
            },
            Self::Streamed { path, first, ends } => {
                let offset = if at == 0 { 0 } else { ends[at - 1] };
                FrameLocation { number: first + index, path: path.clone(), offset, bytes: ends[at] - offset }
            }
            Self::Found { directory, files } => {
                let (name, bytes) = &files[at];
                FrameLocation { number: index, path: directory.join(name), offset: 0, bytes: *bytes }
            }
        }
    }

    /// The file that holds them all, where one does.
    pub fn stream(&self) -> Option<&Path> {
        match self {
            Self::Streamed { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Of the smallest, of the largest, of all together; `None` where there are none.
    pub fn sizes(&self) -> Option<(u64, u64, u64)> {
        if let Self::Files { bytes: Sizes::Equal { bytes, count }, .. } = self {
            return (*count > 0).then(|| (*bytes, *bytes, bytes.saturating_mul(*count)));
        }
        (0..self.count()).map(|index| self.location(index).bytes).fold(None, |found, bytes| match found {
            None => Some((bytes, bytes, bytes)),
            Some((least, most, total)) => Some((bytes.min(least), bytes.max(most), bytes.saturating_add(total))),
        })
    }

    /// A file that is there already under a name that would be written; `None` where there is none.
    pub fn find_existing_file(&self) -> std::io::Result<Option<PathBuf>> {
        match self {
            Self::Files { directory, pattern, first, .. } => {
                let range = *first..first.saturating_add(self.count());
                for entry in fs::read_dir(directory)? {
                    let entry = entry?;
                    let number = entry.file_name().to_str().and_then(|name| pattern.number(name));
                    if number.is_some_and(|number| range.contains(&number)) {
                        return Ok(Some(entry.path()));
                    }
                }
                Ok(None)
            }
            Self::Streamed { path, .. } => Ok(fs::symlink_metadata(path).is_ok().then(|| path.clone())),
            Self::Found { .. } => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_a_stream_follow_one_another_also_where_sizes_vary() {
        let picture = Picture::CompressedFromBytes(100_000);
        let mut manifest = Manifest::new(3, Files::Streamed("s".into()), 10, 20, 100, picture);
        for rounded in [1, 4096] {
            manifest.rounded_to_bytes = rounded;
            let frames = Frames::from_manifest(Path::new("/d"), &manifest, Some(15)).unwrap();
            assert_eq!(frames.count(), 15);
            let spots: Vec<FrameLocation> = (0..15).map(|index| frames.location(index)).collect();
            assert!(spots.windows(2).all(|pair| pair[0].offset + pair[0].bytes == pair[1].offset));
            assert!(
                spots.iter().all(|location| location.offset % rounded == 0
                    && location.bytes == manifest.frame_bytes(location.number))
            );
            let (least, most, total) = frames.sizes().unwrap();
            assert!(least < most && total == spots[14].offset + spots[14].bytes);
        }
    }

    #[test]
    fn more_frames_than_can_be_listed_are_refused() {
        for (files, picture) in [
            (Files::Streamed("s".into()), Picture::Bytes(7)),
            (Files::Pattern("f%d".into()), Picture::CompressedFromBytes(7)),
        ] {
            let manifest = Manifest::new(1, files, 5, 1 << 40, 0, picture);
            assert!(Frames::from_manifest(Path::new("/d"), &manifest, None).is_err());
            assert_eq!(Frames::from_manifest(Path::new("/d"), &manifest, Some(3)).unwrap().count(), 3);
        }
    }

    #[test]
    fn files_of_equal_size_are_not_listed_one_by_one() {
        let manifest = Manifest::new(1, Files::Pattern("f%d".into()), 5, 1 << 40, 0, Picture::Bytes(7));
        let frames = Frames::from_manifest(Path::new("/d"), &manifest, None).unwrap();
        assert_eq!(frames.sizes(), Some((7, 7, 7 << 40)));
        assert_eq!(frames.location(3), FrameLocation { number: 8, path: "/d/f8".into(), offset: 0, bytes: 7 });
    }
}
