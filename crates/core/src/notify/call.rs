use std::fmt;

use serde_json::Value;

use super::{Intent, RequestContext};
use crate::event::excerpt;
use crate::person::{Argument, ChannelName, ToolArguments, clean, one_line};

const CHANNEL_MAX: usize = 32;
const EMOJI_MAX: usize = 32;
const CONTEXT: &str = "request_context";

/// A checked call of `notify`. Whether its target may be used is decided later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifyCall {
    /// A configured channel.
    pub channel: ChannelName,
    /// What to do.
    pub intent: Intent,
    /// The text, cleaned; absent for `react`.
    pub message: Option<String>,
    /// The subject, on one line.
    pub subject: Option<String>,
    /// The emoji of `react`.
    pub emoji: Option<String>,
    /// The address or chat of `send`; without one it goes to the caller's user.
    pub recipient: Option<String>,
    /// The inbound request. A reply or reaction without one answers the newest message of its conversation.
    pub request_context: Option<RequestContext>,
}

/// What the checks need to know about a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelFacts {
    /// Its name.
    pub name: ChannelName,
    /// Whether this hub can send by it.
    pub configured: bool,
    /// Whether it has reactions.
    pub reacts: bool,
    /// Whether an answer needs the thread identity of the message that it answers.
    pub needs_thread: bool,
}

/// Why a call was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidCall {
    /// The argument at fault, for records that must not repeat what the agent wrote; `arguments` for an unknown one.
    pub argument: &'static str,
    /// What to fix, for the model.
    pub message: String,
}

impl fmt::Display for InvalidCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for InvalidCall {}

/// Names the argument of a refusal.
fn of(argument: &'static str) -> impl Fn(String) -> InvalidCall {
    move |message| InvalidCall { argument, message }
}

impl NotifyCall {
    /// The longest message, in characters.
    pub const MESSAGE_MAX: usize = 16_000;
    /// The longest subject, in characters.
    pub const SUBJECT_MAX: usize = 150;
    /// The longest recipient, in characters.
    pub const RECIPIENT_MAX: usize = 320;

    /// The tool's arguments.
    pub const ARGUMENTS: &[Argument] = &[
        Argument::text("channel", 1, CHANNEL_MAX, "The channel to use.").required(),
        Argument::text("message", 1, Self::MESSAGE_MAX, "The text. Required for send and reply, absent for react."),
        Argument::text(
            "recipient",
            1,
            Self::RECIPIENT_MAX,
            "Only for send: the address or chat. Leave it out to reach your user.",
        ),
        Argument::text("subject", 1, Self::SUBJECT_MAX, "The subject, where the channel has one."),
        Argument::word("intent", Intent::NAMES, "send a message, reply to one, or react to one with an emoji.")
            .or_word(Intent::Send.as_str()),
        Argument::text("emoji", 1, EMOJI_MAX, "Only for react: one emoji."),
        Argument::object(
            CONTEXT,
            RequestContext::FIELDS,
            "The message you answer: the request_context that was shown with it, unchanged. Leave it out to answer the \
             newest message of this conversation.",
        ),
    ];

    /// Checks the arguments: unknown ones, channel, intent, message, subject, emoji, request_context, recipient.
    pub fn parse(arguments: &ToolArguments, channels: &[ChannelFacts]) -> Result<Self, InvalidCall> {
        arguments.refuse_others(Self::ARGUMENTS).map_err(of("arguments"))?;
        let channel = channel(arguments, channels).map_err(of("channel"))?;
        let intent = intent(arguments, channel).map_err(of("intent"))?;
        let call = Self {
            channel: channel.name.clone(),
            intent,
            message: message(arguments, intent).map_err(of("message"))?,
            subject: subject(arguments, intent).map_err(of("subject"))?,
            emoji: emoji(arguments, intent).map_err(of("emoji"))?,
            request_context: request_context(arguments).map_err(of(CONTEXT))?,
            recipient: None,
        };
        let context = call.request_context.as_ref();
        context.map_or(Ok(()), |context| call.check_context(context, channel)).map_err(of(CONTEXT))?;
        Ok(Self { recipient: recipient(arguments, intent).map_err(of("recipient"))?, ..call })
    }

    /// Answers this inbound message, for a reply or reaction whose arguments name none.
    pub fn answering(mut self, context: RequestContext, channels: &[ChannelFacts]) -> Result<Self, InvalidCall> {
        if let Some(channel) = channels.iter().find(|channel| channel.name == self.channel) {
            self.check_context(&context, channel).map_err(of(CONTEXT))?;
        }
        self.request_context = Some(context);
        Ok(self)
    }

    /// A reply goes to its thread or nowhere, so its context must be one of this channel.
    fn check_context(&self, context: &RequestContext, channel: &ChannelFacts) -> Result<(), String> {
        if !self.intent.answers() {
            return Ok(());
        }
        if context.source_channel != channel.name.as_str() {
            return Err(format!(
                "request_context field 'source_channel' is '{}', and channel is '{}': a {} goes back by the channel that \
                 the message came by",
                excerpt(&context.source_channel),
                channel.name,
                self.intent.as_str()
            ));
        }
        if channel.needs_thread {
            context.thread().map_err(|missing| missing.to_string())?;
        }
        Ok(())
    }
}

