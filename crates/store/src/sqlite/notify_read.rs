//! Reads the rows of `notify`.

use std::collections::BTreeSet;

use bellwire_core::notify::{ErrorClass, Intent, RequestContext, normalized_target};
use bellwire_core::person::ChannelName;
use bellwire_core::{NotificationId, Time};
use rusqlite::params;
use sqlx::QueryBuilder;
use sqlx::sqlite::{Sqlite as Driver, SqliteRow};
use uuid::Uuid;

use super::prune::first_id_at;
use super::read::{column, first, parse_json, uuid};
use super::rows::{all, found, optional, push_except, time};
use super::{Sqlite, SqliteWriter, damaged, failed, failure, row_count};
use crate::damage::Found;
use crate::error::StoreError;
use crate::executor::NotifyRowSource;
use crate::notify::{
    AnswerCount, ChosenContext, InboundMessage, InboundRow, LedgerDecision, LedgerDraft, LedgerEntry, LedgerQuery,
    NotifyAnswer, NotifyKey, NotifyRow, NotifyState, OriginSums, ReplyContextRow, day_of, sum_up,
};
use crate::single_writer::NotifyReader;

const REQUESTS: &str = "SELECT key, request_id, origin, intent, channel, user_id, on_behalf_of, limit_key, state, fence, \
                        lease_until, answer_json, notification_id, created_at, ended_at, is_passed_on, call_key, \
                        context_json FROM notify_requests WHERE ";
const LEDGER: &str = "SELECT id, origin, user_id, channel, intent, decision, class, reason, notification_id, request_id \
                      FROM ledger WHERE ";

impl NotifyRowSource for SqliteWriter {
    async fn notify_request(&mut self, key: &NotifyKey) -> Result<Option<NotifyRow>, StoreError> {
        let mut sql = QueryBuilder::<Driver>::new(REQUESTS);
        sql.push("key = ").push_bind(key.to_vec());
        Ok(all(sql, &mut self.reading, request).await?.pop())
    }

    async fn lapsed_notify(
        &mut self,
        now: Time,
        limit: usize,
        except: &BTreeSet<String>,
    ) -> Result<Found<NotifyRow>, StoreError> {
        // Runs with every tick and almost never finds a row, so a cheap query comes first.
        let any = "SELECT 1 FROM notify_requests WHERE state IN ('claimed', 'started') AND lease_until <= ?1 LIMIT 1";
        if first(&self.connection, any, [now.as_millis()], |_| Ok(())).map_err(failed)?.is_none() {
            return Ok(Vec::new().into());
        }
        let mut sql = QueryBuilder::<Driver>::new(REQUESTS);
        sql.push("state IN ('claimed', 'started') AND lease_until <= ").push_bind(now.as_millis());
        sql.push(" AND (user_id IS NULL OR (1");
        push_except(&mut sql, except);
        sql.push(")) ORDER BY lease_until LIMIT ").push_bind(row_count(limit));
        found(sql, &mut self.reading, "notify_requests", request).await
    }

    async fn nth_listed(&mut self, limit_key: &NotifyKey, since: Time, nth: usize) -> Result<Option<Time>, StoreError> {
        // The index has all that is needed, so even a high limit is a short walk.
        let sql = "SELECT created_at FROM notify_requests WHERE limit_key = ?1 AND created_at > ?2 \
                   ORDER BY created_at DESC LIMIT 1 OFFSET ?3";
        let values = params![limit_key, since.as_millis(), row_count(nth.saturating_sub(1))];
        first(&self.connection, sql, values, |row| row.get(0).map(Time::from_millis)).map_err(failed)
    }

    async fn answer_count(&mut self, key: &NotifyKey) -> Result<Option<AnswerCount>, StoreError> {
        let sql = "SELECT user_id, used, at FROM answer_counts WHERE key = ?1";
        let count = |row: &rusqlite::Row<'_>| {
            Ok(AnswerCount { user_id: row.get(0)?, used: row.get(1)?, at: Time::from_millis(row.get(2)?) })
        };
        first(&self.connection, sql, [key], count).map_err(failed)
    }

    async fn ledger_count(&mut self, origin: &str, day: i64) -> Result<u64, StoreError> {
        let sql = "SELECT COALESCE(SUM(count), 0) FROM ledger_days WHERE origin = ?1 AND day = ?2";
        let count: i64 = self.connection.query_row(sql, params![origin, day], |row| row.get(0)).map_err(failed)?;
        Ok(u64::try_from(count).unwrap_or(0))
    }
}

