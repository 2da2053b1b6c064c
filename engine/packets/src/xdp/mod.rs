//! The tester inside the kernel: XDP programs make, stamp, receive and check every frame, on interfaces that stay with
//! their drivers.

mod answering;
mod card_clock;
mod frames;
mod generator;
mod port;
mod receiver;
mod tester;

pub use generator::Generator;
pub use port::XdpPort;
pub use receiver::Receiver;
pub use tester::{Lane, XdpTester};
