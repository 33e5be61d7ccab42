use std::fmt;

use bellwire_core::person::one_line;

use super::header;

/// The longest address, and the longest part before the @, in bytes (RFC 5321, 4.5.3.1).
const ADDRESS_MAX: usize = 254;
const LOCAL_MAX: usize = 64;
/// The longest name beside an address, in characters.
const NAME_MAX: usize = 100;
/// How many characters of an invalid text an error repeats.
const SHOWN_MAX: usize = 60;

/// One address, `ada@example.org`. Nothing in it can end a line, start another address or leave its angle brackets.
///
/// The domain is kept in its ASCII form, so that every server understands it.
///
/// ```
/// use bellwire_server::channels::email::EmailAddress;
///
/// assert_eq!(EmailAddress::parse("Ada@Bücher.example")?.to_string(), "Ada@xn--bcher-kva.example");
/// assert!(EmailAddress::parse("ada@example.org, eve@example.org").is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EmailAddress {
    local: String,
    domain: String,
}

/// An address with an optional display name: `Bellwire <bell@example.org>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedAddress {
    /// The display name, on one line.
    pub name: Option<String>,
    /// The address.
    pub address: EmailAddress,
}

impl EmailAddress {
    /// Parses one bare address. The error says what is wrong and what to write.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("'{}' {why}; write one address, like ada@example.org", shown(text));
        let bare = text.trim_matches(' ');
        if bare.chars().any(char::is_control) {
            return Err(wrong("has a control character or a line break in it"));
        }
        let Some((local, domain)) = bare.rsplit_once('@') else { return Err(wrong("has no @")) };
        check_local(local).map_err(wrong)?;
        // The strict form has the limits of DNS: letters, digits, hyphens, 63 bytes per label, 253 in all.
        let domain = idna::domain_to_ascii_strict(domain).ok().filter(|domain| !domain.is_empty());
        let domain = domain.ok_or_else(|| wrong("has no domain name behind the @ that could exist"))?;
        let address = Self { local: local.to_owned(), domain };
        match address.to_string().len() {
            ..=ADDRESS_MAX => Ok(address),
            length => Err(wrong(&format!("has {length} characters, and {ADDRESS_MAX} are the most"))),
        }
    }

    /// The part after the @, in ASCII (punycode).
    pub fn domain(&self) -> &str {
        &self.domain
    }
}

impl NamedAddress {
    /// Parses `Name <address>`, `"Name, with comma" <address>` or a bare address.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let Some((name, address)) = text.strip_suffix('>').and_then(|text| text.rsplit_once('<')) else {
            return Ok(Self { name: None, address: EmailAddress::parse(text)? });
        };
        let name = one_line(&unquoted(name.trim()));
        if name.chars().count() > NAME_MAX {
            return Err(format!("the name '{}' is longer than {NAME_MAX} characters", shown(&name)));
        }
        Ok(Self { name: Some(name).filter(|name| !name.is_empty()), address: EmailAddress::parse(address)? })
    }
}

impl fmt::Display for EmailAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.local, self.domain)
    }
}

/// The form that [`NamedAddress::parse`] accepts, for a configuration file.
impl fmt::Display for NamedAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            None => write!(f, "{}", self.address),
            Some(name) if name.chars().all(|c| c.is_alphanumeric() || c == ' ') => {
                write!(f, "{name} <{}>", self.address)
            }
            Some(name) => write!(f, "{} <{}>", header::quoted(name), self.address),
        }
    }
}

/// Accepts only the unquoted form: runs of allowed characters with single dots between. Quoted local parts are legal but
/// almost unused, and parsers disagree about them, so that one address could be read as two.
fn check_local(local: &str) -> Result<(), &'static str> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~.".contains(c);
    match local {
        "" => Err("has nothing before the @"),
        local if local.len() > LOCAL_MAX => Err("has more than 64 characters before the @"),
        local if local.contains([',', ';', '@']) => Err("is more than one address"),
        local if local.contains(['<', '>']) => Err("has a name or brackets around it"),
        local if !local.is_ascii() => Err("has letters beyond ASCII before the @, which few servers take"),
        local if !local.chars().all(plain) => Err("has characters before the @ that need quotes"),
        local if local.starts_with('.') || local.ends_with('.') || local.contains("..") => {
            Err("has a dot at the edge of the part before the @, or two in a row")
        }
        _ => Ok(()),
    }
}

