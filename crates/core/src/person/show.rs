use serde_json::Value;

use super::argument::words_of;
use super::arguments::word;
use super::send::message_argument;
use super::{Argument, MESSAGE_MAX, ToolArguments, clean, one_line};

const TITLE_MAX: usize = 100;
/// In milliseconds: the longest time for which a toast is shown, unless it stays until it is dismissed.
pub const TOAST_DURATION_MAX: u64 = 30_000;
const DURATION_MAX: i64 = TOAST_DURATION_MAX as i64;
const DURATION_DEFAULT: u32 = 5_000;
const ACTIONS_MAX: usize = 3;
const LABEL_MAX: usize = 50;
const PROMPT_MAX: usize = 200;

/// The arguments of `show_notification`: a toast that the person sees now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShowNotification {
    /// At most 500 characters, cleaned.
    pub message: String,
    /// The toast's appearance.
    pub severity: ToastSeverity,
    /// The heading, at most 100 characters.
    pub title: Option<String>,
    /// In milliseconds; 0 = until the person dismisses it.
    pub duration: u32,
    /// The buttons, at most three.
    pub actions: Vec<ToastAction>,
    /// Where on the screen it appears.
    pub position: Position,
}

/// The appearance of a toast.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ToastSeverity {
    /// Information.
    Info,
    /// Something succeeded.
    Success,
    /// Something to check.
    Warning,
    /// Something failed.
    Error,
}

/// Where on the screen a toast appears.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Position {
    /// The default.
    #[default]
    TopRight,
    /// Prominent.
    TopCenter,
    /// Unobtrusive.
    BottomRight,
}

/// A button of a toast.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToastAction {
    /// The button's text, at most 50 characters.
    pub label: String,
    /// The effect of pressing it.
    pub action: ActionKind,
}

/// The effect of a button.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ActionKind {
    /// Closes the toast.
    Dismiss,
    /// Sends this text to the agent.
    Prompt(String),
}

impl ShowNotification {
    /// The tool's arguments.
    pub const ARGUMENTS: &[Argument] = &[
        message_argument("What it says, 1 to 500 characters."),
        Argument::word("severity", ToastSeverity::NAMES, "How it looks.").required(),
        Argument::text("title", 0, TITLE_MAX, "What stands above the message."),
        Argument::integer(
            "duration",
            0,
            DURATION_MAX,
            "How long it stays, in milliseconds; 0 = until it is dismissed.",
        )
        .or_number(DURATION_DEFAULT as i64),
        Argument::list("actions", ACTIONS_MAX, ToastAction::ARGUMENTS, "Its buttons, at most three."),
        Argument::word("position", Position::NAMES, "Where it appears.").or_word(Position::TopRight.as_str()),
    ];

    /// Checks the arguments and returns the first error, in this order: unknown arguments, message present, severity
    /// present, message length, severity value, title, duration, actions, position.
    pub fn parse(arguments: &ToolArguments) -> Result<Self, String> {
        arguments.refuse_others(Self::ARGUMENTS)?;
        let message = arguments.text("message")?.map(clean).filter(|text| !text.is_empty());
        let message = message.ok_or("message is required: what the notification says, 1 to 500 characters")?;
        let severity = arguments.text("severity")?.filter(|text| !text.trim().is_empty());
        let severity = severity
            .ok_or_else(|| format!("severity is required. Must be one of: {}", ToastSeverity::NAMES.join(", ")))?;
        if message.chars().count() > MESSAGE_MAX {
            return Err(format!("Message must be between 1 and {MESSAGE_MAX} characters"));
        }
        Ok(Self {
            message,
            severity: ToastSeverity::parse(severity)?,
            title: title(arguments)?,
            duration: duration(arguments)?,
            actions: actions(arguments)?,
            position: arguments.text("position")?.map_or(Ok(Position::default()), Position::parse)?,
        })
    }
}

