//! Which policy it is.

use astraea_policy::Policy;
use sha2::{Digest, Sha256};

/// Version of a policy: the first eight bytes of the SHA-256 of its file, so that the same file has the same version
/// everywhere.
pub fn version(policy: &Policy) -> u64 {
    let digest = Sha256::digest(policy.to_bytes());
    digest.iter().take(8).fold(0, |version, byte| version << 8 | u64::from(*byte))
}
