//! The rows of people's tables: their columns, and how a row is read.

use bellwire_core::person::ChannelName;
use bellwire_core::{NotificationId, Time};
use sqlx::sqlite::SqliteRow;

use super::damaged;
use super::read::{column, parse_json, uuid};
use super::rows::{optional, time};
use crate::error::StoreError;
use crate::people::{
    Delivery, DeliveryContent, DeliveryState, Hold, InboxItem, InboxItemKind, InboxItemType, Reminder,
};

/// The columns of [`inbox_item`].
pub(super) const INBOX: &str = "SELECT user_id, id, shelf, type, origin, conversation_id, title, message, toast_json, \
                     correlation_id, created_at, read_at, dismissed_at, acted_json, created_sequence, \
                     changed_sequence, source, template_error, repeats FROM inbox WHERE ";
/// The columns of [`delivery`].
pub(super) const DELIVERIES: &str = "SELECT id, notification_id, user_id, channel, target, state, reason, attempts, not_before, \
                          lease_until, fence, letter_id, created_at, ended_at, held_by, is_direct, progress \
                          FROM deliveries WHERE ";
/// The columns of [`reminder`].
pub(super) const REMINDERS: &str = "SELECT id, user_id, origin, conversation_id, message, type, asked, at, due_at, \
                         correlation_id, created_at, ended_at, notification_id, source, template_error, repeats \
                         FROM reminders WHERE ";

pub(super) fn inbox_item(row: &SqliteRow) -> Result<InboxItem, StoreError> {
    let toast: Option<&str> = column(row, 8)?;
    Ok(InboxItem {
        user_id: column(row, 0)?,
        id: NotificationId(uuid(row, 1)?),
        kind: InboxItemKind::parse(column(row, 2)?).ok_or_else(|| damaged("inbox.shelf"))?,
        item_type: InboxItemType::parse(column(row, 3)?).ok_or_else(|| damaged("inbox.type"))?,
        origin: column(row, 4)?,
        conversation_id: column(row, 5)?,
        title: column(row, 6)?,
        message: column(row, 7)?,
        toast: toast.map(|text| parse_json(text, "inbox.toast_json")).transpose()?,
        correlation_id: column(row, 9)?,
        created_at: Time::from_millis(column(row, 10)?),
        read_at: time(row, 11)?,
        dismissed_at: time(row, 12)?,
        acted: parse_json(column(row, 13)?, "inbox.acted_json")?,
        created_sequence: column(row, 14)?,
        changed_sequence: column(row, 15)?,
        source: column(row, 16)?,
        template_error: column(row, 17)?,
        repeats: repeats(row, 18)?,
    })
}

pub(super) fn delivery(row: &SqliteRow) -> Result<Delivery, StoreError> {
    Ok(Delivery {
        id: uuid(row, 0)?,
        content: DeliveryContent::of_row(optional(row, 1)?.map(NotificationId), column::<i64>(row, 15)? != 0),
        user_id: column(row, 2)?,
        channel: channel(row, 3)?,
        target: column(row, 4)?,
        state: DeliveryState::parse(column(row, 5)?).ok_or_else(|| damaged("deliveries.state"))?,
        reason: column(row, 6)?,
        attempts: u32::try_from(column::<i64>(row, 7)?).unwrap_or(u32::MAX),
        not_before: Time::from_millis(column(row, 8)?),
        lease_until: time(row, 9)?,
        fence: column(row, 10)?,
        message_id: optional(row, 11)?,
        created_at: Time::from_millis(column(row, 12)?),
        ended_at: time(row, 13)?,
        held_by: held_by(column(row, 14)?)?,
        progress: column(row, 16)?,
    })
}

fn channel(row: &SqliteRow, index: usize) -> Result<ChannelName, StoreError> {
    ChannelName::parse(column(row, index)?).map_err(|_| damaged("deliveries.channel"))
}

fn held_by(code: Option<&str>) -> Result<Option<Hold>, StoreError> {
    code.map(|code| Hold::parse(code).ok_or_else(|| damaged("deliveries.held_by"))).transpose()
}

pub(super) fn reminder(row: &SqliteRow) -> Result<Reminder, StoreError> {
    Ok(Reminder {
        id: uuid(row, 0)?,
        user_id: column(row, 1)?,
        origin: column(row, 2)?,
        conversation_id: column(row, 3)?,
        message: column(row, 4)?,
        item_type: InboxItemType::parse(column(row, 5)?).ok_or_else(|| damaged("reminders.type"))?,
        asked: column::<i64>(row, 6)? != 0,
        at: Time::from_millis(column(row, 7)?),
        due_at: Time::from_millis(column(row, 8)?),
        correlation_id: column(row, 9)?,
        created_at: Time::from_millis(column(row, 10)?),
        ended_at: time(row, 11)?,
        notification_id: optional(row, 12)?.map(NotificationId),
        source: column(row, 13)?,
        template_error: column(row, 14)?,
        repeats: repeats(row, 15)?,
    })
}

fn repeats(row: &SqliteRow, index: usize) -> Result<u32, StoreError> {
    u32::try_from(column::<i64>(row, index)?).map_err(|_| damaged("repeats"))
}
