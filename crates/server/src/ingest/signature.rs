//! Authenticates a call by its headers and its raw body.

use axum::http::{HeaderMap, HeaderName};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bellwire_core::Time;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::config::Secret;

/// Why a call is not authentic. It never contains what was sent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The header that is missing or wrong.
    pub header: &'static str,
    /// What is wrong with it, and the fix.
    pub message: &'static str,
}

/// How far the time of a call of Standard Webhooks may be from the hub's.
const TOLERANCE_MS: i64 = 5 * 60 * 1000;
/// How many signatures of one call are compared.
const SIGNATURES_MAX: usize = 16;

const GITHUB: &str = "X-Hub-Signature-256";
const AUTHORIZATION: &str = "Authorization";
const STANDARD: [&str; 3] = ["webhook-id", "webhook-timestamp", "webhook-signature"];

/// `X-Hub-Signature-256: sha256=HEX`, an HMAC of the raw body.
pub(super) fn github(headers: &HeaderMap, body: &[u8], secrets: &[Secret]) -> Result<(), Refusal> {
    let missing =
        Refusal { header: GITHUB, message: "is missing: enter the source's secret in the webhook's settings" };
    let sent = single(headers, GITHUB).ok_or(missing)?;
    let wrong = Refusal { header: GITHUB, message: "is not the signature of this body with the source's secret" };
    let signature = sent.strip_prefix("sha256=").and_then(from_hex).ok_or(wrong)?;
    let is_signed = |secret: &Secret| mac(secret.reveal().as_bytes(), &[body]).verify_slice(&signature).is_ok();
    secrets.iter().any(is_signed).then_some(()).ok_or(wrong)
}

/// The three headers of Standard Webhooks: an HMAC of id, time and raw body. Returns the id, which the signature covers.
pub(super) fn standard(headers: &HeaderMap, body: &[u8], keys: &[Vec<u8>], now: Time) -> Result<String, Refusal> {
    let header = |at: usize| {
        let missing = Refusal { header: STANDARD[at], message: "is missing, or there twice" };
        single(headers, STANDARD[at]).filter(|text| !text.is_empty()).ok_or(missing)
    };
    let (id, time, signatures) = (header(0)?, header(1)?, header(2)?);
    let wrong = |at: usize, message| Refusal { header: STANDARD[at], message };
    let seconds: i64 = time.parse().map_err(|_| wrong(1, "is no number of seconds since 1970"))?;
    let away = seconds.saturating_mul(1000).saturating_sub(now.as_millis());
    if away.saturating_abs() > TOLERANCE_MS {
        return Err(wrong(
            1,
            "is more than five minutes from the hub's clock: a replay, or one of the clocks is wrong",
        ));
    }
    let sent = signatures.split(' ').take(SIGNATURES_MAX).filter_map(|one| one.strip_prefix("v1,"));
    let sent: Vec<Vec<u8>> = sent.filter_map(|one| BASE64_STANDARD.decode(one).ok()).collect();
    let is_signed = |key: &Vec<u8>| {
        let signed = mac(key, &[id.as_bytes(), b".", time.as_bytes(), b".", body]);
        sent.iter().any(|one| signed.clone().verify_slice(one).is_ok())
    };
    let unsigned = wrong(2, "has no signature of version v1 of this call with the source's secret");
    keys.iter().any(is_signed).then(|| id.to_owned()).ok_or(unsigned)
}

/// The secret itself: in the named header, else as `Authorization: Bearer SECRET`.
pub(super) fn bearer(headers: &HeaderMap, header: Option<&str>, secrets: &[Secret]) -> Result<(), Refusal> {
    let (sent, named) = match header {
        Some(header) => (single(headers, header), "(the header with the secret)"),
        None => (single(headers, AUTHORIZATION).and_then(token), AUTHORIZATION),
    };
    let missing = Refusal { header: named, message: "is missing or of another form: send the source's secret" };
    let wrong = Refusal { header: named, message: "is not the source's secret" };
    // Hashes have the same length, so that the comparison does not reveal the secret's.
    let sent = Sha256::digest(sent.ok_or(missing)?.as_bytes());
    let is_secret = |secret: &Secret| bool::from(Sha256::digest(secret.reveal().as_bytes()).ct_eq(&sent));
    secrets.iter().any(is_secret).then_some(()).ok_or(wrong)
}

