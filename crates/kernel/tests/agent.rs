//! Flows of an agent, which may answer more than it was asked, go, be killed, and come back.

mod support;

use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use astraea_kernel::agent::{self, Answer};
use astraea_kernel::{Attachment, Decider, Place, intf};
use astraea_policy::AgentConfig;
use astraea_serve::{Address, Client, Config, Service, Source};

use support::transfer::{fallbacks, ms, over_a_link, until};
use support::{Own, cannot_run, shipped, shipped_policy};

/// Where the agent of a test finds its controller, if this process is to be one.
const PLACE: &str = "ASTRAEA_TEST_PLACE";

/// Not a test: the process that `a_killed_agent` kills.
#[test]
fn answers_until_it_is_killed() {
    let Some(directory) = std::env::var_os(PLACE) else { return };
    let place = Place { name: String::new(), directory: directory.into() };
    let attached = Attachment::open(&place).unwrap();
    agent::answer(&attached, &shipped_policy("astraea"), &AtomicBool::new(false)).unwrap();
}

/// An agent in a process of its own, killed at the end.
struct Agent(Child);

impl Agent {
    fn of(place: &Place) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "answers_until_it_is_killed"]).env(PLACE, &place.directory).stdout(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_killed_agent() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = Attachment::attach(&own.place, &shipped("astraea"), Decider::Agent).unwrap();
    let actions = || attached.counters().unwrap().actions;
    over_a_link(own.name(), 16_000_000, || {
        let agent = Agent::of(&own.place);
        until("actions", || actions() > 10);
        let killed = Instant::now();
        drop(agent);
        let before = fallbacks(&attached.counters().unwrap(), intf::REASON_SILENT);
        until("the change to CUBIC", || fallbacks(&attached.counters().unwrap(), intf::REASON_SILENT) > before);
        eprintln!("CUBIC {} ms after the agent was killed", killed.elapsed().as_millis());
        let (_agent, before) = (Agent::of(&own.place), actions());
        until("actions of the next agent", || actions() > before);
    });
}

#[test]
fn an_answer_that_nobody_asked_for_changes_nothing() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = Attachment::attach(&own.place, &shipped("astraea"), Decider::Agent).unwrap();
    let (ending, mut asked, mut told) = (AtomicBool::new(false), 0_u64, 0_u64);
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| {
            agent::serve(&attached, &ending, |record| {
                // A window that would stop slow start, to all that do not ask.
                if record.ask == 0 {
                    told += 1;
                    return Answer::Window(2.0);
                }
                asked += 1;
                Answer::Action(0.0)
            })
        });
        over_a_link(own.name(), 4_000_000, || {});
        ending.store(true, Ordering::Relaxed);
        serving.join().unwrap().unwrap();
    });
    let actions = attached.counters().unwrap().actions;
    assert!(
        told > 0 && actions > 0 && actions <= asked,
        "{actions} actions of {asked} that were asked for, {told} others"
    );
}

#[test]
fn flows_of_an_agent_outlive_it_and_come_back() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = Attachment::attach(&own.place, &shipped("astraea"), Decider::Agent).unwrap();
    let policy = shipped_policy("astraea");
    let work = |until_silent: u64| {
        let ending = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let serving = scope.spawn(|| agent::answer(&attached, &policy, &ending));
            let before = attached.counters().unwrap().actions;
            until("actions", || attached.counters().unwrap().actions > before + until_silent);
            ending.store(true, Ordering::Relaxed);
            serving.join().unwrap().unwrap();
        });
    };
    over_a_link(own.name(), 16_000_000, || {
        work(10);
        // As after a kill: nobody answers any more.
        until("the change to CUBIC", || fallbacks(&attached.counters().unwrap(), intf::REASON_SILENT) > 0);
        let returns = attached.counters().unwrap().returns;
        work(5);
        assert!(attached.counters().unwrap().returns > returns, "the agent is back");
    });
    assert_eq!(attached.counters().unwrap().decisions, 0, "the kernel does not decide");
}

#[test]
fn flows_of_an_agent_that_asks_a_service_outlive_the_service() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = Attachment::attach(&own.place, &shipped("astraea"), Decider::Agent).unwrap();
    let policy = shipped_policy("astraea");
    let directory = std::env::temp_dir().join(format!("{}_serve", own.name()));
    std::fs::create_dir(&directory).unwrap();
    let address = Address::Unix(directory.join("serve.sock"));
    let (service, control) = Service::bind(Config::new(Source::new("astraea"), vec![address.clone()])).unwrap();
    let running = std::thread::spawn(move || service.run());
    let mut client = Client::new(address, None, ms(15), AgentConfig::of(policy.metadata()));
    client.wait(ms(5000)).unwrap();
    client.check_policy("astraea", &policy).unwrap();
    let ending = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            agent::ask(&attached, &policy, &mut client, &ending).unwrap();
            client.counts()
        });
        over_a_link(own.name(), 16_000_000, || {
            let actions = || attached.counters().unwrap().actions;
            until("actions", || actions() > 20);
            control.stop();
            let before = actions();
            until("actions without the service", || actions() > before + 20);
        });
        ending.store(true, Ordering::Relaxed);
        let counts = asking.join().unwrap();
        assert!(counts.answered > 0 && counts.ruled > 0, "{counts:?}");
    });
    running.join().unwrap().unwrap();
    let _ = std::fs::remove_dir_all(directory);
    assert_eq!(attached.counters().unwrap().decisions, 0, "the kernel does not decide");
}
