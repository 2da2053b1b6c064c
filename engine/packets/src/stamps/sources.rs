//! Which ports can stamp what they receive, as far as their kind tells before they are opened.

use nicbench_protocol::{PortKind, PortRequest, Timestamps};

use crate::error::{EngineError, ErrorKind};

/// Drivers of DPDK that stamp every frame and whose clock can be read; the shim knows which call reads it.
pub const STAMPING_CARDS: &str = "mlx5, ice or hns3";

/// An error that names every port without such stamps, and what to do.
pub fn check_sources(wanted: Timestamps, ports: &[PortRequest]) -> Result<(), EngineError> {
    let without: Vec<String> = ports
        .iter()
        .filter(|port| !may_stamp(wanted, &port.kind))
        .map(|port| format!("{} ({})", port.name, what(&port.kind)))
        .collect();
    refuse(wanted, &without)
}

/// As `check_sources`, for ports that turned out to have none.
pub fn refuse(wanted: Timestamps, without: &[String]) -> Result<(), EngineError> {
    if without.is_empty() {
        return Ok(());
    }
    let plural = if without.len() > 1 { "s" } else { "" };
    let message = format!("no time stamps of the {} at the port{plural} {}", wanted.name(), without.join(", "));
    let next = match wanted {
        Timestamps::Kernel => "open the interface by net_pcap, or use the time stamps `tsc`".to_owned(),
        _ => format!(
            "give a card by its PCI address whose DPDK driver stamps every frame ({STAMPING_CARDS}) or, for `xdp`, an \
             interface of a card that does, or use the time stamps `tsc`"
        ),
    };
    Err(EngineError::new(ErrorKind::BadRequest, message, next))
}

fn may_stamp(wanted: Timestamps, kind: &PortKind) -> bool {
    match (wanted, kind) {
        (Timestamps::Tsc, _) | (Timestamps::Card, PortKind::Pci { .. } | PortKind::Xdp { .. }) => true,
        (Timestamps::Card, PortKind::Simulated { card_clock, .. }) => card_clock.is_some(),
        (Timestamps::Kernel, PortKind::Pcap { .. }) => true,
        // Frames from a file bear the file's stamps.
        (Timestamps::Kernel, PortKind::Vdev { vdev, .. }) => vdev.starts_with("net_pcap") && !vdev.contains("rx_pcap="),
        _ => false,
    }
}

/// The port's driver, or what else it is made of.
fn what(kind: &PortKind) -> &str {
    match kind {
        PortKind::AfXdp { .. } => "net_af_xdp",
        PortKind::Xdp { .. } => "xdp",
        PortKind::AfPacket { .. } => "net_af_packet",
        PortKind::Pcap { .. } => "net_pcap: its stamps are the kernel's",
        PortKind::Remote => "another engine's",
        PortKind::Null => "net_null",
        PortKind::Ring => "net_ring",
        PortKind::Pci { .. } => "a card that the kernel does not see",
        PortKind::Vdev { vdev, .. } => vdev.split(',').next().unwrap_or_default(),
        PortKind::Simulated { card_clock: None, .. } => "simulated, without a card_clock",
        PortKind::Simulated { .. } => "simulated: its stamps are a card's",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wanted: Timestamps, ports: &str) -> Result<(), EngineError> {
        check_sources(wanted, &serde_json::from_str::<Vec<PortRequest>>(ports).unwrap())
    }

    const XDP: &str = r#"[{"name":"t0","kind":"af_xdp","device":"e0"},{"name":"t1","kind":"af_packet","device":"e1"}]"#;
    const PCAP: &str = r#"[{"name":"t0","kind":"pcap","device":"e0"},
        {"name":"t1","kind":"vdev","vdev":"net_pcap1,rx_iface_in=e1,tx_iface=e1"}]"#;
    const CARD: &str = r#"[{"name":"t0","kind":"pci","address":"0000:03:00.0"}]"#;

    // What its card can do is asked when the port is opened.
    const KERNEL_TESTER: &str = r#"[{"name":"t0","kind":"xdp","device":"e0"}]"#;

    #[test]
    fn each_source_has_its_ports() {
        for (wanted, ports) in [
            (Timestamps::Tsc, XDP),
            (Timestamps::Tsc, CARD),
            (Timestamps::Kernel, PCAP),
            (Timestamps::Card, CARD),
            (Timestamps::Card, KERNEL_TESTER),
            (Timestamps::Card, r#"[{"name":"a","kind":"simulated","link_bits_per_s":1,"sends_to":0,"card_clock":{}}]"#),
        ] {
            assert!(check(wanted, ports).is_ok(), "{wanted:?} {ports}");
        }
    }

    #[test]
    fn every_port_without_is_named_with_its_driver() {
        let error = check(Timestamps::Kernel, XDP).unwrap_err();
        assert_eq!(error.message, "no time stamps of the kernel at the ports t0 (net_af_xdp), t1 (net_af_packet)");
        assert!(error.next.contains("net_pcap"), "{}", error.next);
        let error = check(Timestamps::Card, PCAP).unwrap_err();
        assert!(error.message.contains("t0 (net_pcap: its stamps are the kernel's), t1 (net_pcap1)"), "{error}");
        for (wanted, ports) in [
            (Timestamps::Kernel, CARD),
            (Timestamps::Kernel, KERNEL_TESTER),
            (Timestamps::Kernel, r#"[{"name":"t0","kind":"vdev","vdev":"net_pcap0,rx_pcap=a.pcap"}]"#),
            (Timestamps::Card, r#"[{"name":"t0","kind":"null"}]"#),
            (Timestamps::Card, r#"[{"name":"a","kind":"simulated","link_bits_per_s":1,"sends_to":0}]"#),
        ] {
            let error = check(wanted, ports).unwrap_err();
            assert!(error.message.starts_with("no time stamps of the "), "{error}");
        }
    }
}
