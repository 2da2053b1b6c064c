//! `/proc/diskstats` (iostats of the kernel's documentation): whole disks, without partitions, loops and RAM disks.

use super::{Moment, Source, SourceOptions};
use crate::open_file::OpenFile;
use crate::record::{Count, Record};
use crate::text::{fields, lines, number};

/// In the file whatever the disk's own block size.
const SECTOR_BYTES: u64 = 512;
const MOST_DISKS: usize = 256;

struct Disks {
    file: OpenFile,
    sys: std::path::PathBuf,
    disks: Vec<Disk>,
}

struct Disk {
    name: Box<[u8]>,
    /// `None`: not told.
    counts: Option<[Count; 5]>,
}

pub fn open(asked: &SourceOptions, _: &mut Record) -> Result<Box<dyn Source>, String> {
    Ok(Box::new(Disks { file: asked.proc("diskstats")?, sys: asked.sys.join("block"), disks: vec![] }))
}

impl Source for Disks {
    fn sample(&mut self, moment: &mut Moment) -> Result<(), String> {
        let text = self.file.read(moment.buffer).map_err(|error| format!("/proc/diskstats: {error}"))?;
        for (index, line) in lines(text).enumerate() {
            let mut words = fields(line).skip(2);
            let Some(name) = words.next() else { continue };
            let mut values = [None; 11];
            values.iter_mut().zip(words).for_each(|(value, word)| *value = number(word));
            let place = match self.disks.get(index).is_some_and(|disk| *disk.name == *name) {
                true => Some(index),
                false => self.disks.iter().position(|disk| *disk.name == *name),
            };
            let place = match place {
                Some(place) => place,
                None if self.disks.len() >= MOST_DISKS => continue,
                None => {
                    let counts = is_whole_disk(&self.sys, name).then(|| declare(name, moment.record));
                    self.disks.push(Disk { name: name.into(), counts });
                    self.disks.len() - 1
                }
            };
            if let Some(counts) = &mut self.disks[place].counts {
                let bytes = |sectors: Option<u64>| sectors.map(|sectors| sectors.saturating_mul(SECTOR_BYTES));
                let ns = |ms: Option<u64>| ms.map(|ms| ms.saturating_mul(1_000_000));
                let now = [values[0], bytes(values[2]), values[4], bytes(values[6]), ns(values[9])];
                counts.iter_mut().zip(now).for_each(|(count, now)| count.put(moment.record, now));
            }
        }
        Ok(())
    }
}

fn declare(name: &[u8], record: &mut Record) -> [Count; 5] {
    let of = crate::text::name(name);
    ["disk_reads", "disk_read_bytes", "disk_writes", "disk_written_bytes", "disk_busy_ns"]
        .map(|metric| Count::new(record, metric, of.clone()))
}

/// Partitions have no folder of their own in `/sys/block`.
fn is_whole_disk(sys: &std::path::Path, name: &[u8]) -> bool {
    let is_memory = [&b"loop"[..], b"ram", b"zram"].iter().any(|kind| name.starts_with(kind));
    !is_memory && sys.join(crate::text::name(name).replace('/', "!")).exists()
}

#[cfg(test)]
mod tests {
    use super::super::tree::{Tree, of};
    use super::*;

    #[test]
    fn whole_disks_are_told_and_nothing_else() {
        let line = |name: &str, reads: u32| format!(" 8 0 {name} {reads} 1 80 3 4 5 16 7 0 90 100 0 0 0 0\n");
        let text = |reads| line("sda", reads) + &line("sda1", reads) + &line("loop0", reads);
        let mut tree =
            Tree::new(&[("proc/diskstats", &text(10)), ("sys/block/sda/size", "1"), ("sys/block/loop0/size", "1")]);
        let mut source = tree.open(open).unwrap();
        tree.sample(&mut *source);
        tree.write("proc/diskstats", text(13).replace(" 80 ", " 82 ").replace(" 90 ", " 95 "));
        let second = tree.sample(&mut *source);
        assert_eq!((of(&second, "disk_reads sda"), of(&second, "disk_read_bytes sda")), (Some(3), Some(1024)));
        assert_eq!((of(&second, "disk_busy_ns sda"), second.len()), (Some(5_000_000), 5));
    }
}
