//! Orders: how a session ends a worker's loop while it runs.

/// What a running loop is told to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Continue,
    /// End the transmission.
    Stop,
    /// End everything.
    Quit,
}

/// The orders for a running loop, which looks for them without waiting.
pub trait Orders {
    /// Whether an order is waiting. Cheap: called in every iteration.
    fn is_waiting(&self) -> bool;

    /// Takes the order that is waiting.
    fn take(&mut self) -> Order;
}
