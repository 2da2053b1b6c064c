//! Temperatures: hwmon, and the thermal zones where there is no hwmon. Sensors on slow buses are asked at most every
//! five seconds.

use super::{Moment, Source, SourceOptions, base, entries};
use crate::open_file::{Buffer, OpenFile};
use crate::record::{Gauge, Record};
use crate::text::{name, signed_number};

const LEAST_INTERVAL_NS: u64 = 5_000_000_000;
const MOST_SENSORS: usize = 128;

struct Temperatures {
    sensors: Vec<(OpenFile, Gauge)>,
    next_ns: u64,
}

pub fn open(asked: &SourceOptions, record: &mut Record) -> Result<Box<dyn Source>, String> {
    let mut sensors = hwmon(asked, record);
    if sensors.is_empty() {
        sensors = zones(asked, record);
    }
    sensors.truncate(MOST_SENSORS);
    match sensors.is_empty() {
        true => Err("there is no sensor in /sys/class/hwmon and /sys/class/thermal".into()),
        false => Ok(Box::new(Temperatures { sensors, next_ns: 0 })),
    }
}

fn hwmon(asked: &SourceOptions, record: &mut Record) -> Vec<(OpenFile, Gauge)> {
    let mut found = Vec::new();
    for device in entries(&asked.sys.join("class/hwmon")) {
        let chip = word(&device.join("name")).unwrap_or_else(|| base(&device));
        // Asking a drive can wake it up.
        if chip == "drivetemp" {
            continue;
        }
        for input in entries(&device) {
            let file = base(&input);
            let Some(sensor) = file.strip_prefix("temp").and_then(|rest| rest.strip_suffix("_input")) else { continue };
            let label = word(&device.join(format!("temp{sensor}_label"))).unwrap_or_else(|| format!("temp{sensor}"));
            if let Ok(kept) = OpenFile::open(&input) {
                let of = format!("{chip} {label} {}", base(&device));
                found.push((kept, Gauge::new(record, "temperature_millicelsius", of)));
            }
        }
    }
    found
}

fn zones(asked: &SourceOptions, record: &mut Record) -> Vec<(OpenFile, Gauge)> {
    let zones =
        entries(&asked.sys.join("class/thermal")).into_iter().filter(|path| base(path).starts_with("thermal_zone"));
    zones
        .filter_map(|zone| {
            let kind = word(&zone.join("type")).unwrap_or_default();
            let of = format!("{kind} {}", base(&zone));
            OpenFile::open(&zone.join("temp"))
                .ok()
                .map(|file| (file, Gauge::new(record, "temperature_millicelsius", of)))
        })
        .collect()
}

fn word(path: &std::path::Path) -> Option<String> {
    std::fs::read(path).ok().map(|text| name(text.trim_ascii())).filter(|text| !text.is_empty())
}

impl Source for Temperatures {
    fn sample(&mut self, moment: &mut Moment) -> Result<(), String> {
        if moment.now_ns < self.next_ns {
            return Ok(());
        }
        self.next_ns = moment.now_ns + LEAST_INTERVAL_NS;
        for (file, gauge) in &self.sensors {
            gauge.put(moment.record, read(file, moment.buffer));
        }
        Ok(())
    }
}

/// A sensor that does not answer is unknown.
fn read(file: &OpenFile, buffer: &mut Buffer) -> Option<i64> {
    file.read_value(buffer).ok().and_then(|text| signed_number(text.trim_ascii()))
}

#[cfg(test)]
mod tests {
    use super::super::tree::Tree;
    use super::*;

    #[test]
    fn sensors_have_the_names_of_chip_and_label() {
        let files = [
            ("sys/class/hwmon/hwmon0/name", "coretemp\n"),
            ("sys/class/hwmon/hwmon0/temp1_input", "41000\n"),
            ("sys/class/hwmon/hwmon0/temp1_label", "Package id 0\n"),
            ("sys/class/hwmon/hwmon1/name", "mlx5\n"),
            ("sys/class/hwmon/hwmon1/temp1_input", "-5500\n"),
            ("sys/class/hwmon/hwmon2/name", "drivetemp\n"),
            ("sys/class/hwmon/hwmon2/temp1_input", "30000\n"),
            ("sys/class/thermal/thermal_zone0/temp", "1\n"),
        ];
        let mut tree = Tree::new(&files);
        let mut source = tree.open(open).unwrap();
        let sample = tree.sample(&mut *source);
        let expected = [
            ("temperature_millicelsius coretemp Package id 0 hwmon0".to_owned(), Some(41_000)),
            ("temperature_millicelsius mlx5 temp1 hwmon1".to_owned(), Some(-5_500)),
        ];
        assert_eq!(sample, expected);
        assert!(tree.sample(&mut *source).is_empty(), "a second later they are not asked again");
    }

    #[test]
    fn thermal_zones_stand_in_and_no_sensor_is_a_reason() {
        let mut tree = Tree::new(&[
            ("sys/class/thermal/thermal_zone0/temp", "37000\n"),
            ("sys/class/thermal/thermal_zone0/type", "acpitz\n"),
        ]);
        let mut source = tree.open(open).unwrap();
        assert_eq!(tree.sample(&mut *source), [("temperature_millicelsius acpitz thermal_zone0".into(), Some(37_000))]);
        assert!(Tree::new(&[]).open(open).is_err());
    }
}
