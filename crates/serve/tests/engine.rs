//! The engine, message by message: who may say what, and what becomes of what is wrong.

mod common;

use astraea_policy::{AgentConfig, BacklogState, Scratch};
use astraea_serve::service::{Dropped, Engine, Limits, Peer, Route};
use astraea_serve::wire::{Codec, Frame, Message, Reason, Refusal, WireError};
use astraea_serve::{HISTORY, Key, Report, rule};
use common::{ask, loaded, policy, report};

const HERE: Peer = Peer::Stream(1);
const THERE: Peer = Peer::Stream(2);

/// An engine and what its peers send.
struct Case {
    engine: Engine,
    codec: Codec,
    number: u64,
}

impl Case {
    fn new(limits: Limits) -> Self {
        Self { engine: Engine::new(loaded(1), limits, None), codec: Codec::default(), number: 0 }
    }

    fn bytes(&mut self, session: u64, message: Message<'_>) -> Vec<u8> {
        self.number += 1;
        let mut bytes = Vec::new();
        self.codec.write(&Frame { session, number: self.number, message }, &mut bytes);
        bytes
    }

    fn send(&mut self, peer: Peer, session: u64, message: Message<'_>) -> Result<bool, Dropped> {
        let bytes = self.bytes(session, message);
        self.engine.receive(peer, &bytes, 0)
    }

    fn greet(&mut self, peer: Peer) -> u64 {
        self.send(peer, 0, Message::Hello { token: self.number }).unwrap();
        let mut sessions = Vec::new();
        let codec = self.codec.clone();
        self.engine.replies(|to, bytes| {
            assert_eq!(to, peer);
            sessions.push(codec.read(bytes).unwrap().session);
        });
        assert_eq!(sessions.len(), 1);
        sessions[0]
    }

    fn ask(&mut self, peer: Peer, session: u64, flow: u64, period: u32, reports: &[Report]) -> Result<bool, Dropped> {
        self.send(peer, session, ask(flow, period, reports))
    }

    /// Decides, and takes the answers: (peer, flow, period, action, window).
    fn answers(&mut self) -> Vec<(Peer, u64, u32, f64, f64)> {
        while self.engine.waiting() > 0 {
            self.engine.decide();
        }
        let (codec, mut answers) = (self.codec.clone(), Vec::new());
        self.engine.replies(|peer, bytes| {
            if let Message::Answer(answer) = codec.read(bytes).unwrap().message {
                answers.push((peer, answer.flow, answer.period, answer.action, answer.window));
            }
        });
        answers
    }

    fn refusals(&mut self) -> Vec<Refusal> {
        let (codec, mut refusals) = (self.codec.clone(), Vec::new());
        self.engine.replies(|_, bytes| {
            if let Message::Refuse(refusal) = codec.read(bytes).unwrap().message {
                refusals.push(refusal);
            }
        });
        refusals
    }
}

#[test]
fn an_answer_is_the_networks_action_and_what_it_makes_of_the_window() {
    let mut case = Case::new(Limits::default());
    let session = case.greet(HERE);
    let reports: Vec<Report> = (1..=7).map(|period| report(f64::from(period))).collect();
    let mut state = BacklogState::default();
    let (network, config) = (policy(1), AgentConfig::of(policy(1).metadata()));
    for (period, report) in (1..).zip(&reports) {
        case.ask(HERE, session, 9, period, std::slice::from_ref(report)).unwrap();
        state.push(&report.signals);
        let action = f64::from(network.network().forward(state.values(), &mut Scratch::default()));
        let window = config.answered(report.window, action, rule::law(&report.signals), report.srtt_ns());
        assert_eq!(case.answers(), [(HERE, 9, period, action, window)]);
    }
}

