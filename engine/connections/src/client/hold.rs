//! Connections that stay: when all are open, each is asked once more, spread over the time for which they are held.

use super::Task;
use super::threads::Together;
use super::worker::Worker;

const AT_ONCE: usize = 64;

impl Worker<'_> {
    /// Asks those of which it is time; whether each of every thread was asked, has answered or failed, and the time is
    /// over. Until then all stay open.
    pub(super) fn hold(&mut self, together: &Together) -> bool {
        let Task::Hold { hold_ns } = self.plan.task else { return true };
        let now = self.clock.now();
        let Some(from) = self.held_from else {
            if self.pending == 0 && !self.waits {
                self.waits = true;
                together.note_opened();
            }
            if self.waits && together.are_all_open() {
                self.waits = false;
                self.held_from = Some(now);
                let open = (0..self.slots.len()).filter(|&slot| self.slots[slot].connection.is_some());
                self.to_ask = open.map(|slot| self.token(slot)).collect();
            }
            return false;
        };
        for _ in 0..AT_ONCE {
            if self.next_held_ns().is_none_or(|due| due > now) {
                break;
            }
            let token = self.to_ask[self.asked];
            self.asked += 1;
            let slot = (token & 0xffff_ffff) as usize;
            let same = self.slots[slot].generation == (token >> 32) as u32;
            let held = self.slots[slot].connection.as_ref().filter(|_| same);
            if let Some(number) = held.map(|one| one.number) {
                self.pending += 1;
                self.ask(slot, number);
            }
        }
        if !self.waits && self.asked == self.to_ask.len() && self.pending == 0 && now >= from + hold_ns {
            self.waits = true;
            together.note_asked();
        }
        self.waits && together.are_all_asked()
    }

    /// When the next of the held connections is asked.
    pub(super) fn next_held_ns(&self) -> Option<u64> {
        let (Some(from), Task::Hold { hold_ns }) = (self.held_from, self.plan.task) else { return None };
        let all = self.to_ask.len();
        (self.asked < all).then(|| from + (hold_ns as u128 * self.asked as u128 / all as u128) as u64)
    }
}