impl NotifyReader for Sqlite {
    async fn notify_answer(&self, key: &NotifyKey, since: Time) -> Result<Option<NotifyAnswer>, StoreError> {
        let sql =
            "SELECT answer_json FROM notify_requests WHERE key = $1 AND ended_at > $2 AND answer_json IS NOT NULL";
        let row = sqlx::query(sql).bind(key.to_vec()).bind(since.as_millis());
        let row = row.fetch_optional(&self.pool).await.map_err(failure)?;
        row.map(|row| parse_json(column(&row, 0)?, "notify_requests.answer_json")).transpose()
    }

    async fn ledger(&self, query: &LedgerQuery) -> Result<Vec<LedgerEntry>, StoreError> {
        let mut sql = QueryBuilder::<Driver>::new(LEDGER);
        // One index is used; the other conditions are checked on the rows, so that a page reads a bounded number.
        match (&query.user_id, &query.origin) {
            (Some(user), _) => drop(sql.push("user_id = ").push_bind(user.clone())),
            (None, Some(origin)) => drop(sql.push("origin = ").push_bind(origin.clone())),
            (None, None) => drop(sql.push("1")),
        }
        if let Some(before) = query.before {
            sql.push(" AND id < ").push_bind(before.as_bytes().to_vec());
        }
        if let Some(since) = query.since {
            sql.push(" AND id >= ").push_bind(first_id_at(since).to_vec());
        }
        sql.push(" ORDER BY id DESC LIMIT ").push_bind(row_count(LedgerQuery::SCANNED_MAX));
        all(sql, &mut *self.pool.acquire().await.map_err(failure)?, entry).await
    }

    async fn ledger_sums(&self, origin: Option<&str>, since: Time) -> Result<Vec<OriginSums>, StoreError> {
        let mut sql = QueryBuilder::<Driver>::new("SELECT origin, decision, SUM(count) FROM ledger_days WHERE day >= ");
        sql.push_bind(day_of(since));
        if let Some(origin) = origin {
            sql.push(" AND origin = ").push_bind(origin);
        }
        sql.push(" GROUP BY origin, decision");
        let rows = sql.build().fetch_all(&self.pool).await.map_err(failure)?;
        let count = |row: &SqliteRow| {
            let decision = LedgerDecision::parse(column(row, 1)?).ok_or_else(|| damaged("ledger_days.decision"))?;
            Ok((column(row, 0)?, decision, u64::try_from(column::<i64>(row, 2)?).unwrap_or(0)))
        };
        Ok(sum_up(rows.iter().map(count).collect::<Result<Vec<_>, StoreError>>()?))
    }

    async fn inbound_message(&self, channel: &str, thread: &str) -> Result<Option<InboundMessage>, StoreError> {
        let sql = "SELECT user_id, conversation_id, context_json, at FROM inbound_messages \
                   WHERE channel = $1 AND thread = $2";
        let row = sqlx::query(sql).bind(channel).bind(thread).fetch_optional(&self.pool).await.map_err(failure)?;
        let Some(row) = &row else { return Ok(None) };
        let row = InboundRow {
            user_id: column(row, 0)?,
            conversation_id: column(row, 1)?,
            context: column(row, 2)?,
            at: Time::from_millis(column(row, 3)?),
        };
        Ok(row.message())
    }

    async fn reply_context(
        &self,
        user_id: &str,
        conversation_id: &str,
        agent: &str,
    ) -> Result<Option<RequestContext>, StoreError> {
        let sql =
            "SELECT context_json, at FROM reply_contexts WHERE user_id = $1 AND conversation_id = $2 AND agent = $3";
        let row = sqlx::query(sql).bind(user_id).bind(conversation_id).bind(agent);
        let row = row.fetch_optional(&self.pool).await.map_err(failure)?;
        let Some(row) = &row else { return Ok(None) };
        Ok(ReplyContextRow { context: column(row, 0)?, at: Time::from_millis(column(row, 1)?) }.context())
    }

