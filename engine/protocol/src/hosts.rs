//! The generator's hosts: stations that answer at its ports, beside the flows (README, "Hosts").

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// The fields of `hosts`: replaces all hosts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hosts {
    /// In order: the index is the host's number in replies.
    pub hosts: Vec<HostRequest>,
}

/// One host: a MAC address at a port, and the addresses that it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostRequest {
    /// Number of its port.
    pub port: usize,
    /// The other ports of the host's link aggregation group.
    #[serde(default)]
    pub further_ports: Vec<usize>,
    /// As `02:00:00:00:00:01`.
    pub mac: String,
    /// The tags of its frames, the outermost first; at most three.
    #[serde(default)]
    pub tags: Vec<HostTag>,
    /// Of IPv4 and IPv6.
    pub addresses: Vec<HostAddress>,
    /// The interface that the engine makes for the host, of kind TAP, in its own network namespace: whoever moves it
    /// elsewhere has the kernel there answer in the host's place. It goes with the host.
    #[serde(default)]
    pub tap: Option<String>,
}

/// A VLAN tag of a host's frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostTag {
    /// Its EtherType: 0x8100, 0x88A8 or 0x9100.
    pub tag_type: u16,
    /// Of what the host sends by itself; an answer has that of the question.
    #[serde(default)]
    pub priority: u8,
    /// The VLAN's identifier.
    pub id: u16,
}

/// An address of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostAddress {
    /// The address.
    pub address: IpAddr,
    /// Whose MAC address the host asks for, of the same version; `None`: nobody's.
    #[serde(default)]
    pub gateway: Option<IpAddr>,
}

/// The reply to `hosts`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostsReply {
    /// How many hosts there are.
    pub hosts: u32,
}

/// The fields of `ping`: replaces all pings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ping {
    /// At most 1024.
    pub pings: Vec<PingRequest>,
}

/// An echo request of a host, which is repeated twice where it is not answered within a second.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PingRequest {
    /// The number of the host.
    pub host: u32,
    /// Its address.
    pub from: IpAddr,
    /// The other's.
    pub to: IpAddr,
    /// Whose MAC address the host asks for: `to`, or a gateway.
    pub next_hop: IpAddr,
    /// That of `next_hop`, if the host is not to ask for it.
    #[serde(default)]
    pub mac: Option<String>,
}

/// What became of an echo request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PingState {
    /// An answer may still come.
    Waiting,
    /// An answer has come.
    Answered,
    /// None has come, or nobody was there to send it to.
    Failed,
}

/// The reply to `ping`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PingReply {
    /// How many pings there are.
    pub pings: u32,
}

/// The fields of `neighbours`: the hosts' tables.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbours {
    /// Whether gateways that did not answer are asked again now.
    #[serde(default)]
    pub ask_again: bool,
}

/// The reply to `neighbours`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeighboursReply {
    /// What each host knows of others.
    pub neighbours: Vec<Neighbour>,
    /// Addresses of hosts that somebody else has too.
    pub duplicates: Vec<Duplicate>,
    /// Addresses of which it is not known yet whether somebody else has them: hosts do not use them.
    pub tentative: u32,
    /// What became of the pings of the last `ping`, in their order.
    pub pings: Vec<PingState>,
    /// By port, in their order.
    pub counts: Vec<HostCounts>,
}

/// An entry of a host's table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Neighbour {
    /// The number of the host.
    pub host: u32,
    /// The neighbour's address.
    pub address: IpAddr,
    /// Its MAC address; `None` where it has not answered.
    pub mac: Option<String>,
    /// How far it is known.
    pub state: NeighbourState,
}

/// How far a neighbour is known (after RFC 4861 7.3.2, for ARP too).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NeighbourState {
    /// It was asked for, and has not answered yet.
    Incomplete,
    /// It answered within the last half minute.
    Reachable,
    /// It asked the host itself, and was not asked.
    Stale,
    /// It answered earlier, and is asked again.
    Probe,
    /// It did not answer, and is asked again every five seconds.
    Failed,
}

/// An address of a host that somebody else claims.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Duplicate {
    /// The number of the host.
    pub host: u32,
    /// Its address.
    pub address: IpAddr,
    /// The other's MAC address, as claimed last.
    pub mac: String,
    /// How often it was claimed.
    pub claims: u64,
    /// Whether the other had it first: the host does not use it.
    pub is_given_up: bool,
}

/// What the hosts of one port did, since the process began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCounts {
    /// Frames that were for hosts, and that are not among the port's `received` and `foreign`.
    pub received: u64,
    /// Frames that the port took, and that are not among its `sent` and `completed`.
    pub sent: u64,
    /// Answers to ARP requests.
    pub arp_answered: u64,
    /// Answers to neighbour solicitations.
    pub nd_answered: u64,
    /// Answers to echo requests.
    pub echo_answered: u64,
    /// Questions of the hosts, with those whether their own addresses are free.
    pub asked: u64,
    /// Frames beyond what hosts look at or send in a second.
    pub dropped: u64,
    /// Messages that their RFC calls invalid.
    pub malformed: u64,
    /// Answers that nobody asked for, or that came too late.
    pub unasked: u64,
    /// Claims of another MAC address for a neighbour that is known; it is then asked again.
    pub contradicted: u64,
    /// Frames of hosts that came back to their port.
    pub looped: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_survive_a_round_trip_with_their_defaults() {
        let text = r#"{"hosts":[{"port":1,"mac":"02:00:00:00:00:01","tags":[{"tag_type":33024,"id":5}],
            "addresses":[{"address":"10.0.0.1","gateway":"10.0.0.254"},{"address":"2001:db8::1"}]}]}"#;
        let hosts: Hosts = serde_json::from_str(text).unwrap();
        assert_eq!(hosts, serde_json::from_str(&serde_json::to_string(&hosts).unwrap()).unwrap());
        let host = &hosts.hosts[0];
        assert_eq!((host.tags[0].priority, host.addresses[1].gateway), (0, None));
        assert!(serde_json::from_str::<Hosts>(&text.replace("10.0.0.1\"", "10.0.0\"")).is_err());
    }
}
