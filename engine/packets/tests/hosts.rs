//! Hosts at the ports of a generator, as a process over simulated ports: they find each other beside flows.

mod conversation;

use conversation::{Engine, port};
use serde_json::{Value, json};

/// A flow of port 0 to port 1, from the first host to the second.
fn flow() -> Value {
    json!({"name": "f", "transmit_port": 0, "receive_ports": [1], "frames": 100_000, "rate_frames_per_s": 1e6,
        "template": "02000000000202000000000108004500002e00000000401100000a0000010a000002c0200007001a0000",
        "sizes": {"fixed": 64}})
}

/// A host of each port, whose gateway is the other.
fn pair() -> Value {
    let host = |number: u32, other: u32| {
        json!({"port": number - 1, "mac": format!("02:00:00:00:00:0{number}"), "addresses": [
            {"address": format!("10.0.0.{number}"), "gateway": format!("10.0.0.{other}")},
            {"address": format!("2001:db8::{number}"), "gateway": format!("2001:db8::{other}")}]})
    };
    json!([host(1, 2), host(2, 1)])
}

fn ask(engine: &mut Engine, request: Value) -> Value {
    let reply = engine.ask(request);
    assert_eq!(reply["ok"], true, "{reply}");
    reply
}

/// The tables as soon as nobody waits for an answer any more.
fn tables(engine: &mut Engine) -> Value {
    loop {
        let reply = ask(engine, json!({"command": "neighbours"}));
        let waits = |state: &Value| state == "incomplete" || state == "probe";
        if !reply["neighbours"].as_array().unwrap().iter().any(|neighbour| waits(&neighbour["state"])) {
            return reply;
        }
    }
}

#[test]
fn hosts_of_two_ports_find_each_other_and_leave_the_flows_alone() {
    let mut engine = Engine::with_ports("virtual", json!([port("p0", 1, json!({})), port("p1", 0, json!({}))]));
    assert_eq!(ask(&mut engine, json!({"command": "hosts", "hosts": pair()}))["hosts"], 2);
    let reply = tables(&mut engine);
    let found: Vec<_> = reply["neighbours"].as_array().unwrap().iter().map(|each| each["mac"].clone()).collect();
    let (first, second) = (json!("02:00:00:00:00:01"), json!("02:00:00:00:00:02"));
    assert_eq!(found, [second.clone(), second, first.clone(), first]);
    assert!(reply["neighbours"].as_array().unwrap().iter().all(|each| each["state"] == "reachable"), "{reply}");
    ask(&mut engine, json!({"command": "load", "flows": [flow()]}));
    ask(&mut engine, json!({"command": "control", "action": "start"}));
    while engine.read()["event"] != "flows_ended" {}
    let tally = ask(&mut engine, json!({"command": "tally"}));
    let flow = &tally["flows"][0];
    assert_eq!((&flow["sent"], &flow["received"], &flow["lost"]), (&json!(100_000), &json!(100_000), &json!(0)));
    assert_eq!((&tally["ports"][0]["sent"], &tally["ports"][1]["foreign"]), (&json!(100_000), &json!(0)));
    let counts = &ask(&mut engine, json!({"command": "neighbours"}))["counts"][0];
    assert_eq!((&counts["asked"], &counts["arp_answered"], &counts["nd_answered"]), (&json!(4), &json!(1), &json!(1)));
    assert_eq!(engine.finish(), Some(0));
}

#[test]
fn a_gateway_that_is_not_there_is_given_up_and_asked_again_on_request() {
    let mut engine = Engine::with_ports("virtual", json!([port("p0", 1, json!({})), port("p1", 0, json!({}))]));
    let lone = json!([{"port": 0, "mac": "02:00:00:00:00:01",
        "addresses": [{"address": "10.0.0.1", "gateway": "10.0.0.9"}]}]);
    ask(&mut engine, json!({"command": "hosts", "hosts": lone}));
    assert_eq!(tables(&mut engine)["neighbours"][0]["state"], "failed");
    let again = ask(&mut engine, json!({"command": "neighbours", "ask_again": true}));
    assert_eq!(again["neighbours"][0]["state"], "incomplete");
    ask(&mut engine, json!({"command": "hosts", "hosts": []}));
    assert_eq!(ask(&mut engine, json!({"command": "neighbours"}))["neighbours"], json!([]));
    assert_eq!(engine.finish(), Some(0));
}

#[test]
fn hosts_at_no_port_or_with_one_address_twice_are_refused_and_the_others_stay() {
    let mut engine = Engine::with_ports("virtual", json!([port("p0", 1, json!({})), port("p1", 0, json!({}))]));
    ask(&mut engine, json!({"command": "hosts", "hosts": pair()}));
    let mut hosts = pair();
    hosts[1]["port"] = json!(0);
    hosts[1]["addresses"][0]["address"] = json!("10.0.0.1");
    assert!(
        engine.ask(json!({"command": "hosts", "hosts": hosts}))["error"]["message"]
            .as_str()
            .is_some_and(|message| message.contains("10.0.0.1"))
    );
    hosts[1]["port"] = json!(2);
    assert_eq!(engine.ask(json!({"command": "hosts", "hosts": hosts}))["error"]["kind"], "bad_request");
    assert_eq!(tables(&mut engine)["neighbours"].as_array().map(Vec::len), Some(4));
    assert_eq!(engine.finish(), Some(0));
}

#[test]
fn somebody_elses_frames_stay_foreign_beside_hosts() {
    let noise = json!({"foreign_frames_per_s": 1000});
    let mut engine = Engine::with_ports("virtual", json!([port("p0", 1, noise), port("p1", 0, json!({}))]));
    ask(&mut engine, json!({"command": "hosts", "hosts": pair()}));
    tables(&mut engine);
    ask(&mut engine, json!({"command": "load", "flows": [flow()]}));
    let made = |tally: &Value| tally["ports"][0]["counters"]["simulated_foreign"].as_u64().unwrap();
    let before = made(&ask(&mut engine, json!({"command": "tally"})));
    ask(&mut engine, json!({"command": "control", "action": "start"}));
    while engine.read()["event"] != "flows_ended" {}
    let tally = ask(&mut engine, json!({"command": "tally"}));
    assert_eq!((&tally["flows"][0]["received"], &tally["flows"][0]["lost"]), (&json!(100_000), &json!(0)));
    let port = &tally["ports"][1];
    assert_eq!(port["foreign"], made(&tally) - before);
    assert_eq!(port["received"].as_u64(), port["foreign"].as_u64().map(|foreign| foreign + 100_000));
    assert_eq!(engine.finish(), Some(0));
}
