//! `/proc/pressure` (accounting/psi of the kernel's documentation): time in which some task, or every task, waited.

use super::{Moment, Source, SourceOptions};
use crate::open_file::OpenFile;
use crate::record::{Count, Record};
use crate::text::{fields, lines, number};

const RESOURCES: [&str; 4] = ["cpu", "memory", "io", "irq"];

struct Pressure {
    files: Vec<(OpenFile, Count, Count)>,
}

pub fn open(asked: &SourceOptions, record: &mut Record) -> Result<Box<dyn Source>, String> {
    let mut files = Vec::new();
    let mut reason = String::new();
    for resource in RESOURCES {
        match asked.proc(&format!("pressure/{resource}")) {
            Ok(file) => {
                let some = Count::new(record, "pressure_some_ns", resource);
                let full = Count::new(record, "pressure_full_ns", resource);
                files.push((file, some, full));
            }
            Err(error) if reason.is_empty() => reason = error,
            Err(_) => {}
        }
    }
    if files.is_empty() { Err(reason) } else { Ok(Box::new(Pressure { files })) }
}

impl Source for Pressure {
    fn sample(&mut self, moment: &mut Moment) -> Result<(), String> {
        for (file, some, full) in &mut self.files {
            let text = file.read_value(moment.buffer).map_err(|error| format!("/proc/pressure: {error}"))?;
            let total = |kind: &[u8]| {
                let line = lines(text).find(|line| line.starts_with(kind))?;
                let total = fields(line).find_map(|word| word.strip_prefix(b"total="))?;
                number(total).map(|us| us.saturating_mul(1000))
            };
            some.put(moment.record, total(b"some"));
            full.put(moment.record, total(b"full"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::{Tree, of};
    use super::*;

    #[test]
    fn the_totals_grow() {
        let text = |total: u32| {
            format!("some avg10=0.00 avg60=0.00 avg300=0.00 total={total}\nfull avg10=0 avg60=0 avg300=0 total=5\n")
        };
        let mut tree = Tree::new(&[("proc/pressure/cpu", &text(100))]);
        let mut source = tree.open(open).unwrap();
        tree.sample(&mut *source);
        tree.write("proc/pressure/cpu", text(350));
        let second = tree.sample(&mut *source);
        assert_eq!(
            (of(&second, "pressure_some_ns cpu"), of(&second, "pressure_full_ns cpu")),
            (Some(250_000), Some(0))
        );
    }

    #[test]
    fn a_kernel_without_it_is_a_reason() {
        assert!(Tree::new(&[]).open(open).err().unwrap().contains("pressure/cpu"));
    }
}
