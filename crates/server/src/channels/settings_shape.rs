/// How a person's settings of one channel look on the wire: `{enabled, <target>, <verified>}`.
#[derive(Clone, Debug)]
pub struct SettingsShape {
    /// The name that people read, such as `email`.
    pub display_name: &'static str,
    /// The title of the settings in the API description.
    pub description: &'static str,
    /// The field with the person's address in the channel.
    pub target: TargetField,
    /// The field that says whether the target was verified; always read-only.
    pub verified: VerifiedField,
    /// How a person proves that the target is theirs.
    pub verification: Verification,
}

/// The field with the person's address in the channel.
#[derive(Clone, Debug)]
pub struct TargetField {
    /// Its name on the wire.
    pub name: &'static str,
    /// Its description in the API description.
    pub description: &'static str,
    /// Its JSON type.
    pub kind: TargetKind,
    /// A valid target, for the API description.
    pub example: &'static str,
    /// Whether the person may set it. A new target must be verified again.
    pub is_writable: bool,
    /// Checks a target and returns its normal form. The error says what is wrong and what to write.
    pub parse: fn(&str) -> Result<String, String>,
}

/// The JSON type of a target.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A text of at most this many characters.
    Text {
        /// In characters.
        max: usize,
    },
    /// A 64-bit integer.
    Integer,
}

/// The field that says whether the target was verified.
#[derive(Clone, Debug)]
pub struct VerifiedField {
    /// Its name on the wire.
    pub name: &'static str,
    /// Its description in the API description.
    pub description: &'static str,
}

/// How a person proves that a target is theirs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Verification {
    /// The hub sends a code to a new target, and the person enters it.
    Code,
    /// The channel pairs the target itself, by a code that the person sends from there.
    Pairing,
}
