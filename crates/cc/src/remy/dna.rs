//! Rule tables as Remy stores them: files `*.dna`, a message `WhiskerTree` of its `protobufs/dna.proto`.

use std::fmt;

use super::wire::{Fields, Message, Value, signed, varints};
use super::{RemyDomain, RemyRule, RemyTable, RemyTree};

/// Field numbers of `WhiskerTree`, `MemoryRange` and `Whisker`; those of `Memory` follow each other.
const DOMAIN: u64 = 1;
const CHILDREN: u64 = 2;
const LEAF: u64 = 3;
const LOWER: u64 = 11;
const UPPER: u64 = 12;
const ACTIVE_AXIS: u64 = 13;
const MEMORY: u64 = 21;
const WINDOW_INCREMENT: u64 = 31;
const WINDOW_MULTIPLE: u64 = 32;
const INTERSEND: u64 = 33;
const WHISKER_DOMAIN: u64 = 34;

/// Nested boxes that are read at most; published tables have less than ten.
const MAX_DEPTH: u32 = 100;

/// Why a file is no rule table. Displays as one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemyTableError {
    /// Not a message of this format, or cut short.
    Wire,
    /// A field of another type than the format gives it.
    Type {
        /// Number of the field.
        field: u64,
    },
    /// A number that makes no sense.
    Number {
        /// Its field.
        field: &'static str,
    },
    /// A box with neither a rule nor boxes in it.
    Empty,
    /// Boxes within boxes without end.
    Deep,
    /// No rule for the memory with which a connection begins.
    NoFirstRule,
}

impl std::error::Error for RemyTableError {}

impl fmt::Display for RemyTableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a RemyCC rule table: ")?;
        match self {
            Self::Wire => f.write_str("not a protocol buffer, or cut short"),
            Self::Type { field } => write!(f, "field {field} has another type than in dna.proto"),
            Self::Number { field } => write!(f, "{field} is no finite number within its range"),
            Self::Empty => f.write_str("a domain has neither a rule nor children"),
            Self::Deep => write!(f, "domains are nested more than {MAX_DEPTH} deep"),
            Self::NoFirstRule => f.write_str("no rule for an empty memory, with which a connection begins"),
        }
    }
}

type Result<T> = std::result::Result<T, RemyTableError>;

impl RemyTable {
    /// Reads the content of a `.dna` file.
    ///
    /// # Errors
    /// What is wrong with it, see [`RemyTableError`].
    pub fn from_dna(content: &[u8]) -> Result<Self> {
        let table = Self::new(&RemyTree::from_dna(content)?);
        table.find(&[0.0; 6], 0).map(|_| table).ok_or(RemyTableError::NoFirstRule)
    }
}

impl RemyTree {
    /// Reads the content of a `.dna` file.
    ///
    /// # Errors
    /// What is wrong with it, see [`RemyTableError`].
    pub fn from_dna(content: &[u8]) -> Result<Self> {
        tree(content, MAX_DEPTH)
    }

    /// The content of a `.dna` file.
    pub fn to_dna(&self) -> Vec<u8> {
        self.message().0
    }

    fn message(&self) -> Message {
        let mut message = Message::default();
        message.message(DOMAIN, &range(self.domain()));
        match self {
            Self::Node(_, children) => children.iter().for_each(|child| message.message(CHILDREN, &child.message())),
            Self::Leaf(domain, rule) => {
                let mut leaf = Message::default();
                leaf.signed(WINDOW_INCREMENT, i64::from(rule.increment));
                leaf.double(WINDOW_MULTIPLE, rule.multiple);
                leaf.double(INTERSEND, rule.intersend);
                leaf.message(WHISKER_DOMAIN, &range(domain));
                message.message(LEAF, &leaf);
            }
        }
        message
    }
}

