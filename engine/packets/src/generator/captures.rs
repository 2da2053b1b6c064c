//! Captures of what ports receive: begun and ended apart from any transmission, filtered, as classic pcap with FCS.

mod file;
mod filter;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};

use nicbench_protocol::{CaptureAction, CapturedFile, PortCapture};

use self::file::{CaptureFile, Records};
use self::filter::Filter;
use crate::error::{EngineError, ErrorKind};
use crate::port::PortFacts;

/// Bytes that may wait for the file; what comes beyond is dropped.
const MOST_WAITING_BYTES: usize = 64 << 20;

/// The captures that run, by port.
#[derive(Debug, Default)]
pub struct Captures {
    taps: Vec<Option<Tap>>,
}

/// One port's capture.
#[derive(Debug)]
struct Tap {
    filters: Vec<Filter>,
    records: Records,
    waiting_bytes: Arc<AtomicUsize>,
    sender: Sender<Records>,
    writer: JoinHandle<CapturedFile>,
    dropped: u64,
}

/// Captures that have ended, whose files are being completed.
#[derive(Debug)]
pub struct Ended(Vec<(JoinHandle<CapturedFile>, u64)>);

impl Ended {
    /// Waits until the files are complete.
    pub fn wait(self) -> Vec<CapturedFile> {
        let complete = |(writer, dropped): (JoinHandle<CapturedFile>, u64)| {
            let mut file = writer.join().ok()?;
            file.dropped += dropped;
            Some(file)
        };
        self.0.into_iter().filter_map(complete).collect()
    }
}

impl Captures {
    /// Whether one runs.
    pub fn is_any(&self) -> bool {
        self.taps.iter().any(Option::is_some)
    }

    /// Begins captures as asked.
    ///
    /// # Errors
    /// Where a port is captured already, or a file cannot be made: then none begins.
    pub fn start(&mut self, request: &PortCapture, facts: &[PortFacts]) -> Result<Vec<CapturedFile>, EngineError> {
        self.check(request, facts)?;
        let filters = request.filters.iter().map(Filter::of).collect::<Result<Vec<_>, _>>()?;
        let mut files = Vec::new();
        for port in &request.ports {
            files.push(CaptureFile::create(*port, &facts[*port].name, request)?);
        }
        self.taps.resize_with(facts.len(), || None);
        let begun = files.iter().map(CaptureFile::empty).collect();
        for file in files {
            let port = file.port();
            self.taps[port] = Some(Tap::new(file, filters.clone()));
        }
        Ok(begun)
    }

    /// Ends captures; the ports must be captured.
    pub fn stop(&mut self, ports: &[usize]) -> Result<Ended, EngineError> {
        if let Some(port) = ports.iter().find(|port| !self.is_captured(**port)) {
            let message = format!("port {port} is not captured");
            return Err(EngineError::new(ErrorKind::BadState, message, "ask for `capture` with `start` first"));
        }
        let taps = ports.iter().filter_map(|port| self.taps.get_mut(*port)?.take());
        Ok(Ended(taps.map(|tap| (tap.writer, tap.dropped)).collect()))
    }

    /// Ends all.
    pub fn finish(&mut self) -> Ended {
        Ended(self.taps.drain(..).flatten().map(|tap| (tap.writer, tap.dropped)).collect())
    }

    fn is_captured(&self, port: usize) -> bool {
        self.taps.get(port).is_some_and(Option::is_some)
    }

    fn check(&self, request: &PortCapture, facts: &[PortFacts]) -> Result<(), EngineError> {
        let mut seen = Vec::new();
        for port in &request.ports {
            if *port >= facts.len() || seen.contains(port) {
                let message = format!("capture: port {port}, and there are {} ports", facts.len());
                return Err(EngineError::new(ErrorKind::BadRequest, message, "name each port once, by its number"));
            }
            if self.is_captured(*port) && request.action == CaptureAction::Start {
                let message = format!("port {} is captured already", facts[*port].name);
                return Err(EngineError::new(ErrorKind::BadState, message, "ask for `capture` with `stop` first"));
            }
            seen.push(*port);
        }
        Ok(())
    }

    /// A frame arrived at `port`.
    #[inline]
    pub fn push(&mut self, port: usize, frame: &[u8], unix_ns: u64) {
        let Some(Some(tap)) = self.taps.get_mut(port) else { return };
        if tap.filters.iter().all(|filter| filter.holds(frame)) {
            tap.records.push(frame, unix_ns);
        }
    }

    /// What was pushed goes to the files.
    #[inline]
    pub fn hand_over(&mut self, port: usize) {
        if let Some(Some(tap)) = self.taps.get_mut(port) {
            tap.hand_over();
        }
    }
}

impl Tap {
    fn new(mut file: CaptureFile, filters: Vec<Filter>) -> Self {
        let (sender, receiver) = channel::<Records>();
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let waiting = Arc::clone(&waiting_bytes);
        let writer = thread::spawn(move || {
            for records in receiver {
                file.write(&records);
                waiting.fetch_sub(records.bytes(), Ordering::Relaxed);
            }
            file.finish()
        });
        Self { filters, records: Records::default(), waiting_bytes, sender, writer, dropped: 0 }
    }

    fn hand_over(&mut self) {
        let bytes = self.records.bytes();
        if bytes == 0 {
            return;
        }
        if self.waiting_bytes.load(Ordering::Relaxed) + bytes > MOST_WAITING_BYTES {
            self.dropped += self.records.frames();
            self.records.clear();
            return;
        }
        self.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        // The writer ends only when this does.
        let _ = self.sender.send(std::mem::take(&mut self.records));
    }
}

#[cfg(test)]
mod tests;
