//! Authentication of messages by a key that both ends share: HMAC-SHA256 (RFC 2104), cut to 128 bits.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt};
use std::path::Path;

use hmac::{Hmac, KeyInit, Mac};
use nix::libc::O_NONBLOCK;
use sha2::Sha256;

/// Bytes of a tag.
pub(crate) const TAG: usize = 16;

/// Bytes of a key.
const BYTES: usize = 32;

/// A shared key.
#[derive(Clone)]
pub struct Key(Hmac<Sha256>);

/// Why there is no key. Displays as one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum KeyError {
    #[error("key {path}: cannot be read: {reason}")]
    Read { path: String, reason: String },
    #[error("key {path}: mode {mode:03o}: others could read it; expected 600 or 400")]
    Mode { path: String, mode: u32 },
    #[error("key {path}: expected {digits} hexadecimal digits, as `openssl rand -hex {BYTES}` writes them", digits = 2 * BYTES)]
    Form { path: String },
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

impl Key {
    /// A key of these bytes.
    ///
    /// # Panics
    /// Never: HMAC takes keys of any length.
    pub fn new(bytes: &[u8; BYTES]) -> Self {
        Self(Hmac::new_from_slice(bytes).expect("any length will do"))
    }

    /// Reads a key from a file that only its owner can read.
    ///
    /// # Errors
    /// A file that cannot be read or is no regular one, that others can read, or that holds something else.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        let name = path.display().to_string();
        let mut text = String::new();
        // A FIFO would be waited for.
        let read = File::options().read(true).custom_flags(O_NONBLOCK).open(path).and_then(|file| {
            let found = file.metadata()?;
            if !found.is_file() {
                return Err(io::Error::other("expected a regular file"));
            }
            file.take(4096).read_to_string(&mut text)?;
            Ok(found.permissions().mode() & 0o777)
        });
        let mode = read.map_err(|error| KeyError::Read { path: name.clone(), reason: plain(&error) })?;
        if mode & 0o077 != 0 {
            return Err(KeyError::Mode { path: name, mode });
        }
        bytes(text.trim()).map(|bytes| Self::new(&bytes)).ok_or(KeyError::Form { path: name })
    }

    /// The tag of a message.
    pub fn tag(&self, message: &[u8]) -> [u8; TAG] {
        let full = self.0.clone().chain_update(message).finalize().into_bytes();
        std::array::from_fn(|index| full[index])
    }

    /// Whether a tag is that of a message; takes the same time for every wrong one.
    pub fn verify(&self, message: &[u8], tag: &[u8]) -> bool {
        self.0.clone().chain_update(message).verify_truncated_left(tag).is_ok()
    }
}

/// The bytes that hexadecimal digits stand for.
fn bytes(digits: &str) -> Option<[u8; BYTES]> {
    let values: Vec<u8> =
        digits.chars().map(|digit| digit.to_digit(16).map(|value| value as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> = values.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect();
    if values.len() == 2 * BYTES { bytes.try_into().ok() } else { None }
}

/// A number that nobody can guess.
pub(crate) fn random() -> u64 {
    getrandom::u64().expect("the system has random numbers")
}

/// What an error of the system is called, without its number.
pub(crate) fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn tags_are_those_of_hmac_sha256() {
        // Python: hmac.digest(bytes(range(32)), b"astraea", "sha256")[:16].hex()
        let key = Key::new(&std::array::from_fn(|i| i as u8));
        let tag = key.tag(b"astraea");
        assert_eq!(format!("{:032x}", u128::from_be_bytes(tag)), "8d2e0ec1118521292e81dfb6559b89d2");
        assert!(key.verify(b"astraea", &tag));
        assert!(!key.verify(b"astraeb", &tag));
        assert!(!key.verify(b"astraea", &[0; TAG]));
    }

    #[test]
    fn a_key_file_is_private_and_hexadecimal() {
        let directory = std::env::temp_dir().join(format!("astraea-key-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("key");
        let load = |text: &str, mode| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            Key::load(&path)
        };
        let digits = "00ff".repeat(16);
        assert!(load(&format!("{digits}\n"), 0o600).is_ok());
        assert!(matches!(load(&digits, 0o640), Err(KeyError::Mode { mode: 0o640, .. })));
        assert!(matches!(load("secret", 0o600), Err(KeyError::Form { .. })));
        assert!(matches!(load(&"é".repeat(32), 0o600), Err(KeyError::Form { .. })));
        let pipe = directory.join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let expected = format!("key {}: cannot be read: expected a regular file", pipe.display());
        // With more in it than is read, so that whoever reads it need not wait, and without.
        let mut full = File::options().read(true).write(true).open(&pipe).unwrap();
        full.write_all(format!("{digits:5000}").as_bytes()).unwrap();
        assert_eq!(Key::load(&pipe).unwrap_err().to_string(), expected);
        drop(full);
        assert_eq!(Key::load(&pipe).unwrap_err().to_string(), expected);
        std::fs::remove_dir_all(&directory).unwrap();
        assert!(matches!(Key::load(&path), Err(KeyError::Read { .. })));
    }
}