fn range(domain: &RemyDomain) -> Message {
    let memory = |axes: &[f64; 6]| {
        let mut message = Message::default();
        axes.iter().zip(MEMORY..).for_each(|(axis, number)| message.double(number, *axis));
        message
    };
    let mut message = Message::default();
    message.message(LOWER, &memory(&domain.lower));
    message.message(UPPER, &memory(&domain.upper));
    for axis in (0..6).filter(|axis| domain.active[*axis]) {
        message.varint(ACTIVE_AXIS, axis as u64);
    }
    message
}

fn tree(message: &[u8], depth: u32) -> Result<RemyTree> {
    let depth = depth.checked_sub(1).ok_or(RemyTableError::Deep)?;
    let (mut domain, mut children, mut leaf) = (RemyDomain::default(), Vec::new(), None);
    for field in Fields::of(message) {
        let (number, value) = field.ok_or(RemyTableError::Wire)?;
        match number {
            DOMAIN => domain = read_range(bytes(number, value)?)?,
            CHILDREN => children.push(tree(bytes(number, value)?, depth)?),
            LEAF => leaf = Some(rule(bytes(number, value)?)?),
            // How the table was made.
            _ => {}
        }
    }
    match leaf {
        Some(rule) => Ok(RemyTree::Leaf(domain, rule)),
        None if children.is_empty() => Err(RemyTableError::Empty),
        None => Ok(RemyTree::Node(domain, children)),
    }
}

fn rule(message: &[u8]) -> Result<RemyRule> {
    let mut rule = RemyRule::default();
    for field in Fields::of(message) {
        let (number, value) = field.ok_or(RemyTableError::Wire)?;
        match (number, value) {
            (WINDOW_INCREMENT, Value::Varint(value)) => {
                let increment = i32::try_from(signed(value));
                rule.increment = increment.map_err(|_| RemyTableError::Number { field: "window_increment" })?;
            }
            (WINDOW_MULTIPLE, value) => rule.multiple = amount("window_multiple", number, value)?,
            (INTERSEND, value) => rule.intersend = amount("intersend", number, value)?,
            (WINDOW_INCREMENT, _) => return Err(RemyTableError::Type { field: number }),
            _ => {}
        }
    }
    Ok(rule)
}

fn read_range(message: &[u8]) -> Result<RemyDomain> {
    let mut domain = RemyDomain::default();
    let mut active = [false; 6];
    for field in Fields::of(message) {
        let (number, value) = field.ok_or(RemyTableError::Wire)?;
        match (number, value) {
            (LOWER, value) => memory(bytes(number, value)?, &mut domain.lower)?,
            (UPPER, value) => memory(bytes(number, value)?, &mut domain.upper)?,
            (ACTIVE_AXIS, Value::Varint(axis)) => activate(&mut active, axis)?,
            (ACTIVE_AXIS, Value::Bytes(packed)) => {
                for axis in varints(packed).ok_or(RemyTableError::Wire)? {
                    activate(&mut active, axis)?;
                }
            }
            (ACTIVE_AXIS, _) => return Err(RemyTableError::Type { field: number }),
            _ => {}
        }
    }
    // Tables of 2013 name no axes; the four classic ones count.
    if active.contains(&true) {
        domain.active = active;
    }
    Ok(domain)
}

fn activate(active: &mut [bool; 6], axis: u64) -> Result<()> {
    let axis = usize::try_from(axis).ok().and_then(|axis| active.get_mut(axis));
    *axis.ok_or(RemyTableError::Number { field: "active_axis" })? = true;
    Ok(())
}

/// Overwrites those axes that the message has; the others keep 0 or the open end.
fn memory(message: &[u8], axes: &mut [f64; 6]) -> Result<()> {
    for field in Fields::of(message) {
        let (number, value) = field.ok_or(RemyTableError::Wire)?;
        if let Some(axis) = number.checked_sub(MEMORY).and_then(|i| axes.get_mut(usize::try_from(i).ok()?)) {
            *axis = amount("memory", number, value)?;
        }
    }
    Ok(())
}

fn bytes(number: u64, value: Value<'_>) -> Result<&[u8]> {
    match value {
        Value::Bytes(bytes) => Ok(bytes),
        _ => Err(RemyTableError::Type { field: number }),
    }
}

