use super::{Argument, ToolArguments};

/// The arguments of `check_notifications`, by which an agent asks for its pending notifications.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct CheckNotifications;

impl CheckNotifications {
    /// The tool takes no arguments.
    pub const ARGUMENTS: &[Argument] = &[];

    /// Refuses any argument.
    pub fn parse(arguments: &ToolArguments) -> Result<Self, String> {
        arguments.refuse_others(Self::ARGUMENTS).map(|()| Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn any_argument_is_refused() {
        let parse = |value| CheckNotifications::parse(&ToolArguments::parse(value)?);
        assert!(parse(json!({})).is_ok());
        assert!(parse(json!(null)).is_ok());
        let refused = Err("Unknown argument 'limit'. This tool takes none".to_owned());
        assert_eq!(parse(json!({"limit": 5})), refused);
    }
}
