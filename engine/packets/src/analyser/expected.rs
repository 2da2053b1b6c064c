//! What the receiver knows of a stream beforehand.

use crate::template::Template;

/// A stream as the receiver expects it.
#[derive(Debug, Clone)]
pub struct Expected {
    /// The frames as they are to come back.
    pub template: Template,
    /// The frames as they are sent, where a tunnel begins or ends on the way.
    pub sent: Option<Template>,
    pub receive_port: usize,
    /// The number of the stream's first flow; flows are numbered over all streams.
    pub first_flow: u32,
    pub flows: u32,
    /// The stream whose frames, with its numbers of flows, arrive at this one's port too.
    pub copy_of: Option<usize>,
}

impl Expected {
    /// The frames as they are sent.
    pub fn sent(&self) -> &Template {
        self.sent.as_ref().unwrap_or(&self.template)
    }
}
