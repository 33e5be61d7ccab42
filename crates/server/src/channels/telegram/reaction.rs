//! The emoji that Telegram allows bots to react with.

/// As Telegram lists them, without variation selectors. A check mark and a cross are not among them.
const ALLOWED: [&str; 73] = [
    "👍",
    "👎",
    "❤",
    "🔥",
    "🥰",
    "👏",
    "😁",
    "🤔",
    "🤯",
    "😱",
    "🤬",
    "😢",
    "🎉",
    "🤩",
    "🤮",
    "💩",
    "🙏",
    "👌",
    "🕊",
    "🤡",
    "🥱",
    "🥴",
    "😍",
    "🐳",
    "❤\u{200d}🔥",
    "🌚",
    "🌭",
    "💯",
    "🤣",
    "⚡",
    "🍌",
    "🏆",
    "💔",
    "🤨",
    "😐",
    "🍓",
    "🍾",
    "💋",
    "🖕",
    "😈",
    "😴",
    "😭",
    "🤓",
    "👻",
    "👨\u{200d}💻",
    "👀",
    "🎃",
    "🙈",
    "😇",
    "😨",
    "🤝",
    "✍",
    "🤗",
    "🫡",
    "🎅",
    "🎄",
    "☃",
    "💅",
    "🤪",
    "🗿",
    "🆒",
    "💘",
    "🙉",
    "🦄",
    "😘",
    "💊",
    "🙊",
    "😎",
    "👾",
    "🤷\u{200d}♂",
    "🤷",
    "🤷\u{200d}♀",
    "😡",
];

/// The emoji in the form that Telegram accepts. The error lists what is allowed.
pub(crate) fn normalized(emoji: &str) -> Result<&'static str, String> {
    let plain: String = emoji.trim().chars().filter(|c| *c != '\u{fe0f}').collect();
    ALLOWED.into_iter().find(|allowed| *allowed == plain).ok_or_else(|| {
        let shown: String = emoji.trim().chars().filter(|c| !c.is_control()).take(16).collect();
        format!("Invalid emoji '{shown}': Telegram does not allow it as a reaction; use one of {}", ALLOWED.join(" "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_that_of_the_stand_in() {
        let mut ours = ALLOWED;
        let mut theirs = telegram_standin::ALLOWED_REACTIONS;
        ours.sort_unstable();
        theirs.sort_unstable();
        assert_eq!(ours, theirs);
    }

    #[test]
    fn a_variation_selector_is_removed_and_a_joiner_stays() {
        assert_eq!(normalized("❤\u{fe0f}"), Ok("❤"));
        assert_eq!(normalized(" 👍 "), Ok("👍"));
        assert_eq!(normalized("❤\u{fe0f}\u{200d}🔥"), Ok("❤\u{200d}🔥"));
        assert_eq!(normalized("🤷\u{200d}♂\u{fe0f}"), Ok("🤷\u{200d}♂"));
    }

    #[test]
    fn what_telegram_refuses_is_refused_before_it_is_sent() {
        for emoji in ["✅", "❌", "", "👍👍", "ok", "\u{202e}👍"] {
            let said = normalized(emoji).expect_err(emoji);
            assert!(said.contains("👍 👎 ❤"), "{said}");
        }
    }
}