fn token(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The value of a header that is there once, as text.
pub(super) fn single<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let name: HeaderName = name.parse().ok()?;
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

fn mac(key: &[u8], parts: &[&[u8]]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    parts.iter().for_each(|part| mac.update(part));
    mac
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pair = |pair: &[u8]| Some(digit(pair[0])? << 4 | digit(pair[1])?);
    (bytes.len() == 64).then(|| bytes.chunks_exact(2).map(pair).collect::<Option<Vec<u8>>>())?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(all: &[(&'static str, &str)]) -> HeaderMap {
        all.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().expect("a value"))).collect()
    }

    /// The example of GitHub's documentation.
    const GITHUB_BODY: &[u8] = b"Hello, World!";
    const GITHUB_SIGNATURE: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    #[test]
    fn githubs_example_is_authentic_and_nothing_else() {
        let secrets = [Secret::new("an older secret of it"), Secret::new("It's a Secret to Everybody")];
        let check = |value: &str, body: &[u8]| github(&headers(&[("x-hub-signature-256", value)]), body, &secrets);
        assert_eq!(check(GITHUB_SIGNATURE, GITHUB_BODY), Ok(()));
        assert_eq!(check(&GITHUB_SIGNATURE.to_uppercase().replace("SHA", "sha"), GITHUB_BODY), Ok(()));
        let one_off = GITHUB_SIGNATURE.replace("e17", "e18");
        let bare = GITHUB_SIGNATURE.trim_start_matches("sha256=");
        for wrong in [&one_off, bare, "", "sha256=", "sha256=é", "sha1=757107ea", &GITHUB_SIGNATURE[..70]] {
            assert!(check(wrong, GITHUB_BODY).is_err(), "{wrong}");
        }
        assert!(check(GITHUB_SIGNATURE, b"Hello, World").is_err());
        assert!(github(&HeaderMap::new(), GITHUB_BODY, &secrets).is_err());
        let twice = headers(&[("x-hub-signature-256", GITHUB_SIGNATURE), ("x-hub-signature-256", GITHUB_SIGNATURE)]);
        assert_eq!(twice.len(), 2);
        assert!(github(&twice, GITHUB_BODY, &secrets).is_err());
        assert!(github(&headers(&[("x-hub-signature-256", GITHUB_SIGNATURE)]), GITHUB_BODY, &[]).is_err());
    }

    /// The example of the reference implementations of Standard Webhooks.
    const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
    const AT: i64 = 1_614_265_330;
    const BODY: &[u8] = br#"{"test": 2432232314}"#;
    const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

    #[test]
    fn the_example_of_standard_webhooks_is_authentic_for_five_minutes() {
        let keys = [crate::config::signing_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").expect("a key")];
        let check = |signature: &str, seconds: i64, body: &[u8]| {
            let sent = [("webhook-id", ID), ("webhook-timestamp", "1614265330"), ("webhook-signature", signature)];
            standard(&headers(&sent), body, &keys, Time::from_millis((AT + seconds) * 1000))
        };
        assert_eq!(check(SIGNATURE, 0, BODY), Ok(ID.to_owned()));
        for seconds in [-300, 300] {
            assert!(check(SIGNATURE, seconds, BODY).is_ok(), "{seconds}");
        }
        for seconds in [-301, 301, i64::MAX / 4000] {
            assert_eq!(check(SIGNATURE, seconds, BODY).expect_err("too far").header, "webhook-timestamp");
        }
        let several = format!("v1a,{} v2,x v1,AAAA {SIGNATURE}", &SIGNATURE[3..]);
        assert!(check(&several, 0, BODY).is_ok());
        let many = format!("{} {SIGNATURE}", vec!["v1,AAAA"; 16].join(" "));
        for wrong in [&SIGNATURE[3..], &SIGNATURE.replace("v1", "v2"), "v1,", "v1,AAAA", &many] {
            assert_eq!(check(wrong, 0, BODY).expect_err(wrong).header, "webhook-signature");
        }
        assert!(check(SIGNATURE, 0, br#"{"test":2432232314}"#).is_err());
    }

    #[test]
    fn a_time_that_is_no_time_is_refused() {
        for time in ["", "soon", "1614265330.5", "99999999999999999999", "-9223372036854775808", "9223372036854775807"]
        {
            let sent = headers(&[("webhook-id", ID), ("webhook-timestamp", time), ("webhook-signature", SIGNATURE)]);
            let refusal = standard(&sent, BODY, &[vec![0; 24]], Time::from_millis(AT * 1000)).expect_err(time);
            assert_eq!(refusal.header, "webhook-timestamp", "{time}");
        }
    }

    #[test]
    fn a_bearer_is_compared_whole() {
        let secrets = [Secret::new("0123456789abcdef")];
        let check = |value: &str| bearer(&headers(&[("authorization", value)]), None, &secrets);
        assert_eq!(check("Bearer 0123456789abcdef"), Ok(()));
        assert_eq!(check("bearer  0123456789abcdef"), Ok(()));
        for wrong in ["0123456789abcdef", "Basic 0123456789abcdef", "Bearer 0123456789abcde", "Bearer ", "Bearer"] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
        let other = headers(&[("x-gitlab-token", "0123456789abcdef"), ("authorization", "Bearer 0123456789abcdef")]);
        assert_eq!(bearer(&other, Some("x-gitlab-token"), &secrets), Ok(()));
        assert!(bearer(&other, Some("x-other"), &secrets).is_err());
    }
}