#[test]
fn a_batch_gives_what_single_requests_give() {
    let (mut one, mut many) = (Case::new(Limits::default()), Case::new(Limits { batch: 7, ..Limits::default() }));
    let sessions = (one.greet(HERE), many.greet(HERE));
    let mut singly = Vec::new();
    for flow in 0..50 {
        let reports = [report(flow as f64 + 1.0)];
        one.ask(HERE, sessions.0, flow, 1, &reports).unwrap();
        singly.extend(one.answers());
        many.ask(HERE, sessions.1, flow, 1, &reports).unwrap();
    }
    assert_eq!(many.engine.decide().decided, 7);
    assert_eq!(many.answers(), singly);
}

#[test]
fn what_was_seen_before_has_no_effect() {
    let mut case = Case::new(Limits::default());
    let session = case.greet(HERE);
    let bytes = case.bytes(session, ask(1, 1, &[report(1.0)]));
    assert_eq!(case.engine.receive(HERE, &bytes, 0), Ok(true));
    assert_eq!(case.engine.receive(HERE, &bytes, 0), Err(Dropped::Replayed));
    assert_eq!(case.answers().len(), 1);
    // Reordered: the later period came first.
    let reports = [[report(2.0)], [report(3.0)]];
    let (early, late) = (case.bytes(session, ask(1, 2, &reports[0])), case.bytes(session, ask(1, 3, &reports[1])));
    assert_eq!(case.engine.receive(HERE, &late, 0), Ok(true));
    assert_eq!(case.engine.receive(HERE, &early, 0), Err(Dropped::Stale));
    let answered: Vec<u32> = case.answers().iter().map(|answer| answer.2).collect();
    assert_eq!(answered, [3]);
}

#[test]
fn nobody_speaks_for_another() {
    let mut case = Case::new(Limits::default());
    let (mine, theirs) = (case.greet(HERE), case.greet(THERE));
    assert_ne!(mine, theirs);
    assert_eq!(case.ask(HERE, mine, 1, 1, &[report(1.0)]), Ok(true));
    // The same name is another flow there.
    assert_eq!(case.ask(THERE, theirs, 1, 9, &[report(500.0)]), Ok(true));
    let answers = case.answers();
    assert_eq!((answers[0].0, answers[1].0), (HERE, THERE));
    assert_ne!(answers[0].3, answers[1].3);
    // A stolen session number does not help, neither to ask nor to end.
    assert_eq!(case.ask(THERE, mine, 1, 2, &[report(1.0)]), Err(Dropped::Session));
    assert_eq!(case.refusals(), [Refusal { flow: 1, period: 2, reason: Reason::Session }]);
    assert_eq!(case.send(THERE, mine, Message::End { flow: 1 }), Err(Dropped::Session));
    assert_eq!(case.engine.flows(), 2);
    assert_eq!(case.send(HERE, mine, Message::End { flow: 1 }), Ok(false));
    assert_eq!(case.engine.flows(), 1);
    // What only services say is not listened to.
    let answer = astraea_serve::wire::Answer { flow: 1, period: 1, action: 0.0, window: 1.0, version: 1 };
    assert_eq!(case.send(HERE, mine, Message::Answer(answer)), Err(Dropped::Direction));
}

#[test]
fn sessions_of_before_are_refused() {
    let mut before = Case::new(Limits::default());
    let session = before.greet(HERE);
    let old = before.bytes(session, ask(1, 1, &[report(1.0)]));
    let mut after = Case::new(Limits::default());
    assert_ne!(after.greet(HERE), session);
    assert_eq!(after.engine.receive(HERE, &old, 0), Err(Dropped::Session), "recorded before a restart");
    assert_eq!(after.refusals()[0].reason, Reason::Session);
}

