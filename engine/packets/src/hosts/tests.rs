use serde_json::{Value, json};

use super::*;
use crate::checksum;
use crate::wire::{Arp, Echo, Ipv4, Ipv6, arp, icmp, ipv4, ipv6};

const S: u64 = 1_000_000_000;
const ROUTER: Mac = [2, 0, 0, 0, 0, 0xFE];

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn hosts_of(requests: Value) -> Result<PortHosts, EngineError> {
    let requests: Vec<HostRequest> = serde_json::from_value(requests).unwrap();
    PortHosts::default().replaced(&(0..).zip(&requests).collect::<Vec<_>>(), 0)
}

/// One host, 02:00:00:00:00:01, with 198.18.0.2 and 2001:2::2; the gateways are 198.18.0.1 and 2001:2::1.
fn host() -> PortHosts {
    tagged_host(json!([]))
}

fn tagged_host(tags: Value) -> PortHosts {
    let addresses = json!([{"address": "198.18.0.2", "gateway": "198.18.0.1"},
        {"address": "2001:2::2", "gateway": "2001:2::1"}]);
    hosts_of(json!([{"port": 0, "mac": "02:00:00:00:00:01", "tags": tags, "addresses": addresses}])).unwrap()
}

/// One whose addresses are free, and whose questions for gateways have just been asked again.
fn settled_host() -> PortHosts {
    let mut hosts = host();
    let _ = (said(&mut hosts, 0), said(&mut hosts, S));
    hosts
}

/// What the hosts have to say now.
fn said(hosts: &mut PortHosts, now_ns: u64) -> Vec<Vec<u8>> {
    hosts.ask(now_ns);
    hosts.waiting.drain(..).collect()
}

fn arp_request(sender: &str, target: &str, tags: &str) -> Vec<u8> {
    hex(&format!("ffffffffffff 0200000000fe {tags} 0806 0001 0800 06 04 0001 {sender} 000000000000 {target}"))
}

fn arp_reply(mac: &str, address: &str) -> Vec<u8> {
    hex(&format!("020000000001 {mac} 0806 0001 0800 06 04 0002 {mac} {address} 020000000001 c6120002"))
}

/// A solicitation built with scapy: fe80::aa asks for 2001:2::1, with its link-layer address.
const SOLICITATION: &str = "3333ff000001 0200000000aa 86dd 6000000000203aff fe8000000000000000000000000000aa
    ff0200000000000000000001ff000001 8700 57c5 00000000 20010002000000000000000000000001 0101 0200000000aa";

fn echo_request(to_mac: &str) -> Vec<u8> {
    let mut frame = hex(&format!(
        "{to_mac} 0200000000fe 0800 45000020 00010000 40010000 c6120001 c6120002
        08000000 00070001 6162636465"
    ));
    frame[14 + 3] = 33;
    let sum = checksum::finish(checksum::add(0, &frame[14..34]));
    Ipv4::at_mut(&mut frame, 14).unwrap().set(ipv4::CHECKSUM, sum);
    let sum = checksum::finish(checksum::add(0, &frame[34..]));
    Echo::at_mut(&mut frame, 34).unwrap().set(icmp::CHECKSUM, sum);
    frame.resize(60, 0);
    frame
}

