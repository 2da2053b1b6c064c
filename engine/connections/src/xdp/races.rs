//! Two CPUs that get segments of one connection at one moment: each thing happens once.

use std::os::fd::RawFd;
use std::sync::Barrier;

use nicbench_bpf::test_frame;

use super::lossy::{CONNECTIONS, Ends, Hooked};
use super::model::{Asked, Terms};
use super::records::{counter, state};

const ROUNDS: u32 = 200;
const TERMS: Terms = Terms { request: 34, last_request: 53, body: 1, exchanges: 1, resets: false, segment: 1460 };

/// Has two threads run a program over a frame each, as nearly at once as can be: what both sent.
fn at_once(hooked: &mut Hooked, runs: [(RawFd, &[u8]); 2]) -> Vec<Vec<u8>> {
    let both = Barrier::new(2);
    let done = std::thread::scope(|scope| {
        runs.map(|(program, frame)| {
            let both = &both;
            scope.spawn(move || {
                both.wait();
                test_frame(program, frame).unwrap()
            })
        })
        .map(|thread| thread.join().unwrap())
    });
    done.into_iter().flat_map(|each| hooked.sent(each)).collect()
}

/// The one frame that a program sends for a frame.
fn answer_of(hooked: &mut Hooked, program: RawFd, frame: &[u8]) -> Vec<u8> {
    let done = test_frame(program, frame).unwrap();
    hooked.sent(done).remove(0)
}

#[test]
fn what_comes_twice_at_one_moment_is_answered_once() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not root: nothing was tested");
        return;
    }
    let mut hooked = Hooked::load();
    for _ in 0..ROUNDS {
        hooked.begin(TERMS);
        let (client, server) = hooked.receivers();
        for port in 0..CONNECTIONS {
            let [syn] = hooked.ask(true, port, Asked::Open).try_into().unwrap();
            let answers = at_once(&mut hooked, [(server, &syn), (server, &syn)]);
            let first = answers.first().unwrap().clone();
            let requests = at_once(&mut hooked, [(client, &first), (client, &first)]);
            let (_, next, expected) = hooked.client_state(port);
            let request = requests.iter().find(|frame| Hooked::describe(frame).2 > 0).unwrap();
            let answers = at_once(&mut hooked, [(server, request), (server, request)]);
            assert_eq!(hooked.client_state(port), (state::ASKED, next, expected));
            let answer = answers.iter().find(|frame| Hooked::describe(frame).2 > 0).unwrap().clone();
            at_once(&mut hooked, [(client, &answer), (client, &answer)]);
            assert_eq!(hooked.client_state(port).1, next + 1); // our FIN
        }
        let [asking, answering] = hooked.counts();
        let connections = u64::from(CONNECTIONS);
        assert_eq!([asking[counter::OPENED], asking[counter::COMPLETED]], [connections; 2]);
        assert_eq!(
            [answering[counter::TAKEN], answering[counter::ACCEPTED], answering[counter::REQUESTS]],
            [connections; 3]
        );
    }
}

#[test]
fn a_connection_that_is_given_up_while_its_answer_comes_ends_once() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("not root: nothing was tested");
        return;
    }
    let mut hooked = Hooked::load();
    let mut completed = 0;
    for _ in 0..ROUNDS {
        hooked.begin(TERMS);
        let (client, server) = hooked.receivers();
        for port in 0..CONNECTIONS {
            let [syn] = hooked.ask(true, port, Asked::Open).try_into().unwrap();
            let answer = answer_of(&mut hooked, server, &syn);
            let request = answer_of(&mut hooked, client, &answer);
            let answer = answer_of(&mut hooked, server, &request);
            let (program, blank) = hooked.put(true, port, Asked::GiveUp);
            at_once(&mut hooked, [(client, &answer), (program, &blank)]);
        }
        let [asking, _] = hooked.counts();
        let failed: u64 = asking[counter::FAILED..].iter().sum();
        assert_eq!(asking[counter::COMPLETED] + failed, u64::from(CONNECTIONS));
        assert!(asking[counter::ENDED] <= asking[counter::OPENED]);
        completed += asking[counter::COMPLETED];
    }
    assert!(completed > 0);
}