fn channel<'a>(arguments: &ToolArguments, channels: &'a [ChannelFacts]) -> Result<&'a ChannelFacts, String> {
    let names = |wanted: fn(&ChannelFacts) -> bool| {
        let names: Vec<&str> = channels.iter().filter(|one| wanted(one)).map(|one| one.name.as_str()).collect();
        names.join(", ")
    };
    let Some(name) = trimmed(arguments, "channel")? else {
        return Err(format!("Missing required 'channel' parameter. Must be one of: {}", names(|_| true)));
    };
    let Some(channel) = channels.iter().find(|channel| channel.name.as_str() == name) else {
        return Err(format!("Unsupported channel '{}'. Must be one of: {}", excerpt(name), names(|_| true)));
    };
    match (channel.configured, names(|channel| channel.configured)) {
        (true, _) => Ok(channel),
        (false, none) if none.is_empty() => {
            Err(format!("Channel '{name}' is not configured on this hub, nor is any other"))
        }
        (false, others) => Err(format!("Channel '{name}' is not configured on this hub. Configured: {others}")),
    }
}

fn intent(arguments: &ToolArguments, channel: &ChannelFacts) -> Result<Intent, String> {
    let Some(name) = trimmed(arguments, "intent")? else { return Ok(Intent::default()) };
    match Intent::parse(name) {
        Some(Intent::React) if !channel.reacts => Err(format!(
            "Unsupported intent 'react' on channel '{}', which has no reactions. Use intent 'reply'",
            channel.name
        )),
        Some(intent) => Ok(intent),
        None => Err(format!("Unsupported intent '{}'. Must be one of: {}", excerpt(name), Intent::NAMES.join(", "))),
    }
}

fn message(arguments: &ToolArguments, intent: Intent) -> Result<Option<String>, String> {
    let text = clean(arguments.text("message")?.unwrap_or_default());
    match (text.chars().count(), intent) {
        (0, Intent::React) => Ok(None),
        (_, Intent::React) => Err(not_with(intent, "message", "Use intent 'reply' to answer with text")),
        (0, _) => {
            Err(format!("Missing required 'message' parameter. Intent '{}' needs the text to deliver", intent.as_str()))
        }
        (length, _) => within("message", length, NotifyCall::MESSAGE_MAX).map(|()| Some(text)),
    }
}

fn subject(arguments: &ToolArguments, intent: Intent) -> Result<Option<String>, String> {
    let text = one_line(arguments.text("subject")?.unwrap_or_default());
    match (text.chars().count(), intent) {
        (0, _) => Ok(None),
        (_, Intent::React) => Err(not_with(intent, "subject", "Leave it out")),
        (length, _) => within("subject", length, NotifyCall::SUBJECT_MAX).map(|()| Some(text)),
    }
}

fn emoji(arguments: &ToolArguments, intent: Intent) -> Result<Option<String>, String> {
    let text = one_line(arguments.text("emoji")?.unwrap_or_default());
    match (text.chars().count(), intent) {
        (0, Intent::React) => {
            Err("Missing required 'emoji' parameter. Intent 'react' needs one emoji, such as \u{1f44d}".to_owned())
        }
        (0, _) => Ok(None),
        (length, Intent::React) => within("emoji", length, EMOJI_MAX).map(|()| Some(text)),
        _ => Err(not_with(intent, "emoji", "Leave it out, or use intent 'react'")),
    }
}

/// Models write a blank string where they mean nothing.
fn request_context(arguments: &ToolArguments) -> Result<Option<RequestContext>, String> {
    match arguments.value(CONTEXT) {
        None => Ok(None),
        Some(Value::String(text)) if matches!(text.trim(), "" | "null") => Ok(None),
        Some(value) => RequestContext::parse(value).map(Some).map_err(|error| error.to_string()),
    }
}

fn recipient(arguments: &ToolArguments, intent: Intent) -> Result<Option<String>, String> {
    let Some(recipient) = trimmed(arguments, "recipient")? else { return Ok(None) };
    if intent.answers() {
        return Err(not_with(intent, "recipient", "It goes to the message in request_context; leave it out"));
    }
    if let Some(control) = recipient.chars().find(|c| c.is_control()) {
        return Err(format!("recipient contains the control character {control:?}"));
    }
    within("recipient", recipient.chars().count(), NotifyCall::RECIPIENT_MAX).map(|()| Some(recipient.to_owned()))
}

fn trimmed<'a>(arguments: &'a ToolArguments, name: &str) -> Result<Option<&'a str>, String> {
    Ok(arguments.text(name)?.map(str::trim).filter(|text| !text.is_empty()))
}

fn within(name: &str, length: usize, max: usize) -> Result<(), String> {
    match length <= max {
        true => Ok(()),
        false => Err(format!("{name} has {length} characters; at most {max} are allowed")),
    }
}

fn not_with(intent: Intent, name: &str, fix: &str) -> String {
    format!("'{name}' is not allowed with intent '{}'. {fix}", intent.as_str())
}
