//! The session while it generates: flows go on between requests, and requests are looked at between bursts.

use std::sync::Arc;

use nicbench_protocol::{Hosts, Load};

use super::{Session, bad_state, not_configured};
use crate::error::{EngineError, ErrorKind};
use crate::generator::{Bench, Generator};

impl Session {
    /// Replaces all flows; the first time, the process becomes a generator.
    pub fn load(&mut self, id: i64, load: &Load) {
        if let Err(error) = self.begin_generating() {
            return self.output.fail(id, error);
        }
        let run_key = self.run_key;
        self.ask_generator(id, |generator, bench| generator.load(id, load, run_key, bench));
    }

    /// Replaces all hosts; the first time, the process becomes a generator.
    pub fn host(&mut self, id: i64, hosts: &Hosts) {
        if let Err(error) = self.begin_generating() {
            return self.output.fail(id, error);
        }
        self.ask_generator(id, |generator, bench| generator.host(id, hosts, bench));
    }

    fn begin_generating(&mut self) -> Result<(), EngineError> {
        let tester = self.tester.as_mut().ok_or_else(not_configured)?;
        if !self.used_trials.is_empty() {
            return Err(bad_state("this process has made trials", "start another process for a generator"));
        }
        let bench = tester.bench().ok_or_else(|| {
            let message = "these ports are of kind `xdp`, or have several workers: they cannot generate";
            EngineError::new(ErrorKind::BadRequest, message, "configure other ports, without `workers`")
        })?;
        if self.generator.is_none() {
            self.generator = Some(Generator::new(Some(Arc::clone(&self.output)), &bench));
        }
        Ok(())
    }

    /// Passes a request on; the generator replies.
    pub fn ask_generator(&mut self, id: i64, ask: impl FnOnce(&mut Generator, &mut Bench<'_>)) {
        let bench = self.tester.as_mut().and_then(|tester| tester.bench());
        match (&mut self.generator, bench) {
            (Some(generator), Some(mut bench)) => ask(generator, &mut bench),
            _ => self.output.fail(id, bad_state("there are no flows", "ask for `load` first")),
        }
    }

    /// Lets flows go on until a message waits; whether there is anything to do without a pause.
    pub fn generate(&mut self) -> bool {
        let Some(generator) = &mut self.generator else { return false };
        let Some(mut bench) = self.tester.as_mut().and_then(|tester| tester.bench()) else { return false };
        let is_busy = generator.is_busy(bench.clock);
        // Receive rings are kept empty in between. Computed time stands still, so nothing arrives.
        if is_busy || !bench.clock.is_virtual() {
            generator.run(&mut bench, &self.mailbox);
        }
        is_busy
    }

    /// Gives frames back, and waits for files and lines.
    pub fn finish_generating(&mut self) {
        let bench = self.tester.as_mut().and_then(|tester| tester.bench());
        if let (Some(mut generator), Some(mut bench)) = (self.generator.take(), bench) {
            generator.finish(&mut bench);
        }
    }
}
