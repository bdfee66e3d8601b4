//! What can be wrong with a message.

/// Why bytes are no message; the name is the label under which the service counts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum WireError {
    /// Fewer bytes than the message should have.
    #[error("truncated")]
    Truncated,
    /// Does not begin as a message does.
    #[error("magic")]
    Magic,
    /// Another version of the protocol.
    #[error("version")]
    Version,
    /// A length that no message of its kind has.
    #[error("length")]
    Length,
    /// Changed on its way.
    #[error("checksum")]
    Checksum,
    /// A kind of message, or a reserved bit, that this version does not know.
    #[error("kind")]
    Kind,
    /// A number that is negative, not finite or out of its range.
    #[error("value")]
    Value,
    /// Not authenticated although it has to be, or with another key.
    #[error("tag")]
    Tag,
}

impl WireError {
    /// Every error.
    pub const ALL: [Self; 8] =
        [Self::Truncated, Self::Magic, Self::Version, Self::Length, Self::Checksum, Self::Kind, Self::Value, Self::Tag];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Magic => "magic",
            Self::Version => "version",
            Self::Length => "length",
            Self::Checksum => "checksum",
            Self::Kind => "kind",
            Self::Value => "value",
            Self::Tag => "tag",
        }
    }
}
