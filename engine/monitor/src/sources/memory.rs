//! `/proc/meminfo` (proc(5)).

use super::{Moment, Source, SourceOptions};
use crate::open_file::OpenFile;
use crate::record::{Gauge, Record};
use crate::text::{fields, lines, number};

const KNOWN: [(&[u8], &str); 7] = [
    (b"MemTotal:", "memory_total_bytes"),
    (b"MemFree:", "memory_free_bytes"),
    (b"MemAvailable:", "memory_available_bytes"),
    (b"Cached:", "memory_cached_bytes"),
    (b"Dirty:", "memory_dirty_bytes"),
    (b"SwapTotal:", "swap_total_bytes"),
    (b"SwapFree:", "swap_free_bytes"),
];

struct Memory {
    file: OpenFile,
    gauges: [Gauge; KNOWN.len()],
}

pub fn open(asked: &SourceOptions, record: &mut Record) -> Result<Box<dyn Source>, String> {
    let file = asked.proc("meminfo")?;
    Ok(Box::new(Memory { file, gauges: KNOWN.map(|(_, metric)| Gauge::new(record, metric, "")) }))
}

impl Source for Memory {
    fn sample(&mut self, moment: &mut Moment) -> Result<(), String> {
        let text = self.file.read(moment.buffer).map_err(|error| format!("/proc/meminfo: {error}"))?;
        let mut values = [None; KNOWN.len()];
        for line in lines(text) {
            let mut words = fields(line);
            let label = words.next();
            if let Some(place) = KNOWN.iter().position(|(known, _)| Some(*known) == label) {
                values[place] = words.next().and_then(number).map(|kib| kib.saturating_mul(1024));
            }
        }
        self.gauges.iter().zip(values).for_each(|(gauge, value)| gauge.put_unsigned(moment.record, value));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::{Tree, of};
    use super::*;

    #[test]
    fn kibibytes_become_bytes_and_what_is_not_there_is_unknown() {
        let mut tree =
            Tree::new(&[("proc/meminfo", "MemTotal:  1000 kB\nMemFree: 10 kB\nDirty:\nHugePages_Total: 5\n")]);
        let mut source = tree.open(open).unwrap();
        let sample = tree.sample(&mut *source);
        assert_eq!(
            (of(&sample, "memory_total_bytes"), of(&sample, "memory_free_bytes")),
            (Some(1_024_000), Some(10_240))
        );
        assert_eq!((of(&sample, "memory_dirty_bytes"), of(&sample, "swap_free_bytes")), (None, None));
    }
}