#[test]
fn a_host_asks_whether_its_addresses_are_free_and_for_its_gateways() {
    let mut hosts = host();
    let frames = said(&mut hosts, 0);
    // RFC 5227 2.1.1, RFC 4862 5.4.2, then RFC 826, RFC 4861 7.2.2.
    assert_eq!(
        frames[0][..42],
        hex("ffffffffffff 020000000001 0806 0001 0800 06 04 0001 020000000001 00000000
        000000000000 c6120002")
    );
    assert_eq!(
        frames[1][..62],
        hex("3333ff000002 020000000001 86dd 6000000000183aff 00000000000000000000000000000000
        ff0200000000000000000001ff000002 8700 5aa1 00000000")[..]
    );
    assert_eq!(frames[1].len(), 78, "without an option");
    assert_eq!(
        frames[2][..42],
        hex("ffffffffffff 020000000001 0806 0001 0800 06 04 0001 020000000001 c6120002
        000000000000 c6120001")
    );
    assert_eq!((frames.len(), hosts.counts.asked, hosts.tentative()), (3, 3, 1));
    // Its address of IPv6 is known to be free after a second.
    assert_eq!(hosts.next_ns(), Some(S));
    let later = said(&mut hosts, S);
    assert_eq!(later[1][..14], hex("3333ff000001 020000000001 86dd"));
    assert_eq!((later.len(), hosts.tentative(), hosts.is_waiting()), (2, 0, true));
}

#[test]
fn an_answer_resolves_the_gateway_of_either_version() {
    let mut hosts = host();
    let _ = said(&mut hosts, 0);
    assert!(hosts.receive(&arp_reply("0200000000fe", "c6120001"), S / 10));
    // The gateway's advertisement, as another host of our own makes it.
    let addresses = json!([{"address": "2001:2::1"}]);
    let mut gateway = hosts_of(json!([{"port": 0, "mac": "02:00:00:00:00:fe", "addresses": addresses}])).unwrap();
    let question = question(&hosts.hosts[0].link, hosts.hosts[0].addresses[1], "2001:2::1".parse().unwrap(), None);
    let _ = (said(&mut gateway, 0), said(&mut gateway, S));
    assert!(gateway.receive(&question.unwrap(), S));
    let answers = said(&mut gateway, S);
    assert_eq!((answers.len(), gateway.counts.nd_answered), (1, 1));
    assert!(hosts.receive(&answers[0], S / 10));
    let macs: Vec<_> = hosts.neighbours().map(|neighbour| neighbour.mac.unwrap()).collect();
    assert_eq!((macs, hosts.next_ns()), (vec!["02:00:00:00:00:fe".to_owned(); 2], Some(S)));
    assert!(said(&mut hosts, S).is_empty() && !hosts.is_waiting());
    assert_eq!(hosts.next_ns(), Some(S / 10 + 30 * S));
}

#[test]
fn questions_for_its_addresses_are_answered_and_the_asker_is_remembered() {
    let mut hosts = host();
    let _ = said(&mut hosts, 0);
    assert!(hosts.receive(&arp_request("0200000000fe c6120063", "c6120002", ""), 0));
    let frames = said(&mut hosts, 0);
    assert_eq!(
        frames[0][..42],
        hex("0200000000fe 020000000001 0806 0001 0800 06 04 0002 020000000001 c6120002
        0200000000fe c6120063")
    );
    assert_eq!((frames.len(), hosts.counts.arp_answered), (1, 1));
    let learned = hosts.neighbours().find(|neighbour| neighbour.address.to_string() == "198.18.0.99").unwrap();
    assert_eq!(learned.mac.as_deref(), Some("02:00:00:00:00:fe"));
    assert!(!hosts.receive(&arp_request("0200000000fe c6120063", "c6120003", ""), 0), "somebody else's");
    let mut asked = hosts_of(json!([{"port": 0, "mac": "02:00:00:00:00:01",
        "addresses": [{"address": "2001:2::1"}]}]))
    .unwrap();
    let _ = (said(&mut asked, 0), said(&mut asked, S));
    assert!(asked.receive(&hex(SOLICITATION), S));
    // Built with scapy: an advertisement, solicited and overriding.
    let expected = hex("0200000000aa 020000000001 86dd 6000000000203aff 20010002000000000000000000000001
        fe8000000000000000000000000000aa 8800 d46f 60000000 20010002000000000000000000000001 0201 020000000001");
    assert_eq!(said(&mut asked, S), [expected]);
}

#[test]
fn a_ping_comes_back_with_its_data_and_only_to_the_host_that_it_is_for() {
    let mut hosts = host();
    let _ = said(&mut hosts, 0);
    assert!(hosts.receive(&echo_request("020000000001"), 0));
    let frames = said(&mut hosts, 0);
    let reply = &frames[0];
    assert_eq!(reply[..14], hex("0200000000fe 020000000001 0800"));
    let ip = Ipv4::at(reply, 14).unwrap();
    assert_eq!((ip.get(ipv4::SOURCE), ip.get(ipv4::DESTINATION)), (0xC612_0002, 0xC612_0001));
    assert_eq!(checksum::finish(checksum::add(0, &reply[14..34])), 0);
    assert_eq!(checksum::finish(checksum::add(0, &reply[34..47])), 0);
    assert_eq!(
        (Echo::at(reply, 34).unwrap().get(icmp::TYPE), &reply[38..47]),
        (icmp::REPLY, &b"\0\x07\0\x01abcde"[..])
    );
    assert!(!hosts.receive(&echo_request("ffffffffffff"), 0));
    let mut broken = echo_request("020000000001");
    broken[44] ^= 1;
    assert!(!hosts.receive(&broken, 0));
    assert_eq!((hosts.counts.echo_answered, hosts.counts.malformed), (1, 1));
    assert!(said(&mut hosts, 0).is_empty());
}

#[test]
fn a_ping_of_ipv6_comes_back_too() {
    let mut hosts = settled_host();
    let mut message = hex("80000000 00070001 6162");
    let mut frame = hex("020000000001 0200000000fe 86dd");
    let mut ip = Ipv6::append(&mut frame);
    ip.begin(58);
    ip.set(ipv6::PAYLOAD_LENGTH, message.len() as u16);
    ip.set(ipv6::HOP_LIMIT, 64);
    ip.set(ipv6::SOURCE, 0x2001_0002 << 96 | 1);
    ip.set(ipv6::DESTINATION, 0x2001_0002 << 96 | 2);
    let sum = crate::wire::ndp::icmpv6_checksum(&ip, &message);
    Echo::at_mut(&mut message, 0).unwrap().set(icmp::CHECKSUM, sum);
    frame.extend(message);
    assert!(hosts.receive(&frame, S));
    let reply = &said(&mut hosts, S)[0];
    let ip = Ipv6::at(reply, 14).unwrap();
    assert_eq!((ip.get(ipv6::DESTINATION), reply[54]), (0x2001_0002 << 96 | 1, icmp::V6_REPLY));
    assert_eq!(crate::wire::ndp::icmpv6_checksum(&ip, &reply[54..64]), 0);
}

#[test]
fn a_tagged_host_hears_its_vlan_alone_and_answers_in_it() {
    let mut hosts = tagged_host(json!([{"tag_type": 0x88A8, "id": 7}, {"tag_type": 0x8100, "priority": 5, "id": 9}]));
    assert!(said(&mut hosts, 0).iter().all(|frame| frame[12..20] == hex("88a8 0007 8100 a009")));
    let question = |tags: &str| arp_request("0200000000fe c6120001", "c6120002", tags);
    assert!(!hosts.receive(&question(""), 0) && !hosts.receive(&question("8100 0009"), 0));
    assert!(hosts.receive(&question("8100 0007 8100 0009"), 0));
    assert_eq!(said(&mut hosts, 0)[0][..22], hex("0200000000fe 020000000001 88a8 0007 8100 a009 0806"));
    let mut untagged = host();
    let _ = said(&mut untagged, 0);
    assert!(untagged.receive(&question("8100 a000"), 0), "a tag of a priority alone");
}

#[test]
fn somebody_with_the_same_address_is_told_and_named() {
    let mut hosts = host();
    let _ = said(&mut hosts, 0);
    // An announcement, an answer to somebody else, and a question whether the address is free.
    assert!(hosts.receive(&arp_request("0200000000fe c6120002", "c6120002", ""), 0));
    assert_eq!(
        said(&mut hosts, 0)[0][..42],
        hex("ffffffffffff 020000000001 0806 0001 0800 06 04 0001 020000000001
        c6120002 000000000000 c6120002")
    );
    assert!(hosts.receive(&arp_reply("0200000000ba", "c6120002"), S));
    assert!(said(&mut hosts, S / 2).is_empty(), "it is defended every ten seconds");
    assert!(hosts.receive(&arp_request("0200000000fe 00000000", "c6120002", ""), S));
    assert_eq!(Arp::at(&said(&mut hosts, S / 2)[0], 14).unwrap().get(arp::OPERATION), arp::REPLY);
    let duplicates: Vec<_> = hosts.duplicates().collect();
    assert_eq!((duplicates.len(), duplicates[0].claims, &*duplicates[0].mac), (1, 3, "02:00:00:00:00:fe"));
    assert!(hosts.receive(&arp_reply("0200000000ba", "c6120002"), 10 * S));
    assert_eq!(hosts.waiting.len(), 1);
}

#[test]
fn what_a_host_said_itself_and_comes_back_is_no_rival() {
    let mut hosts = host();
    for frame in said(&mut hosts, 0) {
        assert!(hosts.receive(&frame, 0));
    }
    assert_eq!((hosts.counts.looped, hosts.duplicates().count()), (3, 0));
}

#[test]
fn a_forged_answer_does_not_move_the_gateway() {
    let mut hosts = host();
    let _ = said(&mut hosts, 0);
    hosts.receive(&arp_reply("0200000000fe", "c6120001"), 0);
    for turn in 0..1000 {
        assert!(hosts.receive(&arp_reply("0200000000ba", "c6120001"), turn));
        assert!(hosts.receive(&arp_reply("0200000000ba", "c6120077"), turn));
    }
    let gateway = hosts.neighbours().next().unwrap();
    assert_eq!(gateway.mac.as_deref(), Some("02:00:00:00:00:fe"));
    assert_eq!((hosts.counts.contradicted, hosts.counts.unasked, hosts.neighbours().count()), (1000, 1000, 2));
    assert_eq!(said(&mut hosts, S / 2).len(), 1, "the gateway is asked again, where it was");
}

#[test]
fn a_storm_is_bounded_and_counted() {
    let mut hosts = host();
    let _ = said(&mut hosts, 0);
    for number in 0..100_000_u32 {
        let sender = format!("0200000000fe {:08x}", 0xC612_0100 + number);
        assert!(hosts.receive(&arp_request(&sender, "c6120002", ""), u64::from(number)));
    }
    assert!(hosts.waiting.len() <= MOST_WAITING && hosts.neighbours().count() <= 2 + table::MOST_LEARNED);
    let counts = hosts.counts;
    assert_eq!((counts.received, counts.arp_answered), (100_000, MOST_WAITING as u64));
    assert_eq!(counts.dropped + counts.arp_answered, 100_000);
    assert!(hosts.due.len() < 10);
}

#[test]
fn no_frame_however_short_or_altered_is_too_much_or_grows_the_tables() {
    let mut hosts = host();
    let mut seeds = said(&mut hosts, 0);
    seeds.extend([arp_reply("0200000000fe", "c6120001"), echo_request("020000000001"), hex(SOLICITATION)]);
    seeds.push(arp_request("0200000000fe c6120063", "c6120002", "8100 0000"));
    // Those of its own frames that are looked at as another's.
    seeds.iter_mut().for_each(|frame| frame[6..12].copy_from_slice(&ROUTER));
    for frame in &seeds {
        (0..frame.len()).for_each(|length| _ = hosts.receive(&frame[..length], 0));
    }
    let mut random = 51_u64;
    let mut next = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize
    };
    for turn in 0..200_000 {
        let mut frame = seeds[next() % seeds.len()].clone();
        for _ in 0..1 + next() % 4 {
            let at = 12 + next() % (frame.len() - 12);
            frame[at] = [0, 0xFF, next() as u8][next() % 3];
        }
        frame.truncate(14 + next() % (frame.len() * 2));
        let now_ns = turn * 100_000;
        hosts.receive(&frame, now_ns);
        let answers = said(&mut hosts, now_ns);
        assert!(answers.iter().all(|answer| answer.len() >= 60 && answer[6..12] == [2, 0, 0, 0, 0, 1]), "{frame:x?}");
    }
    assert!(hosts.counts.malformed > 10_000 && hosts.counts.received > 1000, "{:?}", hosts.counts);
    assert!(hosts.neighbours().count() <= 2 + table::MOST_LEARNED && hosts.duplicates().count() <= 2);
    assert!(hosts.due.len() < 1000, "{}", hosts.due.len());
}

#[test]
fn a_thousand_hosts_resolve_their_gateway_within_seconds() {
    let requests = (0..1000_u32).map(|number| {
        let address = |host: u32| format!("10.{}.{}.{}", host >> 16 & 255, host >> 8 & 255, host & 255);
        json!({"port": 0, "mac": format!("02:00:00:01:{:02x}:{:02x}", number >> 8, number & 255),
            "addresses": [{"address": address(number + 10), "gateway": "10.0.0.1"}]})
    });
    let mut hosts = hosts_of(requests.collect()).unwrap();
    let mut gateway = hosts_of(json!([{"port": 0, "mac": "02:00:00:00:00:fe",
        "addresses": [{"address": "10.0.0.1"}]}]))
    .unwrap();
    let mut now_ns = 0;
    while hosts.is_waiting() {
        now_ns += 1_000_000;
        for frame in said(&mut hosts, now_ns) {
            gateway.receive(&frame, now_ns);
        }
        for frame in said(&mut gateway, now_ns) {
            hosts.receive(&frame, now_ns);
        }
        assert!(now_ns < 3 * S, "{:?}", hosts.counts);
    }
    assert!(hosts.neighbours().all(|neighbour| neighbour.mac.as_deref() == Some("02:00:00:00:00:fe")));
    assert_eq!((hosts.neighbours().count(), hosts.duplicates().count()), (1000, 0));
}

#[test]
fn hosts_that_cannot_be_are_refused() {
    let one = |change: Value| {
        let mut host = json!({"port": 0, "mac": "02:00:00:00:00:01", "addresses": [{"address": "10.0.0.1"}]});
        change.as_object().unwrap().iter().for_each(|(key, value)| host[key] = value.clone());
        host
    };
    for (requests, word) in [
        (json!([one(json!({"mac": "01:00:00:00:00:01"}))]), "station"),
        (json!([one(json!({"mac": "x"}))]), "MAC"),
        (json!([one(json!({})), one(json!({"mac": "02:00:00:00:00:02"}))]), "10.0.0.1"),
        (json!([one(json!({"tags": [{"tag_type": 0x0800, "id": 1}]}))]), "tag"),
        (json!([one(json!({"addresses": [{"address": "10.0.0.1", "gateway": "::1"}]}))]), "version"),
        (json!((0..1025).map(|_| one(json!({}))).collect::<Vec<_>>()), "1025"),
    ] {
        let error = hosts_of(requests).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

/// A solicitation or advertisement of ICMPv6 for 2001:2::2, from another station.
fn neighbour_message(source: u128, destination: u128, kind: &str, option: &str) -> Vec<u8> {
    let mut frame = hex("3333ff000002 0200000000ba 86dd");
    let mut message = hex(&format!("{kind} 20010002000000000000000000000002 {option}"));
    let mut ip = Ipv6::append(&mut frame);
    ip.begin(58);
    ip.set(ipv6::PAYLOAD_LENGTH, message.len() as u16);
    ip.set(ipv6::HOP_LIMIT, 255);
    ip.set(ipv6::SOURCE, source);
    ip.set(ipv6::DESTINATION, destination);
    let sum = crate::wire::ndp::icmpv6_checksum(&ip, &message);
    Echo::at_mut(&mut message, 0).unwrap().set(icmp::CHECKSUM, sum);
    frame.extend(message);
    frame
}

/// Another station asks whether 2001:2::2 is free, or says that it has it (RFC 4862 5.4.3, 5.4.4).
fn rival_messages() -> [Vec<u8>; 2] {
    let (all_nodes, solicited_node) = (0xFF02 << 112 | 1, 0xFF02 << 112 | 0x1_FF00_0002);
    [
        neighbour_message(0, solicited_node, "87000000 00000000", ""),
        neighbour_message(0x2001_0002 << 96 | 2, all_nodes, "88000000 20000000", "0201 0200000000ba"),
    ]
}

fn solicitation() -> Vec<u8> {
    neighbour_message(0x2001_0002 << 96 | 1, 0xFF02 << 112 | 0x1_FF00_0002, "87000000 00000000", "0101 0200000000fe")
}

#[test]
fn a_tentative_address_is_not_answered_for() {
    let mut hosts = host();
    let _ = said(&mut hosts, 0);
    assert!(hosts.receive(&solicitation(), S / 2));
    assert!(said(&mut hosts, S / 2).is_empty() && hosts.counts.nd_answered == 0);
    let _ = said(&mut hosts, S);
    assert!(hosts.receive(&solicitation(), S));
    assert_eq!((said(&mut hosts, S).len(), hosts.counts.nd_answered), (1, 1));
}

#[test]
fn a_tentative_address_that_another_has_or_wants_is_never_used() {
    for message in rival_messages() {
        let mut hosts = host();
        let _ = said(&mut hosts, 0);
        assert!(hosts.receive(&message, S / 2));
        let told: Vec<_> = hosts.duplicates().collect();
        assert_eq!((told.len(), &*told[0].mac, told[0].is_given_up), (1, "02:00:00:00:00:ba", true));
        let mut later = Vec::new();
        for tenth in 5..60 {
            assert!(hosts.receive(&solicitation(), tenth * S / 10) && hosts.receive(&message, tenth * S / 10));
            later.extend(said(&mut hosts, tenth * S / 10));
        }
        assert!(later.iter().all(|frame| frame[12..14] == hex("0806")), "it says nothing by IPv6");
        let states: Vec<_> = hosts.neighbours().map(|neighbour| neighbour.state).collect();
        assert_eq!((states, hosts.counts.nd_answered), (vec![NeighbourState::Failed; 2], 0));
    }
}

#[test]
fn an_address_that_is_used_is_defended() {
    let mut hosts = settled_host();
    let [question, claim] = rival_messages();
    assert!(hosts.receive(&question, S));
    assert_eq!(said(&mut hosts, S)[0][..14], hex("333300000001 020000000001 86dd"), "the answer goes to all");
    assert!(hosts.receive(&claim, S));
    assert_eq!(said(&mut hosts, S)[0][..14], hex("333300000001 020000000001 86dd"));
    let told: Vec<_> = hosts.duplicates().collect();
    assert_eq!((told.len(), told[0].claims, told[0].is_given_up), (1, 2, false));
}

#[test]
fn a_gateway_of_ipv6_is_asked_again_after_half_a_minute_where_it_was() {
    let mut hosts = settled_host();
    let addresses = json!([{"address": "2001:2::1"}]);
    let mut gateway = hosts_of(json!([{"port": 0, "mac": "02:00:00:00:00:fe", "addresses": addresses}])).unwrap();
    let _ = (said(&mut gateway, 0), said(&mut gateway, S));
    let question = question(&hosts.hosts[0].link, hosts.hosts[0].addresses[1], "2001:2::1".parse().unwrap(), None);
    assert!(gateway.receive(&question.unwrap(), S));
    assert!(hosts.receive(&said(&mut gateway, S)[0], S));
    assert!(said(&mut hosts, 30 * S).iter().all(|frame| frame[12..14] == hex("0806")));
    let frames = said(&mut hosts, 31 * S);
    let asked = frames.iter().find(|frame| frame[12..14] == hex("86dd")).unwrap();
    assert_eq!(asked[..12], hex("0200000000fe 020000000001"), "itself, and not all");
    assert_eq!(Ipv6::at(asked, 14).unwrap().get(ipv6::DESTINATION), 0x2001_0002 << 96 | 1);
    let state = hosts.neighbours().nth(1).unwrap().state;
    assert_eq!(state, NeighbourState::Probe);
}

fn ping(hosts: &mut PortHosts, requests: &Value, now_ns: u64) -> Result<(), EngineError> {
    let requests: Vec<PingRequest> = serde_json::from_value(requests.clone()).unwrap();
    hosts.ping(&(0..).zip(&requests).collect::<Vec<_>>(), now_ns)
}

#[test]
fn a_host_pings_by_its_gateway_and_another_host_answers() {
    for (from, to, next_hop) in [
        ("198.18.0.2", "198.18.0.3", "198.18.0.3"),
        ("2001:2::2", "2001:2::3", "2001:2::3"),
        ("198.18.0.2", "9.9.9.9", "198.18.0.3"),
    ] {
        let mut hosts = settled_host();
        let addresses = json!([{"address": "198.18.0.3"}, {"address": "2001:2::3"}, {"address": "9.9.9.9"}]);
        let mut other = hosts_of(json!([{"port": 0, "mac": "02:00:00:00:00:03", "addresses": addresses}])).unwrap();
        let _ = (said(&mut other, 0), said(&mut other, S));
        let requests = json!([{"host": 0, "from": from, "to": to, "next_hop": next_hop}, {"host": 7, "from": from, "to": to, "next_hop": to}]);
        ping(&mut hosts, &requests, S).unwrap();
        let mut now_ns = S;
        while hosts.pings().any(|(_, state)| state == PingState::Waiting) {
            now_ns += S / 100;
            said(&mut hosts, now_ns).iter().for_each(|frame| _ = other.receive(frame, now_ns));
            said(&mut other, now_ns).iter().for_each(|frame| _ = hosts.receive(frame, now_ns));
            assert!(now_ns < 2 * S, "{to}");
        }
        assert_eq!(hosts.pings().collect::<Vec<_>>(), [(0, PingState::Answered)], "{to}");
        assert_eq!((other.counts.echo_answered, hosts.counts.malformed, other.counts.malformed), (1, 0, 0));
    }
}

#[test]
fn a_ping_that_nobody_answers_fails_after_three_and_is_not_answered_later() {
    let mut hosts = settled_host();
    let request = json!([{"host": 0, "from": "198.18.0.2", "to": "9.9.9.9", "next_hop": "198.18.0.1", "mac": "02:00:00:00:00:fe"}]);
    ping(&mut hosts, &request, S).unwrap();
    let mut echoes = Vec::new();
    for tenth in 10..50 {
        let frames = said(&mut hosts, tenth * S / 10);
        echoes.extend(frames.into_iter().filter(|frame| frame[12..14] == hex("0800")));
    }
    assert_eq!((echoes.len(), hosts.pings().next()), (3, Some((0, PingState::Failed))));
    assert_eq!(echoes[0][..12], hex("0200000000fe 020000000001"));
    assert_eq!(echoes[0].len(), 14 + 20 + 8 + 56);
    ping(&mut hosts, &request, 5 * S).unwrap();
    let message = &echoes[0][34..];
    let late =
        echo_reply(&hosts.hosts[0].link, hosts.hosts[0].mac, [9, 9, 9, 9].into(), [198, 18, 0, 2].into(), message);
    let mut late = late.unwrap();
    late[6..12].copy_from_slice(&ROUTER);
    assert!(!hosts.receive(&late, 5 * S) && hosts.is_waiting(), "it is of an earlier ping");
}

#[test]
fn pings_that_cannot_be_are_refused() {
    let mut hosts = settled_host();
    for change in [
        json!({"from": "198.18.0.9"}),
        json!({"to": "2001:2::1"}),
        json!({"to": "224.0.0.1"}),
        json!({"next_hop": "2001:2::1"}),
        json!({"mac": "x"}),
    ] {
        let mut request = json!({"host": 0, "from": "198.18.0.2", "to": "9.9.9.9", "next_hop": "198.18.0.1"});
        change.as_object().unwrap().iter().for_each(|(key, value)| request[key] = value.clone());
        let error = ping(&mut hosts, &json!([request]), S).unwrap_err().to_string();
        assert!(error.contains("ping 0"), "{error}");
    }
}
