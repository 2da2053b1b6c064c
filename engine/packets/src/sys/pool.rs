//! Frames in ordinary memory, for simulated ports.

use std::ptr::without_provenance_mut;

use super::frame::Frame;

/// Hands out frames and takes them back. A buffer never moves while the pool lives, though the list of buffers grows.
#[derive(Debug, Default)]
pub struct FramePool {
    buffers: Vec<Vec<u8>>,
    free: Vec<usize>,
}

impl FramePool {
    /// Gives a frame of `length` bytes with any content.
    pub fn take(&mut self, length: usize) -> Frame {
        let index = self.free.pop().unwrap_or_else(|| {
            self.buffers.push(Vec::new());
            self.buffers.len() - 1
        });
        let buffer = &mut self.buffers[index];
        buffer.resize(length, 0);
        // SAFETY: the buffer's heap block holds `length` bytes, stays where it is until the buffer is resized, which
        // only `take` does, and `take` gives out an index again only after `give` returned it.
        unsafe { Frame::from_raw(buffer.as_mut_ptr(), length as u32, without_provenance_mut(index)) }
    }

    /// Takes a frame back.
    pub fn give(&mut self, frame: &Frame) {
        self.free.push(frame.handle().addr());
    }

    /// The number of frames that were taken and not given back.
    pub fn outstanding(&self) -> usize {
        self.buffers.len() - self.free.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_keeps_its_bytes_while_others_come_and_go() {
        let mut pool = FramePool::default();
        let mut kept = pool.take(4);
        kept.bytes_mut().copy_from_slice(b"kept");
        let others: Vec<Frame> = (0..1000).map(|length| pool.take(length)).collect();
        others.iter().for_each(|frame| pool.give(frame));
        assert_eq!((kept.bytes(), pool.outstanding()), (&b"kept"[..], 1));
    }
}
