//! resctrl's monitoring (arch/x86/resctrl of the kernel's documentation): memory bandwidth of each L3 cache, to all
//! memory and to its own node's; the difference went over the link between sockets. It is read where it is mounted;
//! mounting it is a change to the machine.

use super::{Moment, Source, SourceOptions, base, entries};
use crate::open_file::OpenFile;
use crate::record::{Count, Gauge, Record};
use crate::text::only;

struct Caches {
    caches: Vec<Cache>,
}

struct Cache {
    total: Option<(OpenFile, Count)>,
    local: Option<(OpenFile, Count)>,
    remote: Option<Count>,
    occupancy: Option<(OpenFile, Gauge)>,
}

pub fn open(asked: &SourceOptions, record: &mut Record) -> Result<Box<dyn Source>, String> {
    let folder = asked.sys.join("fs/resctrl");
    if !folder.exists() {
        return Err("the kernel or the processor has no resctrl".into());
    }
    let domains = entries(&folder.join("mon_data"));
    let caches: Vec<Cache> =
        domains.iter().filter(|path| base(path).starts_with("mon_L3_")).map(|path| cache(path, record)).collect();
    if caches.is_empty() {
        let next = "mount -t resctrl resctrl /sys/fs/resctrl";
        return Err(format!("resctrl is not mounted, or the processor monitors no memory bandwidth (to try: {next})"));
    }
    Ok(Box::new(Caches { caches }))
}

fn cache(folder: &std::path::Path, record: &mut Record) -> Cache {
    let of = base(folder).replace("mon_", "");
    let mut count = |file: &str, metric: &str| {
        OpenFile::open(&folder.join(file)).ok().map(|file| (file, Count::new(record, metric, of.clone())))
    };
    let total = count("mbm_total_bytes", "memory_bytes");
    let local = count("mbm_local_bytes", "memory_local_bytes");
    let remote = (total.is_some() && local.is_some()).then(|| Count::new(record, "memory_remote_bytes", of.clone()));
    let occupancy = OpenFile::open(&folder.join("llc_occupancy")).ok();
    let occupancy = occupancy.map(|file| (file, Gauge::new(record, "cache_occupied_bytes", of.clone())));
    Cache { total, local, remote, occupancy }
}

impl Source for Caches {
    fn sample(&mut self, moment: &mut Moment) -> Result<(), String> {
        for cache in &mut self.caches {
            // `Unavailable` and `Error` are no numbers.
            let mut put = |source: &mut Option<(OpenFile, Count)>| {
                let (file, count) = source.as_mut()?;
                let value = file.read_value(moment.buffer).ok().and_then(only);
                count.put(moment.record, value);
                value
            };
            let (total, local) = (put(&mut cache.total), put(&mut cache.local));
            if let Some(remote) = &mut cache.remote {
                remote.put(moment.record, total.zip(local).map(|(total, local)| total.saturating_sub(local)));
            }
            if let Some((file, gauge)) = &cache.occupancy {
                gauge.put_unsigned(moment.record, file.read_value(moment.buffer).ok().and_then(only));
            }
        }
        Ok(())
    }

    fn interrupts_others(&self) -> bool {
        true // a CPU of each cache's
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::{Tree, of};
    use super::*;

    #[test]
    fn what_is_not_local_went_over_the_link() {
        let files = [
            ("sys/fs/resctrl/mon_data/mon_L3_00/mbm_total_bytes", "1000\n"),
            ("sys/fs/resctrl/mon_data/mon_L3_00/mbm_local_bytes", "900\n"),
            ("sys/fs/resctrl/mon_data/mon_L3_00/llc_occupancy", "65536\n"),
            ("sys/fs/resctrl/mon_data/mon_L3_01/mbm_total_bytes", "Unavailable\n"),
        ];
        let mut tree = Tree::new(&files);
        let mut source = tree.open(open).unwrap();
        tree.sample(&mut *source);
        tree.write(files[0].0, "5000\n");
        tree.write(files[1].0, "3900\n");
        let second = tree.sample(&mut *source);
        assert_eq!(
            (of(&second, "memory_bytes L3_00"), of(&second, "memory_remote_bytes L3_00")),
            (Some(4000), Some(1000))
        );
        assert_eq!(
            (of(&second, "cache_occupied_bytes L3_00"), of(&second, "memory_bytes L3_01")),
            (Some(65_536), None)
        );
    }

    #[test]
    fn without_it_the_reason_says_what_to_try() {
        assert!(Tree::new(&[]).open(open).is_err());
        assert!(Tree::new(&[("sys/fs/resctrl/info", "")]).open(open).err().unwrap().contains("mount -t resctrl"));
    }
}
