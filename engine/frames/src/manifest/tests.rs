use super::*;
use crate::content::Content;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("nicbench-manifest-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn manifest() -> Manifest {
    Manifest::new(1, Files::Pattern("f%03d".into()), 5, 6, 0, Picture::Bytes(5000))
}

#[test]
fn only_what_was_listed_and_written_is_removed() {
    let folder = Folder::new("only");
    manifest().save(&folder.0).unwrap();
    let mut bytes = [0; 5000];
    Content::new(FramesContent::Unique, 1).fill(5, 0, &mut bytes);
    let put = |name: &str, bytes: &[u8]| fs::write(folder.0.join(name), bytes).unwrap();
    put("f005", &bytes);
    put("f006", b"");
    put("f007", &[0; 100]);
    // Not listed, though ours; listed, and not ours; a link to one that is ours; a folder.
    put("f011", &bytes);
    put("f008", b"SDPX and a picture of somebody");
    std::os::unix::fs::symlink(folder.0.join("f011"), folder.0.join("f009")).unwrap();
    fs::create_dir(folder.0.join("f010")).unwrap();
    let cleaned = clean(&folder.0).unwrap();
    assert_eq!((cleaned.removed, cleaned.removed_bytes), (3, 5100));
    assert_eq!(cleaned.kept, ["f008", "f009", "f010"].map(|name| folder.0.join(name)));
    assert_eq!(folder.names(), ["f008", "f009", "f010", "f011", NAME]);
}

#[test]
fn a_directory_without_a_manifest_is_left_alone_and_one_with_an_empty_rest_loses_it() {
    let folder = Folder::new("none");
    fs::write(folder.0.join("f005"), MARK).unwrap();
    assert_eq!(clean(&folder.0), Ok(Cleaned::default()));
    manifest().save(&folder.0).unwrap();
    assert_eq!(clean(&folder.0).unwrap().removed, 1);
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn a_manifest_comes_back_as_it_was_and_what_is_none_is_named() {
    let folder = Folder::new("load");
    assert_eq!(Manifest::load(&folder.0), Ok(None));
    let mut saved = manifest();
    saved.rounded_to_bytes = 4096;
    saved.save(&folder.0).unwrap();
    assert_eq!(Manifest::load(&folder.0), Ok(Some(saved.clone())));
    assert_eq!(saved.frame_bytes(0), 8192);
    for text in ["", "{}", "[1", r#"{"format":"nicbench-frames 9"}"#] {
        fs::write(folder.0.join(NAME), text).unwrap();
        assert!(Manifest::load(&folder.0).unwrap_err().contains(NAME), "{text}");
    }
}

#[test]
fn a_manifest_that_was_tampered_with_leads_nowhere_else() {
    let folder = Folder::new("tampered");
    let victim = folder.0.join("victim");
    fs::write(&victim, MARK).unwrap();
    let inner = folder.0.join("inner");
    fs::create_dir(&inner).unwrap();
    for files in [Files::Streamed("../victim".into()), Files::Pattern("../victim%d".into())] {
        Manifest { files, ..manifest() }.save(&inner).unwrap();
        assert!(clean(&inner).is_err());
        assert!(victim.exists());
    }
}

#[test]
fn numbers_that_no_frames_have_are_refused_and_cost_nothing() {
    let folder = Folder::new("numbers");
    for change in [
        |manifest: &mut Manifest| manifest.frames = u64::MAX,
        |manifest: &mut Manifest| manifest.first = u64::MAX,
        |manifest: &mut Manifest| manifest.rounded_to_bytes = u64::MAX,
        |manifest: &mut Manifest| manifest.picture = Picture::CompressedFromBytes(u64::MAX),
        |manifest: &mut Manifest| manifest.rounded_to_bytes = 0,
    ] {
        let mut wrong = manifest();
        change(&mut wrong);
        wrong.save(&folder.0).unwrap();
        assert!(Manifest::load(&folder.0).unwrap_err().contains(NAME), "{wrong:?}");
        assert!(clean(&folder.0).is_err());
    }
}

#[test]
fn a_manifest_that_lists_far_more_than_there_is_removes_what_there_is() {
    let folder = Folder::new("many");
    Manifest { frames: 1 << 40, ..manifest() }.save(&folder.0).unwrap();
    fs::write(folder.0.join("f007"), MARK).unwrap();
    assert_eq!(clean(&folder.0).unwrap().removed, 1);
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn a_file_that_begins_with_zeros_is_ours_where_all_of_it_could_be() {
    let folder = Folder::new("zeros");
    let stamped = |place: usize| {
        let mut bytes = vec![0; 3 * BLOCK_BYTES];
        bytes[place * BLOCK_BYTES..][..MARK.len()].copy_from_slice(&MARK);
        bytes[place * BLOCK_BYTES + 100] = 7;
        bytes
    };
    let mut picture = vec![0; 25_000];
    picture[9000] = 1;
    for (content, is_removed) in [
        (Vec::new(), true),
        (vec![0; 25_000], true),
        (stamped(0), true),
        (stamped(2), true),
        (picture, false),
        ([vec![0; 8], vec![5; 100]].concat(), false),
        (MARK[..3].to_vec(), true),
        (b"NBF2".to_vec(), false),
    ] {
        Manifest { frames: 1, ..manifest() }.save(&folder.0).unwrap();
        fs::write(folder.0.join("f005"), &content).unwrap();
        let cleaned = clean(&folder.0).unwrap();
        assert_eq!(cleaned.removed == 1, is_removed, "{} bytes", content.len());
        let _ = fs::remove_file(folder.0.join("f005"));
    }
}
