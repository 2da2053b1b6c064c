//! Which stream counts a frame that arrives at several ports: each port's copy of a stream is one of its own.

use super::Expected;

/// The copies of all streams, by stream and port.
#[derive(Debug, Clone)]
pub(super) struct Copies {
    ports: usize,
    /// Empty where no stream has copies.
    of: Vec<Option<usize>>,
}

impl Copies {
    pub(super) fn new(expected: &[Expected], ports: usize) -> Self {
        let mut of = Vec::new();
        for (copy, stream) in expected.iter().enumerate() {
            let Some(original) = stream.copy_of else { continue };
            of.resize(expected.len() * ports, None);
            if let Some(place) = of.get_mut(original * ports + stream.receive_port) {
                *place = Some(copy);
            }
        }
        Self { ports, of }
    }

    /// The stream that counts frames of stream `original` which arrive at `port`; `None`: none are expected there.
    #[inline]
    pub(super) fn of(&self, original: usize, port: usize) -> Option<usize> {
        if port >= self.ports {
            return None;
        }
        self.of.get(original * self.ports + port).copied().flatten()
    }
}
