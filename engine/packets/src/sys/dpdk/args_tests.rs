//! The table of EAL arguments: kinds of port and options on the left, what EAL is given on the right.

use nicbench_protocol::Timestamps;

use super::super::options::QueuesOfWorker;
use super::*;

const SURROUNDINGS: Surroundings =
    Surroundings { process_id: 77, any_cpu: 3, other_cpus: Vec::new(), queues: Vec::new(), mtus_bytes: Vec::new() };

fn options(huge_pages: bool, worker_cpu: Option<u32>) -> EalOptions {
    EalOptions { worker_cpu, huge_pages, memory_mib: 512, further: Vec::new() }
}

fn port(kind: PortKind) -> PortOptions {
    PortOptions {
        name: "p".into(),
        kind,
        transmit_descriptors: 2048,
        receive_descriptors: 8192,
        lossless: false,
        send_buffer_bytes: None,
        timestamps: Timestamps::Tsc,
    }
}

fn af_xdp(device: &str, queue: u32, xdp_program: Option<&str>) -> PortKind {
    PortKind::AfXdp { device: device.into(), queue, xdp_program: xdp_program.map(Into::into) }
}

fn pci(address: &str, devargs: &str) -> PortKind {
    PortKind::Pci { address: address.into(), devargs: devargs.into() }
}

fn given(kinds: Vec<PortKind>) -> Vec<String> {
    let ports: Vec<_> = kinds.into_iter().map(port).collect();
    let list = arguments(&options(true, Some(1)), &ports, &SURROUNDINGS);
    list.into_iter().skip_while(|argument| argument != "--in-memory").skip(1).collect()
}

#[test]
fn each_kind_of_port_has_its_arguments() {
    let memif = PortKind::Vdev { vdev: "net_memif0,role=client,id=0".into(), queues: QueuesOfWorker::ONE };
    let table: Vec<(&str, Vec<PortKind>, &[&str])> = vec![
        ("no port", vec![], &["--no-pci"]),
        (
            "AF_XDP takes one queue",
            vec![af_xdp("t0", 0, None), af_xdp("t1", 2, Some("redirect.o"))],
            &[
                "--no-pci",
                "--vdev=net_af_xdp0,iface=t0,start_queue=0,queue_count=1",
                "--vdev=net_af_xdp1,iface=t1,start_queue=2,queue_count=1,xdp_prog=redirect.o",
            ],
        ),
        (
            "packet socket",
            vec![PortKind::AfPacket { device: "t0".into() }],
            &["--no-pci", "--vdev=eth_af_packet0,iface=t0,qdisc_bypass=1,framecnt=4096"],
        ),
        (
            "libpcap",
            vec![PortKind::Pcap { device: "t0".into() }],
            &["--no-pci", "--vdev=net_pcap0,rx_iface_in=t0,tx_iface=t0"],
        ),
        (
            "null and ring",
            vec![PortKind::Null, PortKind::Ring],
            &["--no-pci", "--vdev=net_null0,no-rx=1", "--vdev=net_ring1"],
        ),
        ("any virtual device", vec![memif.clone()], &["--no-pci", "--vdev=net_memif0,role=client,id=0"]),
        (
            "only the named cards are taken",
            vec![pci("0000:03:00.0", ""), pci("0000:03:00.1", "mprq_en=1")],
            &["-a", "0000:03:00.0", "-a", "0000:03:00.1,mprq_en=1"],
        ),
        (
            "a card beside a virtual device",
            vec![memif, pci("0000:03:00.0", "")],
            &["-a", "0000:03:00.0", "--vdev=net_memif0,role=client,id=0"],
        ),
    ];
    for (what, kinds, expected) in table {
        assert_eq!(given(kinds), expected, "{what}");
    }
}

#[test]
fn the_engine_pins_its_thread_and_keeps_to_itself() {
    let list = arguments(&options(true, Some(1)), &[], &SURROUNDINGS);
    let expected = [
        "nicbench-packets",
        "--lcores=0@1",
        "-m",
        "512",
        "--file-prefix=nicbench_77",
        "--no-telemetry",
        "--log-level=warning",
    ];
    assert_eq!(list[..7], expected);
}

#[test]
fn without_a_worker_cpu_any_allowed_one_starts_eal() {
    assert!(arguments(&options(true, None), &[], &SURROUNDINGS).contains(&"--lcores=0@3".to_owned()));
}

#[test]
fn further_workers_have_threads_of_their_own_and_ports_as_many_queues() {
    let ports: Vec<_> =
        [af_xdp("t0", 0, None), PortKind::AfPacket { device: "t1".into() }].into_iter().map(port).collect();
    let surroundings = Surroundings { other_cpus: vec![4, 6], queues: vec![2, 3], ..SURROUNDINGS };
    let list = arguments(&options(true, Some(1)), &ports, &surroundings);
    assert_eq!(list[1], "--lcores=0@1,1@4,2@6");
    assert!(list[list.len() - 2].ends_with("start_queue=0,queue_count=2"));
    assert!(list[list.len() - 1].ends_with(",qpairs=3"));
}

#[test]
fn either_kind_of_page_leaves_nothing_on_disk() {
    assert_eq!(arguments(&options(true, None), &[], &SURROUNDINGS)[7..], ["--in-memory", "--no-pci"]);
    assert_eq!(arguments(&options(false, None), &[], &SURROUNDINGS)[7..], ["--no-huge", "--no-shconf", "--no-pci"]);
}

#[test]
fn further_arguments_come_last() {
    let mut options = options(false, None);
    options.further = vec!["--iova-mode=va".into()];
    assert_eq!(
        arguments(&options, &[port(PortKind::Null)], &SURROUNDINGS).last().map(String::as_str),
        Some("--iova-mode=va")
    );
}

#[test]
fn a_port_is_found_again_by_the_name_of_its_device() {
    assert_eq!(device_name(&af_xdp("t0", 0, None), 4), "net_af_xdp4");
    assert_eq!(
        device_name(&PortKind::Vdev { vdev: "net_memif0,role=client".into(), queues: QueuesOfWorker::ONE }, 1),
        "net_memif0"
    );
    assert_eq!(device_name(&pci("0000:03:00.0", "mprq_en=1"), 1), "0000:03:00.0");
}

#[test]
fn the_ring_of_a_packet_socket_has_room_for_a_frame_of_the_mtu() {
    assert_eq!(packet_ring(None), "framecnt=4096");
    assert_eq!(packet_ring(Some(1500)), "framecnt=4096");
    assert_eq!(packet_ring(Some(1920)), "framecnt=4096");
    assert_eq!(packet_ring(Some(1921)), "blocksz=4096,framesz=4096,framecnt=2048");
    assert_eq!(packet_ring(Some(9000)), "blocksz=12288,framesz=12288,framecnt=2048");
}
