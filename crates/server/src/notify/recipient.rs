//! Who gets a request: a person by a target of their own, or a target of the origin's allow-list.

use bellwire_core::notify::normalized_target;
use bellwire_core::person::{ChannelName, ChannelSettings};
use bellwire_store::NotifyRecipient;

use super::hash_of;
use super::refusal::Refusal;
use crate::http::Hub;

const RECIPIENT: &str = "recipient";

/// The person's target, usable or not, for a `send` that names no recipient.
pub(super) async fn own_target(hub: &Hub, channel: &ChannelName, user_id: Option<&str>) -> Result<String, Refusal> {
    let Some(user_id) = user_id else {
        let message = "Missing required 'recipient' parameter. The call has no user whose target could be used";
        return Err(Refusal::invalid(RECIPIENT, message));
    };
    let settings = hub.store.settings(user_id.to_owned()).await?.channel(channel.as_str());
    settings.target.ok_or_else(|| no_target(channel))
}

/// Who owns a resolved target, if the origin may use it: the person it works for, or an entry of its allow-list; and the
/// target as that person or the operator wrote it. Upper and lower case may matter to a provider, so what an agent wrote is
/// not used. The error does not say whether the target exists.
pub(super) async fn permitted(
    hub: &Hub,
    origin: &str,
    channel: &ChannelName,
    target: &str,
    user_id: Option<&str>,
) -> Result<(NotifyRecipient, String), Refusal> {
    if let Some(user_id) = user_id {
        let settings = hub.store.settings(user_id.to_owned()).await?.channel(channel.as_str());
        if let Some(target) = own_spelling(&settings, target) {
            check_usable(&settings, channel)?;
            return Ok(person(user_id, target));
        }
    }
    let Some(listed) = hub.notify.allow.permitted(origin, channel.as_str(), target) else {
        let message = format!(
            "The recipient is not a confirmed {channel} target of your user, and not on the allow-list of '{origin}'. \
             Leave 'recipient' out to reach your user"
        );
        return Err(Refusal::invalid(RECIPIENT, message));
    };
    for user_id in hub.store.people_with_target(channel.to_string(), target.to_owned()).await? {
        let settings = hub.store.settings(user_id.clone()).await?.channel(channel.as_str());
        if let Some(target) = own_spelling(&settings, target).filter(|_| settings.verified) {
            return Ok(person(&user_id, target));
        }
    }
    let limit_key = hash_of(&["target", channel.as_str(), &normalized_target(target)]);
    Ok((NotifyRecipient::Listed { limit_key }, listed.to_owned()))
}

fn person(user_id: &str, target: String) -> (NotifyRecipient, String) {
    (NotifyRecipient::Person { user_id: user_id.to_owned(), target: target.clone() }, target)
}

/// The target in the settings, if it is this one.
fn own_spelling(settings: &ChannelSettings, target: &str) -> Option<String> {
    settings.target.clone().filter(|known| normalized_target(known) == normalized_target(target))
}

fn check_usable(settings: &ChannelSettings, channel: &ChannelName) -> Result<(), Refusal> {
    let refused = |message: String| Err(Refusal::invalid(RECIPIENT, message));
    match settings {
        ChannelSettings { target: None, .. } => Err(no_target(channel)),
        ChannelSettings { verified: false, .. } => {
            refused(format!("Your user has not confirmed their {channel} target yet, so nothing is sent there"))
        }
        ChannelSettings { enabled: false, .. } => refused(format!("Your user has switched {channel} off")),
        _ => Ok(()),
    }
}

fn no_target(channel: &ChannelName) -> Refusal {
    Refusal::invalid(RECIPIENT, format!("Your user has not set up {channel}, so there is no target to send to"))
}
