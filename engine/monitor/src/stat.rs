//! `/proc/PID/stat` (proc(5)).

use crate::text::{fields, number};

/// The kernel's flag of a thread of its own (`PF_KTHREAD` of `include/linux/sched.h`).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// One process, threads included. Times are in ticks.
pub struct Stat<'a> {
    pub name: &'a [u8],
    pub parent: u32,
    /// Whether it has ended, and its parent has not waited for it yet: it has no environment any more.
    pub is_zombie: bool,
    pub is_kernel: bool,
    pub user_ticks: u64,
    pub system_ticks: u64,
    /// Of children that ended and were waited for, user mode and kernel together.
    pub ended_ticks: u64,
    pub threads: u64,
    pub started_ticks: u64,
    /// The CPU that it last ran on.
    pub cpu: Option<u32>,
}

impl<'a> Stat<'a> {
    /// The name stands in brackets and may hold brackets itself.
    pub fn of(text: &'a [u8]) -> Option<Self> {
        let begin = text.iter().position(|byte| *byte == b'(')?;
        let end = text.iter().rposition(|byte| *byte == b')')?;
        let mut words = fields(text.get(end + 1..)?);
        // Behind the name: state, parent, ..., flags is the 7th, the four times are the 12th to the 15th, the
        // CPU is the 37th.
        let is_zombie = matches!(words.next()?, b"Z" | b"X");
        let parent = u32::try_from(number(words.next()?)?).ok()?;
        let flags = number(words.nth(4)?)?;
        let (user_ticks, system_ticks) = (number(words.nth(4)?)?, number(words.next()?)?);
        // Signed in the file, and never negative.
        let ended_ticks = number(words.next()?)?.saturating_add(number(words.next()?)?);
        let (threads, started_ticks) = (number(words.nth(2)?)?, number(words.nth(1)?)?);
        let cpu = words.nth(16).and_then(number).and_then(|cpu| u32::try_from(cpu).ok());
        Some(Self {
            name: text.get(begin + 1..end)?,
            parent,
            is_zombie,
            is_kernel: flags & KERNEL_THREAD != 0,
            user_ticks,
            system_ticks,
            ended_ticks,
            threads,
            started_ticks,
            cpu,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_found_behind_a_name_with_brackets() {
        let text = b"42 (a) b (c) S 7 1 1 0 -1 4194560 1 2 3 4 50 60 7 8 20 0 3 0 999 6 7 8\n";
        let stat = Stat::of(text).unwrap();
        assert_eq!((stat.name, stat.parent, stat.is_kernel), (&b"a) b (c"[..], 7, false));
        assert_eq!((stat.user_ticks, stat.system_ticks, stat.ended_ticks), (50, 60, 15));
        assert_eq!((stat.threads, stat.started_ticks, stat.is_zombie), (3, 999, false));
        let ended = String::from_utf8_lossy(text).replace(" S ", " Z ");
        assert!(Stat::of(ended.as_bytes()).unwrap().is_zombie);
    }

    #[test]
    fn the_cpu_that_a_process_last_ran_on_is_far_behind() {
        let between = "6 7 8 1 1 1 1 1 0 0 0 0 0 0 0 17";
        let text = format!("42 (a) S 7 1 1 0 -1 0 1 2 3 4 50 60 7 8 20 0 3 0 999 {between} 5 0 0 0 0 0\n");
        assert_eq!(Stat::of(text.as_bytes()).unwrap().cpu, Some(5));
    }

    #[test]
    fn threads_of_the_kernel_say_so() {
        let text = b"14 (ksoftirqd/0) S 2 0 0 0 -1 69238848 0 0 0 0 0 5 0 0 20 0 1 0 9 0 0 18446744073709551615\n";
        assert!(Stat::of(text).unwrap().is_kernel);
    }

    #[test]
    fn a_line_that_is_cut_is_none() {
        assert!(Stat::of(b"42 (a) S 7 1 1 0 -1 0 1 2 3 4 50").is_none());
        assert!(Stat::of(b"").is_none());
    }
}
