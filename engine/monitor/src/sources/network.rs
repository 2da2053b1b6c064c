//! `/proc/net/dev`: bytes, packets, errors and drops of each interface, of our namespace and of those asked for.

use std::path::Path;

use super::{Moment, Source, SourceOptions, unreadable};
use crate::open_file::OpenFile;
use crate::record::{Count, Record};
use crate::sys::namespace;
use crate::text::{fields, lines, number};

/// Interfaces that are told, in each namespace; hosts of many containers have thousands.
const MOST_INTERFACES: usize = 256;

/// With the column of the file behind the colon.
const COUNTERS: [(&str, usize); 8] = [
    ("receive_bytes", 0),
    ("receive_packets", 1),
    ("receive_errors", 2),
    ("receive_dropped_packets", 3),
    ("transmit_bytes", 8),
    ("transmit_packets", 9),
    ("transmit_errors", 10),
    ("transmit_dropped_packets", 11),
];
const COLUMNS: usize = 12;

struct Network {
    namespaces: Vec<Namespace>,
}

struct Namespace {
    /// Before the names of interfaces; empty for our own.
    prefix: String,
    file: OpenFile,
    interfaces: Vec<Interface>,
}

struct Interface {
    name: Box<[u8]>,
    counters: [Count; COUNTERS.len()],
}

pub fn open(asked: &SourceOptions, _: &mut Record) -> Result<Box<dyn Source>, String> {
    let own = Namespace { prefix: String::new(), file: asked.proc("net/dev")?, interfaces: vec![] };
    let mut namespaces = vec![own];
    for wanted in &asked.namespaces {
        let path = Path::new(&wanted.path);
        let file = namespace::within(path, || OpenFile::open(&asked.proc.join("thread-self/net/dev")));
        let file = file.map_err(|error| unreadable(path, &error))?;
        namespaces.push(Namespace { prefix: format!("{}/", wanted.name), file, interfaces: vec![] });
    }
    Ok(Box::new(Network { namespaces }))
}

impl Source for Network {
    fn sample(&mut self, moment: &mut Moment) -> Result<(), String> {
        self.namespaces.iter_mut().try_for_each(|namespace| namespace.sample(moment))
    }
}

impl Namespace {
    fn sample(&mut self, moment: &mut Moment) -> Result<(), String> {
        let text = self.file.read(moment.buffer).map_err(|error| format!("{}/proc/net/dev: {error}", self.prefix))?;
        // Two lines of headings.
        for (index, line) in lines(text).skip(2).enumerate() {
            // The name may hold colons (aliases), the numbers do not.
            let Some(colon) = line.iter().rposition(|byte| *byte == b':') else { continue };
            let (name, rest) = (line[..colon].trim_ascii(), &line[colon + 1..]);
            let mut columns = [None; COLUMNS];
            columns.iter_mut().zip(fields(rest)).for_each(|(column, field)| *column = number(field));
            if let Some(interface) = find(&mut self.interfaces, index, name, &self.prefix, moment.record) {
                for (count, (_, column)) in interface.counters.iter_mut().zip(COUNTERS) {
                    count.put(moment.record, columns[column]);
                }
            }
        }
        Ok(())
    }
}

/// In its old place, unless interfaces came or went. One of the same name is taken for the same: a counter that fell
/// did not grow.
fn find<'a>(
    interfaces: &'a mut Vec<Interface>,
    index: usize,
    name: &[u8],
    prefix: &str,
    record: &mut Record,
) -> Option<&'a mut Interface> {
    let is_here = interfaces.get(index).is_some_and(|interface| *interface.name == *name);
    let found = if is_here { Some(index) } else { interfaces.iter().position(|interface| *interface.name == *name) };
    let place = match found {
        Some(place) => place,
        None if interfaces.len() >= MOST_INTERFACES => return None,
        None => {
            let of = format!("{prefix}{}", crate::text::name(name));
            let counters = COUNTERS.map(|(metric, _)| Count::new(record, metric, of.clone()));
            interfaces.push(Interface { name: name.into(), counters });
            interfaces.len() - 1
        }
    };
    Some(&mut interfaces[place])
}

#[cfg(test)]
mod tests {
    use super::super::tree::{Tree, of};
    use super::*;

    const BEFORE: &str = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:    9579      87    0    0    0     0          0         0     9579      87    0    0    0     0       0          0
  eth0: 1796055168   47233    1    2    0     0          0         0  2882525   33024    3    4    0     0       0          0
";

    #[test]
    fn each_interface_tells_both_directions() {
        let mut tree = Tree::new(&[("proc/net/dev", BEFORE)]);
        let mut source = tree.open(open).unwrap();
        assert!(tree.sample(&mut *source).is_empty());
        tree.write(
            "proc/net/dev",
            BEFORE.replace("1796055168   47233    1    2", "1796056668 47234 1 5").replace("33024    3", "33030 4"),
        );
        let second = tree.sample(&mut *source);
        let eth0 = |metric: &str| of(&second, &format!("{metric} eth0"));
        assert_eq!(
            (eth0("receive_bytes"), eth0("receive_packets"), eth0("receive_dropped_packets")),
            (Some(1500), Some(1), Some(3))
        );
        assert_eq!(
            (eth0("transmit_packets"), eth0("transmit_errors"), of(&second, "receive_bytes lo")),
            (Some(6), Some(1), Some(0))
        );
    }

    #[test]
    fn an_interface_that_comes_later_is_told_from_then_on() {
        let mut tree = Tree::new(&[("proc/net/dev", BEFORE)]);
        let mut source = tree.open(open).unwrap();
        tree.sample(&mut *source);
        let line = "  veth0@x: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n";
        tree.write("proc/net/dev", format!("{BEFORE}{line}"));
        tree.sample(&mut *source);
        tree.write("proc/net/dev", format!("{BEFORE}{}", line.replace(" 9 ", " 19 ")));
        assert_eq!(of(&tree.sample(&mut *source), "transmit_bytes veth0@x"), Some(10));
    }

    #[test]
    fn a_namespace_that_is_not_there_is_a_reason() {
        let mut tree = Tree::new(&[("proc/net/dev", BEFORE)]);
        let path = "/run/netns/nowhere".to_owned();
        let namespaces = vec![nicbench_protocol::NamespaceRequest { name: "x".into(), path }];
        let asked = SourceOptions { namespaces, ..tree.asked() };
        assert!(tree.open_asked(open, &asked).err().unwrap().contains("/run/netns/nowhere"));
    }
}
