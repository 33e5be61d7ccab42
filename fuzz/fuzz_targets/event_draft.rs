//! Any JSON as an event: refused with the field at fault, or an event that keeps what an event promises.

#![no_main]

use bellwire_core::event::EventCause;
use bellwire_core::{EventDraft, Ids, Payload, Time};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(draft) = serde_json::from_slice::<EventDraft>(data) else { return };
    match draft.admit(Time::from_millis(1_000), &mut Ids::seeded(1)) {
        Err(invalid) => assert!(!invalid.field.is_empty() && !invalid.message.is_empty()),
        Ok(event) => {
            assert!(!event.source().as_str().eq_ignore_ascii_case("user"));
            assert_ne!(event.kind().as_str(), "user.message");
            assert_eq!(event.cause(), EventCause::World);
            assert!(event.message().chars().count() <= 201);
            let json = serde_json::to_string(event.payload().as_map()).expect("it came from JSON");
            assert!(json.len() <= Payload::BYTES_MAX);
            assert_eq!(event.payload().fingerprint(&[1; 16]), event.clone().payload().fingerprint(&[1; 16]));
            assert!(!event.timestamp().to_string().is_empty() && event.timestamp().clock().len() == 8);
        }
    }
});
