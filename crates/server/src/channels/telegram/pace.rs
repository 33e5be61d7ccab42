//! Pacing: how soon the next message may go to a chat, and out of the bot.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// From this many chats on, chats without a pending wait are forgotten.
const CHATS_MAX: usize = 10_000;
/// A chat that got no other message for so long has reached no limit of its own: the bot has. Telegram does not say which.
const CHAT_WINDOW: Duration = Duration::from_secs(60);
/// The bot may send this much of its rate at once.
const BURST: Duration = Duration::from_secs(1);

/// Gives out slots. A slot that was given is used up, whether a message is sent or not.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The time between two messages of the bot, on average.
    bot_interval: Duration,
    /// The time between two messages to one chat.
    chat_interval: Duration,
    slots: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    /// When the bot has used up nothing of its rate.
    bot_free_at: Option<Instant>,
    /// Until when the provider wants no message of the bot at all.
    bot_held_until: Option<Instant>,
    chats: HashMap<i64, ChatSlots>,
}

/// The slots of a chat.
#[derive(Copy, Clone, Debug)]
struct ChatSlots {
    /// When it may get its next message.
    free_at: Instant,
    /// The slot of its latest message, and of the one before that.
    last: Option<Instant>,
    before_last: Option<Instant>,
    /// Until when the provider wants no message for it.
    held_until: Option<Instant>,
}

impl Pace {
    /// `per_second` 0 = the bot has no limit.
    pub(crate) fn new(per_second: u64, chat_interval: Duration) -> Self {
        let bot_interval = 1_000_000_000_u64.checked_div(per_second).map(Duration::from_nanos).unwrap_or_default();
        Self { bot_interval, chat_interval, slots: Mutex::default() }
    }

    /// The time between two messages to one chat.
    pub(crate) fn chat_interval(&self) -> Duration {
        self.chat_interval
    }

    /// Waits for a slot, at most `wait_max`. If that is too short, takes none and returns how long it would take.
    pub(crate) async fn slot(&self, chat: i64, wait_max: Duration) -> Result<(), Duration> {
        let deadline = Instant::now() + wait_max;
        loop {
            let now = Instant::now();
            let at = self.reserve(chat, now, deadline.saturating_duration_since(now))?;
            tokio::time::sleep_until(at).await;
            // The provider may have asked for a pause since the slot was taken.
            if !self.is_held(chat, Instant::now()) {
                return Ok(());
            }
        }
    }

    fn is_held(&self, chat: i64, now: Instant) -> bool {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let of_chat = slots.chats.get(&chat).and_then(|slots| slots.held_until);
        slots.bot_held_until.max(of_chat).is_some_and(|held_until| held_until > now)
    }

    /// Holds a chat back, because the provider asked for it; and the whole bot, if the chat cannot be the reason: it got no
    /// other message for a while, or another chat is held back too.
    pub(crate) fn hold(&self, chat: i64, time: Duration) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let until = now + time;
        let is_held = |slots: &ChatSlots| slots.held_until.is_some_and(|held_until| held_until > now);
        let is_other_held = slots.chats.iter().any(|(other, slots)| *other != chat && is_held(slots));
        let of_chat = slots.chats.entry(chat).or_insert(ChatSlots::free(now));
        let is_quiet = of_chat.before_last.is_none_or(|at| now.duration_since(at) >= CHAT_WINDOW);
        of_chat.free_at = until.max(of_chat.free_at);
        of_chat.held_until = Some(until);
        if is_quiet || is_other_held {
            slots.bot_held_until = slots.bot_held_until.max(Some(until));
        }
    }

    fn reserve(&self, chat: i64, now: Instant, wait_max: Duration) -> Result<Instant, Duration> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        let bot_free_at = slots.bot_free_at.map_or(now, |free_at| free_at.max(now));
        let of_chat = slots.chats.get(&chat).copied().unwrap_or(ChatSlots::free(now));
        let held_until = slots.bot_held_until.unwrap_or(now);
        // Below the burst, the bot's rate does not delay.
        let bot_at = bot_free_at.checked_sub(BURST.saturating_sub(self.bot_interval)).map_or(now, |at| at.max(now));
        let at = of_chat.free_at.max(bot_at).max(held_until).max(now);
        let wait = at.duration_since(now);
        if wait > wait_max {
            return Err(wait);
        }
        slots.bot_free_at = Some(bot_free_at + self.bot_interval);
        if slots.chats.len() >= CHATS_MAX {
            slots.chats.retain(|_, slots| !slots.is_idle(now));
        }
        let free_at = at + self.chat_interval;
        slots.chats.insert(chat, ChatSlots { free_at, last: Some(at), before_last: of_chat.last, ..of_chat });
        Ok(at)
    }
}

impl ChatSlots {
    /// A chat that got nothing yet.
    fn free(now: Instant) -> Self {
        Self { free_at: now, last: None, before_last: None, held_until: None }
    }

