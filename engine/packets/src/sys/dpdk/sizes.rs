//! How many buffers a port gets, and how long a frame may be.

use nicbench_protocol::Timestamps;

use super::ffi::RawPortOptions;
use super::options::{PortKind, PortOptions, QueuesOfWorker};
use super::parts::Queues;
use crate::wire::ethernet::FCS_BYTES;
use crate::wire::{Ethernet, Header, Vlan};

const HEADER_BYTES: u32 = Ethernet::BYTES as u32;
/// The MTU taken for a device that does not say.
const USUAL_MTU_BYTES: u32 = 1500;
/// Never fewer buffers than this: bursts, caches and the receiver's own queue live on them.
const FEWEST_BUFFERS: u32 = 16384;
/// A ring in memory holds 1024 frames. What goes round between two cores is to stay in their caches.
const RING_BUFFERS: u32 = 3072;
/// net_af_xdp keeps 2048 buffers in the fill ring and up to 2048 more wait in the completion ring.
const UMEM_RING_BUFFERS: u32 = 4096;

/// The options in the form that the shim takes.
pub(super) fn raw_options(options: &PortOptions, kernel_mtu_bytes: Option<u32>, queues: &Queues) -> RawPortOptions {
    let (umem, each) = (options.kind.is_af_xdp(), options.kind.queues_of_worker());
    // Who sends what it received elsewhere has written into it, and may hold many frames.
    let hands_over = options.kind.hands_over() && queues.own_buffers_only;
    RawPortOptions {
        transmit_descriptors: options.transmit_descriptors,
        receive_descriptors: options.receive_descriptors,
        buffers: if hands_over { RING_BUFFERS * each.transmit } else { buffers(options, umem, each) },
        frame_bytes: buffer_frame_bytes(&options.kind, kernel_mtu_bytes.unwrap_or(USUAL_MTU_BYTES).min(65535 / 2)),
        umem: umem.into(),
        is_promiscuous: 0,
        packed: (!matches!(options.kind, PortKind::Pci { .. })).into(),
        transmit_queues: queues.transmit,
        receive_queues: queues.receive,
        transmit_queues_each: each.transmit,
        receive_queues_each: each.receive,
        own_buffers_only: queues.own_buffers_only.into(),
        stamps: (options.timestamps != Timestamps::Tsc).into(),
        hands_over: hands_over.into(),
    }
}

fn buffers(options: &PortOptions, umem: bool, each: QueuesOfWorker) -> u32 {
    // The driver of AF_XDP makes its transmit ring as long as the receive ring.
    let transmit =
        if umem { options.receive_descriptors.max(options.transmit_descriptors) } else { options.transmit_descriptors };
    let rings = transmit * each.transmit
        + options.receive_descriptors * each.receive
        + if umem { UMEM_RING_BUFFERS } else { 0 };
    // Half as many again for what the caller holds and for the pool's per-core cache.
    (rings + rings / 2).max(FEWEST_BUFFERS)
}

/// What the kernel keeps beside a frame in the ring of a packet socket, with its tag: less than this.
const BESIDE_FRAME_BYTES: u32 = 128;
/// The room for a frame in such a ring where the driver is told nothing.
const USUAL_ROOM_BYTES: u32 = 2048;
/// The kernel makes blocks of whole pages, and the driver takes the rooms in them for gapless: larger ones are pages.
const PAGE_BYTES: u32 = 4096;

/// The room that a frame of this MTU needs in the ring of a packet socket; `None`: no more than usual.
pub(super) fn packet_room_bytes(mtu_bytes: u32) -> Option<u32> {
    let needed = mtu_bytes.min(u16::MAX.into()) + BESIDE_FRAME_BYTES;
    (needed > USUAL_ROOM_BYTES).then(|| needed.next_multiple_of(PAGE_BYTES))
}

/// What a buffer must hold: a frame, and of a packet socket all the room that its ring has for one.
fn buffer_frame_bytes(kind: &PortKind, mtu_bytes: u32) -> u32 {
    let room = matches!(kind, PortKind::AfPacket { .. }).then(|| packet_room_bytes(mtu_bytes)).flatten();
    room.unwrap_or_default().max(mtu_bytes + HEADER_BYTES)
}

/// The longest frame, FCS included, that the device takes and a buffer holds; and by how much a tagged one may be longer.
pub(super) fn longest_frames(mtu_bytes: u32, buffer_bytes: u32) -> (u32, u32) {
    let longest = |tags: u32| (mtu_bytes + HEADER_BYTES + tags).min(buffer_bytes) + FCS_BYTES;
    (longest(0), longest(Vlan::BYTES as u32) - longest(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Queues = Queues { transmit: 1, receive: 1, own_buffers_only: true };

    fn port(kind: PortKind, transmit_descriptors: u32, receive_descriptors: u32) -> PortOptions {
        PortOptions {
            name: "p".into(),
            kind,
            transmit_descriptors,
            receive_descriptors,
            lossless: false,
            send_buffer_bytes: None,
            timestamps: Timestamps::Tsc,
        }
    }

    fn af_xdp() -> PortKind {
        PortKind::AfXdp { device: "t0".into(), queue: 0, xdp_program: None }
    }

    #[test]
    fn small_rings_still_get_a_pool_for_bursts() {
        assert_eq!(raw_options(&port(PortKind::Null, 512, 512), None, &ONE).buffers, 16384);
    }

    #[test]
    fn an_af_xdp_port_has_buffers_for_all_four_rings_when_they_are_full() {
        let buffers = raw_options(&port(af_xdp(), 2048, 8192), Some(1500), &ONE).buffers;
        assert!(buffers > 8192 + 8192 + 2048 + 2048, "{buffers}");
    }

    #[test]
    fn the_longest_frame_is_bounded_by_the_device_or_the_buffer() {
        assert_eq!(longest_frames(1500, 2048), (1518, 4));
        assert_eq!(longest_frames(3440, 3456), (3458, 2));
        assert_eq!(longest_frames(9000, 3456), (3460, 0));
    }
}