fn unquoted(name: &str) -> String {
    let Some(inside) = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) else { return name.to_owned() };
    let mut characters = inside.chars();
    let mut plain = String::new();
    while let Some(character) = characters.next() {
        plain.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    plain
}

fn shown(text: &str) -> String {
    text.chars().take(SHOWN_MAX).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_addresses_are_accepted() {
        for (text, read) in [
            ("ada@example.org", "ada@example.org"),
            (" ada@example.org ", "ada@example.org"),
            ("Ada.Lovelace+bell@EXAMPLE.org", "Ada.Lovelace+bell@example.org"),
            ("o'brien_{x}@mail.example.co.uk", "o'brien_{x}@mail.example.co.uk"),
            ("bellwire@localhost", "bellwire@localhost"),
            ("ada@例え.jp", "ada@xn--r8jz45g.jp"),
        ] {
            assert_eq!(EmailAddress::parse(text).map(|address| address.to_string()), Ok(read.to_owned()), "{text}");
        }
    }

    #[test]
    fn anything_but_one_address_is_refused_with_the_reason() {
        let long = format!("{}@example.org", "x".repeat(65));
        let longer = format!("{}@{}.org", "x".repeat(64), vec!["y".repeat(60); 4].join("."));
        for (text, why) in [
            ("", "has no @"),
            ("ada", "has no @"),
            ("@example.org", "nothing before the @"),
            ("ada@", "no domain name"),
            ("ada@example..org", "no domain name"),
            ("ada@exa mple.org", "no domain name"),
            ("ada@[127.0.0.1]", "no domain name"),
            ("ada@-x.org", "no domain name"),
            ("ada@example.org>", "no domain name"),
            ("ada@example.org\r\nBcc: eve@example.org", "line break"),
            ("ada\0@example.org", "control character"),
            ("ada@example.org,eve@example.org", "more than one address"),
            ("Ada <ada@example.org", "brackets"),
            ("\"ada\"@example.org", "need quotes"),
            ("a b@example.org", "need quotes"),
            ("ädä@example.org", "beyond ASCII"),
            (".ada@example.org", "a dot"),
            ("a..da@example.org", "a dot"),
            (&long, "more than 64"),
            (&longer, "254 are the most"),
        ] {
            let error = EmailAddress::parse(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
            assert!(error.ends_with("write one address, like ada@example.org"), "{error}");
            assert!(!error.contains(['\r', '\n', '\0']), "{error}");
        }
    }

    #[test]
    fn a_display_name_is_parsed_and_printed_with_any_characters() {
        for (text, name) in [
            ("ada@example.org", None),
            ("<ada@example.org>", None),
            ("Ada Lovelace <ada@example.org>", Some("Ada Lovelace")),
            ("\"Lovelace, Ada\" <ada@example.org>", Some("Lovelace, Ada")),
            ("\"a \\\"b\\\" \\\\ c\" <ada@example.org>", Some("a \"b\" \\ c")),
            ("Zoë\u{202e} <ada@example.org>", Some("Zoë")),
        ] {
            let mailbox = NamedAddress::parse(text).expect(text);
            assert_eq!(mailbox.name.as_deref(), name, "{text}");
            assert_eq!(NamedAddress::parse(&mailbox.to_string()), Ok(mailbox), "{text} is read again as it is written");
        }
        assert!(NamedAddress::parse("Bellwire").is_err());
        assert!(NamedAddress::parse(&format!("{} <ada@example.org>", "x".repeat(101))).is_err());
    }
}
