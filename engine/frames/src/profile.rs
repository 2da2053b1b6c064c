//! Sizes of frames by name: a raster, and how a format stores it.

use crate::content::mix;

/// Before the picture, where a format has one: the profiles' default, as of frames laid out for direct I/O.
pub const HEADER_BYTES: u64 = 65_536;

/// Rasters by name: full frames, as film scanners and test tools have them.
const RASTERS: [(&str, u64, u64); 6] = [
    ("sd", 720, 486),
    ("hd", 1920, 1080),
    ("uhd", 3840, 2160),
    ("2k", 2048, 1556),
    ("4k", 4096, 3112),
    ("8k", 8192, 6224),
];

/// How a pixel of three components is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storage {
    /// SMPTE ST 268 (DPX), three 10-bit components in a word of 32 bits.
    Dpx10,
    /// Three 12-bit components, each in 16 bits.
    Dpx12,
    /// Three 16-bit components.
    Dpx16,
    /// OpenEXR, three halves, compressed without loss: sizes vary with the picture.
    Exr,
}

/// Compressed pictures take from 40 to 70 % here; what theirs take depends on the material.
const EXR_LEAST_PER_MILLE: u64 = 400;
const EXR_MOST_PER_MILLE: u64 = 700;

/// The sizes that a profile's name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Profile {
    /// The picture; of a compressed format, before compression.
    pub picture_bytes: u64,
    /// The header before the picture.
    pub header_bytes: u64,
    pub is_compressed: bool,
}

/// By name: a raster, and `-10` (which may be left out), `-12`, `-16` or `-exr`, as in `4k` or `hd-16`.
pub fn find(name: &str) -> Option<Profile> {
    let lower = name.to_ascii_lowercase();
    let (raster, storage) = lower.split_once('-').unwrap_or((&lower, "10"));
    let storage = match storage {
        "10" => Storage::Dpx10,
        "12" => Storage::Dpx12,
        "16" => Storage::Dpx16,
        "exr" => Storage::Exr,
        _ => return None,
    };
    let (_, width, height) = RASTERS.iter().find(|(known, _, _)| *known == raster)?;
    let pixel_bytes = match storage {
        Storage::Dpx10 => 4,
        Storage::Dpx12 | Storage::Dpx16 | Storage::Exr => 6,
    };
    Some(Profile {
        picture_bytes: width * height * pixel_bytes,
        header_bytes: HEADER_BYTES,
        is_compressed: storage == Storage::Exr,
    })
}

/// All names, for people.
pub fn names() -> String {
    let rasters: Vec<&str> = RASTERS.iter().map(|(name, _, _)| *name).collect();
    format!("{}, each with -10 (default), -12, -16 or -exr", rasters.join(", "))
}

/// The size of a compressed picture, which depends on seed and frame.
pub fn compressed_bytes(picture_bytes: u64, seed: u64, frame: u64) -> u64 {
    let range = EXR_MOST_PER_MILLE - EXR_LEAST_PER_MILLE;
    // In millionths of the range, so that sizes are not round.
    let share = mix(mix(seed ^ 0x45_5852) ^ frame) % 1_000_001;
    let least = picture_bytes * EXR_LEAST_PER_MILLE / 1000;
    least + (u128::from(picture_bytes * range / 1000) * u128::from(share) / 1_000_000) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_4k_frame_has_the_published_size() {
        let profile = find("4k").unwrap();
        assert_eq!((profile.picture_bytes, profile.header_bytes), (50_987_008, 65_536));
        assert_eq!(find("4K-10"), Some(profile));
    }

    #[test]
    fn deeper_pixels_take_more_and_unknown_names_are_none() {
        assert_eq!(find("hd-16").unwrap().picture_bytes, 1920 * 1080 * 6);
        assert_eq!(find("8k-12").unwrap().picture_bytes, 8192 * 6224 * 6);
        assert_eq!(find("sd").unwrap().picture_bytes, 720 * 486 * 4);
        assert_eq!((find("5k"), find("4k-8"), find("")), (None, None, None));
    }

    #[test]
    fn compressed_sizes_vary_within_their_range_and_are_the_same_every_time() {
        let sizes: Vec<u64> = (0..1000).map(|frame| compressed_bytes(1_000_000, 5, frame)).collect();
        assert!(sizes.iter().all(|size| (400_000..=700_000).contains(size)));
        let mean = sizes.iter().sum::<u64>() / 1000;
        assert!((530_000..570_000).contains(&mean), "{mean}");
        assert_eq!(sizes[7], compressed_bytes(1_000_000, 5, 7));
    }
}