#[test]
fn datagrams_need_the_key_where_there_is_one() {
    let key = |byte| Key::new(&[byte; 32]);
    let mut engine = Engine::new(loaded(1), Limits::default(), Some(key(1)));
    let peer = Peer::Datagram(0, Route { peer: "192.0.2.1:5".parse().unwrap(), local: None });
    let hello = |key: Option<Key>| {
        let mut bytes = Vec::new();
        let frame = Frame { session: 0, number: 1, message: Message::Hello { token: 1 } };
        Codec::new(key).write(&frame, &mut bytes);
        bytes
    };
    let wrong = Err(Dropped::Wire(WireError::Tag));
    assert_eq!(engine.receive(peer, &hello(None), 0), wrong);
    assert_eq!(engine.receive(peer, &hello(Some(key(2))), 0), wrong);
    let mut replies = 0;
    engine.replies(|_, _| replies += 1);
    assert_eq!(replies, 0, "strangers get no answer");
    let mut newer = hello(None);
    newer[4] = 9;
    assert_eq!(engine.receive(peer, &newer, 0), Err(Dropped::Wire(WireError::Version)));
    engine.replies(|_, _| panic!("nor do those of another version"));
    assert_eq!(engine.receive(peer, &hello(Some(key(1))), 0), Ok(false));
    engine.replies(|_, bytes| {
        assert!(Codec::new(Some(key(1))).read(bytes).is_ok());
        assert_eq!(Codec::default().read(bytes), Err(WireError::Tag));
    });
    // A greeting that is repeated, by whomever, gives no second session.
    engine.receive(peer, &hello(Some(key(1))), 0).unwrap();
    assert_eq!(engine.sessions(), 1);
    // UNIX sockets go without.
    assert_eq!(engine.receive(HERE, &hello(None), 0), Ok(false));
}

#[test]
fn only_the_newest_request_of_a_flow_is_answered() {
    let mut case = Case::new(Limits::default());
    let session = case.greet(HERE);
    case.ask(HERE, session, 1, 1, &[report(1.0)]).unwrap();
    case.ask(HERE, session, 1, 2, &[report(2.0)]).unwrap();
    let round = case.engine.decide();
    assert_eq!((round.decided, round.superseded), (1, 1));
    assert_eq!(case.answers()[0].2, 2);
}

#[test]
fn overload_gives_up_the_oldest() {
    let mut case = Case::new(Limits { waiting: 3, ..Limits::default() });
    let session = case.greet(HERE);
    for flow in 1..=3 {
        assert_eq!(case.ask(HERE, session, flow, 1, &[report(1.0)]), Ok(true));
    }
    assert_eq!(case.ask(HERE, session, 4, 1, &[report(1.0)]), Err(Dropped::Shed));
    let flows: Vec<u64> = case.answers().iter().map(|answer| answer.1).collect();
    assert_eq!(flows, [2, 3, 4]);
    // What was given up is not forgotten: the next period goes on from it.
    assert_eq!(case.ask(HERE, session, 1, 2, &[report(2.0)]), Ok(true));
    assert_eq!(case.answers().len(), 1);
}

#[test]
fn flows_and_sessions_are_bounded_and_expire() {
    let limits = Limits { flows: 3, flows_per_peer: 2, sessions: 2, expiry: 10, ..Limits::default() };
    let mut case = Case::new(limits);
    let (mine, theirs) = (case.greet(HERE), case.greet(THERE));
    for flow in 1..=2 {
        case.ask(HERE, mine, flow, 1, &[report(1.0)]).unwrap();
    }
    assert_eq!(case.ask(HERE, mine, 3, 1, &[report(1.0)]), Err(Dropped::Full), "of one peer");
    assert_eq!(case.ask(HERE, mine, 2, 2, &[report(1.0)]), Ok(true), "but it may go on");
    case.ask(THERE, theirs, 1, 1, &[report(1.0)]).unwrap();
    assert_eq!(case.ask(THERE, theirs, 2, 1, &[report(1.0)]), Err(Dropped::Full), "of all");
    case.refusals();
    assert_eq!(
        case.send(Peer::Stream(3), 0, Message::Hello { token: 1 }),
        Err(Dropped::Full),
        "all sessions have flows"
    );
    assert_eq!(case.refusals()[0].reason, Reason::Full);
    case.engine.sweep(10);
    assert_eq!(case.engine.flows(), 3);
    case.engine.sweep(11);
    assert_eq!(case.engine.flows(), 0);
    assert_eq!(case.ask(THERE, theirs, 2, 1, &[report(1.0)]), Ok(true), "room again");
    case.engine.close(2);
    assert_eq!((case.engine.flows(), case.engine.sessions()), (0, 1));
}

