//! Addresses of links, nested ones too, without translation.
//!
//! All come from 100.64.0.0/10, the range for networks in between (RFC 6598). A link takes a block of it that no route of
//! the caller's namespace covers: the first address is the outside end, the second the inside end, and links that are
//! started inside take parts of the block. So a route for the block, on the link's own device, leads back to any depth, and
//! nobody's tables have to be changed. Inside, the block itself is refused, which keeps packets for parts that nobody
//! has taken from going round in circles, and tells a nested link what it may take.
//!
//! The number of a block is in the name of its link's device. So two links that start at one time, and have not seen each
//! other's routes, cannot take the same: a network namespace has one device of a name, only root can make it, and it goes
//! with its process.

use std::fs;
use std::net::Ipv4Addr;

use astraea_emu::{Error, Tun};

use crate::failure::Failure;

/// The range, and the bits of a first block's prefix.
const RANGE: Block = Block { first: Ipv4Addr::new(100, 64, 0, 0), bits: 10 };
const FIRST_BITS: u32 = 19;

/// Bits that each level of nesting takes, and those of the smallest block: two addresses.
const LEVEL: u32 = 4;
const SMALLEST: u32 = 31;

/// Flag of a route that refuses packets (`RTF_REJECT`).
const REJECT: u32 = 0x200;

/// A prefix and its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) first: Ipv4Addr,
    pub(super) bits: u32,
}

impl Block {
    /// The outside end of the link that has the block.
    pub(super) fn outside(self) -> Ipv4Addr {
        self.first
    }

    /// The inside end.
    pub(super) fn inside(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.first.to_bits() + 1)
    }

    fn contains(self, address: Ipv4Addr) -> bool {
        (self.first.to_bits() ^ address.to_bits()).checked_shr(32 - self.bits).unwrap_or(0) == 0
    }

    fn overlaps(self, other: Self) -> bool {
        self.contains(other.first) || other.contains(self.first)
    }

    /// The part with that number among those of `bits`.
    fn part(self, number: u32, bits: u32) -> Self {
        Self { first: Ipv4Addr::from_bits(self.first.to_bits() + (number << (32 - bits))), bits }
    }

    /// A number that no other block has for which links of the same namespace compete.
    fn number(self) -> u32 {
        (self.first.to_bits() >> (32 - self.bits)) % (1 << (FIRST_BITS - RANGE.bits))
    }
}

/// A route of the calling thread's namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Route {
    to: Block,
    rejected: bool,
}

/// Reads a table as `/proc/net/route` has it.
fn parse(table: &str) -> Vec<Route> {
    let route = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let hex = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok();
        // Addresses are printed as numbers of this machine, as they lie in memory.
        let address = |at: usize| hex(at).map(|number| Ipv4Addr::from(number.to_ne_bytes()));
        let bits = address(7)?.to_bits().leading_ones();
        Some(Route { to: Block { first: address(1)?, bits }, rejected: hex(3)? & REJECT != 0 })
    };
    table.lines().skip(1).filter_map(route).collect()
}

/// Blocks that could be taken beside these routes, those before which `salt` starts last.
fn candidates(routes: &[Route], salt: u32) -> Vec<Block> {
    let own = routes.iter().filter(|route| route.rejected && RANGE.contains(route.to.first)).map(|route| route.to);
    let nested = own.min_by_key(|block| block.bits);
    let (within, bits) = nested.map_or((RANGE, FIRST_BITS), |block| (block, block.bits + LEVEL));
    if bits > SMALLEST {
        return Vec::new();
    }
    let parts = 1 << (bits - within.bits);
    // The first part holds the link's own two addresses.
    let first = u32::from(nested.is_some());
    let number = |turn: u32| first + (salt.wrapping_add(turn)) % (parts - first);
    let blocks = (0..parts - first).map(|turn| within.part(number(turn), bits));
    let taken = |block: &Block| routes.iter().any(|r| r.to.bits > 0 && r.to != within && block.overlaps(r.to));
    blocks.filter(|block| !taken(block)).collect()
}

/// Takes a free block in the caller's namespace; it is that of the device until that goes.
pub(super) fn claim() -> Result<(Block, Tun), Failure> {
    let table = fs::read_to_string("/proc/thread-self/net/route").map_err(|e| format!("/proc/net/route: {e}"))?;
    for block in candidates(&parse(&table), std::process::id()) {
        let device = match Tun::create(&format!("astr{}", block.number())) {
            Err(error) if error.is_taken() => continue,
            Err(error @ Error::Permission { .. }) => {
                return Err(format!("link: {error}; try: sudo astraea link …").into());
            }
            made => made?,
        };
        device.set_addresses(block.outside(), block.inside())?;
        device.add_route(block.first, block.bits)?;
        return Ok((block, device));
    }
    Err("no free addresses in 100.64.0.0/10: expected fewer links, nested at most four deep".into())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn block(text: &str) -> Block {
        let (first, bits) = text.split_once('/').unwrap();
        Block { first: first.parse().unwrap(), bits: bits.parse().unwrap() }
    }

    #[test]
    fn the_kernels_table_is_read() {
        if cfg!(target_endian = "big") {
            eprintln!("skipped: the table below is that of a little-endian machine");
            return;
        }
        let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
            eth0\t00000000\t010011AC\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
            *\t00A04064\t00000000\t0201\t0\t0\t0\t00E0FFFF\t0\t0\t0\n";
        let default = Route { to: block("0.0.0.0/0"), rejected: false };
        assert_eq!(parse(table), [default, Route { to: block("100.64.160.0/19"), rejected: true }]);
        assert_eq!(parse("nonsense\nmore of it\n"), []);
    }

    #[test]
    fn a_link_takes_a_block_that_is_free() {
        let route = |text: &str| Route { to: block(text), rejected: false };
        let routes = [route("0.0.0.0/0"), route("100.64.32.0/19"), route("100.65.0.0/16"), route("10.0.0.0/8")];
        let free = candidates(&routes, 1);
        assert_eq!(free[0], block("100.64.64.0/19"), "the second is taken");
        assert_eq!(free[0].number(), 2);
        assert_eq!(block("100.127.224.0/19").number(), 511);
        assert_eq!(free.len(), 512 - 1 - 8);
        assert_eq!(
            (free[0].outside(), free[0].inside()),
            ("100.64.64.0".parse().unwrap(), "100.64.64.1".parse().unwrap())
        );
    }

    #[test]
    fn a_nested_link_takes_a_part() {
        let refused = |text: &str| Route { to: block(text), rejected: true };
        let free = candidates(&[refused("100.64.64.0/19"), Route { to: block("0.0.0.0/0"), rejected: false }], 0);
        assert_eq!(free[0], block("100.64.66.0/23"));
        assert_eq!(free.len(), 15);
        let numbers: BTreeSet<u32> = free.iter().map(|part| part.number()).collect();
        assert_eq!(numbers.len(), 15);
        assert!(!numbers.contains(&0), "the namespace's own device has it");
        assert!(free.iter().all(|part| block("100.64.64.0/19").overlaps(*part)));
        assert_eq!(candidates(&[refused("100.64.66.32/27")], 0)[0], block("100.64.66.34/31"));
        assert_eq!(candidates(&[refused("100.64.66.34/31")], 0), [], "too deep");
    }
}
