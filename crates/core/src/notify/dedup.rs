use uuid::Uuid;

use super::Intent;

/// What makes two `notify` calls the same call. The driver hashes [`DedupInput::bytes`].
#[derive(Copy, Clone, Debug)]
pub struct DedupInput<'a> {
    /// The request that the call belongs to.
    pub request_id: Uuid,
    /// The authenticated origin.
    pub origin: &'a str,
    /// The intent.
    pub intent: Intent,
    /// The channel.
    pub channel: &'a str,
    /// The resolved target.
    pub target: &'a str,
    /// The subject.
    pub subject: Option<&'a str>,
    /// The text.
    pub message: Option<&'a str>,
    /// The emoji.
    pub emoji: Option<&'a str>,
}

impl DedupInput<'_> {
    /// The bytes to hash. Every field is preceded by its length, so that text cannot move from one field to the next
    /// without changing them; an absent field differs from an empty one.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.request_id.as_bytes().to_vec();
        let target = normalized_target(self.target);
        for field in [self.origin, self.intent.as_str(), self.channel, &target] {
            push(&mut bytes, Some(field));
        }
        for field in [self.subject, self.message, self.emoji] {
            push(&mut bytes, field);
        }
        bytes
    }
}

/// A target as the dedup key and allow-lists compare it: trimmed, in lower case.
pub fn normalized_target(target: &str) -> String {
    target.trim().to_lowercase()
}

fn push(bytes: &mut Vec<u8>, field: Option<&str>) {
    bytes.push(field.is_some().into());
    let field = field.unwrap_or_default().as_bytes();
    bytes.extend((field.len() as u64).to_be_bytes());
    bytes.extend(field);
}

#[cfg(test)]
mod tests {
    use super::*;

    const INPUT: DedupInput<'static> = DedupInput {
        request_id: Uuid::from_u128(7),
        origin: "health",
        intent: Intent::Send,
        channel: "email",
        target: "ada@example.org",
        subject: Some("ab"),
        message: Some("c"),
        emoji: None,
    };

    #[test]
    fn every_field_counts_and_targets_are_normalised() {
        let bytes = INPUT.bytes();
        let others = [
            DedupInput { request_id: Uuid::from_u128(8), ..INPUT },
            DedupInput { origin: "wealth", ..INPUT },
            DedupInput { intent: Intent::Reply, ..INPUT },
            DedupInput { channel: "telegram", ..INPUT },
            DedupInput { target: "eve@example.org", ..INPUT },
            DedupInput { subject: None, ..INPUT },
            DedupInput { message: None, ..INPUT },
            DedupInput { emoji: Some(""), ..INPUT },
        ];
        for other in others {
            assert_ne!(other.bytes(), bytes, "{other:?}");
        }
        assert_eq!(DedupInput { target: " Ada@Example.ORG ", ..INPUT }.bytes(), bytes);
    }

    #[test]
    fn text_cannot_move_between_fields() {
        let split = |subject, message| DedupInput { subject: Some(subject), message: Some(message), ..INPUT }.bytes();
        assert_ne!(split("ab", "c"), split("a", "bc"));
        assert_ne!(split("", "abc"), split("abc", ""));
        let moved = DedupInput { origin: "healthsend", channel: "email", ..INPUT };
        assert_ne!(moved.bytes(), INPUT.bytes());
    }
}
