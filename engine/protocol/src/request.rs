//! Reads the requests of the controller.

use serde::Deserialize;
use serde_json::Value;

use crate::{Configure, Control, ErrorKind, ErrorReport, Hosts, Load, Neighbours, Ping, PortCapture, Start, Tally};

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Chosen by the controller; its reply repeats it.
    pub id: i64,
    /// The command.
    pub command: Command,
}

/// The commands.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Asks for versions and features.
    Hello {
        /// The controller's version of the protocol.
        protocol: String,
    },
    /// Open the ports: once per process.
    Configure(Box<Configure>),
    /// One transmission.
    Start(Box<Start>),
    /// Receive for this long after the transmission, then give the reading.
    Drain {
        /// Seconds.
        duration_s: f64,
        /// What another engine sent of each stream; `None` for those that this one sends, empty where it sends all.
        sent: Vec<Option<u64>>,
    },
    /// What this engine has sent of each stream, after the transmission.
    Sent,
    /// The engine's time.
    Clock,
    /// Receive for this long after the drain, then end the trial.
    Settle {
        /// Seconds.
        duration_s: f64,
    },
    /// A snapshot of the running trial.
    Stats,
    /// End the transmission now.
    Stop,
    /// The generator's flows.
    Load(Box<Load>),
    /// Start, stop, pause or resume flows while others go on.
    Control(Control),
    /// The counts of flows.
    Tally(Tally),
    /// Begin or end captures at ports.
    Capture(PortCapture),
    /// The generator's hosts.
    Hosts(Box<Hosts>),
    /// What hosts know of their neighbours.
    Neighbours(Neighbours),
    /// Echo requests of hosts.
    Ping(Ping),
    /// Renew the lease, nothing else.
    Renew {
        /// Seconds for which the controller will be silent, beyond the lease.
        duration_s: f64,
    },
    /// Free the ports and exit.
    Close,
}

/// A line that is not a request: the reply it gets.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// `None` where the line has no integer `id`.
    pub id: Option<i64>,
    /// Why the line was refused.
    pub error: ErrorReport,
}

#[derive(Deserialize)]
pub(crate) struct HelloFields {
    pub(crate) protocol: String,
}

#[derive(Deserialize)]
pub(crate) struct RenewFields {
    #[serde(default)]
    pub(crate) duration_s: f64,
}

#[derive(Deserialize)]
struct DurationFields {
    duration_s: f64,
}

#[derive(Deserialize)]
struct DrainFields {
    duration_s: f64,
    #[serde(default)]
    sent: Vec<Option<u64>>,
}

/// Characters of an unknown command that its refusal repeats.
const MOST_SHOWN: usize = 100;

/// Reads one line.
pub fn parse(line: &str) -> Result<Request, Refusal> {
    let Head { id, name, value } = head(line)?;
    let command = match name.as_str() {
        "hello" => fields::<HelloFields>(value).map(|fields| Command::Hello { protocol: fields.protocol }),
        "configure" => fields(value).map(Command::Configure),
        "start" => fields(value).map(Command::Start),
        "drain" => {
            fields::<DrainFields>(value).map(|DrainFields { duration_s, sent }| Command::Drain { duration_s, sent })
        }
        "sent" => Ok(Command::Sent),
        "clock" => Ok(Command::Clock),
        "settle" => fields::<DurationFields>(value).map(|fields| Command::Settle { duration_s: fields.duration_s }),
        "stats" => Ok(Command::Stats),
        "stop" => Ok(Command::Stop),
        "load" => fields(value).map(Command::Load),
        "control" => fields(value).map(Command::Control),
        "tally" => fields(value).map(Command::Tally),
        "capture" => fields(value).map(Command::Capture),
        "hosts" => fields(value).map(Command::Hosts),
        "neighbours" => fields(value).map(Command::Neighbours),
        "ping" => fields(value).map(Command::Ping),
        "renew" => fields::<RenewFields>(value).map(|fields| Command::Renew { duration_s: fields.duration_s }),
        "close" => Ok(Command::Close),
        _ => {
            let next = "use hello, configure, start, sent, drain, settle, stats, stop, clock, load, control, tally, \
                        capture, hosts, neighbours, ping, renew or close";
            let message = format!("unknown command {:?}", name.chars().take(MOST_SHOWN).collect::<String>());
            return Err(refusal(Some(id), ErrorKind::UnknownCommand, message, next));
        }
    };
    command.map(|command| Request { id, command }).map_err(|error| mistyped(id, &name, &error))
}

