//! What follows from each step of a connection, by the task.

use super::Task;
use super::connection::{Asked, State};
use super::tally::Failure;
use super::worker::Worker;
use crate::clock::ns;
use crate::http::Answer;

/// How long a connection that got everything waits for the server's FIN.
const CLOSING_S: f64 = 1.0;

impl Worker<'_> {
    pub(super) fn ready(&mut self, slot: usize) {
        let Some(connection) = &mut self.slots[slot].connection else { return };
        connection.deadline_ns = u64::MAX;
        let number = connection.number;
        if self.lanes.is_empty() {
            self.ask(slot, number);
        } else {
            self.serve_lane(number as usize);
        }
    }

    /// Sends the request of this number on a connection that has none.
    pub(super) fn ask(&mut self, slot: usize, number: u64) {
        let due_ns = self.plan.schedule.due(number);
        let measured = self.is_measured(due_ns);
        let object = &self.plan.objects[self.plan.mix.kind(number)];
        let Some(connection) = &mut self.slots[slot].connection else { return };
        let is_first = self.plan.task != Task::Connect || connection.left == self.plan.exchanges;
        let ends = self.plan.task == Task::Connect && connection.left == 1 && !self.plan.reset;
        let bytes = if ends { &object.last_request } else { &object.request };
        self.in_flight += 1;
        let asked = Asked { due_ns, measured, is_first, begun: false, answer: Answer::new(object.expected) };
        match connection.ask(bytes, asked) {
            Ok(()) => self.set_deadline(slot, self.plan.answer_within_ns, 1),
            Err(failure) => self.failed(slot, failure),
        }
    }

    pub(super) fn answered(&mut self, slot: usize, closes: bool, now: u64) {
        let Some(connection) = &mut self.slots[slot].connection else { return };
        let Some(asked) = connection.asked.take() else { return };
        self.in_flight -= 1;
        connection.state = State::Idle;
        connection.deadline_ns = u64::MAX;
        connection.left = connection.left.saturating_sub(1);
        let (number, left) = (connection.number, connection.left);
        match self.plan.task {
            Task::Connect if left > 0 && closes => self.failed_at(slot, asked.measured, Failure::Short),
            Task::Connect if left > 0 => self.ask(slot, number),
            Task::Connect => {
                self.complete(&asked, now);
                self.let_go(slot, closes);
            }
            Task::Requests { .. } => {
                self.complete(&asked, now);
                if closes {
                    self.close(slot);
                    self.lanes[number as usize].slot = None;
                    self.tally.reopened += 1;
                }
                self.serve_lane(number as usize);
            }
            Task::Hold { .. } if closes => self.failed_at(slot, asked.measured, Failure::Lost),
            Task::Hold { .. } if self.held_from.is_some() => {
                self.tally.held += 1;
                self.complete(&asked, now);
            }
            Task::Hold { .. } => {
                self.tally.last_byte.add(now - asked.due_ns);
                self.pending -= 1;
            }
        }
    }

    /// Closes a connection that got everything: at once by a RST, else once the server's FIN has come.
    fn let_go(&mut self, slot: usize, server_closes: bool) {
        match &mut self.slots[slot].connection {
            Some(connection) if server_closes && !self.plan.reset => {
                connection.state = State::Closing;
                self.set_deadline(slot, ns(CLOSING_S), 2);
                // The FIN may have come with the answer, and is then told of by no other event.
                self.drive(self.token(slot), true);
            }
            _ => self.close(slot),
        }
    }

    fn complete(&mut self, asked: &Asked, now: u64) {
        self.pending -= 1;
        self.tally.complete(asked.measured, now);
        if asked.measured && self.held_from.is_none() {
            self.tally.last_byte.add(now - asked.due_ns);
            if now < self.plan.sustain_ns.1 {
                self.tally.in_time += 1;
            }
        }
    }

    /// A connection failed, and with it what it was for.
    pub(super) fn failed(&mut self, slot: usize, failure: Failure) {
        let Some(connection) = &mut self.slots[slot].connection else { return };
        let (state, number, asked) = (connection.state, connection.number, connection.asked.take());
        self.in_flight -= usize::from(asked.is_some());
        if self.lanes.is_empty() {
            if state == State::Closing {
                self.close(slot);
                return;
            }
            let left = connection.left;
            self.close(slot);
            if state != State::Idle {
                self.fail_number(number, failure);
            } else if left > 0 {
                // It answered once, and was not asked again yet.
                self.count_failed(number, failure);
            }
            return;
        }
        let lane = number as usize;
        self.close(slot);
        self.lanes[lane].slot = None;
        if let Some(asked) = asked {
            self.pending -= 1;
            self.tally.fail(failure, asked.measured, self.clock.now());
        } else {
            // There is no connection: none of those that wait for it is answered.
            while let Some(number) = self.lanes[lane].queue.pop_front() {
                self.fail_number(number, failure);
            }
        }
        self.serve_lane(lane);
    }

    fn failed_at(&mut self, slot: usize, measured: bool, failure: Failure) {
        self.close(slot);
        self.pending -= 1;
        let now = self.clock.now();
        self.tally.fail(failure, measured, now);
    }

    pub(super) fn fail_number(&mut self, number: u64, failure: Failure) {
        self.pending -= 1;
        self.count_failed(number, failure);
    }

    fn count_failed(&mut self, number: u64, failure: Failure) {
        let measured = self.is_measured(self.plan.schedule.due(number));
        self.tally.fail(failure, measured, self.clock.now());
    }

    /// The server closed a connection of which nothing was asked.
    pub(super) fn ended(&mut self, slot: usize) {
        let Some(connection) = &self.slots[slot].connection else { return };
        let (state, number) = (connection.state, connection.number as usize);
        match self.plan.task {
            Task::Hold { .. } if state != State::Closing => self.failed(slot, Failure::Lost),
            Task::Requests { .. } => {
                self.close(slot);
                self.lanes[number].slot = None;
                self.tally.reopened += 1;
                self.serve_lane(number);
            }
            _ => self.close(slot),
        }
    }

    pub(super) fn open_lane(&mut self, lane: usize) {
        match self.open(lane as u64, self.number_of_lane(lane)) {
            Ok(slot) => self.lanes[lane].slot = Some(slot),
            Err(failure) => {
                while let Some(number) = self.lanes[lane].queue.pop_front() {
                    self.fail_number(number, failure);
                }
            }
        }
    }

    /// Sends the next request of a lane where its connection is free, and opens one where there is none.
    pub(super) fn serve_lane(&mut self, lane: usize) {
        if self.lanes[lane].queue.is_empty() {
            return;
        }
        let Some(slot) = self.lanes[lane].slot else {
            self.open_lane(lane);
            return;
        };
        let is_idle = self.slots[slot].connection.as_ref().is_some_and(|one| one.state == State::Idle);
        if !is_idle {
            return;
        }
        if let Some(number) = self.lanes[lane].queue.pop_front() {
            self.ask(slot, number);
        }
    }
}
