//! The published tables of `tcpexmachina/remy`, `tests/*.dna`, in the directory that `ASTRAEA_REMY_TABLES` names. They are
//! not part of this project, since their licence is not.

use std::path::PathBuf;

use astraea_cc::{RemyTable, RemyTree};

/// Rules of each table, as Remy itself counts them.
const RULES: [(&str, usize); 4] = [
    ("RemyCC-2013-delta0.1.dna", 162),
    ("RemyCC-2013-delta1.dna", 190),
    ("RemyCC-2013-delta10.dna", 197),
    ("RemyCC-2014-100x.dna", 91),
];

#[test]
#[ignore = "needs the published tables: ASTRAEA_REMY_TABLES=DIRECTORY"]
fn published_tables_are_read_in_full() {
    let directory = PathBuf::from(std::env::var_os("ASTRAEA_REMY_TABLES").expect("ASTRAEA_REMY_TABLES"));
    for (name, rules) in RULES {
        let content = std::fs::read(directory.join(name)).expect("a published table");
        let table = RemyTable::from_dna(&content).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(table.len(), rules, "{name}");
        let tree = RemyTree::from_dna(&content).expect("a tree");
        assert_eq!(RemyTable::from_dna(&tree.to_dna()).as_ref(), Ok(&table), "{name}: written and read again");
        for step in 0..1000_u32 {
            let [send, receive, ratio] = [1, 10, 100].map(|part| f64::from(step / part % 10));
            let axes = [send * send, receive * receive, 1.0 + ratio * ratio / 4.0, receive, 0.0, 0.0];
            assert!(table.find(&axes, 0).is_some(), "{name}: no rule for {axes:?}");
        }
    }
}
