//! The worker: connects, writes the refusals of commits in their order, and pings Redis while there is nothing to write.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisResult};
use tokio::time::{Instant, sleep, timeout};

use super::connection::{RedisWrite, SharedConnection};
use crate::people::Quota;

/// The timeout of connecting and of one write. No call waits for it.
const STEP_MAX: Duration = Duration::from_secs(1);
/// The pause before reconnecting.
const PAUSE: Duration = Duration::from_millis(250);
/// The interval of pings while there is nothing to write.
const PING_INTERVAL: Duration = Duration::from_secs(1);
/// How long a delete stays pending: an entry expires after an hour by itself.
const PENDING_MAX: Duration = Duration::from_secs(60 * 60);

/// Deletes that failed or came while Redis was disconnected, with their time.
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

/// Connects and serves until the connection ends.
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
        // Nothing to write for a while: ping.
        let lives = match timeout(PING_INTERVAL, shared.work()).await {
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

/// Connects and pings.
pub(super) async fn connect(client: &Client) -> Result<MultiplexedConnection, String> {
    let config = AsyncConnectionConfig::new().set_connection_timeout(Some(STEP_MAX)).set_response_timeout(None);
    let mut connection = step(client.get_multiplexed_async_connection_with_config(&config)).await?;
    step(redis::cmd("PING").query_async::<()>(&mut connection)).await?;
    Ok(connection)
}

/// Writes the queue. A delete that fails becomes pending.
async fn write(
    connection: &mut MultiplexedConnection,
    shared: &SharedConnection,
    pending_deletes: &mut PendingDeletes,
) -> Result<(), String> {
    while let Some(write) = shared.next_write() {
        match write {
            RedisWrite::Remember(quota, until) => {
                let (key, millis) = (shared.key(&quota), until.as_millis());
                let mut both = redis::pipe();
                // The value decides. The expiry only cleans up, by the clock of Redis.
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

/// While Redis is disconnected: drops refusals, and keeps deletes for as long as the entry could exist.
fn set_aside(shared: &SharedConnection, pending_deletes: &mut PendingDeletes) {
    while let Some(write) = shared.next_write() {
        if let RedisWrite::Forget(quotas) = write {
            pending_deletes.push((Instant::now(), quotas));
        }
    }
    for (_, quotas) in pending_deletes.extract_if(.., |(since, _)| since.elapsed() > PENDING_MAX) {
        shared.unmask(&quotas);
    }
}

/// Runs one operation with a timeout.
async fn step<T>(doing: impl Future<Output = RedisResult<T>>) -> Result<T, String> {
    match timeout(STEP_MAX, doing).await {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err("it does not answer".to_owned()),
    }
}
