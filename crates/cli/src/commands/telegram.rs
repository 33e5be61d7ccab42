use std::io::Write as _;

use anstyle::{AnsiColor, Color, Style};
use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;
use reqwest::Method;

use crate::authority;
use crate::client::{Connection, segment};
use crate::output::{STRONG, cell, paint, print_json, printable, text};

/// The colours of the QR code, so that scanners can read it also in a terminal with dark letters on a light ground.
const LIGHT_ON_DARK: Style = AnsiColor::BrightWhite.on_default().bg_color(Some(Color::Ansi(AnsiColor::Black)));

/// Connect a person's Telegram chat
#[derive(Args)]
pub(crate) struct TelegramArgs {
    #[command(subcommand)]
    command: TelegramCommand,
}

#[derive(Subcommand)]
enum TelegramCommand {
    Pair(PairArgs),
}

/// Print a code, a link and a QR code that connect a person's Telegram chat with the hub
///
/// The person opens the link or scans the code with a phone, and presses Start; or sends /start and the code to the bot. The
/// code works once, for ten minutes. A newer code replaces it.
#[derive(Args)]
#[command(after_help = "Example:\n  bellwire telegram pair ada")]
struct PairArgs {
    /// The id of the person
    #[arg(value_name = "USER")]
    user: String,
    /// Print the hub's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

pub(crate) fn run(arguments: &TelegramArgs) -> Result<bool> {
    let TelegramCommand::Pair(pair) = &arguments.command;
    let client = authority::client(&pair.connection)?;
    let path = format!("/v1/users/{}/telegram/pair", segment(&pair.user));
    let answer = client.call(Method::POST, &path, None)?;
    if pair.json {
        print_json(&answer)?;
        return Ok(true);
    }
    let mut out = anstream::stdout().lock();
    writeln!(out, "code  {}", paint(STRONG, text(&answer, "code")))?;
    let user = printable(&pair.user);
    match answer["link"].as_str() {
        Some(link) => {
            writeln!(out, "link  {}", printable(link))?;
            writeln!(out)?;
            for line in qr_code(link)?.lines() {
                writeln!(out, "{}", paint(LIGHT_ON_DARK, line))?;
            }
            anstream::eprintln!("{user} opens the link, or scans the code, and presses Start");
        }
        None => {
            anstream::eprintln!("Telegram does not tell the bot's name now; {user} sends /start and the code to it")
        }
    }
    anstream::eprintln!("the code works once, until {}", cell(&answer, "expires_at"));
    Ok(true)
}

/// The link as a QR code of half blocks, light on dark, with the margin that scanners need.
fn qr_code(link: &str) -> Result<String> {
    let code = QrCode::new(link).context("the link is too long for a QR code")?;
    Ok(code.render::<Dense1x2>().dark_color(Dense1x2::Light).light_color(Dense1x2::Dark).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_drawn_as_blocks_with_a_margin() {
        let link = "https://t.me/the_longest_name_of_a_bot_bot?start=AAAAAAAAAAAAAAAAAAAAAA";
        let drawn = qr_code(link).expect("it fits");
        let lines: Vec<&str> = drawn.lines().collect();
        let width = lines[0].chars().count();
        assert!(width <= 60 && lines.iter().all(|line| line.chars().count() == width), "{drawn}");
        // The margin is light, and the corner of the code is not.
        assert!(lines[0].chars().all(|block| block == '█'), "{drawn}");
        assert_ne!(lines[2].chars().nth(4), Some('█'), "{drawn}");
        assert!(drawn.chars().all(|block| "█▀▄ \n".contains(block)), "{drawn}");
    }
}
