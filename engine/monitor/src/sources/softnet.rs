//! `/proc/net/softnet_stat` (net/core/net-procfs.c): a line of hexadecimal numbers for each CPU that is on.

use super::per_cpu::PerCpu;
use super::{Moment, Source, SourceOptions};
use crate::open_file::OpenFile;
use crate::record::Record;
use crate::text::{fields, hexadecimal, lines};

/// The kernel names the CPU in this column since 5.10; before, lines are those of the CPUs that are on, in order.
const CPU_COLUMN: usize = 12;

struct Softnet {
    file: OpenFile,
    processed: PerCpu,
    dropped: PerCpu,
    squeezed: PerCpu,
}

pub fn open(asked: &SourceOptions, _: &mut Record) -> Result<Box<dyn Source>, String> {
    Ok(Box::new(Softnet {
        file: asked.proc("net/softnet_stat")?,
        processed: PerCpu::new("softnet_processed_packets"),
        dropped: PerCpu::new("softnet_dropped_packets"),
        squeezed: PerCpu::new("softnet_squeezed"),
    }))
}

impl Source for Softnet {
    fn sample(&mut self, moment: &mut Moment) -> Result<(), String> {
        let text = self.file.read(moment.buffer).map_err(|error| format!("/proc/net/softnet_stat: {error}"))?;
        for (index, line) in lines(text).enumerate() {
            let mut columns = fields(line).map(hexadecimal);
            let (processed, dropped, squeezed) = (columns.next(), columns.next(), columns.next());
            let named = columns.nth(CPU_COLUMN - 3).flatten();
            let cpu = named.map_or(index, |cpu| cpu as usize);
            self.processed.put(cpu, moment.record, processed.flatten());
            self.dropped.put(cpu, moment.record, dropped.flatten());
            self.squeezed.put(cpu, moment.record, squeezed.flatten());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::{Tree, of};
    use super::*;

    #[test]
    fn the_cpu_is_the_one_that_the_line_names() {
        let zeros = "00000000 ".repeat(9);
        let line = |drops: &str, cpu: &str| format!("0000000a {drops} 00000001 {zeros}{cpu} 00000000 00000000\n");
        let mut tree =
            Tree::new(&[("proc/net/softnet_stat", &(line("00000000", "00000000") + &line("0000000f", "00000005")))]);
        let mut source = tree.open(open).unwrap();
        tree.sample(&mut *source);
        tree.write("proc/net/softnet_stat", line("00000000", "00000000") + &line("0000001f", "00000005"));
        let second = tree.sample(&mut *source);
        assert_eq!(of(&second, "softnet_dropped_packets cpu5"), Some(16));
        assert_eq!(of(&second, "softnet_squeezed cpu0"), Some(0));
    }

    #[test]
    fn older_kernels_name_no_cpu() {
        let text = "0000000a 00000001 00000002 0 0 0 0 0 0 0 0\n0000000b 00000001 00000002 0 0 0 0 0 0 0 0\n";
        let mut tree = Tree::new(&[("proc/net/softnet_stat", text)]);
        let mut source = tree.open(open).unwrap();
        tree.sample(&mut *source);
        assert_eq!(of(&tree.sample(&mut *source), "softnet_processed_packets cpu1"), Some(0));
    }
}
