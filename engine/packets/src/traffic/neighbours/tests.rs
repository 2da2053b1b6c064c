use super::*;

const OURS: [u8; 6] = [2, 0, 0, 0, 0, 1];
const ASKER: [u8; 6] = [2, 0, 0, 0, 0, 0xAA];

fn addresses() -> Addresses {
    let ranges = [("198.18.0.2", 1), ("198.18.64.0", 256), ("2001:2::1", 4)];
    let ranges = ranges.map(|(first, count)| AddressRange { first: first.into(), count });
    Addresses::new("t0", Some(OURS), &ranges).unwrap()
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn arp_request(target: &str, tags: &str) -> Vec<u8> {
    hex(&format!(
        "ffffffffffff 0200000000aa {tags} 0806 0001 0800 06 04 0001 0200000000aa c6120001 000000000000 {target}"
    ))
}

/// A solicitation built with scapy: fe80::aa asks for 2001:2::1, with its link-layer address.
const SOLICITATION_FRAME: &str = "3333ff000001 0200000000aa 86dd 6000000000203aff fe8000000000000000000000000000aa
    ff0200000000000000000001ff000001 8700 57c5 00000000 20010002000000000000000000000001 0101 0200000000aa";

#[test]
fn an_arp_request_for_an_address_of_ours_is_answered_to_the_asker() {
    let (protocol, reply) = answer(&arp_request("c6120002", ""), &addresses()).unwrap();
    let expected =
        hex("0200000000aa 020000000001 0806 0001 0800 06 04 0002 020000000001 c6120002 0200000000aa c6120001");
    assert_eq!((protocol, reply.len(), &reply[..42]), (Protocol::Arp, 60, &expected[..]));
}

#[test]
fn every_address_of_a_range_is_ours_and_its_neighbours_are_not() {
    for (target, is_ours) in [("c6124000", true), ("c61240ff", true), ("c6124100", false), ("c6123fff", false)] {
        assert_eq!(answer(&arp_request(target, ""), &addresses()).is_some(), is_ours, "{target}");
    }
}

#[test]
fn a_tagged_question_has_a_tagged_answer() {
    let (_, reply) = answer(&arp_request("c6120002", "8100 0064"), &addresses()).unwrap();
    assert_eq!(reply[..18], hex("0200000000aa 020000000001 8100 0064 0806"));
}

#[test]
fn a_solicitation_is_answered_with_a_right_checksum() {
    let (protocol, reply) = answer(&hex(SOLICITATION_FRAME), &addresses()).unwrap();
    // Built with scapy: an advertisement, solicited and overriding.
    let expected = hex("0200000000aa 020000000001 86dd 6000000000203aff 20010002000000000000000000000001
        fe8000000000000000000000000000aa 8800 d46f 60000000 20010002000000000000000000000001 0201 020000000001");
    assert_eq!((protocol, reply), (Protocol::NeighbourDiscovery, expected));
}

#[test]
fn a_solicitation_that_rfc_4861_calls_invalid_is_not_answered() {
    let valid = hex(SOLICITATION_FRAME);
    // Hop limit, type, code, checksum, target.
    for (byte, value) in [(21, 64), (54, 134), (55, 1), (57, 0), (77, 9)] {
        let mut frame = valid.clone();
        frame[byte] = value;
        assert_eq!(answer(&frame, &addresses()), None, "byte {byte}");
    }
}

#[test]
fn no_frame_however_short_or_hostile_is_too_much() {
    for frame in [arp_request("c6120002", ""), hex(SOLICITATION_FRAME)] {
        for length in 0..frame.len() {
            assert_eq!(answer(&frame[..length], &addresses()), None);
            may_ask(&frame[..length]);
        }
    }
}

#[test]
fn only_what_can_ask_is_looked_at() {
    assert!(may_ask(&arp_request("c6120002", "")) && may_ask(&hex(SOLICITATION_FRAME)));
    let mut ipv4 = [0; 60];
    ipv4[12] = 8;
    assert!(!may_ask(&ipv4) && !may_ask(&[]));
}

#[test]
fn addresses_that_cannot_be_are_refused_with_the_port() {
    let one = |first: &str, count| vec![AddressRange { first: first.into(), count }];
    for (mac, ranges, word) in
        [(Some(ASKER), one("x", 1), "\"x\""), (Some(ASKER), one("::1", 0), "::1"), (None, one("::1", 1), "MAC")]
    {
        let error = Addresses::new("t7", mac, &ranges).unwrap_err().to_string();
        assert!(error.contains("t7") && error.contains(word), "{error}");
    }
}
