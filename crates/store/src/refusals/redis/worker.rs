//! Keeps the connection: connects, writes down what commits have decided, in their order, and looks whether Redis still lives.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisResult};
use tokio::time::{Instant, sleep, timeout};

use super::connection::{RedisWrite, SharedConnection};
use crate::people::Quota;

/// How long connecting or one write may take. No call waits for it.
const STEP_MAX: Duration = Duration::from_secs(1);
/// How long to wait before connecting again.
const PAUSE: Duration = Duration::from_millis(250);
/// How often it is looked whether Redis lives while there is nothing to write.
const LOOK: Duration = Duration::from_secs(1);
/// No refusal lasts longer than its hour, so nothing need be deleted that was forgotten before.
const OWED_MAX: Duration = Duration::from_secs(60 * 60);

/// What was to be forgotten while Redis was away, and since when.
type PendingDeletes = Vec<(Instant, Vec<Quota>)>;

/// Runs until it is aborted.
pub(super) async fn run(client: Client, shared: Arc<SharedConnection>) {
    let mut pending_deletes = PendingDeletes::new();
    loop {
        if let Err(why) = serve_connection(&client, &shared, &mut pending_deletes).await {
            shared.is_away(why);
        }
        set_aside(&shared, &mut pending_deletes);
        sleep(PAUSE).await;
    }
}

/// One connection, from its beginning to its end.
async fn serve_connection(
    client: &Client,
    shared: &SharedConnection,
    pending_deletes: &mut PendingDeletes,
) -> Result<(), String> {
    let mut connection = connect(client).await?;
    while let Some((_, quotas)) = pending_deletes.last() {
        delete(&mut connection, shared, quotas).await?;
        pending_deletes.pop();
    }
    let number = shared.open(connection.clone());
    while shared.connection().is_some() {
        // Nothing to write for a while: is it still there?
        let lives = match timeout(LOOK, shared.work()).await {
            Ok(()) => Ok(()),
            Err(_) => step(redis::cmd("PING").query_async::<()>(&mut connection)).await,
        };
        let written = match lives {
            Ok(()) => write(&mut connection, shared, pending_deletes).await,
            Err(why) => Err(why),
        };
        if let Err(why) = written {
            shared.disconnect(number, why);
        }
    }
    Ok(())
}

/// A connection that answers.
pub(super) async fn connect(client: &Client) -> Result<MultiplexedConnection, String> {
    let config = AsyncConnectionConfig::new().set_connection_timeout(Some(STEP_MAX)).set_response_timeout(None);
    let mut connection = step(client.get_multiplexed_async_connection_with_config(&config)).await?;
    step(redis::cmd("PING").query_async::<()>(&mut connection)).await?;
    Ok(connection)
}

/// Writes what waits. What cannot be forgotten now is owed.
async fn write(
    connection: &mut MultiplexedConnection,
    shared: &SharedConnection,
    pending_deletes: &mut PendingDeletes,
) -> Result<(), String> {
    while let Some(note) = shared.next_note() {
        match note {
            RedisWrite::Remember(quota, until) => {
                let (key, millis) = (shared.key(&quota), until.as_millis());
                let mut both = redis::pipe();
                // The value decides; that the key ends by itself only keeps Redis tidy, by its own clock.
                both.atomic().cmd("SET").arg(&key).arg(millis).ignore().cmd("PEXPIREAT").arg(&key).arg(millis).ignore();
                step(both.query_async::<()>(connection)).await?;
            }
            RedisWrite::Forget(quotas) => {
                if let Err(why) = delete(connection, shared, &quotas).await {
                    pending_deletes.push((Instant::now(), quotas));
                    return Err(why);
                }
            }
        }
    }
    Ok(())
}

async fn delete(
    connection: &mut MultiplexedConnection,
    shared: &SharedConnection,
    quotas: &[Quota],
) -> Result<(), String> {
    let keys: Vec<String> = quotas.iter().map(|quota| shared.key(quota)).collect();
    step(redis::cmd("DEL").arg(keys).query_async::<()>(connection)).await?;
    shared.unmask(quotas);
    Ok(())
}

/// Redis is away: refusals are not remembered, what is to be forgotten is owed for as long as it could be recalled.
fn set_aside(shared: &SharedConnection, pending_deletes: &mut PendingDeletes) {
    while let Some(note) = shared.next_note() {
        if let RedisWrite::Forget(quotas) = note {
            pending_deletes.push((Instant::now(), quotas));
        }
    }
    for (_, quotas) in pending_deletes.extract_if(.., |(since, _)| since.elapsed() > OWED_MAX) {
        shared.unmask(&quotas);
    }
}

/// A step that must not take long.
async fn step<T>(doing: impl Future<Output = RedisResult<T>>) -> Result<T, String> {
    match timeout(STEP_MAX, doing).await {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err("it does not answer".to_owned()),
    }
}
