//! Keeps the line: connects, writes down what commits have decided, in their order, and looks whether Redis still lives.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisResult};
use tokio::time::{Instant, sleep, timeout};

use super::line::{Line, Note};
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
type Owed = Vec<(Instant, Vec<Quota>)>;

/// Runs until it is aborted.
pub(super) async fn keep(client: Client, line: Arc<Line>) {
    let mut owed = Owed::new();
    loop {
        if let Err(why) = attend(&client, &line, &mut owed).await {
            line.is_away(why);
        }
        set_aside(&line, &mut owed);
        sleep(PAUSE).await;
    }
}

/// One connection, from its beginning to its end.
async fn attend(client: &Client, line: &Line, owed: &mut Owed) -> Result<(), String> {
    let mut connection = connect(client).await?;
    while let Some((_, quotas)) = owed.last() {
        delete(&mut connection, line, quotas).await?;
        owed.pop();
    }
    let number = line.open(connection.clone());
    while line.connection().is_some() {
        // Nothing to write for a while: is it still there?
        let lives = match timeout(LOOK, line.work()).await {
            Ok(()) => Ok(()),
            Err(_) => step(redis::cmd("PING").query_async::<()>(&mut connection)).await,
        };
        let written = match lives {
            Ok(()) => write(&mut connection, line, owed).await,
            Err(why) => Err(why),
        };
        if let Err(why) = written {
            line.hang_up(number, why);
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
async fn write(connection: &mut MultiplexedConnection, line: &Line, owed: &mut Owed) -> Result<(), String> {
    while let Some(note) = line.next_note() {
        match note {
            Note::Remember(quota, until) => {
                let (key, millis) = (line.key(&quota), until.as_millis());
                let mut both = redis::pipe();
                // The value decides; that the key ends by itself only keeps Redis tidy, by its own clock.
                both.atomic().cmd("SET").arg(&key).arg(millis).ignore().cmd("PEXPIREAT").arg(&key).arg(millis).ignore();
                step(both.query_async::<()>(connection)).await?;
            }
            Note::Forget(quotas) => {
                if let Err(why) = delete(connection, line, &quotas).await {
                    owed.push((Instant::now(), quotas));
                    return Err(why);
                }
            }
        }
    }
    Ok(())
}

async fn delete(connection: &mut MultiplexedConnection, line: &Line, quotas: &[Quota]) -> Result<(), String> {
    let keys: Vec<String> = quotas.iter().map(|quota| line.key(quota)).collect();
    step(redis::cmd("DEL").arg(keys).query_async::<()>(connection)).await?;
    line.unmask(quotas);
    Ok(())
}

/// Redis is away: refusals are not remembered, what is to be forgotten is owed for as long as it could be recalled.
fn set_aside(line: &Line, owed: &mut Owed) {
    while let Some(note) = line.next_note() {
        if let Note::Forget(quotas) = note {
            owed.push((Instant::now(), quotas));
        }
    }
    for (_, quotas) in owed.extract_if(.., |(since, _)| since.elapsed() > OWED_MAX) {
        line.unmask(&quotas);
    }
}

/// A step that must not take long.
async fn step<T>(doing: impl Future<Output = RedisResult<T>>) -> Result<T, String> {
    match timeout(STEP_MAX, doing).await {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(_) => Err("it does not answer".to_owned()),
    }
}
