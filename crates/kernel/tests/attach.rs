//! Attaching, finding again, swapping and detaching.

mod support;

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};

use astraea_kernel::{Attachment, Decider, Error, Place, intf, layout, sysctl};

use support::{Own, cannot_run, gone, in_a_network_of_its_own, shipped, shipped_policy, socket, with_rights};

fn nowhere() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

#[test]
fn a_name_is_known_from_attach_to_detach() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let error = |name: &str| socket(nowhere(), name).err().map(|error| error.kind());
    assert_eq!(error(own.name()), Some(ErrorKind::NotFound));
    let attached = own.attach("astraea");
    assert_eq!(error(own.name()), None);
    assert_eq!(attached.decider().unwrap(), Decider::Kernel);
    drop(attached);
    assert_eq!(error(own.name()), None, "no process holds it");
    assert_eq!(layout::name(&Attachment::open(&own.place).unwrap().policy().unwrap()), "astraea");
    Attachment::detach(&own.place).unwrap();
    assert_eq!(error(own.name()), Some(ErrorKind::NotFound));
    assert!(gone(&own.place.directory));
}

#[test]
fn attaching_twice_is_refused_and_changes_nothing() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = own.attach("astraea");
    let again = Attachment::attach(&own.place, &shipped("astraea-pure"), Decider::Kernel);
    assert!(matches!(again, Err(Error::Attached { .. })), "{again:?}");
    // The same name, held by other files.
    let elsewhere = Place { directory: own.place.directory.with_file_name("elsewhere"), ..own.place.clone() };
    let taken = Attachment::attach(&elsewhere, &shipped("astraea"), Decider::Kernel);
    assert!(matches!(taken, Err(Error::NameTaken(_))), "{taken:?}");
    assert!(gone(&elsewhere.directory), "nothing is left of what failed");
    assert_eq!(layout::name(&attached.policy().unwrap()), "astraea");
}

#[test]
fn another_that_is_attached_in_its_place_is_not_it() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = own.attach("astraea");
    assert!(attached.is_there() && Attachment::open(&own.place).unwrap().is_there());
    Attachment::detach(&own.place).unwrap();
    assert!(!attached.is_there());
    let next = own.attach("astraea");
    assert!(next.is_there() && !attached.is_there());
}

#[test]
fn the_rights_that_loading_needs_are_enough_for_the_rest() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    own.attach("astraea");
    let (cap_perfmon, cap_bpf) = (38, 39);
    let names = with_rights(&[cap_perfmon, cap_bpf], || {
        let attached = Attachment::open(&own.place).unwrap();
        let before = layout::name(&attached.policy().unwrap());
        let renewed = Attachment::renew(&own.place, &shipped("astraea-pure"), Decider::Kernel).unwrap();
        attached.counters().unwrap();
        let names = [before, layout::name(&attached.policy().unwrap()), layout::name(&renewed.policy().unwrap())];
        Attachment::detach(&own.place).unwrap();
        names
    });
    assert_eq!(names, ["astraea", "astraea-pure", "astraea-pure"]);
    assert!(gone(&own.place.directory));
}

#[test]
fn a_policy_without_its_file_is_told_all_the_same() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = own.attach("astraea");
    // Killed between the swap and its file, and before any was written.
    let (file, other) = (own.place.directory.join("policy"), own.place.directory.join("other"));
    std::fs::rename(&file, &other).unwrap();
    assert_eq!(layout::name(&attached.policy().unwrap()), "astraea");
    attached.swap(&shipped("astraea-pure")).unwrap();
    std::fs::rename(&other, &file).unwrap();
    assert_eq!(layout::name(&attached.policy().unwrap()), "astraea-pure");
}

#[test]
fn what_was_detached_is_not_switched_on_again() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let policy = shipped("astraea");
    for _ in 0..20 {
        let first = Attachment::renew(&own.place, &policy, Decider::Kernel).unwrap();
        let renewed = std::thread::scope(|scope| {
            let renewing = scope.spawn(|| Attachment::renew(&own.place, &policy, Decider::Kernel).unwrap());
            Attachment::detach(&own.place).unwrap();
            renewing.join().unwrap()
        });
        // Either it was renewed and then detached, or detached and then attached anew.
        assert!(matches!(first.decider(), Err(Error::NotAttached { .. })));
        assert_eq!(renewed.is_there(), renewed.decider().is_ok());
    }
}

#[test]
fn only_this_very_controller_is_ended() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let first = own.attach("astraea");
    Attachment::detach(&own.place).unwrap();
    let second = own.attach("astraea");
    first.end().unwrap();
    assert!(second.is_there());
    second.end().unwrap();
    assert!(!second.is_there() && gone(&own.place.directory));
}

#[test]
fn connections_that_choose_none_have_the_one_that_is_attached_now() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    in_a_network_of_its_own(|| {
        let attached = own.attach("astraea");
        std::fs::write(sysctl::PATH, own.name()).unwrap();
        let connect = || {
            let listener = TcpListener::bind(nowhere()).unwrap();
            drop(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        };
        connect();
        assert!(attached.counters().unwrap().opened > 0);
        attached.end().unwrap();
        assert!(sysctl::is_default(own.name()), "the name stays, and the controller that had it");
        let again = own.attach("astraea");
        connect();
        assert_eq!(again.counters().unwrap().opened, 0, "why this is needed");
        sysctl::renew_default(own.name()).unwrap();
        connect();
        assert!(again.counters().unwrap().opened > 0);
        sysctl::renew_default("another").unwrap();
        assert!(sysctl::is_default(own.name()));
    });
}

#[test]
fn what_a_killed_process_left_half_done_is_no_obstacle() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    own.attach("astraea");
    std::fs::remove_file(own.place.directory.join("link")).unwrap();
    let open = Attachment::open(&own.place);
    assert!(matches!(open, Err(Error::NotAttached { .. })), "{open:?}");
    own.attach("astraea");
}

#[test]
fn policies_are_swapped_and_old_ones_forgotten() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = own.attach("astraea");
    for name in ["astraea-pure", "astraea-paper", "astraea"] {
        attached.swap(&layout::policy(&shipped_policy(name), 77).unwrap()).unwrap();
        let policy = attached.policy().unwrap();
        assert_eq!((layout::name(&policy), policy.hash), (name.to_owned(), 77));
    }
}

#[test]
fn a_policy_of_another_layout_is_not_run() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    let attached = own.attach("astraea");
    let mut other = shipped("astraea");
    other.interface += 1;
    attached.swap(&other).unwrap();
    assert!(matches!(Attachment::open(&own.place), Err(Error::OtherVersion)));
    let listener = TcpListener::bind(nowhere()).unwrap();
    let to = listener.local_addr().unwrap();
    let _flow = socket(to, own.name()).unwrap().connect(None, to).unwrap();
    assert_eq!(attached.counters().unwrap().fallbacks[intf::REASON_MISMATCH as usize], 1);
}

#[test]
fn names_that_the_kernel_does_not_take_are_refused() {
    if cannot_run() {
        return;
    }
    let own = Own::new();
    for name in ["", "with-dash", "much_too_long_for_it"] {
        let place = Place { name: name.to_owned(), ..own.place.clone() };
        let result = Attachment::attach(&place, &shipped("astraea"), Decider::Kernel);
        assert!(matches!(result, Err(Error::Name(_))), "{name}: {result:?}");
    }
}
