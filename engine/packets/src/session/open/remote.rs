//! Ports of another engine among those of this one: they have their numbers, and are not opened.

#[cfg(feature = "dpdk")]
use nicbench_protocol::PortRequest;
use nicbench_protocol::{Configure, PortKind, Timestamps};

use super::bad_request;
use crate::error::EngineError;
#[cfg(feature = "dpdk")]
use crate::port::{Port, remote::RemotePort};

/// Refuses what cannot be beside ports of another engine.
pub fn check(configure: &Configure) -> Result<(), EngineError> {
    let remote = configure.ports.iter().filter(|port| port.kind == PortKind::Remote).count();
    if remote == configure.ports.len() {
        return Err(bad_request("every port is another engine's", "configure a port of this one"));
    }
    if remote != 0 && (!configure.workers.is_empty() || configure.timestamps != Timestamps::Tsc) {
        let message = "beside ports of another engine there is one worker, which stamps by its own clock";
        return Err(bad_request(message, "leave `workers` and `timestamps` out"));
    }
    Ok(())
}

/// The ports that this engine opens.
#[cfg(feature = "dpdk")]
pub fn without(configure: &Configure) -> Configure {
    let mut own = configure.clone();
    own.ports.retain(|port| port.kind != PortKind::Remote);
    own
}

/// All ports by their numbers: those that were opened, and those of the other engine.
#[cfg(feature = "dpdk")]
pub fn with(configure: &Configure, opened: Vec<Box<dyn Port>>) -> Vec<Box<dyn Port>> {
    let mut opened = opened.into_iter();
    let port = |request: &PortRequest| match request.kind {
        PortKind::Remote => Some(Box::new(RemotePort::new(&request.name, request.lossless)) as Box<dyn Port>),
        _ => opened.next(),
    };
    configure.ports.iter().filter_map(port).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configure(ports: &str, more: &str) -> Configure {
        let text = format!(r#"{{"run_key":"0123456789abcdef","clock":"tsc","ports":[{ports}]{more}}}"#);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn a_port_of_its_own_stands_beside_those_of_another_engine() {
        let (own, other) = (r#"{"name":"t0","kind":"null"}"#, r#"{"name":"t1","kind":"remote"}"#);
        assert!(check(&configure(&format!("{own},{other}"), "")).is_ok());
        assert!(check(&configure(other, "")).unwrap_err().message.contains("every port"));
        let refused = check(&configure(&format!("{own},{other}"), r#","timestamps":"card""#)).unwrap_err();
        assert!(refused.message.contains("one worker"), "{refused}");
    }
}