    /// Whether nothing of it matters any more.
    fn is_idle(&self, now: Instant) -> bool {
        self.free_at <= now && self.last.is_none_or(|at| now.duration_since(at) >= CHAT_WINDOW)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn waits(pace: &Pace, now: Instant, chats: impl IntoIterator<Item = i64>) -> Vec<u128> {
        let slot = |chat| pace.reserve(chat, now, LONG).map(|at| at.duration_since(now).as_millis());
        chats.into_iter().map(|chat| slot(chat).expect("a minute is enough")).collect()
    }

    #[test]
    fn one_chat_gets_one_message_per_interval_and_others_do_not_wait_for_it() {
        let (pace, now) = (Pace::new(30, Duration::from_secs(1)), Instant::now());
        assert_eq!(waits(&pace, now, [1, 1, 1, 2]), [0, 1000, 2000, 0]);
        assert_eq!(waits(&pace, now + Duration::from_millis(2500), [1, 2]), [500, 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slot_that_was_taken_before_a_pause_is_not_used_in_it() {
        let (pace, begun) = (Pace::new(30, Duration::from_secs(1)), Instant::now());
        pace.slot(1, LONG).await.expect("it is free");
        let slots = [pace.slot(1, LONG), pace.slot(1, LONG), pace.slot(1, Duration::from_secs(10))];
        let waiting =
            futures_util::future::join_all(slots.map(|slot| async { (slot.await, begun.elapsed().as_secs()) }));
        let pause = async { pace.hold(1, Duration::from_secs(30)) };
        let (ended, ()) = tokio::join!(waiting, pause);
        let (in_time, too_late): (Vec<_>, Vec<_>) = ended.into_iter().partition(|(slot, _)| slot.is_ok());
        let times: Vec<u64> = in_time.into_iter().map(|(_, at)| at).collect();
        assert!(times.iter().all(|at| *at >= 30) && times.len() == 2, "{times:?}");
        assert!(too_late.len() == 1 && too_late[0].0.is_err_and(|wait| wait.as_secs() >= 25), "{too_late:?}");
    }

    #[test]
    fn the_bot_sends_a_burst_and_then_its_rate() {
        let (pace, now) = (Pace::new(10, Duration::ZERO), Instant::now());
        let mut waited = waits(&pace, now, 0..12);
        assert_eq!(waited.split_off(10), [100, 200]);
        assert_eq!(waited, [0; 10]);
        // After a second without messages, the burst is there again, less the two that were taken ahead.
        assert_eq!(waits(&pace, now + Duration::from_secs(1), 20..29), [0, 0, 0, 0, 0, 0, 0, 0, 100]);
    }

    #[test]
    fn a_wait_that_is_too_long_takes_no_slot() {
        let (pace, now) = (Pace::new(0, Duration::from_secs(3)), Instant::now());
        let short = Duration::from_secs(5);
        assert_eq!(pace.reserve(1, now, short), Ok(now));
        assert_eq!(pace.reserve(1, now, short), Ok(now + Duration::from_secs(3)));
        assert_eq!(pace.reserve(1, now, short), Err(Duration::from_secs(6)));
        assert_eq!(pace.reserve(1, now + Duration::from_secs(1), short), Ok(now + Duration::from_secs(6)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_chat_that_got_several_messages_waits_as_long_as_the_provider_asked() {
        let pace = Pace::new(30, Duration::from_secs(1));
        for _ in 0..2 {
            assert_eq!(pace.slot(1, LONG).await, Ok(()));
        }
        pace.hold(1, Duration::from_secs(7));
        assert_eq!(pace.slot(1, Duration::from_secs(5)).await, Err(Duration::from_secs(7)));
        let before = Instant::now();
        assert_eq!(pace.slot(1, LONG).await, Ok(()));
        assert_eq!(before.elapsed(), Duration::from_secs(7));
        assert_eq!(pace.slot(2, Duration::ZERO).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn the_whole_bot_waits_if_the_chat_cannot_be_the_reason() {
        let short = Duration::from_secs(5);
        let pace = Pace::new(30, Duration::from_secs(1));
        assert_eq!(pace.slot(1, LONG).await, Ok(()));
        pace.hold(1, Duration::from_secs(7));
        assert_eq!(pace.slot(2, short).await, Err(Duration::from_secs(7)), "it got one message only");
        tokio::time::sleep(Duration::from_secs(8)).await;
        assert_eq!(pace.slot(2, Duration::ZERO).await, Ok(()));
        assert_eq!(pace.slot(2, LONG).await, Ok(()));
        pace.hold(2, Duration::from_secs(30));
        assert_eq!(pace.slot(3, Duration::ZERO).await, Ok(()), "the chat may be the reason");
        assert_eq!(pace.slot(3, LONG).await, Ok(()));
        pace.hold(3, Duration::from_secs(9));
        assert_eq!(pace.slot(4, short).await, Err(Duration::from_secs(9)), "two chats at once");
    }

    #[test]
    fn chats_that_need_not_wait_are_forgotten() {
        let (pace, now) = (Pace::new(0, Duration::from_millis(1)), Instant::now());
        for chat in 0..CHATS_MAX as i64 {
            pace.reserve(chat, now, LONG).expect("no wait");
        }
        pace.reserve(-1, now + LONG, LONG).expect("no wait");
        assert_eq!(pace.slots.lock().expect("no panic").chats.len(), 1);
    }
}
