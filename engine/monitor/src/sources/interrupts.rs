//! `/proc/interrupts`: each CPU's sum, and each interrupt on each CPU from the first time that it comes there.

use super::per_cpu::{Sums, Table, put_table};
use super::{Moment, Source, SourceOptions};
use crate::open_file::OpenFile;
use crate::record::Record;

struct Interrupts {
    file: OpenFile,
    table: Table,
    sums: Sums,
}

pub fn open(asked: &SourceOptions, _: &mut Record) -> Result<Box<dyn Source>, String> {
    Ok(Box::new(Interrupts {
        file: asked.proc("interrupts")?,
        table: Table::new("interrupts"),
        sums: Sums::new("cpu_interrupts"),
    }))
}

impl Source for Interrupts {
    fn sample(&mut self, moment: &mut Moment) -> Result<(), String> {
        put_table(&self.file, "/proc/interrupts", moment, &mut self.table, &mut self.sums, name)
    }
}

/// Its number and the last word of its line, which for a queue of a card is the queue: `38 eth0-TxRx-0`. Others have
/// letters for a number and a sentence, which is left out: `LOC`.
fn name(label: &[u8], rest: &[u8]) -> String {
    let is_numbered = label.first().is_some_and(u8::is_ascii_digit);
    match crate::text::fields(rest).last().filter(|_| is_numbered) {
        Some(word) => format!("{} {}", crate::text::name(label), crate::text::name(word)),
        None => crate::text::name(label),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::{Tree, of};
    use super::*;

    const BEFORE: &str = "           CPU0       CPU3       
 38:          7      34085 PCI-MSIX-0000:00:03.0   1-edge      mlx5_comp0@pci:0000:03:00.0
 39:          0          0 IR-PCI-MSI 524289-edge      eth0-TxRx-1
NMI:          0          0   Non-maskable interrupts
LOC:        100        200   Local timer interrupts
ERR:          9
";

    #[test]
    fn a_queue_is_told_on_the_cpu_where_it_interrupts_from_then_on() {
        let mut tree = Tree::new(&[("proc/interrupts", BEFORE)]);
        let mut source = tree.open(open).unwrap();
        assert!(tree.sample(&mut *source).is_empty());
        let quiet = tree.sample(&mut *source);
        assert_eq!(quiet, [("cpu_interrupts cpu0".into(), Some(0)), ("cpu_interrupts cpu3".into(), Some(0))]);
        let moved = BEFORE.replace("34085", "34090").replace("LOC:        100", "LOC:        101");
        tree.write("proc/interrupts", &moved);
        let second = tree.sample(&mut *source);
        assert_eq!(of(&second, "interrupts 38 mlx5_comp0@pci:0000:03:00.0 cpu3"), Some(5));
        assert_eq!((of(&second, "interrupts LOC cpu0"), of(&second, "cpu_interrupts cpu3")), (Some(1), Some(5)));
        assert_eq!(second.len(), 4);
        let third = tree.sample(&mut *source);
        assert_eq!(of(&third, "interrupts 38 mlx5_comp0@pci:0000:03:00.0 cpu3"), Some(0));
    }

    #[test]
    fn rows_and_cpus_may_come_and_go() {
        let mut tree = Tree::new(&[("proc/interrupts", BEFORE)]);
        let mut source = tree.open(open).unwrap();
        tree.sample(&mut *source);
        tree.write("proc/interrupts", BEFORE.replace(" 38:", " 37:          0          1 new\n 38:"));
        tree.sample(&mut *source);
        tree.write("proc/interrupts", "           CPU0\n 38:   8 x eth0\n");
        tree.sample(&mut *source);
        tree.write("proc/interrupts", "           CPU0\n 38:   9 x eth0\n");
        assert_eq!(of(&tree.sample(&mut *source), "interrupts 38 eth0 cpu0"), Some(1));
    }

    #[test]
    fn a_file_that_is_no_table_is_a_reason_and_no_panic() {
        for text in ["", "nonsense", "CPU0", "  CPU0 CPU1\n 1: 2\n:\n 3\n", "CPU99999999\n1: 5", "\u{0}: \n"] {
            let mut tree = Tree::new(&[("proc/interrupts", text)]);
            let mut source = tree.open(open).unwrap();
            let _ = tree.try_sample(&mut *source);
            let _ = tree.try_sample(&mut *source);
        }
    }
}
