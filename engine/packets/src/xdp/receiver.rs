//! Stub.
use crate::analyser::{Analyser, Detail, Expected};
use crate::capture::Capture;
use crate::error::{EngineError, ErrorKind};
use crate::signature::Signer;
use std::collections::BTreeMap;
#[derive(Debug)]
pub struct Receiver {
    a: Option<Analyser>,
}
impl Receiver {
    pub fn attach(_port: usize, _name: &str, _interface: u32, _queues: u32) -> Result<Self, EngineError> {
        Ok(Self { a: None })
    }
    pub fn begin(
        &mut self,
        _trial: u32,
        signer: &Signer,
        expected: &[Expected],
        detail: Detail,
        _duration_ns: u64,
        _capture: Option<Capture>,
    ) -> Result<(), EngineError> {
        self.a = Some(Analyser::with_detail(*signer, expected.to_vec(), 2, detail)?);
        Ok(())
    }
    pub fn set_epoch(&mut self, _monotonic_ns: u64) {}
    pub fn set_last_slow(&mut self, _monotonic_ns: u64) {}
    pub fn poll(&mut self) {}
    pub fn end_drain(&mut self) {}
    pub fn end(&mut self) {}
    pub fn received(&self) -> Vec<u64> {
        Vec::new()
    }
    pub fn analyser(&mut self) -> Result<Analyser, EngineError> {
        self.a.clone().ok_or_else(|| EngineError::new(ErrorKind::BadState, "x", "y"))
    }
    pub fn counters(&self) -> BTreeMap<String, u64> {
        BTreeMap::new()
    }
}
