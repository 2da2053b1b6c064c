//! Tables with a column for each CPU, whose cells are told from the first time that they move: most never do.

use super::Moment;
use crate::record::{Count, Record};
use crate::text::{fields, lines, number};

/// More than any kernel has.
pub const MOST_CPUS: usize = 8192;
/// Rows of a table that are told.
const MOST_ROWS: usize = 8192;

/// A row, found again by its label.
#[derive(Debug)]
struct Row {
    label: Box<[u8]>,
    /// `None`: the CPU has no column.
    cells: Vec<Cell>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    before: Option<u64>,
    told: Option<Count>,
}

/// The table as it was.
#[derive(Debug)]
pub struct Table {
    metric: &'static str,
    /// The CPUs of the columns.
    columns: Vec<usize>,
    rows: Vec<Row>,
}

impl Table {
    /// Of an empty table.
    pub fn new(metric: &'static str) -> Self {
        Self { metric, columns: vec![], rows: vec![] }
    }

    /// Puts what moved. `name` gives the name of a row from its label and the text after its numbers. `sums` takes each
    /// column's cells, all rows together.
    pub fn put(
        &mut self,
        text: &[u8],
        record: &mut Record,
        name: fn(label: &[u8], rest: &[u8]) -> String,
        mut sums: impl FnMut(usize, u64),
    ) -> Result<(), String> {
        let mut lines = lines(text);
        let header = lines.next().ok_or("the file is empty")?;
        self.head(header)?;
        for (index, line) in lines.enumerate().take(MOST_ROWS) {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            let (label, rest) = (line[..colon].trim_ascii(), &line[colon + 1..]);
            let width = self.columns.len();
            let row = self.row(index, label);
            let mut seen = 0;
            for (column, now) in fields(rest).map(number).take_while(Option::is_some).flatten().take(width).enumerate()
            {
                let cell = &mut self.rows[row].cells[column];
                seen += 1;
                sums(self.columns[column], now);
                if cell.told.is_none() && cell.before.is_some_and(|before| now > before) {
                    let of = format!("{} cpu{}", name(label, after_numbers(rest, width)), self.columns[column]);
                    cell.told = cell.before.map(|before| Count::since(record, self.metric, of, before));
                }
                if let Some(count) = &mut cell.told {
                    count.put(record, Some(now));
                }
                cell.before = Some(now);
            }
            // `ERR` and `MIS` have one number, which is of no CPU.
            if seen < width {
                self.rows[row].cells.iter_mut().for_each(|cell| *cell = Cell::default());
            }
        }
        Ok(())
    }

    /// CPUs that come or go change the columns: everything begins again.
    fn head(&mut self, header: &[u8]) -> Result<(), String> {
        let named = || fields(header).filter_map(|word| word.strip_prefix(b"CPU").and_then(number));
        if !named().map(|cpu| cpu as usize).eq(self.columns.iter().copied()) {
            self.columns = named().map(|cpu| cpu as usize).take(MOST_CPUS).collect();
            self.rows.clear();
        }
        if self.columns.is_empty() { Err("its first line names no CPU".into()) } else { Ok(()) }
    }

    /// Where the row is: in its old place, unless rows came or went.
    fn row(&mut self, index: usize, label: &[u8]) -> usize {
        if self.rows.get(index).is_some_and(|row| *row.label == *label) {
            return index;
        }
        if let Some(found) = self.rows.iter().position(|row| *row.label == *label) {
            return found;
        }
        self.rows.push(Row { label: label.into(), cells: vec![Cell::default(); self.columns.len()] });
        self.rows.len() - 1
    }
}

/// What stands behind the first `width` fields.
fn after_numbers(line: &[u8], width: usize) -> &[u8] {
    let mut rest = line.trim_ascii();
    for _ in 0..width {
        let end = rest.iter().position(u8::is_ascii_whitespace).unwrap_or(rest.len());
        rest = rest[end..].trim_ascii_start();
    }
    rest
}

/// Counters of each CPU by its number, declared when the CPU is first seen.
#[derive(Debug)]
pub struct PerCpu {
    metric: &'static str,
    counts: Vec<Option<Count>>,
}

impl PerCpu {
    /// Of no CPU yet.
    pub fn new(metric: &'static str) -> Self {
        Self { metric, counts: vec![] }
    }

    /// Puts the counter of one CPU.
    pub fn put(&mut self, cpu: usize, moment: &mut Record, now: Option<u64>) {
        if cpu >= MOST_CPUS {
            return;
        }
        if self.counts.len() <= cpu {
            self.counts.resize(cpu + 1, None);
        }
        let metric = self.metric;
        self.counts[cpu].get_or_insert_with(|| Count::new(moment, metric, format!("cpu{cpu}"))).put(moment, now);
    }
}

/// Sums by CPU over one table, without memory of their own once they are as long as the machine has CPUs.
#[derive(Debug)]
pub struct Sums {
    sums: Vec<Option<u64>>,
    told: PerCpu,
}

impl Sums {
    /// Nothing summed yet.
    pub fn new(metric: &'static str) -> Self {
        Self { sums: vec![], told: PerCpu::new(metric) }
    }

    /// A new sample begins.
    pub fn clear(&mut self) {
        self.sums.iter_mut().for_each(|sum| *sum = None);
    }

    /// Adds to a CPU's sum.
    pub fn add(&mut self, cpu: usize, value: u64) {
        if cpu < MOST_CPUS {
            if self.sums.len() <= cpu {
                self.sums.resize(cpu + 1, None);
            }
            self.sums[cpu] = Some(self.sums[cpu].unwrap_or(0).saturating_add(value));
        }
    }

    /// Puts every sum.
    pub fn put(&mut self, record: &mut Record) {
        for (cpu, sum) in self.sums.iter().enumerate() {
            if sum.is_some() {
                self.told.put(cpu, record, *sum);
            }
        }
    }
}

/// Reads a table into its values and the sums of its columns.
pub fn put_table(
    file: &crate::open_file::OpenFile,
    what: &str,
    moment: &mut Moment,
    table: &mut Table,
    sums: &mut Sums,
    name: fn(&[u8], &[u8]) -> String,
) -> Result<(), String> {
    let text = file.read(moment.buffer).map_err(|error| format!("{what}: {error}"))?;
    sums.clear();
    table
        .put(text, moment.record, name, |cpu, value| sums.add(cpu, value))
        .map_err(|error| format!("{what}: {error}"))?;
    sums.put(moment.record);
    Ok(())
}