/// A number that is finite and not negative.
fn amount(field: &'static str, number: u64, value: Value<'_>) -> Result<f64> {
    match value {
        Value::Double(value) if value.is_finite() && value >= 0.0 => Ok(value),
        Value::Double(_) => Err(RemyTableError::Number { field }),
        _ => Err(RemyTableError::Type { field: number }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RemyAxis;

    fn example() -> RemyTree {
        let domain = |lower, upper| RemyDomain::of(&[(RemyAxis::RttRatio, lower, upper)]);
        let rule = |increment| RemyRule { increment, multiple: 0.75, intersend: 0.125 };
        let children = vec![RemyTree::Leaf(domain(0.0, 1.5), rule(-2)), RemyTree::Leaf(domain(1.5, 100.0), rule(5))];
        RemyTree::Node(domain(0.0, 100.0), children)
    }

    #[test]
    fn what_is_written_is_read() {
        let content = example().to_dna();
        assert_eq!(RemyTree::from_dna(&content), Ok(example()));
        assert_eq!(RemyTable::from_dna(&content), Ok(RemyTable::new(&example())));
    }

    /// Written by hand: a leaf whose domain says nothing but an upper end of 2.0 for the send average.
    #[test]
    fn missing_fields_are_open_ends_and_classic_axes() {
        // `upper` is field 12, and in it the send average field 21, a double.
        let memory = [&[0xa9, 0x01][..], &2.0_f64.to_le_bytes()].concat();
        let mut domain = vec![0x62, memory.len() as u8];
        domain.extend(&memory);
        let mut content = vec![0x0a, domain.len() as u8];
        content.extend(&domain);
        // A leaf with an increment of 1 and an intersend of 3 ms; the multiple is 0.
        let leaf = [&[0xf8, 0x01, 0x02, 0x89, 0x02][..], &3.0_f64.to_le_bytes()].concat();
        content.extend([0x1a, leaf.len() as u8]);
        content.extend(&leaf);
        let RemyTree::Leaf(domain, rule) = RemyTree::from_dna(&content).unwrap() else { panic!() };
        assert_eq!(rule, RemyRule { increment: 1, multiple: 0.0, intersend: 3.0 });
        assert_eq!(domain.upper, [2.0, 163_840.0, 163_840.0, 163_840.0, 163_840.0, 163_840.0]);
        assert_eq!((domain.lower, domain.active), ([0.0; 6], [true, true, true, true, false, false]));
    }

    #[test]
    fn each_mistake_has_one_line() {
        let content = example().to_dna();
        for cut in 1..content.len() {
            // Between two children the format cannot tell.
            let table = RemyTable::from_dna(&content[..cut]);
            assert!(table.as_ref().map_or(0, RemyTable::len) < 2, "cut after {cut} bytes: {table:?}");
        }
        assert_eq!(RemyTable::from_dna(b""), Err(RemyTableError::Empty));
        assert_eq!(RemyTable::from_dna(b"hello"), Err(RemyTableError::Wire));
        let beside = RemyDomain::of(&[(RemyAxis::RttRatio, 1.0, 2.0)]);
        let late = RemyTree::Leaf(beside, RemyRule::default()).to_dna();
        assert_eq!(RemyTable::from_dna(&late), Err(RemyTableError::NoFirstRule));
        let negative = RemyRule { intersend: -1.0, ..RemyRule::default() };
        let error = RemyTable::from_dna(&RemyTree::Leaf(RemyDomain::default(), negative).to_dna()).unwrap_err();
        assert_eq!(error.to_string(), "not a RemyCC rule table: intersend is no finite number within its range");
        let mut deep = RemyTree::Leaf(RemyDomain::default(), RemyRule::default());
        for _ in 0..MAX_DEPTH {
            deep = RemyTree::Node(RemyDomain::default(), vec![deep]);
        }
        assert_eq!(RemyTable::from_dna(&deep.to_dna()), Err(RemyTableError::Deep));
    }
}
