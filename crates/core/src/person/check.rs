use super::{Argument, ToolArguments};

/// An agent asks what is new: `check_notifications`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct CheckNotifications;

impl CheckNotifications {
    /// It takes none.
    pub const ARGUMENTS: &[Argument] = &[];

    /// Checks the arguments: there are none.
    pub fn parse(arguments: &ToolArguments) -> Result<Self, String> {
        arguments.refuse_others(Self::ARGUMENTS).map(|()| Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_question_without_arguments_takes_none() {
        let parse = |value| CheckNotifications::parse(&ToolArguments::parse(value)?);
        assert!(parse(json!({})).is_ok());
        assert!(parse(json!(null)).is_ok());
        let refused = Err("Unknown argument 'limit'. This tool takes none".to_owned());
        assert_eq!(parse(json!({"limit": 5})), refused);
    }
}