/// What every request has, whichever binary it is for.
pub(crate) struct Head {
    pub(crate) id: i64,
    pub(crate) name: String,
    /// The whole line.
    pub(crate) value: Value,
}

/// Reads what every request has.
pub(crate) fn head(line: &str) -> Result<Head, Refusal> {
    let bad = |id, message: String, next: &str| Err(refusal(id, ErrorKind::BadRequest, message, next));
    let value: Value = match serde_json::from_str(line) {
        Ok(value) => value,
        Err(error) => {
            return bad(None, format!("the line is not JSON: {error}"), "send one JSON object a line, in UTF-8");
        }
    };
    let Some(id) = value.get("id").and_then(Value::as_i64) else {
        let next = "give every request an `id` that is an integer";
        return bad(None, "the request has no integer `id`".into(), next);
    };
    let Some(name) = value.get("command").and_then(Value::as_str).map(str::to_owned) else {
        let next = "give every request a `command` that is text";
        return bad(Some(id), "the request has no `command`".into(), next);
    };
    Ok(Head { id, name, value })
}

/// The refusal of a command whose fields are not what they should be.
pub(crate) fn mistyped(id: i64, name: &str, error: &serde_json::Error) -> Refusal {
    refusal(Some(id), ErrorKind::BadRequest, format!("{name}: {error}"), "compare the request with protocol/README.md")
}

pub(crate) fn refusal(id: Option<i64>, kind: ErrorKind, message: String, next: &str) -> Refusal {
    Refusal { id, error: ErrorReport::new(kind, message, next) }
}

pub(crate) fn fields<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, serde_json::Error> {
    serde_json::from_value(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(line: &str) -> Refusal {
        parse(line).expect_err("the line must be refused")
    }

    #[test]
    fn a_request_keeps_its_id_and_ignores_unknown_fields() {
        let request = parse(r#"{"id": 7, "command": "drain", "duration_s": 0.2, "colour": "green"}"#).unwrap();
        assert_eq!(request, Request { id: 7, command: Command::Drain { duration_s: 0.2, sent: vec![] } });
    }

    #[test]
    fn a_line_that_is_not_json_is_refused_without_an_id() {
        for line in ["", "{", "hello", "\u{0}", "[1,2", &"[".repeat(100_000)] {
            let refusal = refusal(line);
            assert_eq!((refusal.id, refusal.error.kind), (None, ErrorKind::BadRequest), "{line:.20}");
        }
    }

    #[test]
    fn json_that_is_no_request_is_a_bad_request() {
        for line in ["[]", "3", "null", r#"{"command": "hello"}"#, r#"{"id": 1.5, "command": "renew"}"#] {
            assert_eq!(refusal(line).error.kind, ErrorKind::BadRequest, "{line}");
        }
        assert_eq!(refusal(r#"{"id": 4}"#).id, Some(4));
    }

    #[test]
    fn an_unknown_command_is_named() {
        let refusal = refusal(r#"{"id": 2, "command": "dance"}"#);
        assert_eq!((refusal.id, refusal.error.kind), (Some(2), ErrorKind::UnknownCommand));
        assert!(refusal.error.message.contains("dance"));
    }

    #[test]
    fn a_missing_or_mistyped_field_names_command_and_field() {
        let missing = refusal(r#"{"id": 2, "command": "drain"}"#);
        assert!(missing.error.message.contains("drain") && missing.error.message.contains("duration_s"));
        let mistyped = refusal(r#"{"id": 2, "command": "settle", "duration_s": "long"}"#);
        assert_eq!(mistyped.error.kind, ErrorKind::BadRequest);
    }
}