#[test]
fn who_only_greets_keeps_nobody_out() {
    let mut case = Case::new(Limits { sessions: 32, ..Limits::default() });
    let mine = case.greet(HERE);
    case.ask(HERE, mine, 1, 1, &[report(1.0)]).unwrap();
    let datagram = |port: u16| {
        let peer = std::net::SocketAddr::from(([127, 0, 0, 1], port));
        Peer::Datagram(0, Route { peer, local: None })
    };
    case.answers();
    for stranger in 0..200 {
        case.greet(if stranger % 2 == 0 { Peer::Stream(10 + stranger) } else { datagram(stranger as u16) });
        assert!(case.engine.sessions() <= 32);
    }
    let theirs = case.greet(THERE);
    assert_eq!(case.ask(THERE, theirs, 1, 1, &[report(1.0)]), Ok(true), "there is room for who has flows");
    assert_eq!(case.ask(HERE, mine, 1, 2, &[report(2.0)]), Ok(true), "who has flows stays");
}

#[test]
fn a_peer_gains_nothing_by_further_sessions() {
    let limits = Limits { flows_per_peer: 2, sessions: 20, ..Limits::default() };
    let mut case = Case::new(limits);
    let first = case.greet(HERE);
    case.ask(HERE, first, 1, 1, &[report(1.0)]).unwrap();
    let second = case.greet(HERE);
    case.ask(HERE, second, 1, 1, &[report(1.0)]).unwrap();
    assert_eq!(case.ask(HERE, second, 2, 1, &[report(1.0)]), Err(Dropped::Full), "two of one peer");
    assert_eq!(case.refusals()[0].reason, Reason::Full);
    assert_eq!(case.ask(HERE, first, 1, 2, &[report(1.0)]), Ok(true), "but they may go on");
    let greeted: Vec<u64> = (0..40).map(|_| case.greet(HERE)).collect();
    assert_eq!(case.engine.sessions(), 16);
    // Those with flows stay, and the newest.
    assert_eq!(case.ask(HERE, first, 1, 3, &[report(1.0)]), Ok(true));
    assert_eq!(case.ask(HERE, greeted[0], 1, 1, &[report(1.0)]), Err(Dropped::Session));
    assert_eq!(case.refusals()[0].reason, Reason::Session);
    let there = case.greet(THERE);
    assert_eq!(case.ask(THERE, there, 1, 1, &[report(1.0)]), Ok(true), "room for others");
    case.engine.close(1);
    assert_eq!((case.engine.flows(), case.engine.sessions()), (1, 1));
}

#[test]
fn a_whole_history_replaces_what_was_known() {
    let mut case = Case::new(Limits::default());
    let session = case.greet(HERE);
    let reports: Vec<Report> = (1..=6).map(|period| report(f64::from(period))).collect();
    for period in 1..=6 {
        case.ask(HERE, session, 1, period, &reports[period as usize - 1..period as usize]).unwrap();
    }
    let step_by_step = case.answers().pop().unwrap();
    case.ask(HERE, session, 2, 6, &reports[6 - HISTORY..]).unwrap();
    let at_once = case.answers().pop().unwrap();
    assert_eq!(step_by_step.3, at_once.3);
}

#[test]
fn another_policy_only_if_senders_need_not_know() {
    let mut case = Case::new(Limits::default());
    let session = case.greet(HERE);
    let before = case.engine.terms();
    case.engine.replace(loaded(2)).unwrap();
    assert_ne!(case.engine.terms().version, before.version);
    case.ask(HERE, session, 1, 1, &[report(1.0)]).unwrap();
    assert_eq!(case.answers().len(), 1, "sessions go on");
    let served = case.engine.terms();
    let paper = common::paper();
    let error = case.engine.replace(paper).unwrap_err();
    assert!(error.contains("form paper") && error.contains("expected form guided"), "{error}");
    assert_eq!(case.engine.terms(), served);
}