    async fn chosen_context(&self, call_key: &NotifyKey, since: Time) -> Result<Option<RequestContext>, StoreError> {
        let sql = "SELECT context_json FROM notify_requests WHERE call_key = $1 AND (ended_at IS NULL OR ended_at > $2) \
                   ORDER BY created_at LIMIT 1";
        let row = sqlx::query(sql).bind(call_key.to_vec()).bind(since.as_millis());
        let row = row.fetch_optional(&self.pool).await.map_err(failure)?;
        row.map(|row| request_context(column(&row, 0)?)).transpose()
    }

    async fn people_with_target(&self, channel: &str, target: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT user_id FROM person_targets WHERE channel = $1 AND target = $2 ORDER BY user_id LIMIT $3";
        let rows = sqlx::query(sql).bind(channel).bind(normalized_target(target)).bind(row_count(limit));
        let rows = rows.fetch_all(&self.pool).await.map_err(failure)?;
        rows.iter().map(|row| column(row, 0)).collect()
    }
}

fn request(row: &SqliteRow) -> Result<NotifyRow, StoreError> {
    let answer: Option<&str> = column(row, 11)?;
    Ok(NotifyRow {
        key: hash(column(row, 0)?)?,
        request_id: uuid(row, 1)?,
        origin: column(row, 2)?,
        intent: Intent::parse(column(row, 3)?).ok_or_else(|| damaged("notify_requests.intent"))?,
        channel: ChannelName::parse(column(row, 4)?).map_err(|_| damaged("notify_requests.channel"))?,
        user_id: column(row, 5)?,
        on_behalf_of: column(row, 6)?,
        limit_key: column::<Option<&[u8]>>(row, 7)?.map(hash).transpose()?,
        state: NotifyState::parse(column(row, 8)?).ok_or_else(|| damaged("notify_requests.state"))?,
        fence: column(row, 9)?,
        lease_until: time(row, 10)?,
        answer: answer.map(|text| parse_json(text, "notify_requests.answer_json")).transpose()?,
        notification_id: optional(row, 12)?.map(NotificationId),
        created_at: Time::from_millis(column(row, 13)?),
        ended_at: time(row, 14)?,
        is_passed_on: column(row, 15)?,
        chosen: chosen(column(row, 16)?, column(row, 17)?)?,
    })
}

fn chosen(call_key: Option<&[u8]>, context: Option<&str>) -> Result<Option<ChosenContext>, StoreError> {
    let (Some(call_key), Some(context)) = (call_key, context) else { return Ok(None) };
    Ok(Some(ChosenContext { call_key: hash(call_key)?, context: request_context(context)? }))
}

fn request_context(json: &str) -> Result<RequestContext, StoreError> {
    let context = RequestContext::parse(&serde_json::Value::String(json.to_owned()));
    context.map_err(|_| damaged("notify_requests.context_json"))
}

fn hash(bytes: &[u8]) -> Result<NotifyKey, StoreError> {
    bytes.try_into().map_err(|_| damaged("notify_requests.key"))
}

fn entry(row: &SqliteRow) -> Result<LedgerEntry, StoreError> {
    let id: Uuid = uuid(row, 0)?;
    let class: Option<&str> = column(row, 6)?;
    let decided = LedgerDraft {
        origin: column(row, 1)?,
        user_id: column(row, 2)?,
        channel: column(row, 3)?,
        intent: Intent::parse(column(row, 4)?),
        decision: LedgerDecision::parse(column(row, 5)?).ok_or_else(|| damaged("ledger.decision"))?,
        class: class.and_then(ErrorClass::parse),
        reason: column(row, 7)?,
        notification_id: optional(row, 8)?,
        request_id: optional(row, 9)?,
    };
    Ok(LedgerEntry { id, at: crate::minted_at(id), decided })
}