fn title(arguments: &ToolArguments) -> Result<Option<String>, String> {
    let title = arguments.text("title")?.map(one_line).filter(|title| !title.is_empty());
    match title {
        Some(title) if title.chars().count() > TITLE_MAX => {
            Err(format!("Title must be at most {TITLE_MAX} characters"))
        }
        title => Ok(title),
    }
}

fn duration(arguments: &ToolArguments) -> Result<u32, String> {
    match arguments.integer("duration")? {
        None => Ok(DURATION_DEFAULT),
        Some(duration @ 0..=DURATION_MAX) => Ok(duration as u32),
        Some(duration) => Err(format!(
            "Duration must be between 0 and {DURATION_MAX} milliseconds (0 = until dismissed), not {duration}"
        )),
    }
}

fn actions(arguments: &ToolArguments) -> Result<Vec<ToastAction>, String> {
    let list = arguments.list("actions")?.unwrap_or_default();
    if list.len() > ACTIONS_MAX {
        return Err(format!("At most {ACTIONS_MAX} actions are allowed, not {}", list.len()));
    }
    list.into_iter().enumerate().map(|(at, action)| ToastAction::parse(at, action)).collect()
}

impl ToastAction {
    const KINDS: [(&'static str, bool); 2] = [("dismiss", false), ("prompt", true)];
    const KIND_NAMES: &[&str] = &words_of(&Self::KINDS);
    /// The arguments of one button.
    pub const ARGUMENTS: &[Argument] = &[
        Argument::text("label", 1, LABEL_MAX, "What stands on the button.").required(),
        Argument::word("action", Self::KIND_NAMES, "Close it, or say `prompt` to you.").required(),
        Argument::text("prompt", 1, PROMPT_MAX, "What is said to you; required for `prompt`."),
    ];

    fn parse(at: usize, value: Value) -> Result<Self, String> {
        let named = |problem: String| format!("actions[{at}]: {problem}");
        let arguments = ToolArguments::parse(value).map_err(named)?;
        arguments.refuse_others(Self::ARGUMENTS).map_err(named)?;
        let label = bounded(&arguments, "label", LABEL_MAX).map_err(named)?;
        let label = label.ok_or_else(|| named(format!("label is required, 1 to {LABEL_MAX} characters")))?;
        let prompt = bounded(&arguments, "prompt", PROMPT_MAX).map_err(named)?;
        let kind = arguments.text("action").map_err(named)?.unwrap_or_default();
        let action = match (word("action", kind, &Self::KINDS).map_err(named)?, prompt) {
            (false, _) => ActionKind::Dismiss,
            (true, Some(prompt)) => ActionKind::Prompt(prompt),
            (true, None) => {
                return Err(named(format!("prompt is required for action 'prompt', 1 to {PROMPT_MAX} characters")));
            }
        };
        Ok(Self { label, action })
    }

    /// The name on the wire.
    pub const fn kind(&self) -> &'static str {
        match self.action {
            ActionKind::Dismiss => "dismiss",
            ActionKind::Prompt(_) => "prompt",
        }
    }

    /// The text sent to the agent; `None` for a dismiss button.
    pub fn prompt(&self) -> Option<&str> {
        match &self.action {
            ActionKind::Dismiss => None,
            ActionKind::Prompt(prompt) => Some(prompt),
        }
    }
}

fn bounded(arguments: &ToolArguments, name: &str, max: usize) -> Result<Option<String>, String> {
    let text = arguments.text(name)?.map(one_line).filter(|text| !text.is_empty());
    match text {
        Some(text) if text.chars().count() > max => Err(format!("{name} must be between 1 and {max} characters")),
        text => Ok(text),
    }
}

impl ToastSeverity {
    const WORDS: [(&'static str, Self); 4] =
        [("info", Self::Info), ("success", Self::Success), ("warning", Self::Warning), ("error", Self::Error)];
    /// Every name on the wire.
    pub const NAMES: &[&str] = &words_of(&Self::WORDS);

    /// Parses the name on the wire.
    pub fn parse(text: &str) -> Result<Self, String> {
        word("severity", text, &Self::WORDS)
    }

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Success => "success",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl Position {
    const WORDS: [(&'static str, Self); 3] =
        [("top-right", Self::TopRight), ("top-center", Self::TopCenter), ("bottom-right", Self::BottomRight)];
    /// Every name on the wire.
    pub const NAMES: &[&str] = &words_of(&Self::WORDS);

    /// Parses the name on the wire.
    pub fn parse(text: &str) -> Result<Self, String> {
        word("position", text, &Self::WORDS)
    }

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TopRight => "top-right",
            Self::TopCenter => "top-center",
            Self::BottomRight => "bottom-right",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(change: Value) -> Result<ShowNotification, String> {
        let mut arguments = json!({"message": "Build failed", "severity": "error"});
        for (key, value) in change.as_object().into_iter().flatten() {
            arguments[key] = value.clone();
        }
        ShowNotification::parse(&ToolArguments::parse(arguments)?)
    }

    #[test]
    fn omitted_arguments_have_defaults_and_quoted_ones_are_parsed() {
        let show = parse(json!({})).unwrap_or_else(|refused| panic!("{refused}"));
        assert_eq!((show.duration, show.position, show.title), (5000, Position::TopRight, None));
        let show =
            parse(json!({"duration": "0", "title": "  ", "actions": "[{\"label\":\"OK\",\"action\":\"dismiss\"}]"}));
        let show = show.unwrap_or_else(|refused| panic!("{refused}"));
        assert_eq!((show.duration, show.title, show.actions.len()), (0, None, 1));
    }

    #[test]
    fn each_refusal_says_what_is_allowed() {
        let prompt = |prompt: Value| json!({"actions": [{"label": "x", "action": "prompt", "prompt": prompt}]});
        let wrong = [
            json!({"message": null}),
            json!({"message": " "}),
            json!({"severity": null}),
            json!({"message": "x".repeat(501)}),
            json!({"severity": "fatal"}),
            json!({"title": "x".repeat(101)}),
            json!({"duration": 30_001}),
            json!({"duration": -1}),
            json!({"duration": "soon"}),
            json!({"actions": {}}),
            json!({"actions": [{}, {}, {}, {}]}),
            json!({"actions": ["x"]}),
            json!({"actions": [{"action": "dismiss"}]}),
            json!({"actions": [{"label": "x".repeat(51), "action": "dismiss"}]}),
            json!({"actions": [{"label": "x", "action": "open"}]}),
            prompt(json!(null)),
            prompt(json!("x".repeat(201))),
            json!({"position": "left"}),
            json!({"colour": "red"}),
        ];
        let refusals: Vec<String> = wrong.into_iter().filter_map(|change| parse(change).err()).collect();
        insta::assert_snapshot!(refusals.join("\n"));
    }

    #[test]
    fn the_first_failing_check_is_reported() {
        let all = json!({"severity": "x", "title": "x".repeat(101), "duration": -1, "actions": 1, "position": "x"});
        assert!(parse(all.clone()).is_err_and(|refused| refused.contains("severity")));
        let mut rest = all;
        rest["severity"] = json!("info");
        assert!(parse(rest.clone()).is_err_and(|refused| refused.contains("Title")));
        rest["title"] = json!(null);
        assert!(parse(rest.clone()).is_err_and(|refused| refused.contains("Duration")));
        rest["duration"] = json!(null);
        assert!(parse(rest.clone()).is_err_and(|refused| refused.contains("actions")));
        rest["actions"] = json!(null);
        assert!(parse(rest).is_err_and(|refused| refused.contains("position")));
        let both = json!({"message": "x".repeat(501), "severity": "x"});
        assert!(parse(both).is_err_and(|refused| refused.contains("Message must")));
    }
}
