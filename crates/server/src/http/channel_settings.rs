//! The settings of the channels on the wire: one object for each registered channel, with the field names of its
//! [`SettingsShape`]. Reads and describes them; knows no particular channel.

use std::collections::BTreeMap;

use bellwire_core::person::{ChannelChange, ChannelName, ChannelSettings, PersonSettings};
use serde_json::{Map, Value, json};

use super::ApiError;
use super::body::clipped;
use super::field::{NO_CONTROLS, check_single_line};
use crate::channels::{Channel, Channels, SettingsShape, TargetKind};

/// The field of every channel that says whether the person wants messages on it.
const ENABLED: &str = "enabled";
/// The field of `Settings` and `SettingsChange` after which the channels are described.
const BEFORE: &str = "muted_origins";

/// The settings of all channels of the hub, by name.
pub(super) fn bodies(settings: &PersonSettings, channels: &Channels) -> Map<String, Value> {
    let body = |channel: &dyn Channel| {
        let name = channel.name().to_string();
        let body = body(&settings.channel(&name), channel.settings());
        (name, body)
    };
    channels.iter().map(|channel| body(&**channel)).collect()
}

fn body(settings: &ChannelSettings, shape: &SettingsShape) -> Value {
    let target = settings.target.as_deref().map(|target| match shape.target.kind {
        TargetKind::Text { .. } => json!(target),
        TargetKind::Integer => target.parse::<i64>().map_or(Value::Null, Value::from),
    });
    json!({ ENABLED: settings.enabled, shape.target.name: target, shape.verified.name: settings.verified })
}

/// Reads the channels of a merge patch: `fields` are the fields of the patch that are not known otherwise. `others` are the
/// known ones, for the error about an unknown field.
pub(super) fn changes(
    fields: Map<String, Value>,
    others: &[&str],
    channels: &Channels,
) -> Result<BTreeMap<ChannelName, ChannelChange>, ApiError> {
    let mut changes = BTreeMap::new();
    for (name, value) in fields {
        let Some(channel) = channels.get(&name) else {
            let names: Vec<String> = channels.iter().map(|channel| channel.name().to_string()).collect();
            let known = others.iter().copied().chain(names.iter().map(String::as_str));
            return Err(unknown(&name, &name, known));
        };
        changes.insert(channel.name(), change(&name, value, channel.settings())?);
    }
    Ok(changes)
}

fn change(channel: &str, value: Value, shape: &SettingsShape) -> Result<ChannelChange, ApiError> {
    let object = match value {
        Value::Object(object) => object,
        // In a merge patch null restores the default: off, and no target.
        Value::Null => {
            return Ok(ChannelChange { enabled: Some(false), target: shape.target.is_writable.then_some(None) });
        }
        other => return Err(ApiError::invalid(channel, format!("is {}; a JSON object is allowed", kind_of(&other)))),
    };
    let mut change = ChannelChange::default();
    for (key, value) in object {
        let field = clipped(&format!("{channel}.{key}"));
        match key.as_str() {
            ENABLED => change.enabled = Some(enabled(&field, &value)?),
            key if key == shape.target.name && shape.target.is_writable => {
                change.target = Some(target(&field, value, shape)?);
            }
            key if key == shape.target.name || key == shape.verified.name => {
                return Err(ApiError::invalid(&field, "is read-only; leave it out"));
            }
            key => {
                let target = Some(shape.target.name).filter(|_| shape.target.is_writable);
                return Err(unknown(&field, key, [ENABLED].into_iter().chain(target)));
            }
        }
    }
    Ok(change)
}

fn enabled(field: &str, value: &Value) -> Result<bool, ApiError> {
    match value {
        Value::Bool(enabled) => Ok(*enabled),
        Value::Null => Ok(false),
        other => Err(ApiError::invalid(field, format!("is {}; true or false is allowed", kind_of(other)))),
    }
}

fn target(field: &str, value: Value, shape: &SettingsShape) -> Result<Option<String>, ApiError> {
    let invalid = |message: String| ApiError::invalid(field, message);
    let text = match (value, shape.target.kind) {
        (Value::Null, _) => return Ok(None),
        (Value::String(text), TargetKind::Text { max }) => {
            check_single_line(&text, max).map_err(invalid)?;
            text.trim().to_owned()
        }
        (Value::Number(number), TargetKind::Integer) if number.is_i64() => number.to_string(),
        (other, TargetKind::Text { .. }) => return Err(invalid(format!("is {}; a text is allowed", kind_of(&other)))),
        (other, TargetKind::Integer) => return Err(invalid(format!("is {}; an integer is allowed", kind_of(&other)))),
    };
    (shape.target.parse)(&text).map(Some).map_err(invalid)
}

