//! Client and server as processes, over the loopback interface: what each counts, and that both agree.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};

use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_nicbench-connections");

struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// A server with these arguments, which listens by now, on a port of its own.
    fn start(arguments: &str) -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(20_500);
        // Only the server itself knows whether a port is free: a socket opened here to find out may live on in a child
        // that another test is about to start, until that child runs its own program.
        for _ in 0..100 {
            let port = NEXT.fetch_add(1, Ordering::Relaxed);
            let child = Command::new(BINARY)
                .args(["serve", "--on", "127.0.0.1", "--port", &port.to_string()])
                .args(arguments.split_whitespace())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut server = Self { child, port };
            if server.listens() {
                return server;
            }
        }
        panic!("no server listens");
    }

    /// Whether it listens, once it does or has ended; looking does not connect, so that it is not counted.
    fn listens(&mut self) -> bool {
        let at = format!("0100007F:{:04X}", self.port);
        while self.child.try_wait().unwrap().is_none() {
            let sockets = std::fs::read_to_string(format!("/proc/{}/net/tcp", self.child.id())).unwrap_or_default();
            let listening = sockets
                .lines()
                .map(|line| line.split_whitespace().collect::<Vec<_>>())
                .find_map(|fields| (fields[1] == at && fields[3] == "0A").then(|| format!("socket:[{}]", fields[9])));
            if listening.is_some_and(|socket| self.holds(&socket)) {
                return true;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        false
    }

    fn holds(&self, socket: &str) -> bool {
        let Ok(files) = std::fs::read_dir(format!("/proc/{}/fd", self.child.id())) else { return false };
        files.flatten().any(|file| std::fs::read_link(file.path()).is_ok_and(|target| target.as_os_str() == socket))
    }

    fn client(&self, arguments: &str) -> Value {
        client(self.port, arguments)
    }

    /// What it counted.
    fn end(mut self) -> Value {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let mut text = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut text).unwrap();
        assert!(self.child.wait().unwrap().success());
        serde_json::from_str(&text).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn client(port: u16, arguments: &str) -> Value {
    let out = Command::new(BINARY)
        .args(["client", "--to", "127.0.0.1", "--port", &port.to_string()])
        .args(arguments.split_whitespace())
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let result: Value = serde_json::from_slice(&out.stdout).unwrap();
    for phase in ["ramp", "sustain"] {
        let counts = &result[phase];
        let failed: u64 = counts["failed"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
        assert_eq!(counts["due"].as_u64().unwrap(), counts["completed"].as_u64().unwrap() + failed, "{phase}");
    }
    result
}

const CONNECT: &str = "--task connect --rate 400 --seconds 0.5 --object 1000 --connect-within 5";

#[test]
fn every_connection_is_counted_once_by_both_sides() {
    let server = Server::start("");
    let result = server.client(CONNECT);
    assert_eq!(result["sustain"]["completed"], 200);
    assert_eq!(result["first_byte"]["count"], 200);
    let counted = server.end();
    assert_eq!((&counted["accepted"], &counted["requests"]), (&Value::from(200), &Value::from(200)));
}

#[test]
fn each_way_of_breaking_an_answer_is_told_from_the_others() {
    for (broken, failure) in [
        ("--reset-every", "reset"),
        ("--short-every", "short"),
        ("--status-every", "status"),
        ("--corrupt-every", "content"),
    ] {
        let server = Server::start(&format!("{broken} 10"));
        let result = server.client(CONNECT);
        assert_eq!(result["sustain"]["failed"], serde_json::json!({ failure: 20 }), "{broken}");
        assert_eq!(server.end()["broken"], 20);
    }
}

#[test]
fn both_versions_of_tls_shake_hands_for_each_connection() {
    let server = Server::start("--tls");
    for version in ["1.2", "1.3"] {
        let result = server.client(
            &format!("{CONNECT} --rate 60 --seconds 0.5 --tls {version}").replace("--rate 400 --seconds 0.5 ", ""),
        );
        assert_eq!((&result["sustain"]["completed"], &result["handshake"]["count"]), (&30.into(), &30.into()));
        let large = "--task requests --connections 3 --rate 40 --seconds 0.5 --object 300000 --connect-within 5";
        let result = server.client(&format!("{large} --tls {version}"));
        assert_eq!((&result["sustain"]["completed"], &result["opened"]), (&20.into(), &3.into()));
    }
}

#[test]
fn a_delay_is_in_the_first_byte_and_not_in_connecting() {
    let server = Server::start("--delay 0.05");
    let result = server.client(CONNECT);
    assert!(result["first_byte"]["minimum_ns"].as_u64().unwrap() >= 50_000_000);
    assert!(result["connect"]["minimum_ns"].as_u64().unwrap() < 50_000_000);
}

#[test]
fn a_server_accepts_no_more_than_its_rate() {
    let server = Server::start("--accept-rate 100");
    let result = server.client(&format!("{CONNECT} --answer-within 5"));
    assert_eq!(result["sustain"]["completed"], 200);
    assert!(result["in_time"].as_u64().unwrap() <= 51);
    assert_eq!(server.end()["accepted"], 200);
}

#[test]
fn what_waits_behind_a_slow_answer_is_as_late_as_it_waited() {
    // One connection that gives twenty answers a second, and forty that are due in each.
    let server = Server::start("--delay 0.05");
    let result = server.client("--task requests --connections 1 --rate 40 --seconds 0.5 --answer-within 5");
    assert_eq!(result["sustain"]["completed"], 20);
    assert!(result["last_byte"]["maximum_ns"].as_u64().unwrap() >= 500_000_000);
    assert!(result["in_time"].as_u64().unwrap() <= 10);
}

#[test]
fn held_connections_answer_twice_and_those_that_end_are_lost() {
    let server = Server::start("");
    let result = server.client("--task hold --connections 100 --rate 1000 --seconds 0.2");
    assert_eq!((&result["held"], &result["most_open"]), (&100.into(), &100.into()));
    assert_eq!(server.end()["requests"], 200);
    // Each hundredth answer ends its connection: one of a hundred does not live to be asked again.
    let server = Server::start("--short-every 100");
    let result = server.client("--task hold --connections 120 --rate 1000 --seconds 0.2");
    assert_eq!(result["held"], 118);
    assert_eq!(result["sustain"]["failed"], serde_json::json!({ "short": 2 }));
}

#[test]
fn connections_of_all_threads_are_held_at_once() {
    let server = Server::start("");
    // The last of three is due when the time of the second, which another thread holds, would be over.
    let result = server.client("--task hold --threads 2 --connections 3 --rate 0.8 --seconds 0.1");
    assert_eq!(result["held"], 3);
    assert_eq!(result["intervals"].as_array().unwrap().last().unwrap()["open"], 3);
}

#[test]
fn nobody_there_is_refused_and_no_http_is_told() {
    // A socket that is bound and does not listen keeps the port, and the kernel refuses whoever connects to it.
    let bound = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&bound, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = SocketAddrV4::try_from(getsockname(&bound).unwrap()).unwrap().port();
    let result = client(port, CONNECT);
    assert_eq!(result["sustain"]["failed"], serde_json::json!({ "refused": 200 }));
    let server = Server::start("--tls");
    let result = server.client("--task connect --rate 20 --seconds 0.5 --answer-within 0.5");
    assert_eq!(result["sustain"]["completed"], 0);
}

#[test]
fn a_path_of_another_server_is_taken_as_it_is_and_a_missing_one_is_no_success() {
    let server = Server::start("");
    assert_eq!(
        server.client(&format!("{CONNECT} --path /bytes/7").replace("--object 1000 ", ""))["sustain"]["completed"],
        200
    );
    let result = server.client(&format!("{CONNECT} --path /none").replace("--object 1000 ", ""));
    assert_eq!(result["sustain"]["failed"], serde_json::json!({ "status": 200 }));
}

#[test]
fn threads_without_a_connection_of_their_own_take_no_part_and_connections_share_the_requests() {
    let server = Server::start("");
    let result = server.client("--task requests --connections 1 --threads 2 --rate 100 --seconds 0.3");
    assert_eq!((&result["sustain"]["completed"], &result["opened"]), (&30.into(), &1.into()));
    let result = server.client("--task requests --connections 3 --threads 2 --rate 100 --seconds 0.3");
    assert_eq!((&result["sustain"]["completed"], &result["opened"]), (&30.into(), &3.into()));
}

#[test]
fn the_first_byte_is_that_of_the_first_exchange() {
    let server = Server::start("");
    let result = server.client("--task connect --rate 50 --seconds 0.4 --exchanges 5");
    assert_eq!((&result["first_byte"]["count"], &result["sustain"]["completed"]), (&20.into(), &20.into()));
    assert_eq!(server.end()["requests"], 100);
}

#[test]
fn a_connection_that_the_server_closes_with_its_answer_is_opened_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx");
            });
        }
    });
    let result = client(port, "--task requests --connections 1 --rate 20 --seconds 1");
    assert_eq!(result["sustain"]["completed"], 20);
    assert!(result["reopened"].as_u64().unwrap() >= 19, "the last may be over before it is seen");
}
