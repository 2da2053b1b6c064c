//! `/proc/softirqs`: how often each kind ran on each CPU.

use super::per_cpu::{Sums, Table, put_table};
use super::{Moment, Source, SourceOptions};
use crate::open_file::OpenFile;
use crate::record::Record;

struct Softirqs {
    file: OpenFile,
    table: Table,
    sums: Sums,
}

pub fn open(asked: &SourceOptions, _: &mut Record) -> Result<Box<dyn Source>, String> {
    Ok(Box::new(Softirqs {
        file: asked.proc("softirqs")?,
        table: Table::new("softirqs"),
        sums: Sums::new("cpu_softirqs"),
    }))
}

impl Source for Softirqs {
    fn sample(&mut self, moment: &mut Moment) -> Result<(), String> {
        let name = |label: &[u8], _: &[u8]| crate::text::name(label);
        put_table(&self.file, "/proc/softirqs", moment, &mut self.table, &mut self.sums, name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::{Tree, of};
    use super::*;

    #[test]
    fn kinds_are_told_by_cpu() {
        let text = "                    CPU0       CPU1       \n      NET_TX:       1775       1973\n      NET_RX:   28        13\n";
        let mut tree = Tree::new(&[("proc/softirqs", text)]);
        let mut source = tree.open(open).unwrap();
        tree.sample(&mut *source);
        tree.write("proc/softirqs", text.replace("28 ", "40 "));
        let second = tree.sample(&mut *source);
        assert_eq!((of(&second, "softirqs NET_RX cpu0"), of(&second, "cpu_softirqs cpu1")), (Some(12), Some(0)));
    }
}