fn unknown<'a>(field: &str, name: &str, known: impl Iterator<Item = &'a str>) -> ApiError {
    let known: Vec<String> = known.map(|name| format!("`{name}`")).collect();
    ApiError::invalid(clipped(field), clipped(&format!("unknown field `{name}`, expected one of {}", known.join(", "))))
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Adds the channels to the schemas of settings, and to the examples.
pub(super) fn describe(schemas: &mut Map<String, Value>, channels: &Channels) {
    let (mut settings, mut changes, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for channel in channels.iter() {
        let (name, shape) = (channel.name().to_string(), channel.settings());
        let title = capitalized(&name);
        schemas.insert(format!("{title}Settings"), settings_schema(shape));
        schemas.insert(format!("{title}Change"), change_schema(shape));
        let reference = |schema: String| json!({ "$ref": format!("#/components/schemas/{schema}") });
        settings.push((name.clone(), reference(format!("{title}Settings"))));
        let change = json!({ "anyOf": [reference(format!("{title}Change")), { "type": "null" }] });
        changes.push((name.clone(), change));
        names.push(name);
    }
    let read = schemas.get_mut("Settings").expect("the route table uses Settings");
    insert_properties(read, settings);
    let required = read["required"].as_array_mut().expect("a response has required fields");
    let at = required.iter().position(|name| name == BEFORE).map_or(0, |at| at + 1);
    required.splice(at..at, names.iter().map(|name| json!(name)));
    for channel in channels.iter() {
        read["examples"][0][channel.name().as_str()] = example(channel.settings());
    }
    let change = schemas.get_mut("SettingsChange").expect("the route table uses SettingsChange");
    insert_properties(change, changes);
    change["additionalProperties"] = json!(false);
    if let Some(first) = names.first() {
        change["examples"][0][first] = json!({ ENABLED: true });
    }
}

fn settings_schema(shape: &SettingsShape) -> Value {
    let mut target = match shape.target.kind {
        TargetKind::Text { .. } => json!({ "type": ["string", "null"] }),
        TargetKind::Integer => json!({ "type": ["integer", "null"], "format": "int64" }),
    };
    target["description"] = json!(shape.target.description);
    json!({
        "type": "object",
        "properties": {
            ENABLED: { "type": "boolean", "description": "Whether it is enabled." },
            shape.target.name: target,
            shape.verified.name: { "type": "boolean", "description": shape.verified.description },
        },
        "required": [ENABLED, shape.target.name, shape.verified.name],
        "description": shape.description,
    })
}

fn change_schema(shape: &SettingsShape) -> Value {
    let mut properties = Map::new();
    properties
        .insert(ENABLED.to_owned(), json!({ "type": ["boolean", "null"], "description": "Whether it is enabled." }));
    if shape.target.is_writable {
        let mut target = match shape.target.kind {
            TargetKind::Text { max } => {
                json!({ "type": ["string", "null"], "minLength": 1, "maxLength": max, "pattern": NO_CONTROLS })
            }
            TargetKind::Integer => json!({ "type": ["integer", "null"], "format": "int64" }),
        };
        target["description"] = json!(shape.target.description);
        properties.insert(shape.target.name.to_owned(), target);
    }
    json!({
        "type": "object", "additionalProperties": false, "properties": properties, "description": shape.description,
    })
}

fn example(shape: &SettingsShape) -> Value {
    let settings = match shape.target.is_writable {
        true => ChannelSettings { enabled: true, target: Some(shape.target.example.to_owned()), verified: true },
        false => ChannelSettings::default(),
    };
    body(&settings, shape)
}

fn insert_properties(schema: &mut Value, new: Vec<(String, Value)>) {
    let Some(properties) = schema["properties"].as_object_mut() else { return };
    let mut new = Some(new);
    for (name, property) in std::mem::take(properties) {
        let is_place = name == BEFORE;
        properties.insert(name, property);
        if is_place {
            properties.extend(new.take().into_iter().flatten());
        }
    }
}

/// `pigeon_post` becomes `PigeonPost`.
fn capitalized(name: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect::<String>()
    };
    name.split('_').map(capital).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channels::{TargetField, Verification, VerifiedField};

    static PIGEON: SettingsShape = SettingsShape {
        display_name: "Pigeon",
        description: "Pigeons.",
        target: TargetField {
            name: "roof",
            description: "The number of the roof.",
            kind: TargetKind::Integer,
            is_writable: true,
            example: "7",
            parse: |text| match text.starts_with('-') {
                true => Err(format!("{text} is below the ground")),
                false => Ok(text.to_owned()),
            },
        },
        verified: VerifiedField { name: "trained", description: "Whether pigeons find it." },
        verification: Verification::Code,
    };

    fn read(value: Value) -> Result<ChannelChange, (Option<String>, String)> {
        change("pigeon", value, &PIGEON).map_err(|error| (error.field, error.message))
    }

    #[test]
    fn a_patch_is_read_by_the_shape_and_every_error_names_its_field() {
        let set = |enabled, target: Option<Option<&str>>| {
            Ok(ChannelChange { enabled, target: target.map(|target| target.map(str::to_owned)) })
        };
        assert_eq!(read(json!({"enabled": true, "roof": 7})), set(Some(true), Some(Some("7"))));
        assert_eq!(read(json!({"enabled": null, "roof": null})), set(Some(false), Some(None)));
        assert_eq!(read(json!({})), set(None, None));
        assert_eq!(read(Value::Null), set(Some(false), Some(None)));
        let wrong = [
            (json!("on"), "pigeon", "is a text; a JSON object is allowed"),
            (json!({"enabled": "yes"}), "pigeon.enabled", "is a text; true or false is allowed"),
            (json!({"roof": "7"}), "pigeon.roof", "is a text; an integer is allowed"),
            (json!({"roof": 1.5}), "pigeon.roof", "is a number; an integer is allowed"),
            (json!({"roof": -1}), "pigeon.roof", "-1 is below the ground"),
            (json!({"trained": true}), "pigeon.trained", "is read-only; leave it out"),
            (json!({"colour": 1}), "pigeon.colour", "unknown field `colour`, expected one of `enabled`, `roof`"),
        ];
        for (value, field, message) in wrong {
            assert_eq!(read(value), Err((Some(field.to_owned()), message.to_owned())));
        }
    }

    #[test]
    fn the_settings_have_the_names_and_types_of_the_shape() {
        let settings = ChannelSettings { enabled: true, target: Some("7".into()), verified: false };
        assert_eq!(body(&settings, &PIGEON), json!({"enabled": true, "roof": 7, "trained": false}));
        assert_eq!(capitalized("pigeon_post"), "PigeonPost");
    }
}
