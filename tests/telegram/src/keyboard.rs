//! Inline keyboards: rows of buttons, each with a text and one action.

use serde_json::Value;

use crate::answer::Answer;

/// The longest `callback_data`, in bytes.
const DATA_BYTES_MAX: usize = 64;
/// The most buttons of one message.
const BUTTONS_MAX: usize = 100;

/// Checks a `reply_markup`. Returns none where it has no button, which removes a keyboard.
pub(crate) fn check(markup: Option<Value>) -> Result<Option<Value>, Answer> {
    let Some(markup) = markup else { return Ok(None) };
    if !markup.is_object() {
        return Err(Answer::bad_request("object expected as reply markup"));
    }
    let Some(rows) = markup.get("inline_keyboard") else { return Ok(None) };
    let rows = rows.as_array().ok_or_else(|| Answer::bad_request("field \"inline_keyboard\" must be of type Array"))?;
    let mut count = 0;
    for row in rows {
        let row = row
            .as_array()
            .ok_or_else(|| Answer::bad_request("field \"inline_keyboard\" must be an Array of Arrays"))?;
        count += row.len();
        row.iter().try_for_each(check_button)?;
    }
    match count {
        0 => Ok(None),
        count if count > BUTTONS_MAX => Err(Answer::bad_request("reply markup is too long")),
        _ => Ok(Some(markup)),
    }
}

fn check_button(button: &Value) -> Result<(), Answer> {
    let wrong = |why: &str| Err(Answer::bad_request(&format!("can't parse inline keyboard button: {why}")));
    if !button.is_object() {
        return wrong("InlineKeyboardButton must be an Object");
    }
    match button["text"].as_str() {
        None => return wrong("can't find field \"text\""),
        Some(text) if text.trim().is_empty() => return Err(Answer::bad_request("BUTTON_TEXT_INVALID")),
        Some(_) => {}
    }
    if button["url"].as_str().is_some_and(|url| !url.is_empty()) {
        return Ok(());
    }
    match button["callback_data"].as_str() {
        None | Some("") => wrong("text buttons are unallowed in the inline keyboard"),
        Some(data) if data.len() > DATA_BYTES_MAX => Err(Answer::bad_request("BUTTON_DATA_INVALID")),
        Some(_) => Ok(()),
    }
}

/// The `callback_data` of the button with this label.
pub(crate) fn data_of(markup: Option<&Value>, label: &str) -> Option<String> {
    let rows = markup?["inline_keyboard"].as_array()?;
    let mut buttons = rows.iter().filter_map(Value::as_array).flatten();
    let button = buttons.find(|button| button["text"] == label)?;
    button["callback_data"].as_str().map(str::to_owned)
}

/// The labels of all buttons, in reading order.
pub(crate) fn labels(markup: Option<&Value>) -> Vec<String> {
    let rows = markup.and_then(|markup| markup["inline_keyboard"].as_array());
    let buttons = rows.into_iter().flatten().filter_map(Value::as_array).flatten();
    buttons.filter_map(|button| button["text"].as_str()).map(str::to_owned).collect()
}
