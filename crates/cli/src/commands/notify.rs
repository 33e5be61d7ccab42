use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::{Map, Value, json};

use super::input;
use crate::authority;
use crate::client::Connection;
use crate::output::{WAITS, WRONG, paint, print_json, printable, text};

/// Send a message to a person by a channel, as an agent does with the notify tool
///
/// Prints the id of the delivered message, or the id of the inbox item if quiet hours defer it. Exits with 1 if it was not
/// delivered; standard error says why, and whether to try again. A script that may run twice gives an --idempotency-key: then
/// the message is sent once.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct NotifyArgs {
    /// The channel, such as email or telegram
    channel: String,
    /// The message; - reads standard input. A reaction has none
    message: Option<String>,
    /// What to do: send, reply or react
    #[arg(long, default_value = "send")]
    intent: String,
    /// An address of the origin's allow-list, instead of the person's own
    #[arg(long, value_name = "ADDRESS")]
    recipient: Option<String>,
    /// The subject, where the channel has one
    #[arg(long)]
    subject: Option<String>,
    /// The emoji of a reaction
    #[arg(long)]
    emoji: Option<String>,
    /// The request_context of the message that is answered, as JSON
    #[arg(long, value_name = "JSON")]
    request_context: Option<String>,
    /// The id of the person; not needed if the token is bound to one
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// The id of the conversation it belongs to
    #[arg(long, short, value_name = "ID")]
    conversation: Option<String>,
    /// The origin that the person sees; with an admin token any, with an agent's token its own
    #[arg(long, value_name = "NAME")]
    origin: Option<String>,
    /// The name of this call: another call with the same name and content is not sent again
    #[arg(long, value_name = "TEXT")]
    idempotency_key: Option<String>,
    /// Print the tool's result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

const EXAMPLES: &str = "Examples:\n  bellwire notify telegram \"The backup is done.\" --user ada --origin backup\n  \
                        make 2>&1 | tail -20 | bellwire notify email - --user ada --origin ci --subject \"Build failed\"";

pub(crate) fn run(arguments: &NotifyArgs) -> Result<bool> {
    let client = authority::client(&arguments.connection)?.speaking_as(arguments.origin.as_deref())?;
    let body = json!({ "arguments": arguments.call()?, "context": arguments.context() });
    let result = client.post("/v1/tools/notify", &body)?;
    let is_delivered = result["status"] != "error";
    if arguments.json {
        print_json(&result)?;
        return Ok(is_delivered);
    }
    match result["status"].as_str() {
        Some("ok") => anstream::println!("{}", text(&result["delivery"], "delivery_id")),
        Some("deferred") => {
            let (at, why) = (text(&result, "deliver_at"), text(&result, "reason"));
            anstream::eprintln!("{} it is sent at {at} ({why})", paint(WAITS, "deferred:"));
            anstream::println!("{}", text(&result, "notification_id"));
        }
        Some("error") => anstream::eprintln!("{} {}", paint(WRONG, "error:"), why(&result)),
        _ => bail!("{} answers, but not like a Bellwire hub; check the address", client.url()),
    }
    Ok(is_delivered)
}

impl NotifyArgs {
    /// The arguments of the tool.
    fn call(&self) -> Result<Map<String, Value>> {
        let message = match self.message.as_deref() {
            Some("-") => Some(input::file("-")?.trim_end_matches(['\r', '\n']).to_owned()),
            message => message.map(str::to_owned),
        };
        let request_context = self.request_context.as_deref().map(serde_json::from_str::<Value>).transpose();
        let request_context = request_context.context("--request-context is not JSON")?;
        let arguments = [
            ("channel", Some(json!(self.channel))),
            ("intent", Some(json!(self.intent))),
            ("message", message.map(Value::String)),
            ("recipient", self.recipient.clone().map(Value::String)),
            ("subject", self.subject.clone().map(Value::String)),
            ("emoji", self.emoji.clone().map(Value::String)),
            ("request_context", request_context),
        ];
        Ok(given(arguments))
    }

    fn context(&self) -> Map<String, Value> {
        let text = |value: &Option<String>| value.clone().map(Value::String);
        given([
            ("user_id", text(&self.user)),
            ("conversation_id", text(&self.conversation)),
            ("idempotency_key", text(&self.idempotency_key)),
        ])
    }
}

fn given<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// Why it was not delivered, and what to do: a refused call has a text, a failed attempt an object.
fn why(result: &Value) -> String {
    let error = &result["error"];
    let (message, is_retryable) = match error.as_str() {
        Some(message) => (printable(message), result["retryable"] == true),
        None => (text(error, "message"), error["retryable"] == true),
    };
    match (is_retryable, result["retry_after_seconds"].as_u64()) {
        (true, Some(seconds)) => format!("{message} (try again in {seconds} s)"),
        (true, None) => format!("{message} (try again later)"),
        (false, _) => message,
    }
}
