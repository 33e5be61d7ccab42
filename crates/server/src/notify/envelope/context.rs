use std::borrow::Cow;

use bellwire_core::notify::RequestContext;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;

/// A request_context on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WireContext(pub(crate) RequestContext);

impl<'de> Deserialize<'de> for WireContext {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        RequestContext::parse(&value).map(Self).map_err(D::Error::custom)
    }
}

impl Serialize for WireContext {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let context = &self.0;
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("request_id", &context.request_id)?;
        fields.serialize_entry("source_channel", &context.source_channel)?;
        fields.serialize_entry("source_endpoint_identity", &context.source_endpoint_identity)?;
        fields.serialize_entry("source_sender_identity", &context.source_sender_identity)?;
        if let Some(thread) = &context.source_thread_identity {
            fields.serialize_entry("source_thread_identity", thread)?;
        }
        if let Some(at) = &context.received_at {
            fields.serialize_entry("received_at", at)?;
        }
        fields.end()
    }
}

impl JsonSchema for WireContext {
    fn schema_name() -> Cow<'static, str> {
        "RequestContext".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let schema = crate::tools::object_schema(RequestContext::FIELDS);
        Schema::try_from(schema).unwrap_or_else(|_| json_schema!(true))
    }
}
