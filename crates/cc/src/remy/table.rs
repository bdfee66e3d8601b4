//! The rules of a `RemyCC`, in a tree of boxes.

use super::RemyAxis;

/// Upper end of an axis where a table gives none (Remy).
const OPEN_END: f64 = 163_840.0;

/// What a `RemyCC` does on an acknowledgement: window `int(window × multiple + increment)`, one packet in `intersend`
/// ms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RemyRule {
    /// Packets added.
    pub increment: i32,
    /// Part of the window kept.
    pub multiple: f64,
    /// Least time between packets in ms.
    pub intersend: f64,
}

/// A box of memories: `lower <= x < upper` on each axis that is active.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RemyDomain {
    /// In the order of [`RemyAxis`].
    pub lower: [f64; 6],
    /// In the order of [`RemyAxis`].
    pub upper: [f64; 6],
    /// Which axes count.
    pub active: [bool; 6],
}

impl Default for RemyDomain {
    /// Everything, by the four classic axes.
    fn default() -> Self {
        Self { lower: [0.0; 6], upper: [OPEN_END; 6], active: [true, true, true, true, false, false] }
    }
}

impl RemyDomain {
    /// A box that is bounded by these axes only: (axis, lower, upper).
    pub fn of(bounds: &[(RemyAxis, f64, f64)]) -> Self {
        let mut domain = Self { active: [false; 6], ..Self::default() };
        for &(axis, lower, upper) in bounds {
            let index = axis as usize;
            (domain.lower[index], domain.upper[index], domain.active[index]) = (lower, upper, true);
        }
        domain
    }

    /// Whether a memory is in it.
    #[inline]
    pub fn contains(&self, axes: &[f64; 6]) -> bool {
        (0..6).all(|i| !self.active[i] || (self.lower[i]..self.upper[i]).contains(&axes[i]))
    }
}

/// A tree as the format has it.
#[derive(Clone, Debug, PartialEq)]
pub enum RemyTree {
    /// A box with a rule.
    Leaf(RemyDomain, RemyRule),
    /// A box divided into others.
    Node(RemyDomain, Vec<RemyTree>),
}

impl RemyTree {
    /// The box of its root.
    pub fn domain(&self) -> &RemyDomain {
        match self {
            Self::Leaf(domain, _) | Self::Node(domain, _) => domain,
        }
    }
}

/// The rules, and the boxes in depth-first order.
#[derive(Clone, Debug, PartialEq)]
pub struct RemyTable {
    boxes: Vec<Entry>,
    rules: Vec<(RemyDomain, RemyRule)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Entry {
    domain: RemyDomain,
    /// Index of the rule, if it has one.
    rule: Option<usize>,
    /// Index of the box that follows all that is in this one.
    skip: usize,
}

impl RemyTable {
    /// The table of a tree with at least one rule.
    pub fn new(tree: &RemyTree) -> Self {
        let mut table = Self { boxes: Vec::new(), rules: Vec::new() };
        table.add(tree);
        table
    }

    fn add(&mut self, tree: &RemyTree) {
        let index = self.boxes.len();
        let domain = *tree.domain();
        self.boxes.push(Entry { domain, rule: None, skip: 0 });
        match tree {
            RemyTree::Leaf(domain, rule) => {
                self.boxes[index].rule = Some(self.rules.len());
                self.rules.push((*domain, *rule));
            }
            RemyTree::Node(_, children) => children.iter().for_each(|child| self.add(child)),
        }
        self.boxes[index].skip = self.boxes.len();
    }

    /// Number of rules.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether it has no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rule of that index.
    #[inline]
    pub fn rule(&self, index: usize) -> &RemyRule {
        &self.rules[index].1
    }

    /// Index of the rule for a memory; `guess` is looked at first.
    #[inline]
    pub fn find(&self, axes: &[f64; 6], guess: usize) -> Option<usize> {
        if self.rules[guess].0.contains(axes) { Some(guess) } else { self.search(axes) }
    }

    /// The first box that holds the memory, and the first in it, and so on. Boxes of a node do not overlap.
    fn search(&self, axes: &[f64; 6]) -> Option<usize> {
        let mut index = 0;
        while index < self.boxes.len() {
            let entry = &self.boxes[index];
            if !entry.domain.contains(axes) {
                index = entry.skip;
            } else if entry.rule.is_some() {
                return entry.rule;
            } else {
                index += 1;
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of depth two over two axes: four boxes, of which the last is divided again.
    fn tree() -> RemyTree {
        let quarter = |x: f64, y: f64, size: f64| {
            RemyDomain::of(&[(RemyAxis::SendEwma, x, x + size), (RemyAxis::RttRatio, y, y + size)])
        };
        let leaf =
            |x, y, size, increment| RemyTree::Leaf(quarter(x, y, size), RemyRule { increment, ..RemyRule::default() });
        let inner =
            vec![leaf(4.0, 4.0, 2.0, 3), leaf(4.0, 6.0, 2.0, 4), leaf(6.0, 4.0, 2.0, 5), leaf(6.0, 6.0, 2.0, 6)];
        let last = RemyTree::Node(quarter(4.0, 4.0, 4.0), inner);
        let outer = vec![leaf(0.0, 0.0, 4.0, 0), leaf(0.0, 4.0, 4.0, 1), leaf(4.0, 0.0, 4.0, 2), last];
        RemyTree::Node(quarter(0.0, 0.0, 8.0), outer)
    }

    #[test]
    fn lookup_goes_down_the_tree() {
        let table = RemyTable::new(&tree());
        let find = |send: f64, ratio: f64| {
            let axes = [send, 1e9, ratio, 0.0, 0.0, 0.0];
            let found = table.find(&axes, 0);
            assert!((0..table.len()).all(|guess| table.find(&axes, guess) == found), "whatever the guess");
            found.map(|index| table.rule(index).increment)
        };
        assert_eq!(table.len(), 7);
        assert_eq!(
            [find(0.0, 0.0), find(3.99, 4.0), find(4.0, 3.99)],
            [Some(0), Some(1), Some(2)],
            "lower ends belong"
        );
        assert_eq!([find(5.0, 5.0), find(5.0, 7.0), find(7.0, 5.0), find(7.0, 7.0)], [3, 4, 5, 6].map(Some));
        assert_eq!([find(8.0, 0.0), find(0.0, 8.0)], [None, None], "upper ends do not");
    }
}
