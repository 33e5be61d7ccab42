use std::cmp::Reverse;

/// Replaces an address.
const PLACEHOLDER: &str = "[address]";

/// Replaces every `local@domain` in the text, and the local part of `target` where it stands alone, by `[address]`. For
/// replies of mail servers that are shown to agents or logged: servers repeat the recipient in full, without its
/// domain, without its tag (`ada` of `ada+bell@example.org`), or name the address they forward to.
///
/// ```
/// use bellwire_core::person::without_addresses;
///
/// let reply = "550 <Ada@example.org>: no mailbox 'ada' here";
/// assert_eq!(without_addresses(reply, "ada@example.org"), "550 <[address]>: no mailbox '[address]' here");
/// ```
pub fn without_addresses(text: &str, target: &str) -> String {
    let local = target.rsplit_once('@').map_or(target, |(local, _)| local).to_ascii_lowercase();
    let untagged = local.split('+').next().unwrap_or_default();
    let mut out = String::with_capacity(text.len());
    for piece in text.split_inclusive(is_delimiter) {
        let word = piece.trim_end_matches(is_delimiter);
        match word.len() > 1 && word.contains('@') {
            true => out.push_str(PLACEHOLDER),
            false => push_without(word, &[&local, untagged], &mut out),
        }
        out.push_str(&piece[word.len()..]);
    }
    out
}

/// Characters that no unquoted address contains.
fn is_delimiter(character: char) -> bool {
    character.is_whitespace() || "<>()[]\",;:".contains(character)
}

/// Appends the word, with each of `names` replaced where no letter or digit adjoins it. Ignores ASCII case.
fn push_without(word: &str, names: &[&str], out: &mut String) {
    let lower = word.to_ascii_lowercase();
    let adjoins = |neighbour: Option<char>| neighbour.is_some_and(char::is_alphanumeric);
    let mut copied = 0;
    while let Some((start, end)) = names
        .iter()
        .filter(|name| !name.is_empty())
        .flat_map(|name| {
            lower[copied..].match_indices(*name).map(|(at, found)| (copied + at, copied + at + found.len()))
        })
        .filter(|(start, end)| !adjoins(word[..*start].chars().next_back()) && !adjoins(word[*end..].chars().next()))
        .min_by_key(|(start, end)| (*start, Reverse(*end)))
    {
        out.push_str(&word[copied..start]);
        out.push_str(PLACEHOLDER);
        copied = end;
    }
    out.push_str(&word[copied..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_the_recipient_is_removed() {
        for reply in [
            "5.1.1 <ada+bell@example.org>: Recipient address rejected",
            "5.1.1 <ADA+BELL@EXAMPLE.ORG>... User unknown",
            "unrouteable address: ada+bell@example.org.",
            "mailto:ada+bell@example.org is full",
            "rfc822;ada+bell@example.org",
            "User <ada+bell> unknown",
            "user 'Ada' unknown",
            "no mailbox \"ada\" here",
            "(ada): no such user",
            "ada: no such user",
            "bounced as list-ada+bell=example.org@lists.example",
            "see ada+bell%40example.org",
            "alias ada/ada+bell is full",
            "cannot forward to private.ada@gmail.example",
        ] {
            let safe = without_addresses(reply, "ada+bell@example.org");
            assert!(safe.contains(PLACEHOLDER) && !safe.contains('@'), "{reply}: {safe}");
            assert!(!safe.to_lowercase().contains("ada"), "{reply}: {safe}");
        }
    }

    #[test]
    fn other_text_stays_unchanged() {
        for reply in ["", "452 4.2.2 over quota, adapted @ 12:00", "Canada is full: [x] <y> \u{e9}ada", "a\u{2028}b"] {
            assert_eq!(without_addresses(reply, "ada@example.org"), reply);
        }
        assert_eq!(without_addresses("no a: é", "a@b"), "no [address]: é");
        assert_eq!(without_addresses("no address", "address@b"), "no [address]");
        assert_eq!(without_addresses("no one", ""), "no one");
    }
}
